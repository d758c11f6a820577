"""Logs are appended to, edited in place, restored with their old times, cut, removed, replaced and renamed while two servers answer.

Each change brings a word of its own or takes one away. What was there all the while that a question took must be found, and what was not
there at any moment of it must not.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.rawclient import RawClient, serving
from server.test_index import line, said, search, write_session

SECONDS = float(os.environ.get("CREWLOG_TORTURE_SECONDS", "8"))
SESSIONS = 12
FILLER = b"".join(line(entry, "the parser said " + "and so on " * 50) for entry in range(1, 200))


class Word:
    """When a word was there: surely between `there` and `leaves`, maybe between `comes` and `gone`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.comes = time.monotonic()
        self.there = self.leaves = self.gone = float("inf")

    def must_be_found(self, begun: float, ended: float) -> bool:
        return self.there <= begun and ended <= self.leaves

    def may_be_found(self, begun: float, ended: float) -> bool:
        return self.comes <= ended and begun <= self.gone


class Logs:
    """The logs of a home, changed by one thread; `words` are all that there ever were."""

    def __init__(self, folder: Path, client: RawClient, seed: int) -> None:
        self.folder = folder
        self.client = client
        self.chance = random.Random(seed)
        self.words: list[Word] = []
        self.held: list[list[Word]] = [[] for _ in range(SESSIONS)]
        self.names: list[Word | None] = [None] * SESSIONS
        for number in range(SESSIONS):
            self.replaced(number)

    def path(self, number: int) -> Path:
        return self.folder / f"2026-03-01_{number:08x}.jsonl"

    def new(self) -> Word:
        word = Word(f"word{len(self.words):06d}")
        self.words.append(word)
        return word

    def again(self, words: list[Word]) -> list[Word]:
        """The same words, which come back."""
        made = [Word(word.text) for word in words]
        self.words += made
        return made

    def change(self, work: Callable[[], object], comes: list[Word], goes: list[Word]) -> None:
        now = time.monotonic()
        for word in goes:
            word.leaves = now
        work()
        now = time.monotonic()
        for word in comes:
            word.there = now
        for word in goes:
            word.gone = now

    def appended(self, number: int) -> None:
        word = self.new()
        content = line(500, f"said {word.text} at last")

        def append() -> None:
            with open(self.path(number), "ab", buffering=0) as file:
                file.write(content)

        self.change(append, [word], [])
        self.held[number].append(word)

    def appended_by_server(self, number: int) -> None:
        word = self.new()
        params = {"sessionId": f"{number:08x}", "entries": [{"kind": "message", "data": said(f"said {word.text}")}]}
        self.change(lambda: self.client.request("session/append", params), [word], [])
        self.held[number].append(word)

    def renamed(self, number: int) -> None:
        word = self.new()
        params = {"sessionId": f"{number:08x}", "name": f"name {word.text}"}
        self.change(lambda: self.client.request("session/setName", params), [word], [])
        self.held[number].append(word)
        self.names[number] = word

    def edited(self, number: int) -> None:
        """In place, to the same length, and its old time is set again."""
        if not self.held[number]:
            return
        old, word = self.held[number][-1], self.new()
        if old is self.names[number]:
            self.names[number] = word
        status = self.path(number).stat()
        time.sleep(0.02)  # the clock of the file system must tick: its time is all that tells

        def edit() -> None:
            with open(self.path(number), "r+b", buffering=0) as file:
                at = file.read().rindex(old.text.encode())
                os.pwrite(file.fileno(), word.text.encode(), at)
            os.utime(self.path(number), ns=(status.st_atime_ns, status.st_mtime_ns))

        self.change(edit, [word], [old])
        self.held[number][-1] = word

    def cut(self, number: int) -> None:
        """Its last line is taken away, as by an editor."""
        if not self.held[number]:
            return
        old = self.held[number][-1]
        if old is self.names[number]:
            return
        content = self.path(number).read_bytes()
        at = content.rindex(b"\n", 0, content.rindex(old.text.encode())) + 1
        self.change(lambda: os.truncate(self.path(number), at), [], [old])
        self.held[number].pop()

    def replaced(self, number: int) -> None:
        word = self.new()
        other = self.folder / f".{number}"
        write_session(other, number, FILLER + line(500, f"said {word.text}"))
        self.change(lambda: os.rename(next(other.iterdir()), self.path(number)), [word], self.held[number])
        self.held[number], self.names[number] = [word], None

    def removed_and_restored(self, number: int) -> None:
        """A copy with the old times comes back, without what was said since."""
        content, status = self.path(number).read_bytes(), self.path(number).stat()
        kept, name = list(self.held[number]), self.names[number]
        self.appended(number)
        self.change(self.path(number).unlink, [], self.held[number])
        again = self.again(kept)

        def restore() -> None:
            copy = self.folder / f".copy{number}"
            copy.write_bytes(content)
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.rename(copy, self.path(number))

        self.change(restore, again, [])
        self.held[number], self.names[number] = again, again[kept.index(name)] if name is not None else None

    def deleted_and_restored(self, number: int) -> None:
        """Through the server, to the trash and back."""
        kept, name = self.held[number], self.names[number]
        self.change(lambda: self.client.request("session/delete", {"sessionId": f"{number:08x}"}), [], kept)
        again = self.again(kept)
        self.change(lambda: self.client.request("session/restore", {"sessionId": f"{number:08x}"}), again, [])
        self.held[number], self.names[number] = again, again[kept.index(name)] if name is not None else None

    def step(self) -> None:
        steps = [self.appended, self.appended_by_server, self.edited, self.cut, self.replaced, self.removed_and_restored, self.renamed]
        self.chance.choice([*steps, self.deleted_and_restored])(self.chance.randrange(SESSIONS))


