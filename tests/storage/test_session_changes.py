"""A session while others write to it: with editors, with programs that take no lock, while it is read; and syncs that fail."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crewlog.storage import (
    POWER,
    PROCESS,
    InvalidArgument,
    NewEntry,
    SessionCorrupt,
    SessionManager,
    StorageError,
    StorageFailed,
    WouldBlock,
)
from crewlog.storage.files import Durability, Undo
from crewlog.storage.locks import without_waiting
from crewlog.storage.log import BlockReader
from crewlog.storage.sessions import SessionStore
from crewlog.storage.syncs import SharedSync
from crewlog.storage.views import entry_page


def said(text: str, role: str = "user") -> bytes:
    return json.dumps({"role": role, "content": [{"type": "text", "text": text}]}).encode()


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(str(tmp_path / "p"), durability=PROCESS)


@pytest.fixture
def store(manager: SessionManager) -> SessionStore:
    return manager.create("/x")


def texts(store: SessionStore) -> list[str]:
    return [json.loads(bytes(raw))["content"][0]["text"] for raw in store.snapshot().messages]


def write_at(path: str, offset: int, content: bytes) -> None:
    """As an editor or codebot does, which keep the file and take no lock; at a later time, as the system tells it."""
    before = os.stat(path).st_mtime_ns
    descriptor = os.open(path, os.O_WRONLY)
    os.pwrite(descriptor, content, offset)
    os.close(descriptor)
    while os.stat(path).st_mtime_ns == before:  # two writes within one tick of the clock cannot be told apart by anybody
        os.utime(path)


def test_an_edit_in_place_is_seen_though_the_size_is_the_same(store: SessionStore, manager: SessionManager) -> None:
    store.append_message(said("teh first"))
    store.append_message(said("y" * 10_000))
    assert texts(store)[0] == "teh first"
    assert manager.list().sessions[0].first_message == "teh first"
    write_at(store.path, 0, Path(store.path).read_bytes().replace(b"teh first", b"the first"))
    assert texts(store)[0] == "the first"
    assert manager.list().sessions[0].first_message == "the first"
    store.append_message(said("z"))
    assert len(texts(store)) == 3


@pytest.mark.parametrize("appends", [0, 3])
def test_a_first_message_edited_in_place_is_seen_though_more_was_appended_since(
    store: SessionStore, manager: SessionManager, appends: int
) -> None:
    """Whether the one who has it open wrote it or read it."""
    for text in ["teh first", *(str(number) for number in range(appends)), "y" * 10_000]:
        store.append_message(said(text))
    reader = manager.open(store.session_id)
    assert [texts(opened)[0] for opened in (store, reader)] == ["teh first"] * 2
    write_at(store.path, 0, Path(store.path).read_bytes().replace(b"teh first", b"the first"))
    with open(store.path, "ab") as file:
        file.write(Path(store.path).read_bytes().splitlines(keepends=True)[-1].replace(b"y", b"z"))
    assert [texts(opened)[0] for opened in (store, reader)] == ["the first"] * 2


def test_an_append_whose_time_shows_before_its_size_is_no_edit(
    store: SessionStore, manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux sets a write's time first: between the two a growing log looks like one that was edited in place."""
    store.append_message(said("a"))
    reader = manager.open(store.session_id)
    write_at(store.path, os.path.getsize(store.path), b"")
    with without_waiting(), pytest.raises(WouldBlock):
        reader.refresh()
    line = b'{"kind":"message","id":"ffffffff","parent_id":"h0","timestamp":"2026-01-01T00:00:00Z","data":%s}\n' % said("b")

    def grow(_: float) -> None:
        monkeypatch.undo()
        with open(store.path, "ab") as file:
            file.write(line)

    monkeypatch.setattr(time, "sleep", grow)
    change = reader.refresh()
    assert change is not None
    assert (change.kind, change.added) == ("grew", 1)


