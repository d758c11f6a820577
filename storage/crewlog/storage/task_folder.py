"""The files of a task list: what is there, what changed since it was read, and changes of several files as one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import msgspec

from crewlog.storage import high_water_mark
from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import (
    SIDE_FOLDER,
    Durability,
    keep,
    make_folder,
    put_back,
    put_in_place,
    require_inside,
    stage,
    temporary_name,
    unlink_quietly,
)
from crewlog.storage.high_water_mark import HighWaterMark
from crewlog.storage.ledger import Ledger, Line
from crewlog.storage.listing import Skipped
from crewlog.storage.locks import ResourceLock, require_waiting
from crewlog.storage.records import Task
from crewlog.storage.task_files import SUFFIX, NotATask, decode_task, encode_file, encode_task, file_name
from crewlog.storage.task_rules import parse_task_number

UNSETTLED_NS = 25_000_000
"""A folder changed this close to a look at it may change again within the same tick of its time stamp (10 ms at the coarsest)."""
_MANY = 500
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""Not to wait for the other end of what turns out to be a pipe."""

Stamp = tuple[int, int, int]
_UNREAD: Stamp = (0, 0, 0)
"""The stamp of no file."""


class FileState(msgspec.Struct, gc=False):
    """A task file as it was read: its time stamp, and the id of the task in it, None for a file that is no task."""

    stamp: Stamp
    task_id: str | None


