"""Claude Code's task lists (`~/.claude/tasks/<list>/<n>.json`), read into ours.

A task keeps its number where it is free, and the record that it was made of. Imported again, it takes over what was changed there since
and was left alone here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from crewlog.cli.claude_code import SOURCE
from crewlog.cli.foreign import encode, imported, members, session_id_of, text_of
from crewlog.storage import rawjson
from crewlog.storage.errors import DependencyCycle
from crewlog.storage.files import POWER
from crewlog.storage.home import Home
from crewlog.storage.names import check_name
from crewlog.storage.records import Task, TaskUpdate
from crewlog.storage.task_files import NotATask, decode_task
from crewlog.storage.task_rules import STATUSES, parse_task_number, sort_tasks_by_id
from crewlog.storage.tasks import TaskStore

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIELDS = ("subject", "description", "active_form", "status", "owner")


class Copied(msgspec.Struct):
    """What became of a list: tasks that are new here, tasks that were changed, and whether some were here before."""

    added: int = 0
    changed: int = 0
    there: bool = False


def list_id_of(folder: Path) -> str:
    """A list that is named by a session's id gets the name that the session has here. Raises `InvalidName`."""
    return session_id_of(folder.name) if _UUID.fullmatch(folder.name) else check_name(folder.name, "listId")


def read_folder(folder: Path, skipped: list[str]) -> list[Task]:
    """The tasks in a folder, by number; what is none is told in `skipped`."""
    tasks = []
    for path in sorted(folder.glob("*.json")):
        try:
            task = decode_task(path.read_bytes())
        except NotATask as error:
            skipped.append(f"{path.name}: {error}")
        except OSError as error:
            skipped.append(f"{path.name}: it cannot be read: {error.strerror}")
        else:
            if task.id:
                tasks.append(task)
            else:
                skipped.append(f"{path.name}: it has no id")
    sort_tasks_by_id(tasks)
    return tasks


def copy_tasks(home: Home, list_id: str, tasks: Sequence[Task], skipped: list[str]) -> Copied:
    """Raises `StorageError`."""
    done = Copied()
    store = TaskStore(durability=POWER, root=home.path)
    try:
        store.set_dir(home.task_list(list_id))
        standing = {before.id: (before, ours) for before, ours in _imported_before(store)}
        done.there = bool(standing)
        numbers: dict[str, str] = {}
        for task in tasks:
            metadata = {**task.metadata, "imported": msgspec.Raw(encode(imported(SOURCE, _record(task))))}
            if task.id not in standing:
                number = parse_task_number(task.id) or 1
                numbers[task.id] = store.create(task.subject, task.description, task.active_form, metadata, number_from=number).id
                _update(store, numbers[task.id], _differences(Task(id=""), Task(id=""), task))
                done.added += 1
                continue
            before, ours = standing[task.id]
            numbers[task.id] = ours.id
            if not _is_same(_record(before), _record(task)):
                store.update(ours.id, msgspec.structs.replace(_differences(before, ours, task), metadata=metadata))
                done.changed += 1
        _connect(store, tasks, numbers, skipped)
    finally:
        store.close()
    return done


def _imported_before(store: TaskStore) -> Iterator[tuple[Task, Task]]:
    """(what it was made of, the task) for those that were imported."""
    for task in store.list():
        origin = members(bytes(task.metadata.get("imported", b"{}")))
        if text_of(origin, "from") == SOURCE:
            try:
                yield decode_task(origin["record"]), task
            except (KeyError, NotATask):
                continue  # somebody else's metadata


def _record(task: Task) -> bytes:
    return task.source if members(task.source) else rawjson.join_members({})


def _is_same(one: bytes, other: bytes) -> bool:
    """Whether they are the same value: in a task's file it has other blanks and escapes."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def _differences(before: Task, ours: Task, task: Task) -> TaskUpdate:
    """What was changed there since, where it was not changed here."""
    change = TaskUpdate()
    for name in _FIELDS:
        new = getattr(task, name)
        if new != getattr(before, name) == getattr(ours, name) and (name != "status" or new in STATUSES):
            setattr(change, name, new)
    return change


def _update(store: TaskStore, id: str, change: TaskUpdate) -> None:
    if change != TaskUpdate():
        store.update(id, change)


def _connect(store: TaskStore, tasks: Sequence[Task], numbers: dict[str, str], skipped: list[str]) -> None:
    """Enters who waits for whom, as either side tells it."""
    for task in tasks:
        blockers = {*task.blocked_by, *(other.id for other in tasks if task.id in other.blocks)} - {task.id}
        ours = store.get(numbers[task.id])
        new = sorted({numbers[other] for other in blockers if other in numbers} - set(ours.blocked_by if ours is not None else ()))
        try:
            _update(store, numbers[task.id], TaskUpdate(add_blocked_by=new))
        except DependencyCycle as error:
            skipped.append(f"{task.id}.json: {error}")
