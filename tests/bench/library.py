"""The rows of the library: sessions, lists, tasks, history, each beside a small program that does the same with the standard library."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from crewlog.storage import POWER, PROCESS, History, SessionManager, TaskStore, TaskUpdate
from crewlog.storage.files import Durability
from crewlog.storage.sessions import SessionStore

from .harness import OURS, Mark, Measured, compared, growth, interleaved, percentile, within
from .pipes import YARDSTICKS
from .samples import message, turn

MESSAGE = message(1_500)
RAW_MESSAGE = json.dumps(MESSAGE).encode()
LOADS, DUMPS, DECODE, SQLITE = "json.loads", "json.dumps + write", "msgspec", "SQLite"
WRITE_RENAME, SCANDIR = "write + rename", "scandir + stat"
RENAMES, CALLS = "lock + write + rename", "the system calls alone"
Row = Callable[[Path, bool], list[Measured]]


def rows() -> list[Row]:
    return [
        append,
        snapshot,
        snapshot_after_compaction,
        snapshot_after_append,
        listing,
        tasks,
        tasks_synced,
        find_claimable,
        claims,
        load_tasks,
        history,
    ]


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


def _session(folder: Path, entries: int, name: str = "s", *, compacted_at: int = 0) -> str:
    """A session of so many entries of 2 KB; its path."""
    store = _manager(folder, name).create(str(folder))
    store.close()
    compaction = json.dumps({"summary": "what was said"}).encode()
    with open(store.path, "ab") as file:
        for number in range(1, entries + 1):
            compacts = number == compacted_at
            data = compaction if compacts else json.dumps(turn(number, 1_850)).encode()
            file.write(_line(number, "compaction" if compacts else "message", data))
    return store.path


def append(folder: Path, quick: bool) -> list[Measured]:
    """Behind logs of three sizes: what is there already must cost nothing."""
    count, rounds = (100, 3) if quick else (2_000, 9)
    sizes = (10, 100, 1_000) if quick else (500, 5_000, 50_000)
    stores = {size: _manager(folder, f"a{size}").open_path(_session(folder, size, f"a{size}")) for size in sizes}

    def ours(store: SessionStore) -> list[float]:
        return [timed(lambda: [store.append_message(RAW_MESSAGE) for _ in range(count)]) / count]

    def yardstick() -> list[float]:
        with open(folder / "plain.jsonl", "ab", buffering=0) as file:
            entry = {"kind": "message", "id": "aabbccdd", "parent_id": "aabbccdd", "timestamp": "2026-03-01T09:30:00Z", "data": MESSAGE}
            return [timed(lambda: [file.write(json.dumps(entry).encode() + b"\n") for _ in range(count)]) / count]

    def calls() -> list[float]:
        """What an append asks of the system, and nothing else: the lock, whose it is, whether it and the log are as they were, the line."""
        log_path, lock_path = str(folder / "calls.jsonl"), str(folder / "calls.lock")
        log, lock = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) for path in (log_path, lock_path))
        holder, line = b" " * 512, b"x" * 1_660

        def append_all() -> None:
            for _ in range(count):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.stat(lock_path)
                os.pwrite(lock, holder, 0)
                os.stat(log_path)
                os.urandom(4)
                os.write(log, line)
                os.fstat(log)
                fcntl.flock(lock, fcntl.LOCK_UN)

        try:
            return [timed(append_all) / count]
        finally:
            os.close(log)
            os.close(lock)

    runs: dict[str, Callable[[], list[float]]] = {str(size): partial(ours, store) for size, store in stores.items()}
    samples = interleaved({**runs, DUMPS: yardstick, CALLS: calls}, rounds)
    rows = [
        compared(
            f"append of a 1.5 KB message to a log of {size:,}",
            "µs",
            {OURS: samples[str(size)], DUMPS: samples[DUMPS], CALLS: samples[CALLS]},
            [Mark(DUMPS, 0.45)],
            scale=1e6,
            durability="process",
        )
        for size in sizes
    ]
    return [*rows, growth("growth of append", rows[-1], rows[0], sizes[-1] / sizes[0], at_most=1.5)]


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


def _against_loads(name: str, folder: Path, path: str, ratio: float | None, rounds: int) -> Measured:
    samples = interleaved(
        {OURS: lambda: [timed(lambda: _open_and_snapshot(folder, path))], LOADS: lambda: [timed(lambda: _with_loads(path))]}, rounds
    )
    return compared(name, "ms", samples, [] if ratio is None else [Mark(LOADS, ratio)], scale=1e3)


def snapshot(folder: Path, quick: bool) -> list[Measured]:
    found: list[Measured] = []
    sizes = (20, 200, 2_000) if quick else (500, 5_000, 10_000, 50_000)
    for entries in sizes:
        path = _session(folder, entries)
        ratio = 0.35 if entries >= 10_000 or quick else None
        row = _against_loads(f"open + snapshot, {entries:,} entries", folder, path, ratio, 3 if quick else 5)
        tracemalloc.start()
        _open_and_snapshot(folder, path)
        peak = tracemalloc.get_traced_memory()[1] / os.path.getsize(path)
        tracemalloc.stop()
        found.append(row)
    found.append(growth("growth of open + snapshot", found[-1], found[0], sizes[-1] / sizes[0]))
    found.append(
        Measured(name=f"peak memory of the snapshot of {sizes[-1]:,}", unit="× the file", value=peak, mark="≤ 1.5×", met=peak <= 1.5)
    )
    return found


def snapshot_after_compaction(folder: Path, quick: bool) -> list[Measured]:
    found = []
    sizes = (20, 200, 2_000) if quick else (500, 5_000, 50_000)
    for entries in sizes:
        path = _session(folder, entries, compacted_at=entries * 9 // 10)
        ratio = 0.2 if entries == sizes[-1] else None
        found.append(_against_loads(f"the same with a compaction at 90 %, {entries:,} entries", folder, path, ratio, 3 if quick else 5))
    return [*found, growth("growth of open + snapshot with a compaction", found[-1], found[0], sizes[-1] / sizes[0])]


def snapshot_after_append(folder: Path, quick: bool) -> list[Measured]:
    """The cost beside that of joining the messages, which is the size of the reply."""
    found = []
    for entries in (20, 200, 2_000) if quick else (500, 5_000, 50_000):
        store: SessionStore = _manager(folder).open_path(_session(folder, entries))
        store.snapshot()
        wholes, joins = [], []
        for _ in range(5 if quick else 20):
            store.append_message(RAW_MESSAGE)
            wholes.append(timed(store.snapshot))
            messages = store.snapshot().messages
            joins.append(timed(lambda: b",".join(map(bytes, messages))))  # noqa: B023  # called at once
        store.close()
        more = [max(0.0, whole - join) for whole, join in zip(wholes, joins)]
        row = within(f"snapshot of {entries:,} again after one append, but for the reply's size", "ms", more, {0.5: 2}, scale=1e3)
        row.rivals = {"joining the messages": percentile(joins, 0.5) * 1e3}
        row.note += f", whole {percentile(wholes, 0.5) * 1e3:.3g} ms"
        found.append(row)
    return found


def listing(folder: Path, quick: bool) -> list[Measured]:
    lines = 20 if quick else 130
    sizes = (5, 15, 50) if quick else (10, 100, 1_000)
    block = b"".join(_line(number, data=json.dumps(turn(number, 1_500)).encode()) for number in range(1, lines + 1))
    colds, agains = [], []
    for sessions in sizes:
        projects = folder / f"s{sessions}"
        for _ in range(sessions):
            store = _manager(folder, projects.name).create(str(folder))
            store.close()
            with open(store.path, "ab") as file:
                file.write(block)

        def with_loads(projects: Path = projects) -> None:
            for entry in os.scandir(projects):
                if entry.name.endswith(".jsonl"):
                    with open(entry.path, "rb") as file:
                        for line in file:
                            json.loads(line)

        def scan(projects: Path = projects) -> list[float]:
            return [timed(lambda: [entry.stat() for entry in os.scandir(projects)])]

        def cold(projects: Path = projects) -> list[float]:
            return [timed(SessionManager(str(projects), durability=PROCESS).list)]

        warm = SessionManager(str(projects), durability=PROCESS)
        warm.list()
        contenders = {OURS: cold, LOADS: lambda: [timed(with_loads)]}  # called at once
        colds.append(
            compared(
                f"list of {sessions:,} sessions, nothing known",
                "ms",
                interleaved(contenders, 2 if quick else 3),
                [Mark(LOADS, 0.25)] if sessions == sizes[-1] else [],
                scale=1e3,
            )
        )
        contenders = {OURS: lambda: [timed(warm.list)], SCANDIR: scan}  # noqa: B023
        samples = interleaved(contenders, 5 if quick else 20)
        agains.append(compared(f"list of {sessions:,} sessions again", "ms", samples, [Mark(SCANDIR, 5)], scale=1e3))
    times = sizes[-1] / sizes[0]
    return [
        *colds,
        growth("growth of the list, nothing known", colds[-1], colds[0], times),
        *agains,
        growth("growth of the list again", agains[-1], agains[0], times),
    ]


def _store(folder: Path, name: str, count: int, durability: Durability = PROCESS) -> TaskStore:
    """A list of so many tasks, written as codebot would."""
    path = folder / name
    path.mkdir(parents=True)
    for number in range(1, count + 1):
        task = {"id": str(number), "subject": f"task {number}", "status": "pending", "blocks": [], "blockedBy": []}
        (path / f"{number}.json").write_text(json.dumps(task, indent=2))
    (path / ".highwatermark").write_text(str(count))
    store = TaskStore(durability=durability)
    store.set_dir(str(path))
    return store


def tasks(folder: Path, quick: bool) -> list[Measured]:
    return _tasks(folder, (10, 100, 1_000) if quick else (10, 1_000, 10_000), 20 if quick else 200, PROCESS)


def tasks_synced(folder: Path, quick: bool) -> list[Measured]:
    return _tasks(folder, (10, 100, 1_000) if quick else (10, 1_000, 10_000), 5 if quick else 60, POWER)


def _tasks(folder: Path, sizes: Sequence[int], rounds: int, durability: Durability) -> list[Measured]:
    """All sizes in turn, each change beside the replacement of one small file with the same durability (which `create` has two of)."""
    synced = durability is POWER
    told, rival = ("power", "write + fsync + rename") if synced else ("process", WRITE_RENAME)
    plain = folder / "plain"
    plain.mkdir()

    def replace() -> None:
        with open(plain / "1.tmp", "wb") as file:
            file.write(RAW_MESSAGE[:300])
            file.flush()
            if synced:
                os.fsync(file.fileno())
        os.replace(plain / "1.tmp", plain / "1.json")

    def claim(store: TaskStore) -> float:
        took = timed(lambda: store.claim("1", "me"))
        store.update("1", TaskUpdate(owner="", status="pending"))
        return took

    def claim_next(store: TaskStore) -> float:
        took = timed(lambda: store.claim_next("me"))
        store.update("1", TaskUpdate(owner="", status="pending"))
        return took

    def change(store: TaskStore) -> float:
        return timed(lambda: store.update("2", TaskUpdate(subject=str(time.perf_counter_ns()))))

    def create(store: TaskStore) -> float:
        return timed(lambda: store.create("one more"))

    stores = {size: _store(folder, f"t{size}", size, durability) for size in sizes}
    found: list[Measured] = []
    for name, run, ratio in (("claim", claim, 3), ("claimNext", claim_next, 3), ("update", change, 3), ("create", create, 6)):
        runs: dict[str, Callable[[], list[float]]] = {
            str(size): partial(lambda run, store: [run(store)], run, store) for size, store in stores.items()
        }
        samples = interleaved({**runs, rival: lambda: [timed(replace)]}, rounds)
        rows = [
            compared(
                f"{name} in a list of {size:,}{', synced' if synced else ''}",
                "µs",
                {OURS: samples[str(size)], rival: samples[rival]},
                [Mark(rival, ratio)],
                scale=1e6,
                durability=told,
            )
            for size in sizes
        ]
        larger = growth(f"growth of {name}{', synced' if synced else ''}", rows[-1], rows[0], sizes[-1] / sizes[0], at_most=1.5)
        found += [*rows, larger]
    for store in stores.values():
        store.close()
    return found


def find_claimable(folder: Path, quick: bool) -> list[Measured]:
    hundred = {str(number): number for number in range(100)}
    found = []
    sizes = (10, 100, 1_000) if quick else (100, 1_000, 10_000)
    for size in sizes:
        store = _store(folder, f"t{size}", size)
        store.find_claimable()

        def look_up() -> list[float]:
            return [timed(lambda: [hundred[key] for key in hundred])]

        samples = interleaved(
            {OURS: lambda: [timed(store.find_claimable)], "100 look-ups": look_up},  # noqa: B023  # called at once
            200 if quick else 3_000,
        )
        row = within(f"findClaimable, {size:,} tasks", "µs", samples[OURS], {0.5: 20}, scale=1e6)
        row.rivals = {"100 look-ups in a dict": percentile(samples["100 look-ups"], 0.5) * 1e6}
        found.append(row)
        store.close()
    return [*found, growth("growth of findClaimable", found[-1], found[0], sizes[-1] / sizes[0], at_most=1.5)]


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
        for process in running:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"{script} did not begin")
        begun = time.perf_counter()
        for process in running:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        took = time.perf_counter() - begun
        if any(process.wait() != 0 for process in running):
            raise RuntimeError(f"{script} failed")
        return [processes * each / took]

    def ours() -> list[float]:
        name = f"race{next(number)}"
        store = _store(folder, name, size)
        store.claim_next("somebody")  # a list that has been worked in, as the database has
        store.close()
        return race("crewlog_claims", str(folder / name))

    def sqlite() -> list[float]:
        path = str(folder / f"race{next(number)}.db")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE tasks (id INTEGER PRIMARY KEY, subject TEXT, status TEXT, owner TEXT)")
            db.executemany("INSERT INTO tasks (subject, status) VALUES (?, 'pending')", [(f"task {item}",) for item in range(size)])
        return race("sqlite_claims", path)

    def renames() -> list[float]:
        path = folder / f"race{next(number)}"
        path.mkdir()
        for item in range(each):
            (path / f"{item}.json").write_bytes(b"{}")
        return race("rename_claims", str(path))

    samples = interleaved({OURS: ours, SQLITE: sqlite, RENAMES: renames}, rounds)
    mark = [Mark(SQLITE, 1, at_least=True)]
    return [compared(f"claims of {processes} processes in a list of {size:,}", "claims/s", samples, mark, durability="process")]


class _PlainTask(msgspec.Struct):
    id: str
    subject: str
    status: str
    blocks: list[str]
    blockedBy: list[str]  # as it is in the files


def load_tasks(folder: Path, quick: bool) -> list[Measured]:
    decoder = msgspec.json.Decoder(_PlainTask)
    found = []
    sizes = (10, 100, 500) if quick else (100, 1_000, 10_000)
    for size in sizes:
        _store(folder, f"t{size}", size).close()
        path = str(folder / f"t{size}")

        def yardstick(path: str = path) -> None:
            for entry in os.scandir(path):
                if entry.name.endswith(".json"):
                    with open(entry.path, "rb") as file:
                        decoder.decode(file.read())

        def ours(path: str = path, size: int = size) -> None:
            store = TaskStore(durability=PROCESS)
            store.set_dir(path)
            if len(store.list()) != size:
                raise RuntimeError("tasks are missing")
            store.close()

        contenders = {OURS: lambda: [timed(ours)], DECODE: lambda: [timed(yardstick)]}  # called at once
        samples = interleaved(contenders, 3 if quick else 7)
        marks = [Mark(DECODE, 1.3)] if size == sizes[-1] else []
        found.append(compared(f"load {size:,} task files", "ms", samples, marks, scale=1e3))
    return [*found, growth("growth of loading task files", found[-1], found[0], sizes[-1] / sizes[0])]


def history(folder: Path, quick: bool) -> list[Measured]:
    found = []
    sizes = (50, 500, 5_000) if quick else (500, 5_000, 50_000)
    for lines in sizes:
        path = folder / f"history{lines}.jsonl"
        with path.open("w") as file:
            for number in range(lines):
                prompt = {"display": f"prompt {number} " + "x" * 100, "pastedContents": {}, "timestamp": number, "project": "/p"}
                file.write(json.dumps({**prompt, "sessionId": "s"}) + "\n")

        def ours(path: Path = path, lines: int = lines) -> None:
            page, _ = History(str(path), "/p").list(limit=50)
            if page[0].display.split()[1] != str(lines - 1):
                raise RuntimeError("not the newest")

        def yardstick(path: Path = path) -> None:
            with path.open("rb") as file:
                [json.loads(line) for line in file]

        contenders = {OURS: lambda: [timed(ours)], LOADS: lambda: [timed(yardstick)]}  # called at once
        marks = [Mark(LOADS, 0.03)] if lines == sizes[-1] else []
        found.append(
            compared(f"history of {lines:,} lines, first page", "ms", interleaved(contenders, 3 if quick else 9), marks, scale=1e3)
        )
    return [*found, growth("growth of the first page of history", found[-1], found[0], sizes[-1] / sizes[0], at_most=1.5)]