class TaskFolder:
    """The folder of one list. Not thread-safe. Raises `StorageFailed` where the system refuses.

    `root`: the folder that symbolic links must not lead a write out of.
    """

    def __init__(self, path: str, durability: Durability, root: str) -> None:
        self.path = path
        self._side = os.path.join(path, SIDE_FOLDER)
        self.durability = durability
        self.root = root
        self.lock = ResourceLock(path, folder=True, root=root, existing=True)
        self.ledger = Ledger(path, durability)
        self.files: dict[str, FileState] = {}
        self.names: dict[str, str] = {}
        """By task id: the file that the task was read from."""
        self.skipped: dict[str, Skipped] = {}
        self.highest_number = 0
        """The highest number that ever named a file here."""
        self._folder_stamp: tuple[int, int] = (0, 0)
        self._unsettled: int | None = None
        """The folder's time when it was read, where that was too close to a change by others to be believed."""
        self._swept = False
        self._verified_at = float("-inf")

    def exists(self) -> bool:
        return os.path.isdir(self.path)

    def folder_moved(self) -> bool:
        """Whether names in the folder changed since it was read or accepted; one `stat`."""
        return self._stat_folder() != self._folder_stamp

    def accept(self) -> None:
        """The folder is as it should be after what Crewlog changed in it: what changed is known, and nothing has to be looked for."""
        self._folder_stamp = self._stat_folder()

    def needs_settling(self) -> bool:
        """Whether all was read too close to a change to be believed, and enough time has passed to read it again."""
        return self._unsettled is not None and time.time_ns() - self._unsettled > UNSETTLED_NS

    def seconds_since_verified(self) -> float:
        return time.monotonic() - self._verified_at

    def _stat_folder(self) -> tuple[int, int]:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return (0, 0)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        return (status.st_ino, status.st_mtime_ns)

    def changed_files(self) -> tuple[list[str], list[str]]:
        """(names to read, names that are gone), by comparing the stamps of all files. Long for a long list."""
        if len(self.files) > _MANY:
            require_waiting()
        now_there = self._stat_folder()
        is_new = now_there != self._folder_stamp and time.time_ns() - now_there[1] <= UNSETTLED_NS
        self._folder_stamp, self._unsettled = now_there, now_there[1] if is_new else None
        self._verified_at = time.monotonic()
        found: set[str] = set()
        changed: list[str] = []
        try:
            with os.scandir(self.path) as entries:
                names = sorted(entry.name for entry in entries)
            for name in names:
                known = self.files.get(name)
                if known is None:
                    number = _number_of(name)
                    if number is not None:
                        self.highest_number = max(self.highest_number, number)
                        self.files[name] = FileState(_UNREAD, None)
                        found.add(name)
                        changed.append(name)
                    continue
                stamp = self._stamp(name)
                if stamp is not None:  # else it was removed since it was listed; the others must be seen all the same
                    found.add(name)
                    if stamp != known.stamp:
                        changed.append(name)
        except FileNotFoundError:
            pass  # the folder is not there, and neither is a task
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        if len(changed) > _MANY:
            require_waiting()
        return changed, [name for name in self.files if name not in found]

    def is_current(self, name: str) -> bool:
        """Whether the file is as it was read; one `stat`."""
        known = self.files.get(name)
        return (known.stamp if known else None) == self._stamp(name)

    def _stamp(self, name: str) -> Stamp | None:
        try:
            status = os.stat(f"{self.path}{os.sep}{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageFailed.from_os(error, os.path.join(self.path, name)) from error
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def read(self, name: str) -> Task | None:
        """The task in a file; None where it is gone or no task (then `skipped` says why)."""
        path = f"{self.path}{os.sep}{name}"
        try:
            descriptor = os.open(path, os.O_RDONLY | _FLAGS)
            try:
                status = os.fstat(descriptor)
                content = os.read(descriptor, status.st_size + 1)
                while len(content) > status.st_size:
                    more = os.read(descriptor, 1 << 20)
                    if not more:
                        break
                    content += more
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            self.forget(name)
            return None
        except OSError as error:
            self.skipped[name] = Skipped(path, error.strerror or str(error))
            self._note(name, (0, 0, 0), None)
            return None
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        try:
            task = decode_task(content)
        except NotATask as problem:
            self.skipped[name] = Skipped(path, str(problem))
            self._note(name, stamp, None)
            return None
        self.skipped.pop(name, None)
        self._note(name, stamp, task.id)
        return task

    def _note(self, name: str, stamp: Stamp, task_id: str | None) -> None:
        if name not in self.files:
            self.highest_number = max(self.highest_number, _number_of(name) or 0)
        self.files[name] = FileState(stamp, task_id)

    def forget(self, name: str) -> str | None:
        """Forgets a file that is gone; the id of the task that was read from it."""
        self.skipped.pop(name, None)
        known = self.files.pop(name, None)
        return known.task_id if known else None

    def write_task(self, task: Task, line: Line) -> Task:
        """Makes `task` the content of its file; `line` goes to the ledger before. Returns the task as it now stands there."""
        document = encode_task(task)
        name = file_name(task.id)
        self._prepare(name)
        temporary = stage(os.path.join(self.path, name), encode_file(document), self.durability, self._side)
        try:
            with self._high_water_mark(line):
                self.ledger.write(line)
                put_in_place(temporary, os.path.join(self.path, name), self.durability, self._side)
        except StorageFailed:
            unlink_quietly(temporary)
            raise
        return self._written(task, name, document)

    def write_together(self, tasks: list[Task], removes: list[str], line: Line) -> list[Task]:
        """Writes and removes several files, all or none, also when this process dies half way: whoever comes next finishes it.

        Where the system refuses half way, what was done is undone.
        """
        documents = [encode_task(task) for task in tasks]
        kept: dict[str, str] = {}
        try:
            for task, document in zip(tasks, documents):
                name = file_name(task.id)
                self._prepare(name)
                kept[name] = self._keep(name)
                temporary = stage(os.path.join(self.path, name), encode_file(document), self.durability, self._side)
                line.moves.append((self._named(temporary), name))
            for name in removes:
                line.moves.append((name, self._named(temporary_name(os.path.join(self.path, name), self._side))))
                line.stamps[name] = self._stamp(name) or (0, 0, 0)
            line.kept = [self._named(path) for path in kept.values() if path]
            with self._high_water_mark(line):
                self.ledger.write(line)
                try:
                    self._move_all(line)
                except StorageFailed:
                    self._undo(line, kept)
                    raise
        except StorageFailed:
            for path in (*(self._path_of(staged) for staged, _ in line.moves[: len(documents)]), *filter(None, kept.values())):
                unlink_quietly(path)
            raise
        self._note_done(line)
        return [self._written(task, move[1], document) for task, document, move in zip(tasks, documents, line.moves)]

    def finish(self, line: Line) -> None:
        """Does what is left of a change of several files; under the lock."""
        self._move_all(line)
        self._note_done(line)

    def _move_all(self, line: Line) -> None:
        try:
            for source, target in line.moves:
                if self._is_to_be_moved(source, line):
                    os.replace(self._path_of(source), self._path_of(target))
            self.durability.replaced(self.path)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error

    def _is_to_be_moved(self, source: str, line: Line) -> bool:
        if source in line.stamps:
            return self._stamp(os.path.basename(source)) == line.stamps[source]
        return os.path.lexists(self._path_of(source))

    def _note_done(self, line: Line) -> None:
        """The change is made: where that cannot be noted, whoever comes next finds it made and notes it."""
        with contextlib.suppress(StorageFailed):
            self.ledger.write(Line(0, done=True))
        for name in (*line.kept, *(target for _, target in line.moves)):
            if name.endswith(".tmp"):
                unlink_quietly(self._path_of(name))

    def sweep(self) -> None:
        """Removes temporary files that a crash left; under the lock, since whoever makes one holds it. Once for each opened list."""
        if self._swept or self.ledger.unfinished is not None:
            return
        self._swept = True
        for folder in (self._side, self.path):
            try:
                names = os.listdir(folder)
            except OSError:
                continue  # nothing to sweep, or nothing that may be read: the operation itself will tell
            for name in names:
                if name.startswith(".") and name.endswith(".tmp"):
                    unlink_quietly(os.path.join(folder, name))

    def _undo(self, line: Line, kept: dict[str, str]) -> None:
        """Puts back what stood there before, and has the ledger say so. The error that led here is the one to tell."""
        for source, target in line.moves:
            if target not in kept:  # a file that was moved aside
                if os.path.lexists(self._path_of(target)):
                    put_back(self._path_of(target), self._path_of(source))
            elif not os.path.lexists(self._path_of(source)):
                put_back(kept[target], self._path_of(target))
        try:
            self.ledger.write(Line(0, ids=line.ids, done=True))
        except StorageFailed:
            with contextlib.suppress(StorageFailed):
                self.ledger.take_back()

    def _named(self, path: str) -> str:
        """A file of the side folder as the ledger names it."""
        return f"{SIDE_FOLDER}/{os.path.basename(path)}"

    def _path_of(self, name: str) -> str:
        """The file that a ledger names: never one outside the list, whatever a ledger says."""
        folder = self._side if name.startswith(f"{SIDE_FOLDER}/") else self.path
        return os.path.join(folder, os.path.basename(name))

    def _keep(self, name: str) -> str:
        path = os.path.join(self.path, name)
        try:
            return keep(path, self._side)
        except OSError as error:
            raise StorageFailed.from_os(error, path) from error

    @contextlib.contextmanager
    def _high_water_mark(self, line: Line) -> Iterator[None]:
        """Raises the mark, where the line has one; what fails inside sets it back."""
        if not line.high:
            yield
            return
        self._prepare(high_water_mark.NAME)
        mark = HighWaterMark(os.path.join(self.path, high_water_mark.NAME), self.durability)
        mark.write(line.high)
        try:
            yield
        except StorageFailed:
            mark.put_back()
            raise

    def _prepare(self, name: str) -> None:
        make_folder(self.path, self.durability)
        if os.path.islink(os.path.join(self.path, name)):
            require_inside(os.path.join(self.path, name), self.root)

    def _written(self, task: Task, name: str, document: bytes) -> Task:
        self._note(name, self._stamp(name) or (0, 0, 0), task.id)
        self.names[task.id] = name
        self.skipped.pop(name, None)
        return msgspec.structs.replace(task, source=document)

    def close(self) -> None:
        self.lock.close()
        self.ledger.close()


def is_task_file(name: str) -> bool:
    """Files named by a whole number; others are not tasks (`abc.json`, `1 (copy).json`, `1.json.bak`, hidden ones)."""
    return _number_of(name) is not None


def _number_of(name: str) -> int | None:
    return parse_task_number(name[: -len(SUFFIX)]) if name.endswith(SUFFIX) else None
