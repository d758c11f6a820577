"""Lists of sessions: what they show of odd logs, what they read again, and which logs a first page reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import PROCESS, SessionCorrupt, SessionManager, StorageFailed, WouldBlock
from crewlog.storage.listing import peek
from crewlog.storage.locks import without_waiting
from crewlog.storage.records import SessionInfo

CREATED = "2026-03-01T00:00:00Z"


def entry(kind: str, data: Any, *, id: str = "0000000a", moment: str = CREATED) -> bytes:
    return (
        json.dumps({"kind": kind, "id": id, "parent_id": "h0", "timestamp": moment, "data": data}, separators=(",", ":")).encode() + b"\n"
    )


def said(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}], **more}


def header(session_id: str = "00000001", moment: str = CREATED, **more: Any) -> bytes:
    return entry("header", {"version": 3, "session_id": session_id, "cwd": "/x", "created": CREATED, **more}, id="h0", moment=moment)


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(str(tmp_path), durability=PROCESS)


def write(manager: SessionManager, content: bytes, number: int = 1) -> str:
    path = os.path.join(manager.dir, f"2026-03-01_{number:08x}.jsonl")
    Path(path).write_bytes(content)
    return path


def shown(manager: SessionManager, content: bytes) -> SessionInfo:
    write(manager, header() + content)
    (info,) = manager.list().sessions
    return info


# --- what is shown ---


@pytest.mark.parametrize(
    ("messages", "first"),
    [
        ([said("x" * 80)], "x" * 80),
        ([said("x" * 81)], "x" * 77 + "..."),
        ([said("from the assistant", "assistant"), said("mine")], "mine"),
        ([said("injected", metadata={"injected": True}), said("typed", metadata={"injected": False})], "typed"),
        ([said(""), {"role": "user", "content": None}, {"role": "user", "content": [None, {"text": "second block"}]}], "second block"),
        ([5, {"role": 5}, {"role": "user", "content": "no blocks"}, said("well made")], "well made"),
        ([said("a \ud83d lone surrogate")], "a � lone surrogate"),
        ([], ""),
    ],
)
def test_the_first_message_is_the_first_that_the_user_wrote(manager: SessionManager, messages: list[Any], first: str) -> None:
    info = shown(manager, b"".join(entry("message", data) for data in messages))
    assert (info.first_message, info.message_count) == (first, len(messages))


def test_text_that_is_no_utf8_is_shown_as_far_as_it_is(manager: SessionManager) -> None:
    info = shown(
        manager, entry("message", said("caf@")).replace(b"@", b"\xe9") + entry("session_info", {"name": "n@"}).replace(b"@", b"\xff")
    )
    assert (info.first_message, info.name, info.message_count) == ("caf�", "n�", 1)


def test_lines_that_are_no_entries_count_nothing(manager: SessionManager) -> None:
    odd = b'{"kind":5}\n[]\n{"kind":"message"\n\xff\xfe\n\n   \n{"kind":"message","id":null,"data":{"role":"user"}}\n'
    info = shown(manager, entry("message", said("one")) + odd + entry("message", said("two"), id="0000000b"))
    assert info.message_count == 3
    assert info.first_message == "one"
    summary = manager.summary(info.path)
    assert (summary.leaf_id, summary.entry_count) == ("0000000b", 2)


@pytest.mark.parametrize(
    ("moments", "updated"),
    [
        (["2026-03-01T10:00:00Z", "2026-03-01T09:00:00Z"], "2026-03-01T10:00:00Z"),
        (["2026-03-01T10:00:00+08:00", "2026-03-01T09:00:00Z"], "2026-03-01T09:00:00Z"),
        (["2026-03-01T10:00:00-08:00", "2026-03-01T11:00:00Z"], "2026-03-01T10:00:00-08:00"),
        (["2026-03-01T10:00:00.25Z", "2026-03-01T10:00:00.3Z", "2026-03-01T10:00:00Z"], "2026-03-01T10:00:00.3Z"),
        (["soon", "9", ""], CREATED),
    ],
)
def test_a_session_was_updated_at_its_newest_time(manager: SessionManager, moments: list[str], updated: str) -> None:
    assert shown(manager, b"".join(entry("message", said("x"), moment=moment) for moment in moments)).updated == updated


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "", "never"])
def test_a_header_without_a_time_tells_when_the_session_was_created(manager: SessionManager, moment: str) -> None:
    write(manager, header(moment=moment))
    (info,) = manager.list().sessions
    assert info.updated == info.created == CREATED


def test_a_name_is_the_last_one_given(manager: SessionManager) -> None:
    write(manager, header(name="in the header"))
    assert manager.list().sessions[0].name == "in the header"
    assert shown(manager, entry("session_info", {"name": "one"}) + entry("session_info", {"name": "two"})).name == "two"
    assert shown(manager, entry("session_info", {"name": "one"}) + entry("session_info", [])).name == "one"
    assert shown(manager, entry("session_info", {"name": "in a last line"}).rstrip(b"\n")).name == "in a last line"


@pytest.mark.parametrize(
    "content",
    [
        header().rstrip(b"\n")[:-9],
        entry("message", said("no header before it")),
        entry("message", said("no header before it")).rstrip(b"\n"),
        b"\n  \n" + entry("message", said("no header before it")),
        b'{"kind":"header","id":"h0","data":{"version":3}',
        b"\xff\xfe" + header(),
        b"[" * 100_000,
    ],
)
def test_what_is_no_session_is_named_with_its_reason(manager: SessionManager, content: bytes) -> None:
    write(manager, header("00000002"), 2)
    path = write(manager, content)
    for _ in range(2):
        found = manager.list()
        assert [info.id for info in found.sessions] == ["00000002"]
        ((skipped, reason),) = [(item.path, item.reason) for item in found.skipped]
        assert (skipped, bool(reason)) == (path, True)
        with pytest.raises(SessionCorrupt):
            manager.info(path)
    Path(path).write_bytes(header() + entry("message", said("repaired")))
    assert [info.first_message for info in manager.list().sessions] == ["repaired", ""] or manager.list().sessions[1].first_message


# --- what is read again ---


def test_a_log_that_goes_or_comes_back_between_two_looks(manager: SessionManager) -> None:
    path = write(manager, header() + entry("message", said("one")))
    assert manager.info(path).first_message == "one"
    os.unlink(path)
    with pytest.raises(StorageFailed, match="ENOENT"):
        manager.info(path)
    assert manager.list().sessions == []
    write(manager, header() + entry("message", said("another")))
    assert manager.info(path).first_message == "another"


def test_a_log_that_shrinks_or_is_replaced_is_read_anew(manager: SessionManager) -> None:
    whole = header() + entry("message", said("one")) + entry("message", said("two"), id="0000000b")
    path = write(manager, whole)
    assert manager.info(path).message_count == 2
    Path(path).write_bytes(whole[: len(header()) + 5])
    assert (manager.info(path).message_count, manager.info(path).first_message) == (0, "")
    Path(path).write_bytes(whole.replace(b'"one"', b'"six"'))
    assert (manager.info(path).message_count, manager.info(path).first_message) == (2, "six")
    os.rename(write(manager, header() + entry("message", said("moved here")), 9), path)
    assert (manager.info(path).message_count, manager.info(path).first_message) == (1, "moved here")


def test_a_record_that_something_is_glued_to_counts_no_more(manager: SessionManager) -> None:
    path = write(manager, header() + entry("message", said("one")).rstrip(b"\n"))
    assert manager.info(path).message_count == 1
    with open(path, "ab") as file:
        file.write(b"glued")
    assert manager.info(path).message_count == 0
    with open(path, "ab") as file:
        file.write(b"\n" + entry("message", said("two")))
    assert (manager.info(path).message_count, manager.info(path).first_message) == (1, "two")


def test_what_takes_long_is_not_read_on_an_event_loop_and_read_well_later(manager: SessionManager) -> None:
    path = write(manager, header() + b"".join(entry("message", said(f"{number} " + "x" * 1000)) for number in range(600)))
    with without_waiting(), pytest.raises(WouldBlock):
        manager.list()
    with without_waiting(), pytest.raises(WouldBlock):
        manager.info(path)
    assert manager.info(path).message_count == 600
    with open(path, "ab") as file:
        file.write(entry("message", said("a little more")))
    with without_waiting():
        assert manager.info(path).message_count == 601


# --- first pages ---


def first(manager: SessionManager, limit: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("crewlog.storage.manager.MUCH", 0)  # bytes up to which all is read
    return [info.id for info in SessionManager(manager.dir, durability=PROCESS).first_page(limit).sessions]


@pytest.mark.parametrize(
    "last",
    [
        entry("message", said("x" * 10_000), moment="2026-03-09T00:00:00Z"),
        entry("message", said("x" * 500_000), moment="2026-03-09T00:00:00Z"),
        entry("message", said("x"), moment="2026-03-09T00:00:00Z") + b"\n   \n{torn",
        entry("message", said("x"), moment="2026-03-09T00:00:00Z").rstrip(b"\n"),
        entry("message", said("x"), moment="2026-03-09T00:00:00Z") + entry("message", said("x"), moment="never") * 100,
        json.dumps(json.loads(entry("message", said("x"), moment="2026-03-09T00:00:00Z")), indent=None).encode() + b"\n",
    ],
)
def test_a_first_page_finds_the_newest_by_the_ends_of_the_logs(
    manager: SessionManager, last: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 8):
        more = last if number == 4 else entry("message", said("x"), moment=f"2026-03-0{number}T00:00:00Z")
        write(manager, header(f"{number:08x}") + more, number)
    assert first(manager, 2, monkeypatch) == [f"{4:08x}", f"{7:08x}"]


def test_a_first_page_reads_only_its_own_logs(manager: SessionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 8):
        write(manager, header(f"{number:08x}") + entry("message", said("x"), moment=f"2026-03-0{number}T00:00:00Z") * 50, number)
    monkeypatch.setattr("crewlog.storage.manager.MUCH", 0)
    fresh = SessionManager(manager.dir, durability=PROCESS)
    page = fresh.first_page(2)
    assert ([info.id for info in page.sessions], page.more) == ([f"{7:08x}", f"{6:08x}"], True)
    assert sum(summary.read_bytes for summary in fresh._summaries.values()) == 2 * os.path.getsize(page.sessions[0].path)


@pytest.mark.parametrize(
    "content", [b"", b"no session\n", entry("message", said("x")), header()[:30], b'{"kind":"header","data":{"version":99}}\n']
)
def test_what_is_no_session_has_no_time(manager: SessionManager, content: bytes) -> None:
    assert peek(write(manager, content)) is None


def test_a_log_whose_times_are_far_from_its_end_is_as_new_as_its_file(manager: SessionManager) -> None:
    for content in (header(moment="never"), header() + b"x" * 5_000_000):
        path = write(manager, content)
        os.utime(path, ns=(5, 1_900_000_000_000_000_000))
        assert peek(path) == 1_900_000_000_000_000_000


@pytest.mark.parametrize(
    "begun",
    [
        header(f"{4:08x}", "2026-03-09T00:00:00Z"),
        header(f"{4:08x}", "never", created="2026-03-09T00:00:00Z"),
        header(f"{4:08x}", "2026-03-09T00:00:00Z", name="x" * 5_000),
    ],
)
def test_a_first_page_knows_of_a_session_that_is_newer_than_what_it_holds(
    manager: SessionManager, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a fork is, which holds copies."""
    for number in range(1, 8):
        copied = entry("message", said("x" * 5_000), moment=f"2026-03-0{number}T00:00:00Z")
        write(manager, (begun if number == 4 else header(f"{number:08x}")) + copied, number)
    assert first(manager, 2, monkeypatch) == [f"{4:08x}", f"{7:08x}"]


def test_nothing_but_files_is_looked_into(manager: SessionManager) -> None:
    """To open a pipe would wait for its other end."""
    pipe = os.path.join(manager.dir, "2026-03-01_00000001.jsonl")
    os.mkfifo(pipe)
    assert peek(pipe) is None
    assert peek(pipe + "~") is None
    assert [item.path for item in manager.first_page(5).skipped] == [pipe]
