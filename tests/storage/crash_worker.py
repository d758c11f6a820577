"""A process that writes and says so, until it is killed. Not a test: started by test_crash.py.

What it prints is acknowledged: the line is written after the call returned.
"""

from __future__ import annotations

import os
import sys

from crewlog.storage import PROCESS, SessionManager, StorageError, TaskStore, TaskUpdate


def say(*words: object) -> None:
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def append(path: str, name: str) -> None:
    store = SessionManager(os.path.dirname(path), durability=PROCESS).open_path(path)
    number = 0
    while True:
        number += 1
        body = f'{{"role":"user","content":[{{"type":"text","text":"{name}-{number} {"x" * (number % 3000)}"}}]}}'
        entry = store.append_message(body.encode())
        say("A", entry.id, entry.parent_id, f"{name}-{number}")


def work(folder: str, name: str) -> None:
    store = TaskStore(durability=PROCESS)
    store.set_dir(folder)
    while True:
        made = store.create(f"by {name}")
        say("C", made.id)
        task = store.claim_next(name)
        if task is None:
            continue
        say("T", task.id, name)
        if made.id != task.id:
            try:
                store.update(task.id, TaskUpdate(add_blocks=[made.id]))
                say("L", task.id, made.id)
            except StorageError:
                pass  # another worker deleted it, or linked it the other way round
        if int(task.id) % 5 == 0:
            store.delete(task.id)
            say("D", task.id)
        else:
            store.update(task.id, TaskUpdate(status="completed"))
            say("U", task.id)


if __name__ == "__main__":
    {"append": append, "work": work}[sys.argv[1]](sys.argv[2], sys.argv[3])
