"""The rows of the index: lists, search and statistics over many sessions, beside programs that read the files, and beside grep."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from crewlog.storage import SessionManager
from crewlog.storage.home import Home
from crewlog.storage.index import SessionIndex
from crewlog.storage.records import SessionInfo
from crewlog.storage.search import search as search_logs
from crewlog.storage.stats import gather_stats

from .harness import OURS, Mark, Measured, compared, growth, interleaved, percentile, within
from .pipes import CREWLOG, Pipes
from .wire import TASK, latencies_beside

LOADS, DECODE, SCANDIR, SCAN = "json.loads", "msgspec", "scandir + stat", "no index"
Row = Callable[[Path, bool], list[Measured]]
DURABILITY = "derived: may be lost"
_LINE = b'{"kind":"%b","id":"%08x","parent_id":"%b","timestamp":"2026-%02d-%02dT%02d:%02d:%02dZ","data":%b}\n'


def rows() -> list[Row]:
    return [lists, index_and_search, stats]


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Logs:
    """Sessions as agents leave them: prose and code in words that are few and common or many and rare, some of it Chinese, with calls of
    tools and of models between.
    """

    def __init__(self, folder: Path) -> None:
        self.home = Home(str(folder))
        self.folder = os.path.join(self.home.projects, "-bench")
        os.makedirs(self.folder)
        self.sessions = 0
        self.bytes = 0
        self._random = random.Random(6)
        self._pool = list(itertools.islice(self._payloads(), 4_000))

    def _words(self) -> list[str]:
        letters = "etaoinshrdlucmfwypvbgkqjxz"
        made = {"".join(self._random.choices(letters, k=self._random.randint(2, 11))) for _ in range(40_000)}
        return sorted(made)

    def _payloads(self) -> Iterator[tuple[bytes, bytes]]:
        chance = self._random
        words = self._words()
        chance.shuffle(words)
        weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
        signs = [" ", " ", " ", " ", ", ", ".\n", "_", "(", ") ", " = ", "/", "\n    ", '"', "."]
        for number in itertools.count():
            if number % 8 == 7:
                call: dict[str, object] = {"provider": "p", "model": f"sonata-{number % 3}", "input_tokens": 1_200, "output_tokens": 300}
                call |= {"cache_read_tokens": 9_000, "latency_ms": chance.randrange(300, 9_000), "stop_reason": "end"}
                yield b"llm_call", json.dumps(call).encode()
                continue
            count = chance.choice([20, 60, 200, 200, 600])
            text = "".join(word + chance.choice(signs) for word in chance.choices(words, cum_weights=weights, k=count))
            if number % 40 == 3:
                text += "".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(200))
            blocks: list[dict[str, object]] = [{"type": "text", "text": text}]
            if number % 2:
                blocks.append({"type": "toolCall", "tool_call": {"id": "c", "name": "edit", "args": {"path": "src/a.py"}}})
            message = {"role": "assistant" if number % 2 else "tool", "content": blocks}
            yield b"message", json.dumps(message, ensure_ascii=False).encode()

    def add_session(self, size: int) -> str:
        """A session of about `size` bytes, which holds a word of its own; its path."""
        number = self.sessions
        self.sessions += 1
        day, hour = number // 24 % 28 + 1, number % 24
        moment = (number // 24 // 28 % 12 + 1, day, hour)
        created = f"2026-{moment[0]:02d}-{day:02d}T{hour:02d}:00:00Z"
        header = {"version": 3, "session_id": f"{number:08x}", "cwd": "/bench", "created": created}
        lines = [json.dumps({"kind": "header", "id": "h0", "timestamp": created, "data": header}).encode() + b"\n"]
        own = {"role": "user", "content": [{"type": "text", "text": f"the needle{number} of 寻找{chr(0x9000 + number % 4000)} is here"}]}
        parent, written = b"h0", 0
        for place in itertools.count():
            kind, data = (b"message", json.dumps(own, ensure_ascii=False).encode()) if place == 3 else self._random.choice(self._pool)
            lines.append(_LINE % (kind, place, parent, *moment, place // 60 % 60, place % 60, data))
            parent, written = b"%08x" % place, written + len(lines[-1])
            if written > size and place > 3:
                break
        path = os.path.join(self.folder, f"2026-03-01_{number:08x}.jsonl")
        with open(path, "wb") as file:
            file.writelines(lines)
        then = time.time() - 3_600
        os.utime(path, (then, then))
        self.bytes += os.path.getsize(path)
        return path

    def paths(self) -> list[str]:
        return [os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.endswith(".jsonl")]

    def each_line(self, use: Callable[[bytes], object]) -> None:
        for path in self.paths():
            with open(path, "rb") as file:
                for line in file:
                    use(line)


def lists(folder: Path, quick: bool) -> list[Measured]:
    """Each list is that of a new process: nothing of it is in memory."""
    sizes, size = ((5, 15, 60), 20_000) if quick else ((10, 100, 1_000), 200_000)
    logs = Logs(folder / "home")
    firsts, agains, growns = [], [], []
    for count in sizes:
        while logs.sessions < count:
            logs.add_session(size)
        shutil.rmtree(os.path.join(logs.home.path, ".crewlog"), ignore_errors=True)
        manager = SessionManager(logs.folder)
        pages = [timed(lambda: SessionManager(logs.folder).first_page(50)) for _ in range(3 if quick else 9)]
        firsts.append(within(f"first page of 50 of {count:,} sessions, nothing indexed", "ms", pages, {0.5: 100}, scale=1e3))
        SessionIndex(logs.home).update(small=0)
        whole = len(manager.list().sessions)

        def ours(whole: int = whole) -> list[float]:
            def work() -> None:
                opened = SessionIndex(logs.home)
                if len(SessionManager(logs.folder, known=opened.summaries).list().sessions) != whole:
                    raise RuntimeError("sessions are missing")
                opened.close()

            return [timed(work)]

        def scan() -> list[float]:
            return [timed(lambda: [entry.stat() for entry in os.scandir(logs.folder)])]

        marks = [Mark(SCANDIR, 5)] if count == sizes[-1] else []
        again = interleaved({OURS: ours, SCANDIR: scan}, 5 if quick else 20)
        agains.append(compared(f"list of {count:,} sessions, indexed", "ms", again, marks, scale=1e3, durability=DURABILITY))
        with open(logs.paths()[0], "ab") as file:
            file.write(_LINE % (b"message", 9_999_999, b"h0", 3, 1, 1, 1, 1, b'{"role":"user"}'))
        grown = interleaved({OURS: ours, SCANDIR: scan}, 5 if quick else 20)
        growns.append(compared(f"list of {count:,} after one session grew", "ms", grown, marks, scale=1e3, durability=DURABILITY))
    times = sizes[-1] / sizes[0]
    return [
        *firsts,
        *agains,
        growth("growth of the indexed list", agains[-1], agains[0], times),
        *growns,
        growth("growth of the list after one session grew", growns[-1], growns[0], times),
    ]


def index_and_search(folder: Path, quick: bool) -> list[Measured]:
    """At three sizes; the largest is 1 GB. What is found is compared with what the files hold by the way."""
    found: list[Measured] = []
    logs = Logs(folder / "home")
    decoder = msgspec.json.Decoder()
    told: dict[str, list[Measured]] = {}
    megabytes = (1, 4, 16) if quick else (10, 100, 1_000)
    for size in megabytes:
        while logs.bytes < size * 1_000_000:
            logs.add_session(min(1_000_000, size * 100_000))
        whole = logs.bytes / 1e6
        shutil.rmtree(os.path.join(logs.home.path, ".crewlog"), ignore_errors=True)
        index = SessionIndex(logs.home)
        made = timed(partial(index.update, small=0))
        decoded = timed(lambda: logs.each_line(decoder.decode))
        row = compared(
            f"index {whole:,.0f} MB of logs", "MB/s", {OURS: [whole / made], DECODE: [whole / decoded]}, [], durability=DURABILITY
        )
        row.mark, row.met = "≥ 50 MB/s", row.value >= 50
        row.note = f"its size {index.status().bytes / logs.bytes:.2f}× the logs"
        found.append(row)
        sessions = SessionManager(logs.folder).list().sessions
        needle = f"needle{logs.sessions // 2}"
        queries = {
            "a rare word": (needle, 1),
            "a common word": (_common_word(logs), 50),
            "two Chinese letters": ("寻找", 50),
            "a phrase": (f'"the {needle} of"', 1),
            "a prefix": ("needle1*", 50),
        }
        for name, (query, hits) in queries.items():
            row = _search_row(logs, index, sessions, query, hits, quick)
            row.name = f"search {whole:,.0f} MB for {name}"
            told.setdefault(f"searching for {name}", []).append(row)
            found.append(row)
        path = logs.add_session(50_000)
        row = within(f"index one more session beside {whole:,.0f} MB", "ms", [timed(partial(index.update, small=0))], {}, scale=1e3)
        row.mark, row.durability = "slope", DURABILITY
        told.setdefault("indexing one more session", []).append(row)
        found.append(row)
        os.unlink(path)
        index.close()
    found.append(_beside_a_search(logs))
    times = megabytes[-1] / megabytes[0]
    return [
        *found,
        *(growth(f"growth of {name}", of[-1], of[0], times) for name, of in told.items()),
    ]


def _beside_a_search(logs: Logs) -> Measured:
    """Small requests while a search runs that no index helps: signs alone, which are nowhere, so that all is read."""
    options = {"home": logs.home.path, "cwd": logs.home.path, "durability": "process", "subscribe": False}
    with Pipes(CREWLOG, options) as ours:
        ours.ask("task/create", {"listId": "bench", "subject": "one"})
        idle = ours.latencies("task/get", TASK, 200)
        samples = latencies_beside(ours, "session/search", {"query": "!=~", "allProjects": True})
    row = within(f"task/get beside a search through {logs.bytes / 1e6:,.0f} MB", "ms", samples, {0.99: 10}, scale=1e3)
    row.rivals = {"idle": percentile(idle, 0.5) * 1e3}
    return row


def _common_word(logs: Logs) -> str:
    with open(logs.paths()[0], "rb") as file:
        words = file.read(200_000).decode("utf-8", "replace").split()
    return max((word for word in set(words) if word.isalpha() and word.isascii() and len(word) > 3), key=words.count)


def _search_row(logs: Logs, index: SessionIndex, sessions: list[SessionInfo], query: str, hits: int, quick: bool) -> Measured:
    folders = {logs.folder}

    def ours() -> list[float]:
        def work() -> None:
            found = search_logs(sessions, query, places=index.places(query, folders))
            if not 1 <= len(found) <= 50 or (hits == 1 and len(found) != 1):
                raise RuntimeError(f"{len(found)} hits for {query}")

        return [timed(work) for _ in range(3)]

    contenders: dict[str, Callable[[], list[float]]] = {OURS: ours}
    program = shutil.which("rg") or shutil.which("grep")
    if program is not None:
        words = query.strip('"').rstrip("*")
        command = [program, *(["-r"] if program.endswith("grep") else []), "-liF", words, logs.folder]
        contenders[os.path.basename(program)] = lambda: [timed(lambda: subprocess.run(command, check=False, stdout=subprocess.DEVNULL))]
    if logs.bytes < 200_000_000:
        contenders[SCAN] = lambda: [timed(lambda: search_logs(sessions, query))]
    samples = interleaved(contenders, 2 if quick else 3)
    row = compared("", "ms", samples, [], scale=1e3)
    row.mark, row.met = "≤ 50 ms", row.value <= 50
    row.note = f"p90 {percentile(samples[OURS], 0.9) * 1e3:.3g} ms"
    return row


def stats(folder: Path, quick: bool) -> list[Measured]:
    """From the question to the sums and percentiles by model, day and session; the list that the client has already is not counted."""
    found = []
    logs = Logs(folder / "home")
    for count in (5, 30, 100) if quick else (10, 100, 1_000):
        while logs.sessions < count:
            logs.add_session(20_000 if quick else 200_000)
        index = SessionIndex(logs.home)
        index.update(small=0)
        sessions = SessionManager(logs.folder).list().sessions

        def ours(index: SessionIndex = index, sessions: list[SessionInfo] = sessions) -> list[float]:
            def work() -> None:
                spent = gather_stats(sessions, usage_of=index.usage_of({logs.folder}))
                parts = [spent.total, *spent.by_model.values(), *spent.by_day.values(), *spent.by_session.values()]
                [(usage.percentile(0.5), usage.percentile(0.95), usage.cost) for usage in parts]

            return [timed(work)]

        rounds = 3 if quick or count < 1_000 else 9
        samples = interleaved({OURS: ours, LOADS: lambda: [timed(lambda: logs.each_line(json.loads))]}, rounds)
        row = compared(f"statistics of {count:,} sessions, indexed", "ms", samples, [], scale=1e3)
        if count == 1_000 or quick:
            row.mark, row.met = "≤ 50 ms", row.value <= 50
        found.append(row)
        index.close()
    return [*found, growth("growth of statistics", found[-1], found[0], 20 if quick else 100)]