@pytest.mark.parametrize("length", [20, 300, 2_000])
def test_a_writer_that_goes_on_where_it_saw_the_end(store: SessionStore, manager: SessionManager, length: int) -> None:
    """codebot keeps an offset of its own: what it writes over is noticed, whatever else was added behind, and nothing is appended to a
    damaged log."""
    store.append_message(said("base"))
    known_end = os.path.getsize(store.path)
    store.append_message(said("A" * 500))
    reader = manager.open(store.session_id)
    reader.snapshot()
    entry = '{"kind":"message","id":"ffffffff","parent_id":"h0","timestamp":"2026-01-01T00:00:00Z","data":{"role":"user","x":"%s"}}\n'
    foreign = (entry % ("f" * length)).encode()
    write_at(store.path, known_end, foreign)
    whole = Path(store.path).read_bytes()
    for one in (store, reader):
        if known_end + len(foreign) < len(whole):  # half of what was overwritten sticks out behind
            with pytest.raises(SessionCorrupt) as caught:
                one.append_message(said("B"))
            assert caught.value.line == 4
            with pytest.raises(SessionCorrupt):
                one.snapshot()
            assert Path(store.path).read_bytes() == whole
        else:
            one.append_message(said("B"))
    if known_end + len(foreign) >= len(whole):
        assert [json.loads(line)["id"] for line in Path(store.path).read_bytes().splitlines()][2] == "ffffffff"
        assert len(manager.open(store.session_id).snapshot().messages) == 3


def test_an_overwritten_line_is_noticed_when_another_added_one_behind_it(store: SessionStore, manager: SessionManager) -> None:
    store.append_message(said("base"))
    known_end = os.path.getsize(store.path)
    store.append_message(said("A" * 500))
    store.append_message(said("C" * 500))
    reader = manager.open(store.session_id)
    reader.snapshot()
    line = b'{"kind":"message","id":"ffffffff","parent_id":"h0","timestamp":"2026-01-01T00:00:00Z","data":{}}\n'
    write_at(store.path, known_end, line)
    with open(store.path, "ab") as file:
        file.write(line)
    with pytest.raises(SessionCorrupt) as caught:
        reader.snapshot()
    assert caught.value.line == 4


