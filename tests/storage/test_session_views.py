"""What viewers ask of a session: pages, branches, forks, exports; lists; and lines of a size that few expect."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import (
    PROCESS,
    EntryNotFound,
    GoalStateEntry,
    InvalidArgument,
    LLMCallEntry,
    NewEntry,
    SessionCorrupt,
    SessionManager,
    SessionNotFound,
    StorageFailed,
    UnsupportedVersion,
)
from crewlog.storage.export import export
from crewlog.storage.log import BlockReader
from crewlog.storage.sessions import SessionStore
from crewlog.storage.views import branches, entry_page


def said(text: str, role: str = "user") -> bytes:
    return json.dumps({"role": role, "content": [{"type": "text", "text": text}]}).encode()


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(str(tmp_path / "projects" / "-x"), durability=PROCESS)


@pytest.fixture
def store(manager: SessionManager) -> SessionStore:
    return manager.create("/x", name="first name")


def ids(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["id"] for line in lines]


def texts(store: SessionStore, at: str | None = None) -> list[str]:
    return [json.loads(bytes(raw))["content"][0]["text"] for raw in store.snapshot(at).messages]


def test_pages_cover_the_chain_from_either_side(store: SessionStore) -> None:
    chain = ["h0"] + [store.append_message(said(str(number))).id for number in range(25)]
    page = entry_page(store, limit=10)
    assert (ids(page.entries), page.has_more, page.total) == (chain[-10:], True, 26)
    found = ids(page.entries)
    while page.has_more:
        page = entry_page(store, before=found[0], limit=10)
        found = ids(page.entries) + found
    assert found == chain
    found = []
    page = entry_page(store, after="h0", limit=7)
    while True:
        found += ids(page.entries)
        if not page.has_more:
            break
        page = entry_page(store, after=found[-1], limit=7)
    assert found == chain[1:]
    assert entry_page(store, after=chain[-1]).entries == []
    assert ids(entry_page(store, kinds=["header"]).entries) == ["h0"]
    with pytest.raises(EntryNotFound):
        entry_page(store, after="nope")
    with pytest.raises(InvalidArgument, match="before"):
        entry_page(store, after="h0", before="h0")


def test_a_page_bounded_in_bytes_never_carries_what_is_larger(store: SessionStore) -> None:
    for number in range(3):
        store.append_message(said(str(number)))
    large = store.append_message(said("x" * 100_000)).id
    for number in range(3):
        store.append_message(said(str(number)))
    page = entry_page(store, max_bytes=5_000)
    assert sum(len(line) for line in page.entries) < 6_000
    shown = next(json.loads(line) for line in page.entries if json.loads(line)["id"] == large)
    assert shown["data"] is None
    assert shown["omittedBytes"] > 100_000
    assert len(entry_page(store, max_bytes=1).entries) == 1  # never an empty page where there is something


def test_blanks_that_json_does_not_know_are_on_no_page(store: SessionStore) -> None:
    """Go trims them, so that codebot opens the log."""
    entry = store.append_message(said("one")).id
    line = f'{{"kind":"message","id":"odd","parent_id":"{entry}","timestamp":"2026-03-01T09:30:00Z","data":{said("two").decode()}}}'
    with open(store.path, "ab") as file:
        file.write(b"\x0b\x0c" + line.encode() + "\u3000\u2028".encode() + b"\n")
    store.refresh()
    assert ids(entry_page(store).entries) == ["h0", entry, "odd"]
    assert [entry["id"] for entry in json.loads(export(store, "json"))["entries"]] == ["h0", entry, "odd"]


def test_branches_forks_and_rewinds(store: SessionStore, manager: SessionManager) -> None:
    first = store.append_message(said("one")).id
    second = store.append_message(said("two")).id
    store.rewind(first)
    third = store.append_message(said("three")).id
    assert texts(store) == ["one", "three"]
    assert texts(store, second) == ["one", "two"]
    current, other = branches(store)
    assert (current.leaf_id, current.current, current.last_text, current.length) == (third, True, "three", 4)
    assert (other.leaf_id, other.current, other.last_text, other.length) == (second, False, "two", 3)
    assert ids(entry_page(store, leaf_id=second).entries) == ["h0", first, second]
    fork = manager.fork(store, "/elsewhere", second)
    assert texts(fork) == ["one", "two"]
    assert (fork.header.cwd, fork.header.name) == ("/elsewhere", "first name")
    assert fork.session_id != store.session_id
    fork.append_message(said("only here"))
    assert texts(store) == ["one", "three"]
    with pytest.raises(EntryNotFound):
        store.rewind("nope")
    with pytest.raises(EntryNotFound):
        manager.fork(store, "/x", "nope")


def test_a_missing_parent_in_the_middle_hides_nothing(store: SessionStore) -> None:
    """500 good entries, one of which names a parent that is not there (cases, 1)."""
    path = Path(store.path)
    for number in range(500):
        store.append_message(said(str(number)))
    lines = path.read_bytes().splitlines(keepends=True)
    entry = json.loads(lines[251])
    lines[251] = lines[251].replace(entry["parent_id"].encode(), b"deadbeef")
    path.write_bytes(b"".join(lines))
    again = SessionManager(str(path.parent)).open_path(str(path))
    with pytest.raises(EntryNotFound, match="deadbeef"):
        again.snapshot()
    page = entry_page(again, limit=1000)
    assert len(page.entries) == 250
    assert page.broken is not None
    assert (page.broken.entry_id, page.broken.missing_parent_id) == (entry["id"], "deadbeef")
    current, other = branches(again)
    assert current.broken is not None
    assert other.last_text == "249"
    told = export(again, "markdown")
    assert "499" in told
    assert "deadbeef" in told
    assert json.loads(export(again, "json"))["broken"]


def test_exports_hold_text_and_never_markup(store: SessionStore) -> None:
    hostile = '<script>alert(1)</script> [x](command:evil) ``` \u202e"'
    call = {"type": "toolCall", "tool_call": {"id": "c", "name": "<b>run", "args": {"cmd": hostile}}}
    thinking = {"type": "thinking", "thinking": hostile}
    image = {"type": "image", "image": {"url": "javascript:alert(1)", "mime_type": "image/png"}}
    store.append_message(said(hostile))
    store.append_message(json.dumps({"role": "assistant", "content": [thinking, call, image]}).encode())
    store.append_message(
        json.dumps({"role": "tool", "content": [{"type": "text", "text": hostile}], "metadata": {"tool_call_id": "c"}}).encode()
    )
    store.append_compaction(hostile)
    store.append_model_change("<i>", "m")
    store.set_name(hostile)
    page = export(store, "html")
    assert "<script" not in page
    assert "<b>run" not in page
    assert "javascript:" not in page.replace("<pre>javascript:alert(1)</pre>", "")
    assert "default-src 'none'" in page
    assert page.count("<details") == page.count("</details>") >= 4
    told = export(store, "markdown")
    assert told.count("````") >= 2  # a fence longer than any in the text
    assert "<script" not in told.partition("**")[0]
    document = json.loads(export(store, "json"))
    assert [entry["kind"] for entry in document["entries"]][:2] == ["header", "message"]
    with pytest.raises(InvalidArgument, match="format"):
        export(store, "pdf")


def test_a_record_that_nobody_knows_is_shown_by_its_beginning(store: SessionStore) -> None:
    store.append([NewEntry("foreign_snapshot", b'{"files":"' + b"x" * 10_000 + b'"}')])
    for format in ("markdown", "html"):
        page = export(store, format)
        assert "foreign_snapshot: " in page
        assert "… (10,012 characters)" in page
        assert len(page) < 5000
    assert "x" * 10_000 in export(store, "json")


def test_a_page_shows_prose_code_and_the_pictures_that_the_records_hold(store: SessionStore) -> None:
    def image(**fields: str) -> bytes:
        return json.dumps({"role": "user", "content": [{"type": "image", "image": fields}]}).encode()

    store.append_message(said("first <b>\n\n```py\nx = 1 < 2\n```\nlast\n~~~\nopen"))
    store.append_message(image(data="aGk=", mime_type="image/png"))
    for hostile in (
        {"data": "aGk=", "mime_type": "image/svg+xml"},
        {"data": 'aGk="><script>', "mime_type": "image/png"},
        {"url": "http://elsewhere.example/x.png", "mime_type": "image/png"},
    ):
        store.append_message(image(**hostile))
    page = export(store, "html")
    assert '<div class="text">first &lt;b&gt;</div>\n<pre>x = 1 &lt; 2</pre>\n<div class="text">last</div>\n<pre>open</pre>' in page
    assert re.findall(r"<img [^>]*>", page) == ['<img src="data:image/png;base64,aGk=" alt="Image image/png, 3 bytes">']
    assert "<script" not in page
    assert "**Image image/png, 3 bytes**" in export(store, "markdown")


SET: list[tuple[str, dict[str, object]]] = [
    ("model_change", {"provider": "p", "model": "m"}),
    ("reasoning_effort_change", {"level": "high"}),
    ("thinking_change", {"level": "high"}),
    ("plan_state", {"phase": "planning", "slug": "s", "pre_mode": "build"}),
    ("session_info", {"name": "n", "other": "o"}),
    ("compaction", {"summary": "sum", "messages": [{"role": "user", "content": [{"type": "text", "text": "kept"}]}]}),
    ("goal_state", dict.fromkeys(("status", "id", "objective", "reason", "blocked_reason"), "x")),
    ("goal_state", dict.fromkeys(("created_at", "updated_at", "completed_at", "blocked_at"), "2026-03-01T00:00:00Z")),
    ("goal_state", dict.fromkeys(("budget_limited_at", "usage_limited_at"), "2026-03-01T00:00:00Z")),
    ("goal_state", {"blocked_count": 1, "blocked_attempt_token_total": 1, "budget_limit_reported": True}),
    ("goal_state", {"token_budget": 1, "tokens_used": 1, "token_total_at_last_account": 1}),
]


@pytest.mark.parametrize(("kind", "data", "field"), [(kind, data, field) for kind, data in SET for field in data])
def test_a_field_that_is_null_is_one_that_was_not_set(manager: SessionManager, kind: str, data: dict[str, object], field: str) -> None:
    """As Go reads it. What is told of the state is whole then: no field in it that is null."""

    def state(last: dict[str, object]) -> tuple[dict[str, object], tuple[object, ...]]:
        """The goal, and all else."""
        store = manager.create("/x", name="first name")
        for told in (data, last):
            store.append([NewEntry(kind, json.dumps(told).encode())])
        found = store.snapshot()
        plan = (found.plan_phase, found.plan_slug, found.plan_pre_mode)
        messages = [json.loads(bytes(raw))["content"] for raw in found.messages]
        return json.loads(bytes(found.goal)), (found.provider, found.model, found.reasoning_effort, plan, messages)

    goal, others = state({**data, field: None})
    assert (goal, others) == state({name: value for name, value in data.items() if name != field})
    assert None not in goal.values()


@pytest.mark.parametrize(("field", "name"), [("name", "first name"), ("other", "n")])
def test_a_name_that_is_null_is_none(store: SessionStore, field: str, name: str) -> None:
    store.append([NewEntry("session_info", json.dumps({"name": "n", "other": "o", field: None}).encode())])
    assert store.snapshot().name == name


def test_what_is_null_in_a_header_or_a_message_was_not_set(manager: SessionManager) -> None:
    session_id = manager.create("/x").session_id
    path = manager.find(session_id)
    nothing = dict.fromkeys(("content", "stop_reason", "usage", "metadata", "timestamp"))
    block = {"type": "text", "text": "hi", **dict.fromkeys(("thinking", "tool_call", "image", "tool_name"))}
    call = dict.fromkeys(("name", "args", "args_invalid", "args_raw_text", "args_parse_error", "thought_signature"))
    image = dict.fromkeys(("data", "url", "mime_type"))
    cost = dict.fromkeys(("input", "output", "cache_read", "cache_write", "total"))
    usage = {**dict.fromkeys(("provider", "model", "input", "output", "cache_read", "cache_write", "total_tokens")), "cost": cost}
    messages = [
        {"role": "user", **nothing, "content": [None, block]},
        {"role": "assistant", **nothing, "usage": usage, "content": [{"type": None, "tool_call": {"id": "c", **call}, "image": image}]},
        {"role": "tool", **nothing, "metadata": {"tool_call_id": "c", "is_error": None}},
        {"role": "tool", **nothing, "metadata": {"tool_call_id": None}},
        {"role": None, **nothing},
    ]
    header = {"version": 3, "session_id": session_id, "name": None, "cwd": None, "created": None}
    lines = [{"kind": "header", "id": "h0", "parent_id": None, "timestamp": None, "data": header}]
    for number, data in enumerate(messages):
        parent = f"{number:08x}" if number else "h0"
        lines.append({"kind": "message", "id": f"{number + 1:08x}", "parent_id": parent, "timestamp": None, "data": data})
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = manager.open(session_id)
    assert [json.loads(bytes(raw)) for raw in found.snapshot().messages] == messages
    assert (found.header.cwd, found.header.created) == ("", "0001-01-01T00:00:00Z")
    (info,) = manager.list().sessions
    assert (info.name, info.cwd, info.message_count, info.first_message) == ("", "", 5, "hi")


def test_state_entries(store: SessionStore) -> None:
    store.append_model_change("p", "m")
    store.append_reasoning_effort_change("high")
    store.append_plan_state("approved", "slug", "yolo")
    store.append_goal_state(GoalStateEntry("active", id="g", objective="ship", tokens_used=5))
    store.append_llm_call(LLMCallEntry("p", "m", 10, 5))
    store.append([NewEntry("thinking_change", b'{"level":"older name"}')])
    found = store.snapshot()
    assert (found.provider, found.model, found.reasoning_effort) == ("p", "m", "older name")
    assert (found.plan_phase, found.plan_slug, found.plan_pre_mode) == ("approved", "slug", "yolo")
    assert json.loads(bytes(found.goal))["objective"] == "ship"
    assert found.name == "first name"
    store.set_name("second")
    assert store.header.name == "second"
    assert store.snapshot().name == "second"


def test_a_snapshot_reads_nothing_that_a_compaction_replaced(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        store.append_message(said(f"replaced {number}"))
    store.append_model_change("p", "before")
    store.append_compaction("sum", [said("kept")])
    store.append_message(said("after"))
    read: list[memoryview] = []
    real = BlockReader.view

    def reading(self: BlockReader, offset: int, length: int) -> memoryview:
        read.append(real(self, offset, length))
        return read[-1]

    monkeypatch.setattr(BlockReader, "view", reading)
    found = store.snapshot()
    assert [json.loads(bytes(raw))["content"][0]["text"] for raw in found.messages] == ["sum", "kept", "after"]
    assert found.model == "before"  # state before it still counts
    assert not [line for line in read if b"replaced" in bytes(line)]


def test_a_snapshot_after_an_append_reads_only_that(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        store.append_message(said(str(number)))
    assert len(store.snapshot().messages) == 100
    store.append_message(said("new"))
    read: list[memoryview] = []
    real = BlockReader.view

    def reading(self: BlockReader, offset: int, length: int) -> memoryview:
        read.append(real(self, offset, length))
        return read[-1]

    monkeypatch.setattr(BlockReader, "view", reading)
    assert len(store.snapshot().messages) == 101
    assert len(read) == 1
    assert store.cached_bytes > 0
    store.drop_cache()
    assert store.cached_bytes == 0
    assert len(store.snapshot().messages) == 101


LARGE = """
import os, resource, sys, time
from crewlog.storage import SessionManager
from crewlog.storage.views import entry_page
path = sys.argv[1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store = SessionManager(os.path.dirname(path)).open_path(path)
assert len(store.snapshot().messages) == 14
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
page = entry_page(store, max_bytes=100_000)
assert len(page.entries) == 15 and sum(map(len, page.entries)) < 100_000
print(grown)
"""


def test_a_message_of_100_megabytes(store: SessionStore) -> None:
    size = 100_000_000
    store.append_message(b'{"role":"user","content":[{"type":"text","text":"' + b"x" * size + b'"}]}')
    for number in range(13):
        store.append_message(said(str(number)))
    done = subprocess.run([sys.executable, "-c", LARGE, store.path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2.2 * size
    assert resource.getpagesize()


def test_lists(manager: SessionManager) -> None:
    assert manager.list().sessions == []
    assert manager.most_recent() is None
    made = [manager.create("/x", name=f"n{number}") for number in range(3)]
    made[0].append_message(said("the newest now"))
    found = manager.list()
    assert found.sessions[0].id == made[0].session_id
    assert (found.sessions[0].first_message, found.sessions[0].message_count) == ("the newest now", 1)
    newest = manager.most_recent()
    assert newest is not None
    assert newest.id == made[0].session_id
    made[1].append([NewEntry("message", said("x" * 200))])
    assert manager.list().sessions[0].first_message == "x" * 77 + "..."
    Path(made[2].path).unlink()
    (Path(manager.dir) / "odd.jsonl").write_text("hello, I am notes\n")
    (Path(manager.dir) / "empty.jsonl").write_text("")
    (Path(manager.dir) / "folder.jsonl").mkdir()
    found = manager.list()
    assert len(found.sessions) == 2
    assert {Path(item.path).name for item in found.skipped} == {"odd.jsonl", "empty.jsonl", "folder.jsonl"}
    assert all(item.reason for item in found.skipped)
    with pytest.raises(SessionNotFound):
        manager.open("00000000")
    with pytest.raises(SessionCorrupt):
        manager.open_path(str(Path(manager.dir) / "odd.jsonl"))
    assert (Path(manager.dir) / "odd.jsonl").read_text() == "hello, I am notes\n"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", SessionCorrupt),
        (b"\n\n", SessionCorrupt),
        (b"hello, I am notes and no session", SessionCorrupt),
        (b'{"kind":"header","id":"h0","data":{"version":2}}\n', UnsupportedVersion),
        (b'{"kind":"header","id":"h0","data":{"version":"3"}}\n', SessionCorrupt),
        (b'{"kind":"header","id":"h0"}\n', SessionCorrupt),
    ],
)
def test_what_is_no_session_is_told_and_never_changed(manager: SessionManager, content: bytes, error: type[Exception]) -> None:
    os.makedirs(manager.dir)
    path = Path(manager.dir) / "2026-01-01_00000000.jsonl"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(error):
            manager.open("00000000")
    assert path.read_bytes() == content


def test_new_ids_are_never_those_of_the_log(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[Any] = []
    taken = store.append_message(said("a")).id
    real = os.urandom

    def urandom(size: int) -> bytes:
        offered.append(size)
        return bytes.fromhex(taken) if len(offered) < 4 else real(size)

    monkeypatch.setattr(os, "urandom", urandom)
    assert store.append_message(said("b")).id != taken
    assert len(offered) == 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```python\nleft open", "```python\nleft open\n```"),
        ("~~~~\n~~~\n```", "~~~~\n~~~\n```\n~~~~"),
        ("```\n<b>\n```\n<b>", "```\n<b>\n```\n&lt;b>"),
        ("`<b>` <b> ``a`<i>`` </i>", "`<b>` &lt;b> ``a`<i>`` &lt;/i>"),
        ("<!-- the rest is gone", "&lt;!-- the rest is gone"),
        ("<https://example.org> 1 < 2 <3", "<https://example.org> 1 < 2 <3"),
        ("```inline``` and <b>", "```inline``` and &lt;b>"),
    ],
)
def test_what_a_message_leaves_open_in_markdown_ends_with_it(store: SessionStore, text: str, shown: str) -> None:
    store.append_message(said(text))
    store.append_message(said("after"))
    assert export(store, "markdown").partition("## user\n\n")[2] == f"{shown}\n\n## user\n\nafter\n"


def test_a_first_page_is_the_beginning_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all is read for it, or only what seems to be newest by its last lines."""
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    for number in range(12):
        store = manager.create("/p", name=f"session {number}")
        for _ in range(number % 4):
            store.append_message(b'{"role":"user","content":[{"type":"text","text":"%s"}]}' % (b"x" * 700))
        store.close()
    (tmp_path / "2026-01-01_00000001.jsonl").write_bytes(b"no session\n")
    (tmp_path / "2026-01-01_00000002.jsonl").write_bytes(b"")
    whole = SessionManager(str(tmp_path), durability=PROCESS).list()
    for much in (0, 1 << 30):
        monkeypatch.setattr("crewlog.storage.manager.MUCH", much)
        for limit in (1, 3, 12, 50):
            for subject in (SessionManager(str(tmp_path), durability=PROCESS), manager):
                page = subject.first_page(limit)
                assert page.sessions == whole.sessions[:limit], (much, limit)
                assert page.more == (limit < 12)
        grown = manager.open_path(whole.sessions[-1].path)
        grown.append_message(b'{"role":"user","content":[{"type":"text","text":"%s"}]}' % (b"y" * 3_000_000))
        assert manager.first_page(1).sessions[0].id == grown.session_id
        whole = SessionManager(str(tmp_path), durability=PROCESS).list()
    os.unlink(whole.sessions[0].path)
    assert manager.first_page(1).sessions == whole.sessions[1:2]
    with pytest.raises(StorageFailed):
        SessionManager(str(tmp_path / "2026-01-01_00000001.jsonl"), durability=PROCESS).first_page(1)
