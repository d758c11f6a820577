"""The rows of the wire: round trips, throughput, start, memory, durability, pushes."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from crewlog.storage.manager import SessionManager

from .harness import OURS, Mark, Measured, Samples, compared, interleaved, percentile, within
from .pipes import CREWLOG, Pipes, yardstick
from .samples import message

PYGLS, LIMIT, IMPORTS, INOTIFY = "bare pygls", "the limit", "imports", "raw inotify"
TASK = {"listId": "bench", "id": "1"}
MESSAGE = message(1_500)
Row = Callable[[Path, bool], list[Measured]]


def rows() -> list[Row]:
    return [round_trip, start, memory, append_handed_over, append_synced, quick_beside_slow, push]


def _options(folder: Path, durability: str = "process") -> dict[str, Any]:
    return {"home": str(folder / "home"), "cwd": str(folder), "durability": durability, "subscribe": False}


@contextlib.contextmanager
def _rivals(folder: Path) -> Iterator[dict[str, Pipes]]:
    with Pipes(CREWLOG, _options(folder)) as ours, Pipes(yardstick("pygls_echo")) as pygls, Pipes(yardstick("msgspec_loop")) as limit:
        for number in range(10):
            ours.ask("task/create", {"listId": "bench", "subject": f"task {number}"})
        rivals = {OURS: ours, PYGLS: pygls, LIMIT: limit}
        for rival in rivals.values():
            rival.latencies("task/get", TASK, 200)
        yield rivals


def round_trip(folder: Path, quick: bool) -> list[Measured]:
    count, rounds = (100, 5) if quick else (400, 15)
    with _rivals(folder) as rivals:
        trips = interleaved({name: partial(rival.latencies, "task/get", TASK, count) for name, rival in rivals.items()}, rounds)
        rates = interleaved({name: partial(_rate, rival, _burst(name, quick)) for name, rival in rivals.items()}, rounds)
    return [
        compared("round trip, task/get in a list of 10", "ms", trips, [Mark(LIMIT, 2), Mark(PYGLS, 0.1)], scale=1e3),
        compared("the same pipelined", "requests/s", rates, [Mark(LIMIT, 0.5, at_least=True), Mark(PYGLS, 20, at_least=True)]),
    ]


def _rate(pipes: Pipes, count: int) -> list[float]:
    return [pipes.rate("task/get", TASK, count)]


def _burst(name: str, quick: bool) -> int:
    """Requests of one burst: fewer of the slow one, so that the turns are of a length."""
    return (200 if quick else 500) if name == PYGLS else (2_000 if quick else 10_000)


def start(folder: Path, quick: bool) -> list[Measured]:
    rounds = 3 if quick else 10

    def reply(command: list[str]) -> Callable[[], list[float]]:
        def run() -> list[float]:
            begun = time.perf_counter()
            with Pipes(command, _options(folder)):
                return [time.perf_counter() - begun]

        return run

    def end(*command: str) -> Callable[[], list[float]]:
        def run() -> list[float]:
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return [time.perf_counter() - begun]

        return run

    imports = end(*yardstick("imports_only"))
    servers = interleaved({OURS: reply(CREWLOG), PYGLS: reply(yardstick("pygls_echo")), IMPORTS: imports}, rounds)
    found = [compared("start to the reply to initialize", "ms", servers, [Mark(PYGLS, 1 / 3)], scale=1e3)]
    program = shutil.which("crewlog", path=os.path.dirname(sys.executable)) or shutil.which("crewlog")
    if program is not None:
        version = interleaved({OURS: end(program, "--version"), IMPORTS: imports}, rounds)
        found.append(compared("crewlog --version", "ms", version, [Mark(IMPORTS, 2.5)], scale=1e3))
        home = str(folder / "home")
        subprocess.run([program, "--home", home, "tasks", "add", "one", "--list", "bench"], check=True, stdout=subprocess.DEVNULL)
        listed = interleaved({OURS: end(program, "--home", home, "tasks", "list", "--list", "bench"), IMPORTS: imports}, rounds)
        found.append(compared("crewlog tasks list", "ms", listed, [Mark(IMPORTS, 2.5)], scale=1e3))
    return found


def memory(folder: Path, quick: bool) -> list[Measured]:
    with _rivals(folder) as rivals:
        samples = {name: [rivals[name].memory()] for name in (OURS, PYGLS)}
    return [compared("memory at rest", "MB", samples, [Mark(PYGLS, 1.3)], scale=1e-6)]


def _append(pipes: Pipes, session: str) -> bytes:
    return pipes.next_frame("session/append", {"sessionId": session, "entries": [{"kind": "message", "data": MESSAGE}]})


def append_handed_over(folder: Path, quick: bool) -> list[Measured]:
    count, rounds = (1_000, 3) if quick else (5_000, 7)
    line = json.dumps({"kind": "message", "id": "aabbccdd", "parent_id": "aabbccdd", "data": MESSAGE}).encode() + b"\n"

    def limit() -> list[float]:
        with open(folder / "limit.jsonl", "ab", buffering=0) as file:
            begun = time.perf_counter()
            for _ in range(count):
                fcntl.flock(file, fcntl.LOCK_EX)
                os.fstat(file.fileno())
                file.write(line)
                fcntl.flock(file, fcntl.LOCK_UN)
            return [count / (time.perf_counter() - begun)]

    with Pipes(CREWLOG, _options(folder)) as ours:
        session = ours.ask("session/create", {})["session"]["id"]

        def run() -> list[float]:
            return [ours.rate_of(b"".join(_append(ours, session) for _ in range(count)), count)]

        samples = interleaved({OURS: run, LIMIT: limit}, rounds)
    row = compared("session/append of 1.5 KB, pipelined", "requests/s", samples, [], durability="process")
    row.mark, row.met = "≥ 10,000/s", row.value >= 10_000
    return [row]


def append_synced(folder: Path, quick: bool) -> list[Measured]:
    count, rounds = (50, 3) if quick else (300, 7)
    line = json.dumps({"kind": "message", "id": "aabbccdd", "parent_id": "aabbccdd", "data": MESSAGE}).encode() + b"\n"

    def limit() -> list[float]:
        with open(folder / "synced.jsonl", "ab", buffering=0) as file:
            begun = time.perf_counter()
            for _ in range(count):
                file.write(line)
                os.fdatasync(file.fileno())
            return [count / (time.perf_counter() - begun)]

    with Pipes(CREWLOG, _options(folder, "power")) as ours:
        session = ours.ask("session/create", {})["session"]["id"]

        def one_by_one() -> list[float]:
            frames = [_append(ours, session) for _ in range(count)]
            begun = time.perf_counter()
            for request in frames:
                ours.write(request)
                ours.reply()
            return [count / (time.perf_counter() - begun)]

        def sixteen() -> list[float]:
            bursts = [b"".join(_append(ours, session) for _ in range(16)) for _ in range(count // 16 + 1)]
            begun = time.perf_counter()
            for burst in bursts:
                ours.write(burst)
                for _ in range(16):
                    ours.reply()
            return [len(bursts) * 16 / (time.perf_counter() - begun)]

        alone = interleaved({OURS: one_by_one, LIMIT: limit}, rounds)
        together = interleaved({OURS: sixteen, LIMIT: limit}, rounds)
    return [
        compared("session/append of 1.5 KB, one client", "requests/s", alone, [Mark(LIMIT, 0.6, at_least=True)], durability="power"),
        compared("the same, 16 pipelined", "requests/s", together, [Mark(LIMIT, 2, at_least=True)], durability="power"),
    ]


def quick_beside_slow(folder: Path, quick: bool) -> list[Measured]:
    """Small requests while a cold list of many sessions runs."""
    sessions, size = (100, 100) if quick else (1_000, 130)
    manager = SessionManager(str(folder / "home" / "projects" / "-many"))
    body = b'{"kind":"message","id":"%08x","parent_id":"h0","timestamp":"2026-03-01T09:30:00Z","data":%b}\n'
    message = json.dumps(MESSAGE).encode()
    for _ in range(sessions):
        store = manager.create(str(folder))
        with open(store.path, "ab") as file:
            file.write(b"".join(body % (number + 1, message) for number in range(size)))
    with Pipes(CREWLOG, _options(folder)) as ours:
        ours.ask("task/create", {"listId": "bench", "subject": "one"})
        idle = ours.latencies("task/get", TASK, 200)
        samples = latencies_beside(ours, "session/list", {"allProjects": True})
    row = within(f"task/get beside a cold list of {sessions:,} sessions", "ms", samples, {0.99: 10}, scale=1e3)
    row.rivals = {"idle": percentile(idle, 0.5) * 1e3}
    return [row]


def latencies_beside(pipes: Pipes, method: str, params: dict[str, Any]) -> list[float]:
    """Seconds of each round trip of a small request, one after another, until the reply to a long one is there."""
    samples: list[float] = []
    slow = pipes.next_frame(method, params)
    slow_id = json.loads(slow.partition(b"\r\n\r\n")[2])["id"]
    pipes.write(slow)
    answered = False
    while not answered:
        begun = time.perf_counter()
        pipes.write(pipes.next_frame("task/get", TASK))
        while json.loads(pipes.reply())["id"] == slow_id:
            answered = True
        samples.append(time.perf_counter() - begun)
    return samples


def push(folder: Path, quick: bool) -> list[Measured]:
    """From the reply in one server to the notification in another, beside two processes of which one waits for inotify."""
    count, rounds = (10, 5) if quick else (60, 8)
    bare = folder / "bare"
    bare.mkdir()
    waiting = subprocess.Popen([*yardstick("inotify_push"), str(bare)], stdout=subprocess.PIPE)
    assert waiting.stdout is not None
    told = waiting.stdout
    turns = itertools.count()
    try:
        with Pipes(CREWLOG, _options(folder)) as writer, Pipes(CREWLOG, _options(folder)) as listener:
            writer.ask("task/create", {"listId": "bench", "subject": "one"})
            listener.ask("subscribe", {"topics": ["task"], "listIds": ["bench"]})

            def change() -> None:
                writer.ask("task/update", {"listId": "bench", "id": "1", "subject": f"turn {next(turns)}"})

            def told_by_server() -> None:
                while b'"task/didChange"' not in listener.body():
                    continue

            def move() -> None:
                (bare / "1.tmp").write_bytes(b"{}")
                os.replace(bare / "1.tmp", bare / "1.json")

            def ours() -> list[float]:
                return _seconds_until_told(change, told_by_server, count)

            def rival() -> list[float]:
                return _seconds_until_told(move, lambda: told.readline(), count)

            if told.readline() != b"ready\n":
                raise RuntimeError("inotify cannot be had")
            samples = interleaved({OURS: ours, INOTIFY: rival}, rounds)
    finally:
        waiting.kill()
        waiting.wait()
        told.close()
    row = within("push from server to server", "ms", samples[OURS], {0.5: 10, 0.99: 50}, scale=1e3, durability="process")
    row.rivals = {INOTIFY: percentile(samples[INOTIFY], 0.5) * 1e3}
    row.note += f"; {INOTIFY} p99 {percentile(samples[INOTIFY], 0.99) * 1e3:.3g} ms"
    return [row]


def _seconds_until_told(change: Callable[[], None], told: Callable[[], object], count: int) -> list[float]:
    samples = []
    at = [0.0]
    heard = threading.Event()

    def listen() -> None:
        for _ in range(count):
            told()
            at[0] = time.perf_counter()
            heard.set()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    for _ in range(count):
        heard.clear()
        change()
        done = time.perf_counter()
        if not heard.wait(10):
            raise RuntimeError("a change was not told within 10 s")
        samples.append(max(at[0] - done, 0.0))
        time.sleep(0.05)  # an idle machine is what the mark speaks of, not a burst, which is merged
    thread.join()
    return samples


__all__ = ["Samples", "rows"]
