"""What the Go program's manager does with odd folders, odd ids and closed stores (golden/expected/manager.json)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import PROCESS, SessionManager, SessionNotFound, StorageError, StoreClosed
from crewlog.storage.errors import InvalidName, SessionCorrupt

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"hi"}]}'


@pytest.fixture
def theirs(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden/expected/manager.json").read_bytes())  # type: ignore[no-any-return]


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(str(tmp_path / "p"), durability=PROCESS)


def test_closed_store(theirs: dict[str, Any], manager: SessionManager) -> None:
    """Writing ends with close, reading does not; a name that was not stored is not shown (in Go it is)."""
    store = manager.create("/x")
    store.close()
    with pytest.raises(StoreClosed, match="closed"):
        store.append_message(MESSAGE)
    with pytest.raises(StoreClosed):
        store.set_name("named after close")
    assert theirs["closed_store"]["build_snapshot_error"] is None
    assert len(store.snapshot().messages) == theirs["closed_store"]["build_snapshot_messages"]
    assert store.header.name == ""
    store.close()
    other = manager.open(store.session_id)
    other.append_message(MESSAGE)
    assert len(store.snapshot().messages) == 1


def test_missing_folder(theirs: dict[str, Any], manager: SessionManager) -> None:
    assert theirs["missing_dir"]["list_error"] is None
    assert manager.list().sessions == []
    assert manager.most_recent() is None
    with pytest.raises(SessionNotFound):
        manager.open("00000000")
    assert not os.path.exists(manager.dir)  # a reader leaves nothing behind


def test_open_by_id(theirs: dict[str, Any], manager: SessionManager) -> None:
    store = manager.create("/x")
    assert theirs["open_by_id"]["full_ok"]
    assert manager.open(store.session_id).leaf_id == "h0"
    for wrong in (store.session_id[:4], "zzzz"):
        with pytest.raises(SessionNotFound, match="not found"):
            manager.open(wrong)
    with pytest.raises(InvalidName):  # an empty id is not merely unknown
        manager.open("")


def test_the_first_of_two_files_in_name_order(theirs: dict[str, Any], manager: SessionManager) -> None:
    assert theirs["open_by_id_two_files"]["error"] is None
    store = manager.create("/x")
    odd = Path(manager.dir) / f"odd_{store.session_id}.jsonl"
    odd.write_bytes(Path(store.path).read_bytes())
    assert manager.open(store.session_id).path == store.path


def test_odd_folder(theirs: dict[str, Any], manager: SessionManager, tmp_path: Path) -> None:
    store = manager.create("/x")
    folder = Path(manager.dir)
    content = Path(store.path).read_bytes()
    (folder / ".hidden.jsonl").write_bytes(content)
    (tmp_path / "elsewhere").write_bytes(content)
    (folder / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    (folder / "bad.jsonl").write_text("xyz\n")
    (folder / "empty.jsonl").write_text("")
    (folder / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    (folder / "linkdir.jsonl").symlink_to(tmp_path / "folder")
    (folder / "notes.txt").write_text("no session")
    found = manager.list()
    names = sorted("<session>.jsonl" if info.path == store.path else Path(info.path).name for info in found.sessions)
    assert names == theirs["odd_dir"]["listed_sorted"]
    assert {Path(item.path).name for item in found.skipped} == set(theirs["odd_dir"]["skip_reasons"])
    assert all(item.reason for item in found.skipped)


def test_long_lines_do_not_end_the_list(theirs: dict[str, Any], manager: SessionManager) -> None:
    """Better: in Go the scan ends at a line of 1 MiB, and the messages behind it are not counted."""
    for row in theirs["list_line_cap"]:
        store = manager.create("/x")
        start = f'{{"kind":"message","id":"aaaaaaaa","parent_id":"{store.leaf_id}","timestamp":"2026-08-30T00:00:00Z","data":'
        filled = start + '{"role":"user","content":[{"type":"text","text":"%s"}]}}'
        with open(store.path, "a") as file:
            file.write(filled % ("x" * (row["line_content_bytes"] - len(filled) + 2)) + "\n")
            file.write(start.replace("aaaaaaaa", "bbbbbbbb").replace("08-30", "08-31") + MESSAGE.decode() + "}\n")
        info = manager.info(store.path)
        assert (info.message_count, info.updated) == (2, store.header.created)
        assert info.first_message == "x" * 77 + "..."


def test_two_writers(theirs: dict[str, Any], manager: SessionManager) -> None:
    """Where Go's second handle overwrites the first's bytes and the file no longer parses, ours are one chain."""
    assert theirs["two_writers"]["scan_error"]
    one = manager.create("/x")
    one.append_message(MESSAGE)
    two = manager.open(one.session_id)
    for turn in range(6):
        (one, two)[turn % 2].append_message(MESSAGE[:-1] + b',"n":%d}' % turn)
    for store in (one, two, manager.open(one.session_id)):
        assert len(store.snapshot().messages) == 7


def test_an_unlinked_log_is_not_written_to(theirs: dict[str, Any], manager: SessionManager) -> None:
    """Where Go's append goes into a file that no name leads to, ours is refused (10)."""
    assert theirs["unlinked"]["append_error"] is None
    store = manager.create("/x")
    store.append_message(MESSAGE)
    os.unlink(store.path)
    for _ in range(2):
        with pytest.raises(SessionNotFound):
            store.append_message(MESSAGE)
        with pytest.raises(SessionNotFound):
            store.snapshot()
    assert os.listdir(manager.dir) == [".crewlog"]
    os.rename(manager.dir, manager.dir + "-gone")
    with pytest.raises(SessionNotFound):
        store.append_message(MESSAGE)
    assert not os.path.exists(manager.dir)  # nothing is made for what is gone


def test_a_log_that_was_put_in_its_place_is_the_log(manager: SessionManager) -> None:
    store = manager.create("/x")
    store.append_message(MESSAGE)
    older = Path(store.path).read_bytes()
    store.append_message(MESSAGE)
    Path(store.path + ".new").write_bytes(older)
    os.replace(store.path + ".new", store.path)
    done = store.append_message(MESSAGE)
    assert len(store.snapshot().messages) == 2
    assert manager.open(store.session_id).leaf_id == done.id


def test_json_that_is_none_changes_nothing(theirs: dict[str, Any], manager: SessionManager) -> None:
    assert theirs["marshal_errors"]["file_unchanged"]
    store = manager.create("/x")
    before = Path(store.path).read_bytes()
    for bad in (b'{"role":"user","metadata":{"x":NaN}}', b'{"role":"user","content":[{"tool_call":{"args":}}]}', b'{"role":"user"'):
        with pytest.raises(StorageError):
            store.append_message(bad)
        with pytest.raises(StorageError):
            store.append_compaction("s", [bad])
    assert Path(store.path).read_bytes() == before


def test_the_name_is_there_after_a_snapshot(theirs: dict[str, Any], manager: SessionManager) -> None:
    store = manager.create("/x")
    store.set_name("the name")
    again = manager.open(store.session_id)
    assert again.header.name == theirs["name_after_open"]["after_open"]
    again.snapshot()
    assert again.header.name == theirs["name_after_open"]["after_build_snapshot"]


def test_a_file_of_another_kind_is_no_session(manager: SessionManager) -> None:
    os.makedirs(manager.dir)
    path = Path(manager.dir) / "2026-01-01_00000000.jsonl"
    path.write_bytes(b"hello, I am notes\nof two lines")
    with pytest.raises(SessionCorrupt):
        manager.open("00000000")
    assert path.read_bytes() == b"hello, I am notes\nof two lines"
