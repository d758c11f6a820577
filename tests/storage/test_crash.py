"""kill -9 at random moments, again and again: what was acknowledged is there, in order, and every file opens.

The seed is printed on failure; CREWLOG_CRASH_SEED replays it, CREWLOG_CRASH_ROUNDS makes it longer.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from crewlog.storage import PROCESS, SessionManager, Task, TaskStore

WORKER = Path(__file__).parent / "crash_worker.py"
ROUNDS = int(os.environ.get("CREWLOG_CRASH_ROUNDS", "60"))
SEED = int(os.environ.get("CREWLOG_CRASH_SEED", str(random.randrange(10**6))))
AT_ONCE = 2


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(WORKER), *arguments], stdout=subprocess.PIPE)


def kill_rounds(mode: str, target: str) -> list[list[list[str]]]:
    """For each killed process the words of its acknowledged lines. `ROUNDS` times `AT_ONCE` kills."""
    chance = random.Random(SEED)
    told = []
    for number in range(ROUNDS):
        workers = [start(mode, target, f"w{number}.{other}") for other in range(AT_ONCE)]
        for worker in workers:  # each has begun to write
            assert worker.stdout is not None
            first = worker.stdout.readline()
            assert first, "the worker ended by itself"
            told.append([first.decode().split()])
        time.sleep(chance.uniform(0, 0.06))
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker, lines in zip(workers, told[-AT_ONCE:]):
            rest = worker.communicate()[0]
            assert worker.returncode == -signal.SIGKILL
            lines += [line.decode().split() for line in rest.split(b"\n")[:-1]]
    return told


@pytest.fixture(autouse=True)
def seed_is_told(record_property: object) -> None:
    print(f"CREWLOG_CRASH_SEED={SEED}")


def test_appends_survive(tmp_path: Path) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    path = Path(store.path)
    told = kill_rounds("append", str(path))
    again = SessionManager(str(tmp_path)).open_path(str(path))
    nodes = {node.id: node for node in again.nodes()}
    texts = [msgspec.json.decode(raw)["content"][0]["text"].split()[0] for raw in again.snapshot().messages]
    place = {text: at for at, text in enumerate(texts)}
    for lines in told:
        acknowledged = [words[3] for words in lines]
        assert all(nodes[words[1]].parent_id == words[2] for words in lines)
        places = [place[text] for text in acknowledged]
        assert places == sorted(places)  # in order, and on the one chain
    again.append_message(b'{"role":"user"}')
    assert path.read_bytes().endswith(b"\n")


def test_tasks_survive(tmp_path: Path) -> None:
    folder = tmp_path / "list"
    seeded = TaskStore(durability=PROCESS)
    seeded.set_dir(str(folder))
    seeded.create("first")
    told = kill_rounds("work", str(folder))
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    store.create("one more writer finishes what was left")
    tasks = {task.id: task for task in store.list()}
    lines = [words for lines in told for words in lines]
    created = [words[1] for words in lines if words[0] == "C"]
    assert len(created) == len(set(created)), "an id was given out twice"
    taken = [words[1] for words in lines if words[0] == "T"]
    assert len(taken) == len(set(taken)), "a task was claimed twice"
    for words in lines:
        if words[0] == "U":
            assert tasks[words[1]].status == "completed"
        elif words[0] == "T" and words[1] in tasks:
            assert tasks[words[1]].owner == words[2]
        elif words[0] == "D":
            assert words[1] not in tasks
        elif words[0] == "L" and words[1] in tasks:  # else it was deleted by one who died before saying so
            assert words[2] in tasks[words[1]].blocks or words[2] not in tasks
    assert_sound(tasks, store, folder)


def assert_sound(tasks: dict[str, Task], store: TaskStore, folder: Path) -> None:
    """Dependencies are symmetrical, the mark is not below a file, nothing temporary stays, every file is a task."""
    for task in tasks.values():
        for other in task.blocks:
            assert task.id in tasks[other].blocked_by
        for other in task.blocked_by:
            assert task.id in tasks[other].blocks
    assert store.skipped() == []
    highest = max(int(path.stem) for path in folder.glob("*.json"))
    assert int((folder / ".highwatermark").read_text()) >= highest
    assert list(folder.glob(".*.tmp")) == []