def test_a_log_that_changes_under_a_read_is_told_so(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        store.append_message(said(str(number)))
    real = BlockReader.view
    reads = iter(range(10**9))

    def view(self: BlockReader, offset: int, length: int) -> memoryview:
        if next(reads) == 10:
            write_at(store.path, 200, b"\0" * 400)
        return real(self, offset, length)

    with monkeypatch.context() as patched:
        patched.setattr(BlockReader, "view", view)
        with pytest.raises(StorageFailed, match="ESTALE"):
            store.snapshot()
    with pytest.raises(SessionCorrupt):
        store.snapshot()
    nodes = []
    with pytest.raises(SessionCorrupt):
        nodes = store.nodes()
    assert not nodes


def test_pages_of_a_log_that_was_replaced_since(store: SessionStore) -> None:
    store.append_message(said("a"))
    chain, _ = store.chain()
    Path(store.path + ".new").write_bytes(Path(store.path).read_bytes())
    os.replace(store.path + ".new", store.path)
    with pytest.raises(StorageFailed, match="ESTALE"):
        store.read_lines(chain)
    store.refresh()
    with pytest.raises(StorageFailed, match="ESTALE"):
        store.read_lines(chain)
    assert len(entry_page(store).entries) == 2


KINDS = st.sampled_from(
    [
        ("message", '{"role":"user","content":[{"type":"text","text":"u"}]}'),
        ("message", '{"role":"assistant","content":[{"tool_call":{"id":"a"}},{"tool_call":{"id":"b"}}]}'),
        ("message", '{"role":"tool","metadata":{"tool_call_id":"a"}}'),
        ("message", '{"role":"tool","metadata":{"tool_call_id":"b"}}'),
        ("message", '{"role":"tool","content":[]}'),
        ("message", '{"role":"user","content":"odd"}'),
        ("message", "null"),
        ("message", '{"role":"user","content":[{"text":"\\ud800"}]}'),
        ("compaction", '{"summary":"s","messages":[{"role":"tool","metadata":{"tool_call_id":"a"}},{"role":"user"}]}'),
        ("compaction", '{"summary":""}'),
        ("compaction", '{"summary":5}'),
        ("compaction", ""),
        ("model_change", '{"provider":"p","model":"m"}'),
        ("session_info", '{"name":"n"}'),
        ("thinking_change", '{"level":"high"}'),
        ("future", "[1]"),
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(KINDS, st.booleans(), st.integers(0, 5)), max_size=25))
def test_a_snapshot_that_is_extended_is_the_snapshot_made_anew(
    manager: SessionManager, steps: list[tuple[tuple[str, str], bool, int]]
) -> None:
    """Whatever is appended, by whomever, on whichever branch."""
    store = manager.create("/x")
    ids = ["h0"]
    with open(store.path, "ab", buffering=0) as file:
        for number, ((kind, data), look, back) in enumerate(steps):
            parent = ids[-1] if back < 4 else ids[len(ids) // 2]
            line = f'{{"kind":"{kind}","id":"{number:08x}","parent_id":"{parent}","timestamp":"2026-01-01T00:00:00Z"'
            file.write(f'{line},"data":{data}}}\n'.encode() if data else f"{line}}}\n".encode())
            ids.append(f"{number:08x}")
            if look:
                assert told(store) == told(manager.open_path(store.path))
    assert told(store) == told(manager.open_path(store.path))
    assert store.cached_bytes <= os.path.getsize(store.path)


def told(store: SessionStore) -> object:
    found = store.snapshot()
    messages = [json.loads(bytes(raw)) for raw in found.messages]
    for message in messages:
        message.pop("timestamp", None)  # of a result that was made up: now
    return messages, found.leaf_id, found.provider, found.reasoning_effort, found.name


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("message", b'{"role":"user","content":"text"}', r"data\.content"),
        ("message", b'{"role":"user","content":[{"text":5}]}', r"data\.content\[0\]\.text"),
        ("message", b'{"role":"user","content":[{},{"thinking":[]}]}', r"data\.content\[1\]\.thinking"),
        ("message", b'{"role":"user","content":[{"tool_call":{"id":5}}]}', r"data\.content\[\.*\.*\d*\]"),
        ("message", b'{"role":"user","content":[{"tool_call":{"args_raw_text":{}}}]}', r"tool_call\.args_raw_text"),
        ("message", b'{"role":"user","content":[{"image":{"url":1}}]}', r"image\.url"),
        ("message", b'{"role":"user","timestamp":"yesterday"}', r"data\.timestamp"),
        ("message", b'{"role":"user","usage":{"input":1.5}}', r"data\.usage\.input"),
        ("message", b'{"role":"user","x":"\\ud800","role":5}', r"data\.role"),
        ("message", b'{"role":"\\ud800","content":{}}', r"data\.content"),
        ("message", b'{"role":"\\ud800","content":[{"image":[]}]}', r"data\.content\[0\]\.image"),
        ("message", b'{"role":"\\ud800","content":[{"tool_call":{"args_invalid":1}}]}', r"tool_call\.args_invalid"),
        ("message", b'{"role":"\\ud800","content":[{"type":1}]}', r"data\.content\[0\]\.type"),
        ("message", b'{"role":"\\ud800","usage":{"input":"x"}}', r"data\.usage\.input"),
        ("message", b'{"role":"\\ud800","timestamp":""}', r"data\.timestamp"),
        ("message", b'{"role":"\\ud800","metadata":[]}', r"data\.metadata"),
        ("compaction", b'{"summary":5}', "data"),
        ("session_info", b'{"name":5}', "data"),
        ("model_change", b'{"model":[]}', "data"),
        ("plan_state", b'{"phase":1}', "data"),
        ("goal_state", b'{"status":"x","created_at":"bad"}', "data"),
        ("reasoning_effort_change", b'{"level":1}', "data"),
        ("llm_call", b"[]", "data"),
    ],
)
def test_what_no_snapshot_could_read_is_refused_by_its_field(store: SessionStore, kind: str, data: bytes, field: str) -> None:
    before = Path(store.path).read_bytes()
    with pytest.raises(InvalidArgument, match=rf"entries\[0\]\.{'' if field.startswith('data') else 'data.*'}{field}"):
        store.append([NewEntry(kind, data)])
    assert Path(store.path).read_bytes() == before
    store.append([NewEntry("future", b"[null]"), NewEntry("llm_call", b'{"model":5}'), NewEntry("message", b'{"role":"x","y":"\\ud800"}')])


