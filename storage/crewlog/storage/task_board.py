"""The tasks of a list in memory, and how they follow the files.

What others changed is read at a cost that does not grow with the list: `ledger` tells what Crewlog changed, the folder's time whether
somebody else created or removed a file, and a file's own stamp whether it is another. See LOCKING.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import msgspec

from crewlog.storage import collector, task_claims
from crewlog.storage.errors import InvalidArgument, StorageError, StorageFailed, TaskNotFound
from crewlog.storage.high_water_mark import read_high_water_mark
from crewlog.storage.ledger import Line, Taking
from crewlog.storage.records import Task
from crewlog.storage.task_claims import TaskClaims, takings_in
from crewlog.storage.task_files import SUFFIX, file_name
from crewlog.storage.task_folder import TaskFolder
from crewlog.storage.task_index import TaskIndex

GRACE = 1.0
"""Seconds for which a task whose file cannot be read any more is shown as it was: somebody may be half way through writing it."""
STALENESS = 1.0
"""Seconds after which a list is compared with every file again, unless its owner watches the folder: for edits in place by others."""


class TaskChanges(msgspec.Struct):
    """Ids of tasks that changed (or were added), and of those that are gone."""

    changed: set[str]
    removed: set[str]


class TaskBoard:
    """Not thread-safe. What writes (`write`, `record`) is called under the folder's lock, after `refresh`."""

    def __init__(self) -> None:
        self.folder: TaskFolder | None = None
        self.claims = TaskClaims()
        self.index = TaskIndex(self.claims.owner_now)
        self.changes = TaskChanges(set(), set())
        self.memory_only: set[str] = set()
        """Tasks made before there was a folder."""
        self.invalid: set[str] | None = set()
        """Names of files that may have changed; None for all of them."""
        self.next = 1
        self.watched = False
        self._damaged: dict[str, float] = {}
        self._doubled: set[str] = set()
        """Tasks that were seen in several files."""

    def follow(self, folder: TaskFolder) -> None:
        """Takes the tasks from `folder` from now on. Raises `StorageFailed`."""
        self.memory_only |= self.index.tasks.keys()
        if self.folder is not None:
            self.folder.close()
        self.folder = folder
        self.next = 1
        folder.ledger.owner_of = self._owner_in_file
        folder.ledger.read()
        self.claims.takings = folder.ledger.takings  # reading may have begun them anew
        self._verify()
        self.next = self.next_number()

    def _owner_in_file(self, id: str) -> str:
        task = self.index.tasks.get(id)
        return "" if task is None else task.owner

    # --- what is in memory ---

    def shown(self, id: str) -> Task | None:
        task = self.index.tasks.get(id)
        return None if task is None else self.claims.shown(task)

    def require(self, id: str) -> Task:
        """Raises `TaskNotFound`; `StorageFailed` while the task's file cannot be read."""
        task = self.index.tasks.get(id)
        if task is None:
            raise TaskNotFound(id)
        if self._damaged and self.folder is not None and self._name_of(id) in self._damaged:
            path = os.path.join(self.folder.path, self._name_of(id))
            raise StorageFailed(path, "EBADMSG", "it is no task just now; somebody may be writing it: try again, or repair it")
        return task

    def first_claimable(self, match: Mapping[str, msgspec.Raw] | None) -> Task | None:
        """As of the index, but for tasks whose files cannot be read: somebody may be writing them."""
        files = self.folder.files if self.folder is not None else {}
        return self.index.first_claimable(match, {task_id for name in self._damaged if name in files and (task_id := files[name].task_id)})

    def put(self, task: Task) -> None:
        self.index.put(task)
        self.claims.schedule(task.id)
        self.changes.changed.add(task.id)
        self.changes.removed.discard(task.id)

    def drop(self, id: str) -> None:
        self.index.drop(id)
        self.memory_only.discard(id)
        self.changes.removed.add(id)
        self.changes.changed.discard(id)

    def clear(self) -> None:
        self.changes.removed |= self.index.tasks.keys()
        self.changes.changed.clear()
        self.index.clear()
        self.memory_only.clear()

    def note_lapses(self) -> None:
        """Tasks whose lease may have lapsed since the last look are claimable again."""
        for id in self.claims.lapsed():
            task = self.index.tasks.get(id)
            if task is not None and task.owner and not self.claims.owner_now(task):
                self.index.look_again(id)
                self.changes.changed.add(id)

    def next_moment(self) -> float | None:
        """When time alone may change the list, in seconds of `task_claims.now`."""
        lapse = self.claims.next_lapse()
        return min([*self._damaged.values(), *([lapse] if lapse is not None else [])], default=None)

    def numbers(self) -> list[int]:
        return [int(id) for id in self.index.tasks if id.isdigit() and len(id) < 16]

    def next_number(self) -> int:
        folder = self.folder
        if folder is None:
            return self.next
        mark = max(read_high_water_mark(folder.path), folder.ledger.high)
        return max(mark + 1, folder.highest_number + 1, self.next)

    def free_number(self, at_least: int = 1) -> int:
        """The next number that no task bears, also none of a file that was not seen yet."""
        self.next = max(self.next_number(), at_least)
        number = self.next
        while (str(number) in self.index.tasks and str(number) not in self.memory_only) or self._is_taken(number):
            number += 1
        return number

    # --- what is written ---

    def settled(self, change: Callable[[], dict[str, Task]]) -> dict[str, Task]:
        """What `change` makes of the tasks, when the files of all that it changes are as they were read: what somebody edited in place
        is read first. Raises what `change` raises, and `StorageFailed` for a task whose file cannot be read.
        """
        while True:
            changed = change()
            known = [self.index.tasks[id] for id in changed if id in self.index.tasks]
            current = [self.is_current(task) for task in known]
            for task in known:
                if task.id in self.index.tasks:
                    self.require(task.id)
            if all(current):
                return changed

    def write(self, changed: Mapping[str, Task], line: Line) -> None:
        """Files first, memory after: what fails on disk has not happened."""
        folder = self.folder
        on_disk = [task for task in changed.values() if task.id not in self.memory_only]
        done = {task.id: task for task in changed.values()}
        if folder is None:
            self.claims.add(line)
        elif len(on_disk) == 1:
            done[on_disk[0].id] = folder.write_task(on_disk[0], line)
            folder.accept()
        elif on_disk:
            done.update((task.id, task) for task in folder.write_together(on_disk, [], line))
            folder.accept()
        for task in done.values():
            self.put(task)

    def record(self, line: Line) -> None:
        """What changes no file: takings and renewals."""
        if self.folder is not None:
            self.folder.ledger.write(line)
        else:
            self.claims.add(line)
        self.note_lapses()
        for taking in takings_in(line):
            self._look_at_claim(taking.id)

    def remove(self, id: str, cleaned: Mapping[str, Task]) -> None:
        """Removes a task, and puts the others that named it as they are without it."""
        done = dict(cleaned)
        folder = self.folder
        if folder is not None and id not in self.memory_only:
            on_disk = [task for key, task in cleaned.items() if key not in self.memory_only]
            names = sorted({name for name in (folder.names.get(id), _file_name_or_none(id)) if name is not None})
            done.update((task.id, task) for task in folder.write_together(on_disk, names, Line(0, ids=[id, *cleaned])))
            for name in names:
                folder.forget(name)
            folder.names.pop(id, None)
            folder.accept()
            folder.ledger.forget_task(id)
        for task in done.values():
            self.put(task)
        self.drop(id)

    def remove_all(self) -> None:
        """Removes all tasks; their numbers are not given out again."""
        self.next = max(self.next_number(), *(number + 1 for number in self.numbers()), 1)
        folder = self.folder
        if folder is not None and folder.exists():
            names = sorted(name for name in os.listdir(folder.path) if name.endswith(SUFFIX) and not name.startswith("."))
            folder.write_together([], names, Line(0, ids=list(self.index.tasks), high=self.next - 1))
            for name in names:
                folder.forget(name)
            folder.names.clear()
        self.clear()
        if folder is not None:
            folder.accept()

    # --- what is on disk ---

    def refresh_all(self) -> None:
        folder = self.folder
        if folder is not None and not self.watched and folder.seconds_since_verified() > STALENESS:
            self.invalid = None
        self.refresh()

    def refresh_one(self, id: str) -> None:
        """Two `stat` calls when neither the list's ledger nor the task's file changed: what else did does not matter to it."""
        folder = self.folder
        name = folder.names.get(id) if folder is not None and self.invalid is not None and not self._damaged else None
        if folder is None or name is None or not folder.ledger.is_current() or not folder.is_current(name):
            self.refresh(id)
        else:
            self.note_lapses()

    def refresh(self, *ids: str) -> None:
        """Two `stat` calls when nothing changed, and one more for each of `ids`."""
        folder = self.folder
        if folder is None:
            self.note_lapses()
            return
        reading = folder.ledger.read()
        if folder.ledger.takings is not self.claims.takings:
            self._take_over(folder.ledger.takings)
        if folder.ledger.unfinished is not None:
            self._finish_change(folder)
        moved = folder.folder_moved()
        if reading.everything or self.invalid is None or folder.needs_settling():
            self.invalid = None  # as long as it is not done: where it must wait, it is done again, and the ledger tells once
            self._verify()
        else:
            explained = reading.fresh
            for id in {*reading.ids, *ids}:
                explained |= self._look_at(self._name_of(id))
            for name in self.invalid:
                self._look_at(name)
            for name in [name for name, until in self._damaged.items() if until <= task_claims.now()]:
                self._read_file(name)
            if moved and explained:
                folder.accept()
            elif moved:
                self.invalid = None
                self._verify()  # somebody else created, renamed or removed a file
        self.invalid = set()
        self.changes.changed |= reading.taken & self.index.tasks.keys()
        for id in reading.taken | reading.renewed:
            self._look_at_claim(id)
        self.note_lapses()

    def _take_over(self, takings: dict[str, dict[str, Taking]]) -> None:
        """The ledger is another than before: whose every task is may be another too."""
        self.claims.takings = takings
        for id in takings:
            self.claims.schedule(id)
        for id in self.index.tasks:
            self.index.look_again(id)

    def _look_at_claim(self, id: str) -> None:
        """Who holds the task, or until when, may have changed, though its file did not."""
        self.claims.schedule(id)
        self.index.look_again(id)

    def _finish_change(self, folder: TaskFolder) -> None:
        """A change of several files that is not done: its writer is at it, and the lock waits for that, or has died."""
        if folder.lock.held:
            unfinished = folder.ledger.unfinished
            if unfinished is not None:
                folder.finish(unfinished)
            return
        with folder.lock:
            folder.ledger.read()
            if folder.ledger.unfinished is not None:
                folder.finish(folder.ledger.unfinished)
        self.invalid = None

    def _verify(self) -> None:
        """Compares every file with what was read of it."""
        folder = self.folder
        assert folder is not None
        changed, gone = folder.changed_files()
        for name in gone:
            self._forget_file(name)
        with collector.resting():
            for name in changed:
                self._read_file(name)

    def _look_at(self, name: str) -> bool:
        """Whether the file was another than before."""
        assert self.folder is not None
        if self.folder.is_current(name):
            return False
        self._read_file(name)
        return True

    def is_current(self, task: Task) -> bool:
        """Looks at the task's file again; False where that changed the task."""
        if self.folder is None or task.id in self.memory_only:
            return True
        name = self._name_of(task.id)
        if self.folder.is_current(name):
            return True
        self._read_file(name)
        return False

    def _is_taken(self, number: int) -> bool:
        """Whether somebody has put a file there that was not seen yet."""
        if self.folder is None or self.folder.is_current(file_name(str(number))):
            return False
        self._read_file(file_name(str(number)))
        return True

    def _name_of(self, id: str) -> str:
        assert self.folder is not None
        known = self.folder.names.get(id)
        if known is not None:
            return known
        try:
            return file_name(id)
        except InvalidArgument:
            return SUFFIX

    def _read_file(self, name: str) -> None:
        folder = self.folder
        assert folder is not None
        before = folder.files.get(name)
        task = folder.read(name)
        damaged = task is None and before is not None and before.task_id is not None and name in folder.files
        if damaged and before is not None and self._damaged.setdefault(name, task_claims.now() + GRACE) > task_claims.now():
            folder.files[name].task_id = before.task_id
            return  # somebody may be half way through writing it: what was there still counts, for a moment
        self._damaged.pop(name, None)
        if before is not None and before.task_id is not None and (task is None or task.id != before.task_id):
            self._drop_read(before.task_id, name)
        if task is None:
            return
        other = folder.names.get(task.id)
        if other is not None and other != name and other in folder.files:
            self._doubled.add(task.id)
            if other == _file_name_or_none(task.id):
                return  # of two files with one id, the one that bears its name counts
        folder.names[task.id] = name
        known = self.index.tasks.get(task.id)
        self.memory_only.discard(task.id)
        if known is None or msgspec.structs.replace(known, claim=None) != task:
            self.put(task)

    def _forget_file(self, name: str) -> None:
        assert self.folder is not None
        task_id = self.folder.forget(name)
        if task_id is not None:
            self._drop_read(task_id, name)

    def _drop_read(self, task_id: str, name: str) -> None:
        """The task of a file that is gone; unless another file holds it as well."""
        folder = self.folder
        assert folder is not None
        if folder.names.get(task_id) != name:
            return
        del folder.names[task_id]
        others = folder.files.items() if task_id in self._doubled else ()
        other = next((n for n, state in others if state.task_id == task_id and n != name), None)
        if other is not None:
            self._read_file(other)
        else:
            self.drop(task_id)


def _file_name_or_none(task_id: str) -> str | None:
    try:
        return file_name(task_id)
    except StorageError:
        return None
