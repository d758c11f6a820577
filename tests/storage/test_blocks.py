"""Lines that are read many at a time mean what they mean one by one."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlog.storage import PROCESS, SessionManager, StorageError
from crewlog.storage.digest import SessionDigest
from crewlog.storage.listing import SessionSummary
from crewlog.storage.log import BLOCK, Block
from crewlog.storage.sessions import SessionStore
from crewlog.storage.tree import EntryTree

TIME = "2026-03-01T00:00:00Z"
HEADER = {
    "kind": "header",
    "id": "h0",
    "timestamp": TIME,
    "data": {"version": 3, "session_id": "00000001", "cwd": "/x", "created": TIME},
}

ids = st.sampled_from(["a", "b", "c", "0000000d", "h0", "ü", 'q"', ""])
times = st.sampled_from(
    [
        TIME,
        "2026-03-01T00:00:00.5Z",
        "2026-03-01T00:00:00,7Z",
        "2026-03-01T01:00:00+02:00",
        "2026-03-01T01:30:00+02:00",
        "2026-13-01T00:00:00Z",
        "zzz",
        "",
        None,
        7,
    ]
)
said = st.builds(
    lambda role, text: {"role": role, "content": [{"type": "text", "text": text}]},
    st.sampled_from(["user", "assistant", "tool", 3]),
    st.sampled_from(["", "hello", "ü\ud800", 'a "data": b', "x" * 100]),
)
datas = st.one_of(
    said,
    st.builds(lambda name: {"name": name}, st.sampled_from(["one", "two", None, 5])),
    st.builds(lambda text: {"summary": text, "messages": []}, st.sampled_from(["short", 4])),
    st.sampled_from([None, {}, [], 1, "text", {"x": 1, "data": 12}]),
)
kinds = st.sampled_from(["message", "message", "message", "session_info", "compaction", "header", "odd kind", "ä", None, 5])
entries = st.fixed_dictionaries(
    {"kind": kinds, "id": ids, "parent_id": st.one_of(ids, st.none()), "timestamp": times, "data": datas},
    optional={"extra": st.sampled_from([{"data": 12}, 1])},
)


def _spelled(entry: dict[str, Any], spelling: str, left_out: str) -> bytes:
    parts = {name: value for name, value in entry.items() if name != left_out}
    if spelling == "backwards":
        parts = dict(reversed(parts.items()))
    separators = (", ", ": ") if spelling == "wide" else (",", ":")
    line = json.dumps(parts, separators=separators, ensure_ascii=spelling == "escaped").encode("utf-8", "backslashreplace")
    return line.replace(b'":', b'"\n:', 1) if spelling == "broken" else line


odd_lines = st.builds(
    _spelled,
    entries,
    st.sampled_from(["usual"] * 6 + ["wide", "backwards", "escaped", "broken"]),
    st.sampled_from([""] * 6 + ["kind", "id", "parent_id", "timestamp", "data"]),
)
no_entries = st.sampled_from([b"", b"  ", b"{", b"{}", b"[]", b"7", b'{"id":"x"} {"id":"y"}', b"\xff", b'{"id":"t","data":1,"data":2}'])
usual_lines = st.builds(
    lambda number: _spelled({"kind": "message", "id": f"{number:08x}", "parent_id": "a", "timestamp": TIME, "data": {}}, "usual", ""),
    st.integers(0, 99),
)
logs = st.builds(
    lambda head, lines, end: b"\n".join([*head, *lines]) + end,
    st.sampled_from([[json.dumps(HEADER).encode()], [json.dumps(HEADER, separators=(",", ":")).encode()], []]),
    st.lists(st.one_of(usual_lines, usual_lines, odd_lines, no_entries), max_size=12),
    st.sampled_from([b"\n", b""]),
)


class SummaryOfEachLine(SessionSummary):
    def _accept_block(self, block: Block) -> bool:
        return False


class TreeOfEachLine(EntryTree):
    def add_block(self, block: Block) -> bool:
        return False


def _told(path: Path, summary: SessionSummary) -> object:
    try:
        summary.refresh()
    except StorageError as error:
        return repr(error)
    return summary.info(), summary.leaf_id, summary.entry_count, summary.read_bytes


def _opened(path: Path, tree: type[EntryTree]) -> object:
    store = SessionStore(str(path), durability=PROCESS)
    store._tree = tree(str(path))
    try:
        store.refresh()
        nodes = [(node.id, node.parent_id, node.kind, node.offset, node.length) for node in store.nodes()]
        found = nodes, store.leaf_id, store.entry_count, store.recovered
    except StorageError as error:
        return repr(error)
    try:
        return found, [bytes(raw) for raw in store.snapshot().messages]
    except StorageError as error:
        return found, repr(error)
    finally:
        store.close()


@settings(max_examples=300, deadline=None)
@given(logs)
def test_a_log_tells_the_same_whether_its_lines_are_taken_together_or_one_by_one(log: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "2026-03-01_00000001.jsonl")
        path.write_bytes(log)
        one_by_one = _told(path, SummaryOfEachLine(str(path)))
        assert _told(path, SessionSummary(str(path))) == one_by_one
        assert _told(path, SessionDigest(str(path), lambda part: None)) == one_by_one
        assert _opened(path, EntryTree) == _opened(path, TreeOfEachLine)


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("ended", [True, False])
def test_lines_around_the_size_of_a_block(tmp_path: Path, size: int, ended: bool) -> None:
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    store = manager.create("/x")
    texts = ["first", "x" * size, "y" * 10, "z" * (size // 2), "w" * (size // 2), "last"]
    for text in texts:
        store.append_message(json.dumps({"role": "user", "content": [{"type": "text", "text": text}]}).encode())
    if not ended:
        with open(store.path, "r+b") as file:
            file.truncate(file.seek(0, 2) - 1)
    again = manager.open(store.session_id)
    assert [json.loads(bytes(raw))["content"][0]["text"] for raw in again.snapshot().messages] == texts
    (info,) = SessionManager(str(tmp_path)).list().sessions
    assert (info.message_count, info.first_message) == (len(texts), "first")
    again.close()
    store.close()


@pytest.mark.parametrize("spelling", ["usual", "backwards", "wide", "escaped"])
def test_a_message_is_read_however_its_line_is_spelled(tmp_path: Path, spelling: str) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    entry = {"kind": "message", "id": "0000000a", "parent_id": "h0", "timestamp": TIME, "data": message}
    path = tmp_path / "2026-03-01_00000001.jsonl"
    path.write_bytes(_spelled(HEADER, "usual", "") + b"\n" + _spelled(entry, spelling, "") + b"\n")
    store = SessionManager(str(tmp_path)).open("00000001")
    assert [json.loads(bytes(raw)) for raw in store.snapshot().messages] == [message]
    store.close()