def contradictions(words: list[Word], text: str, found: bool, begun: float, ended: float) -> list[str]:
    same = [word for word in words if word.text == text]
    if found and not any(word.may_be_found(begun, ended) for word in same):
        return [f"{text} was found, and was in no file"]
    if not found and any(word.must_be_found(begun, ended) for word in same):
        return [f"{text} was not found, and was there all the while"]
    return []


def test_what_is_found_was_there_and_what_was_there_is_found(home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("CREWLOG_TORTURE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
    folder = home / "projects" / "-x"
    folder.mkdir(parents=True)
    options = {"cwd": str(tmp_path), "durability": "process"}
    faults: list[str] = []
    asked = [0, 0]
    over = threading.Event()
    with serving(home, options) as one, serving(home, options) as two:
        logs = Logs(folder, one, seed)

        def ask(client: RawClient, chance: random.Random, turn: int) -> None:
            while not over.is_set() and not faults:
                text = chance.choice(logs.words[-40:] if chance.random() < 0.7 else logs.words).text
                begun = time.monotonic()
                found = bool(search(client, text))
                faults.extend(contradictions(list(logs.words), text, found, begun, time.monotonic()))
                begun = time.monotonic()
                listed = client.request("session/list", {"allProjects": True})["sessions"]
                ended = time.monotonic()
                names = {session["name"].removeprefix("name ") for session in listed if session["name"]}
                for name in names:
                    faults.extend(contradictions(list(logs.words), name, True, begun, ended))
                asked[turn] += 1

        threads = [threading.Thread(target=ask, args=(client, random.Random(seed + turn), turn)) for turn, client in enumerate((one, two))]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + SECONDS
        try:
            while time.monotonic() < deadline and not faults:
                logs.step()
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert faults == [], f"seed {seed}"
        assert min(asked) > 3
        for client in (one, two):
            for word in logs.words[-100:]:
                begun = time.monotonic()
                found = bool(search(client, word.text))
                assert contradictions(logs.words, word.text, found, begun, time.monotonic()) == [], f"seed {seed}"
        state: dict[str, Any] = one.request("crewlog/status")["index"]
        assert state["state"] in ("ready", "reading"), state
