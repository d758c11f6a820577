"""Eight processes on one home, killed at random; one that edits files by hand; one that restores an older state of a folder.

30 seconds by default; CREWLOG_TORTURE_SECONDS makes it longer, CREWLOG_TORTURE_SEED replays the choices.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec

from crewlog.storage import PROCESS, SessionManager, TaskStore, TaskUpdate
from crewlog.storage.locks import ResourceLock

WORKER = Path(__file__).parent / "torture_worker.py"
SECONDS = float(os.environ.get("CREWLOG_TORTURE_SECONDS", "30"))
SEED = int(os.environ.get("CREWLOG_TORTURE_SEED", str(random.randrange(10**6))))
PROCESSES = 8


class Worker:
    """A process and what it has acknowledged."""

    def __init__(self, number: int, kind: str, home: Path, session: str) -> None:
        self.kind = kind
        self.name = f"w{number}"
        command = [sys.executable, str(WORKER), kind, str(home), "board", session, self.name, str(SEED + number)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.lines: list[list[str]] = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self.lines.append(line.decode().split())

    def kill(self, chance: random.Random) -> None:
        """The agent, or the server that it started."""
        victim = self.process.pid
        children = Path(f"/proc/{victim}/task/{victim}/children")
        if chance.random() < 0.5 and children.exists() and children.read_text().split():
            victim = int(children.read_text().split()[0])
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it had ended by itself

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_torture(tmp_path: Path) -> None:
    print(f"CREWLOG_TORTURE_SEED={SEED}")
    chance = random.Random(SEED)
    home = tmp_path / "home"
    session = SessionManager(str(home / "projects" / "-p"), durability=PROCESS).create("/p")
    board = TaskStore(durability=PROCESS)
    board.set_dir(str(home / "tasks" / "board"))
    board.create("first")
    edited = Edited(home, chance)
    workers = [Worker(number, "agent" if number % 2 else "library", home, session.path) for number in range(PROCESSES)]
    everybody = list(workers)
    marks: list[int] = []
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(chance.uniform(0.05, 0.3))
        marks.append(int((home / "tasks/board/.highwatermark").read_text()))
        edited.step()
        place = chance.randrange(PROCESSES)
        workers[place].kill(chance)
        if workers[place].process.poll() is not None or chance.random() < 0.7:
            workers[place].end()
            workers[place] = Worker(len(everybody), chance.choice(["agent", "library"]), home, session.path)
            everybody.append(workers[place])
    for worker in workers:
        worker.end()
    lines = [words for worker in everybody for words in worker.lines]
    for kind in ("agent", "library"):
        assert len([words for worker in everybody if worker.kind == kind for words in worker.lines]) > 100, kind
    assert not [words for words in lines if words[0] == "E" and words[1] not in ("DependencyCycle", "LeaseLost", "TaskNotFound")]
    assert marks == sorted(marks)
    check_board(home, lines)
    check_session(Path(session.path), everybody)
    edited.check()
    check_locks(home)


def check_board(home: Path, lines: list[list[str]]) -> None:
    folder = home / "tasks" / "board"
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    last = store.create("whoever comes next finishes what the killed ones began")
    tasks = {task.id: task for task in store.list()}
    created = [(int(words[2]), int(words[1])) for words in lines if words[0] == "C"]
    ids = [number for _, number in created]
    assert len(ids) == len(set(ids)), "a number was given out twice"
    assert max(ids) < int(last.id)
    taken = [words[1] for words in lines if words[0] == "T"]
    assert len(taken) == len(set(taken)), "a task was claimed twice"
    for words in lines:
        if words[0] == "T":
            assert tasks[words[1]].owner == words[2]
        elif words[0] == "N":
            assert words[2] in tasks[words[1]].metadata
        elif words[0] == "U":
            assert tasks[words[1]].status == "completed"
        elif words[0] == "L":
            assert words[2] in tasks[words[1]].blocks
    for task in tasks.values():
        assert all(task.id in tasks[other].blocked_by for other in task.blocks)
        assert all(task.id in tasks[other].blocks for other in task.blocked_by)
    assert store.skipped() == []
    assert list(folder.glob(".*.tmp")) == []


def check_session(path: Path, everybody: list[Worker]) -> None:
    store = SessionManager(str(path.parent), durability=PROCESS).open_path(str(path))
    chain, broken = store.chain()
    assert broken is None
    assert len(chain) == store.entry_count  # one chain holds all
    texts = [msgspec.json.decode(raw)["content"][0]["text"] for raw in store.snapshot().messages]
    place = {text: at for at, text in enumerate(texts)}
    for worker in everybody:
        places = [place[words[1]] for words in worker.lines if words[0] == "S"]
        assert places == sorted(places)


def check_locks(home: Path) -> None:
    """None is held by anybody, and each can be taken."""
    for path in home.rglob(".crewlog/*.lock"):
        folder = path.parent.parent
        resource = str(folder) if path.name == "folder.lock" else str(folder / path.name.removesuffix(".lock"))
        with ResourceLock(resource, folder=path.name == "folder.lock", timeout=0.1):
            pass


class Edited:
    """A second list, whose files are also edited by hand and put back to an older state, as `git checkout` does, while we write."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.folder = home / "tasks" / "edited"
        self.store = TaskStore(durability=PROCESS)
        self.store.set_dir(str(self.folder))
        self.chance = chance
        self.backup = home.parent / "backup"
        self.numbers: list[int] = []
        self.ours: dict[str, str] = {}

    def step(self) -> None:
        made = self.store.create("made")
        self.numbers.append(int(made.id))
        self.ours[made.id] = "made"
        action = self.chance.choice(["edit", "edit", "restore", "update", "remove"])
        if action == "edit":
            self.edit(made.id)
        elif action == "update":
            self.store.update(made.id, TaskUpdate(subject="updated"))
            self.ours[made.id] = "updated"
        elif action == "remove":
            (self.folder / f"{made.id}.json").unlink()
            self.ours.pop(made.id)
        elif self.backup.exists():
            self.restore()
        else:
            self.save()

    def edit(self, id: str) -> None:
        """In place, by a rename, and half of it first: then ours on top."""
        path = self.folder / f"{id}.json"
        document = json.dumps({**json.loads(path.read_bytes()), "description": "by hand", "unknown": {"x": 1e300}})
        if self.chance.random() < 0.5:
            path.write_text(document[:10])
            self.store.list()
            path.write_text(document)
        else:
            beside = path.with_suffix(".new")
            beside.write_text(document)
            beside.rename(path)
        self.store.update(id, TaskUpdate(subject="over it"))
        self.ours[id] = "over it"
        written = json.loads(path.read_bytes())
        assert (written["description"], written["unknown"]) == ("by hand", {"x": 1e300})

    def save(self) -> None:
        shutil.copytree(self.folder, self.backup, ignore=shutil.ignore_patterns(".crewlog"))
        self.saved = dict(self.ours)

    def restore(self) -> None:
        for path in self.folder.glob("*.json"):
            path.unlink()
        shutil.copytree(self.backup, self.folder, dirs_exist_ok=True)
        self.ours = dict(self.saved)

    def check(self) -> None:
        assert self.numbers == sorted(set(self.numbers)), "a number came again"
        time.sleep(1.1)  # the bound on seeing what others edited in place
        assert {task.id: task.subject for task in self.store.list()} == self.ours
        fresh = TaskStore(durability=PROCESS)
        fresh.set_dir(str(self.folder))
        assert {task.id: task.subject for task in fresh.list()} == self.ours