def test_thinking_is_cut_however_its_key_is_spelled(store: SessionStore) -> None:
    block = '{"type":"th\\u0069nking","\\u0074hinking":"%s"}' % ("x" * 500)
    store.append_message(f'{{"role":"assistant","content":[{block}]}}'.encode())
    (message,) = store.snapshot().messages
    assert json.loads(bytes(message))["content"][0]["thinking"] == "x" * 199 + "…"


def test_an_entry_that_a_page_leaves_out_keeps_its_time(store: SessionStore) -> None:
    done = store.append_message(said("x" * 50_000))
    (shown,) = (json.loads(line) for line in entry_page(store, max_bytes=2_000, kinds=["message"]).entries)
    assert (shown["id"], shown["parent_id"], shown["timestamp"], shown["data"]) == (done.id, "h0", done.timestamp, None)


def test_readers_do_not_wait_for_the_device(manager: SessionManager) -> None:
    """While one thread waits for its sync, another reads, and the store may be closed."""
    waiting, go_on = threading.Event(), threading.Event()

    class Slow:
        replacing_waits = appending_waits = True
        replacing = POWER.replacing
        replaced = POWER.replaced

        def appended(self, descriptor: int, undo: Undo) -> None:
            waiting.set()
            assert go_on.wait(30)
            os.fdatasync(descriptor)  # still a file of ours

    path = manager.create("/x").path
    slow: Durability = Slow()
    store = SessionManager(manager.dir, durability=slow).open_path(path)
    failures: list[BaseException] = []

    def append() -> None:
        try:
            store.append_message(said("one"))
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=append)
    writer.start()
    assert waiting.wait(30)
    assert texts(store) == ["one"]
    store.close()
    go_on.set()
    writer.join(30)
    assert not failures


def in_threads(count: int, work: Callable[[int], None]) -> list[BaseException]:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return failures


def test_one_sync_serves_all_that_wait() -> None:
    shared, begun, first = SharedSync(), threading.Semaphore(0), threading.Event()
    syncs: list[int] = []

    def sync() -> None:
        syncs.append(1)
        if len(syncs) == 1:
            first.set()
            for _ in range(10):  # all others have come
                assert begun.acquire(timeout=30)
            deadline = time.monotonic() + 30
            while threading.active_count() < 11 and time.monotonic() < deadline:
                time.sleep(0.001)

    def work(number: int) -> None:
        if number:
            assert first.wait(30)
            begun.release()
        shared.wait(sync, lambda: False)

    assert in_threads(11, work) == []
    assert 2 <= len(syncs) <= 11


def test_a_sync_that_failed_is_told_to_all_it_was_for(
    store: SessionStore, manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system tells of a failed write-back only once: a second sync would seem to succeed."""
    safe = SessionManager(manager.dir, durability=POWER).open_path(store.path)
    real = os.fdatasync
    failing, gate = threading.Event(), threading.Barrier(8)

    def fdatasync(descriptor: int) -> None:
        if not failing.is_set():
            failing.set()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", fdatasync)

    def work(number: int) -> None:
        gate.wait(30)
        safe.append_message(said(str(number)))

    failures = in_threads(8, work)
    assert failures
    assert all(isinstance(error, StorageFailed) and error.errno_name == "EIO" for error in failures)
    told = len(failures)
    assert 8 - told <= len(texts(store)) <= 8, "what was told to have failed is gone, unless somebody wrote behind it"
    assert texts(safe) == texts(store)
    safe.append_message(said("afterwards"))
    assert texts(store)[-1] == "afterwards"


def test_threads_and_processes_append_to_one_chain(manager: SessionManager, store: SessionStore) -> None:
    others = [manager.open(store.session_id) for _ in range(3)]

    def work(number: int) -> None:
        for turn in range(50):
            others[number % 3].append_message(said(f"{number}-{turn}"))

    assert in_threads(6, work) == []
    found = texts(store)
    assert len(found) == 300
    for number in range(6):
        assert [text for text in found if text.startswith(f"{number}-")] == [f"{number}-{turn}" for turn in range(50)]
    with pytest.raises(StorageError):
        store.append_message(b"{")
