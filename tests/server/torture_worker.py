"""A process of the torture test, until it is killed or told to stop. Not a test: started by test_torture.py.

Half of them are agents with a server of their own, half use the storage library: both must agree. What is printed is acknowledged.
"""

from __future__ import annotations

import os
import random
import sys
import time

from crewlog.client import Client, ConnectionLost, NewEntry
from crewlog.storage import PROCESS, SessionManager, StorageError, TaskStore, TaskUpdate
from crewlog.storage.home import Home


def say(*words: object) -> None:
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


class Library:
    """The operations, by the storage library."""

    def __init__(self, home: str, list_id: str, session_path: str) -> None:
        self.tasks = TaskStore(durability=PROCESS)
        self.tasks.set_dir(Home(home).task_list(list_id))
        self.session = SessionManager(os.path.dirname(session_path), durability=PROCESS).open_path(session_path)

    def create(self, subject: str) -> str:
        return self.tasks.create(subject).id

    def take(self, owner: str) -> str | None:
        task = self.tasks.claim_next(owner)
        return task.id if task else None

    def link(self, blocker: str, blocked: str) -> None:
        self.tasks.update(blocker, TaskUpdate(add_blocks=[blocked]))

    def note(self, task_id: str, key: str) -> None:
        self.tasks.update(task_id, TaskUpdate(metadata={key: 1}))

    def complete(self, task_id: str) -> None:
        self.tasks.update(task_id, TaskUpdate(status="completed"))

    def say_in_session(self, words: str) -> None:
        self.session.append_message(b'{"role":"user","content":[{"type":"text","text":"%b"}]}' % words.encode())


class Agent:
    """The same, by a server of its own."""

    def __init__(self, home: str, list_id: str, session_id: str) -> None:
        self.client = Client(home=home, cwd=home, durability="process", subscribe=False).start()
        self.list_id = list_id
        self.session_id = session_id

    def create(self, subject: str) -> str:
        return self.client.task.create(self.list_id, subject).id

    def take(self, owner: str) -> str | None:
        task = self.client.task.claim_next(self.list_id, owner, wait_ms=50)
        return task.id if task else None

    def link(self, blocker: str, blocked: str) -> None:
        self.client.task.update(self.list_id, blocker, add_blocks=[blocked])

    def note(self, task_id: str, key: str) -> None:
        self.client.task.update(self.list_id, task_id, metadata={key: 1})

    def complete(self, task_id: str) -> None:
        self.client.task.update(self.list_id, task_id, status="completed")

    def say_in_session(self, words: str) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": words}]}
        self.client.session.append(self.session_id, [NewEntry("message", message)])


def work(by: Library | Agent, name: str, seed: int) -> None:
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        made = by.create(f"{name} {number}")
        say("C", made, time.monotonic_ns())
        taken = by.take(name)
        if taken is not None:
            say("T", taken, name)
            if taken != made and chance.random() < 0.3:
                try:
                    by.link(taken, made)
                    say("L", taken, made)
                except StorageError as error:
                    say("E", type(error).__name__)
            by.note(taken, f"{name}-{number}")
            say("N", taken, f"{name}-{number}")
            by.complete(taken)
            say("U", taken)
        by.say_in_session(f"{name}-{number}")
        say("S", f"{name}-{number}")


def main(kind: str, home: str, list_id: str, session: str, name: str, seed: str) -> None:
    by = Agent(home, list_id, os.path.basename(session)[11:19]) if kind == "agent" else Library(home, list_id, session)
    try:
        work(by, name, int(seed))
    except ConnectionLost:
        say("X")  # its server was killed: what it had not acknowledged does not count


if __name__ == "__main__":
    main(*sys.argv[1:])
