"""The rows of the library: sessions, lists, tasks, history, each beside a small program that does the same with the standard library."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from crewlog.storage import PROCESS, History, SessionManager, TaskStore, TaskUpdate
from crewlog.storage.sessions import SessionStore

from .harness import OURS, Mark, Measured, Samples, compared, interleaved, within
from .pipes import YARDSTICKS
from .samples import message

MESSAGE = message(1_500)
RAW_MESSAGE = json.dumps(MESSAGE).encode()
LOADS, DUMPS, DECODE, SQLITE = "json.loads", "json.dumps + write", "msgspec", "SQLite"
WRITE_RENAME, SCANDIR = "write + rename", "scandir + stat"
Row = Callable[[Path, bool], list[Measured]]


def rows() -> list[Row]:
    return [append, snapshot, snapshot_after_compaction, snapshot_after_append, listing, tasks, find_claimable, claims, load_tasks, history]


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _manager(folder: Path, name: str = "s") -> SessionManager:
    return SessionManager(str(folder / name), durability=PROCESS)


def _line(number: int, kind: str = "message", data: bytes = RAW_MESSAGE) -> bytes:
    parent = f"{number - 1:08x}" if number > 1 else "h0"
    head = f'{{"kind":"{kind}","id":"{number:08x}","parent_id":"{parent}","timestamp":"2026-03-01T09:30:00.123456789Z","data":'
    return head.encode() + data + b"}\n"


def _session(folder: Path, entries: int, *, compacted_at: int = 0) -> str:
    """A session of so many entries of 2 KB; its path."""
    store = _manager(folder).create(str(folder))
    store.close()
    data = json.dumps(message(1_850)).encode()
    compaction = json.dumps({"summary": "what was said"}).encode()
    with open(store.path, "ab") as file:
        file.writelines(
            _line(number, "compaction", compaction) if number == compacted_at else _line(number, data=data)
            for number in range(1, entries + 1)
        )
    return store.path


def append(folder: Path, quick: bool) -> list[Measured]:
    count, rounds = (300, 3) if quick else (3_000, 9)
    store = _manager(folder).create(str(folder))

    def ours() -> list[float]:
        return [timed(lambda: [store.append_message(RAW_MESSAGE) for _ in range(count)]) / count]

    def yardstick() -> list[float]:
        with open(folder / "plain.jsonl", "ab", buffering=0) as file:
            entry = {"kind": "message", "id": "aabbccdd", "parent_id": "aabbccdd", "timestamp": "2026-03-01T09:30:00Z", "data": MESSAGE}
            return [timed(lambda: [file.write(json.dumps(entry).encode() + b"\n") for _ in range(count)]) / count]

    samples = interleaved({OURS: ours, DUMPS: yardstick}, rounds)
    return [compared("append of a 1.5 KB message", "µs", samples, [Mark(DUMPS, 0.45)], scale=1e6, durability="process")]


def _with_loads(path: str) -> int:
    """The messages on the chain, read in the plain way."""
    entries: dict[str, dict[str, Any]] = {}
    last = ""
    with open(path, "rb") as file:
        for line in file:
            entry = json.loads(line)
            entries[entry["id"]] = entry
            last = entry["id"]
    found = []
    while last:
        entry = entries[last]
        if entry["kind"] == "message":
            found.append(entry["data"])
        last = entry.get("parent_id", "")
    return len(found)


def _open_and_snapshot(folder: Path, path: str) -> int:
    store = _manager(folder).open_path(path)
    count = len(store.snapshot().messages)
    store.close()
    return count


def _against_loads(name: str, folder: Path, path: str, ratio: float, rounds: int) -> Measured:
    samples = interleaved(
        {OURS: lambda: [timed(lambda: _open_and_snapshot(folder, path))], LOADS: lambda: [timed(lambda: _with_loads(path))]}, rounds
    )
    return compared(name, "ms", samples, [Mark(LOADS, ratio)], scale=1e3)


def snapshot(folder: Path, quick: bool) -> list[Measured]:
    found = []
    for entries in (100, 1_000, 2_000) if quick else (1_000, 10_000, 50_000):
        path = _session(folder, entries)
        row = _against_loads(f"open + snapshot, {entries:,} entries", folder, path, 0.35, 3 if quick else 5)
        tracemalloc.start()
        _open_and_snapshot(folder, path)
        row.note = f"peak memory {tracemalloc.get_traced_memory()[1] / os.path.getsize(path):.2f}× the file"
        tracemalloc.stop()
        found.append(row)
    return found


def snapshot_after_compaction(folder: Path, quick: bool) -> list[Measured]:
    entries = 1_000 if quick else 10_000
    path = _session(folder, entries, compacted_at=entries * 9 // 10)
    return [_against_loads("the same with a compaction at 90 %", folder, path, 0.2, 3 if quick else 5)]


def snapshot_after_append(folder: Path, quick: bool) -> list[Measured]:
    """The cost beside that of joining the messages, which is the size of the reply."""
    store: SessionStore = _manager(folder).open_path(_session(folder, 1_000 if quick else 50_000))
    store.snapshot()
    samples = []
    for _ in range(5 if quick else 20):
        store.append_message(RAW_MESSAGE)
        whole = timed(store.snapshot)
        messages = store.snapshot().messages
        samples.append(max(0.0, whole - timed(lambda: b",".join(map(bytes, messages)))))  # noqa: B023  # called at once
    return [within("snapshot again after one append, but for the reply's size", "ms", samples, {0.5: 2}, scale=1e3)]


def listing(folder: Path, quick: bool) -> list[Measured]:
    sessions, lines = (50, 20) if quick else (1_000, 130)
    block = b"".join(_line(number) for number in range(1, lines + 1))
    projects = str(folder / "s")
    for _ in range(sessions):
        store = _manager(folder).create(str(folder))
        store.close()
        with open(store.path, "ab") as file:
            file.write(block)

    def with_loads() -> None:
        for entry in os.scandir(projects):
            if entry.name.endswith(".jsonl"):
                with open(entry.path, "rb") as file:
                    for line in file:
                        json.loads(line)

    def scan() -> list[float]:
        return [timed(lambda: [entry.stat() for entry in os.scandir(projects)])]

    cold = interleaved({OURS: lambda: [timed(_manager(folder).list)], LOADS: lambda: [timed(with_loads)]}, 2 if quick else 3)
    warm = _manager(folder)
    warm.list()
    again = interleaved({OURS: lambda: [timed(warm.list)], SCANDIR: scan}, 5 if quick else 20)
    return [
        compared(f"list of {sessions:,} sessions, nothing known", "ms", cold, [Mark(LOADS, 0.25)], scale=1e3),
        compared("the same again", "ms", again, [Mark(SCANDIR, 5)], scale=1e3),
    ]


def _store(folder: Path, name: str, count: int) -> TaskStore:
    """A list of so many tasks, written as codebot would."""
    path = folder / name
    path.mkdir(parents=True)
    for number in range(1, count + 1):
        task = {"id": str(number), "subject": f"task {number}", "status": "pending", "blocks": [], "blockedBy": []}
        (path / f"{number}.json").write_text(json.dumps(task, indent=2))
    (path / ".highwatermark").write_text(str(count))
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(path))
    return store


def tasks(folder: Path, quick: bool) -> list[Measured]:
    rounds = 20 if quick else 200
    found = []
    slope: dict[str, list[float]] = {}
    for size in (10, 100, 1_000) if quick else (10, 1_000, 10_000):
        store = _store(folder, f"t{size}", size)
        plain = folder / f"plain{size}"
        plain.mkdir()

        def rename(plain: Path = plain) -> list[float]:
            def work() -> None:
                (plain / "1.tmp").write_bytes(RAW_MESSAGE[:300])
                os.replace(plain / "1.tmp", plain / "1.json")

            return [timed(work)]

        def claim(store: TaskStore = store) -> list[float]:
            took = timed(lambda: store.claim("1", "me"))
            store.update("1", TaskUpdate(owner="", status="pending"))
            return [took]

        def change(store: TaskStore = store) -> list[float]:
            return [timed(lambda: store.update("2", TaskUpdate(subject=str(time.perf_counter_ns()))))]

        def create(store: TaskStore = store) -> list[float]:
            return [timed(lambda: store.create("one more"))]

        for name, run, ratio in (("claim", claim, 3), ("update", change, 3), ("create", create, 6)):
            samples: Samples = interleaved({OURS: run, WRITE_RENAME: rename}, rounds)
            row = compared(f"{name} in a list of {size:,}", "µs", samples, [Mark(WRITE_RENAME, ratio)], scale=1e6, durability="process")
            slope.setdefault(name, []).append(row.value)
            found.append(row)
    for row in found[-3:]:
        name = row.name.split()[0]
        row.note += f" slope, largest to smallest list: {slope[name][-1] / slope[name][0]:.2f}×"
    return found


def find_claimable(folder: Path, quick: bool) -> list[Measured]:
    store = _store(folder, "t", 1_000 if quick else 10_000)
    store.find_claimable()
    samples = [timed(store.find_claimable) for _ in range(200 if quick else 5_000)]
    return [within("findClaimable", "µs", samples, {0.5: 20}, scale=1e6)]


def claims(folder: Path, quick: bool) -> list[Measured]:
    """Eight processes race for one list; claims per second of all together."""
    processes, each, size = (4, 20, 500) if quick else (8, 250, 10_000)
    rounds = 1 if quick else 3
    number = iter(range(100))

    def race(script: str, target: str) -> list[float]:
        command = [sys.executable, str(YARDSTICKS / f"{script}.py"), target]
        running = [
            subprocess.Popen([*command, f"agent{agent}", str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for agent in range(processes)
        ]
        time.sleep(1 if quick else 3)  # all have read the list by then, and wait for the word
        begun = time.perf_counter()
        for process in running:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for process in running:
            if process.wait() != 0:
                raise RuntimeError(f"{script} failed")
        return [processes * each / (time.perf_counter() - begun)]

    def ours() -> list[float]:
        name = f"race{next(number)}"
        _store(folder, name, size).close()
        return race("crewlog_claims", str(folder / name))

    def sqlite() -> list[float]:
        path = str(folder / f"race{next(number)}.db")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE tasks (id INTEGER PRIMARY KEY, subject TEXT, status TEXT, owner TEXT)")
            db.executemany("INSERT INTO tasks (subject, status) VALUES (?, 'pending')", [(f"task {item}",) for item in range(size)])
        return race("sqlite_claims", path)

    samples = interleaved({OURS: ours, SQLITE: sqlite}, rounds)
    mark = [Mark(SQLITE, 1, at_least=True)]
    return [compared(f"claims of {processes} processes in a list of {size:,}", "claims/s", samples, mark, durability="process")]


def load_tasks(folder: Path, quick: bool) -> list[Measured]:
    size = 500 if quick else 10_000
    _store(folder, "t", size).close()
    path = str(folder / "t")

    class Plain(msgspec.Struct):
        id: str
        subject: str
        status: str
        blocks: list[str]
        blockedBy: list[str]

    decoder = msgspec.json.Decoder(Plain)

    def yardstick() -> None:
        for entry in os.scandir(path):
            if entry.name.endswith(".json"):
                with open(entry.path, "rb") as file:
                    decoder.decode(file.read())

    def ours() -> None:
        store = TaskStore(durability=PROCESS)
        store.set_dir(path)
        if len(store.list()) != size:
            raise RuntimeError("tasks are missing")
        store.close()

    samples = interleaved({OURS: lambda: [timed(ours)], DECODE: lambda: [timed(yardstick)]}, 3 if quick else 7)
    return [compared(f"load {size:,} task files", "ms", samples, [Mark(DECODE, 1.3)], scale=1e3)]


def history(folder: Path, quick: bool) -> list[Measured]:
    lines = 5_000 if quick else 50_000
    path = folder / "history.jsonl"
    with path.open("w") as file:
        for number in range(lines):
            entry = {
                "display": f"prompt {number} " + "x" * 100,
                "pastedContents": {},
                "timestamp": number,
                "project": "/p",
                "sessionId": "s",
            }
            file.write(json.dumps(entry) + "\n")

    def ours() -> None:
        page, _ = History(str(path), "/p").list(limit=50)
        if page[0].display.split()[1] != str(lines - 1):
            raise RuntimeError("not the newest")

    def yardstick() -> None:
        with path.open("rb") as file:
            [json.loads(line) for line in file]

    samples = interleaved({OURS: lambda: [timed(ours)], LOADS: lambda: [timed(yardstick)]}, 3 if quick else 9)
    return [compared(f"history of {lines:,} lines, first page", "ms", samples, [Mark(LOADS, 0.03)], scale=1e3)]
