"""Deleting a session moves its log, its tasks and its team aside; restoring moves them back."""

from __future__ import annotations

import contextlib
import os

from crewlog.storage.errors import SessionNotFound, StorageFailed
from crewlog.storage.files import POWER, Durability, make_folder, require_inside
from crewlog.storage.home import Home
from crewlog.storage.locks import ResourceLock, require_waiting
from crewlog.storage.names import check_name

_LOG = "log"
_TASKS = "tasks"


class Trash:
    """`<home>/.trash`: a folder for each deleted session, with the log under `log/<projectId>/` and its task list as `tasks`.

    Raises `InvalidName`, `SessionNotFound`, `StorageFailed`, `Busy`.
    """

    def __init__(self, home: Home, durability: Durability = POWER) -> None:
        self._home = home
        self._durability = durability

    def delete(self, session_id: str, log_path: str) -> None:
        """Takes the session whose log is at `log_path` out of sight. One deleted before under the same id is kept beside it."""
        check_name(session_id, "sessionId")
        self._begin()
        if not os.path.exists(log_path):
            raise SessionNotFound(session_id)
        place, tasks = self._free_place(session_id), self._home.task_list(session_id)
        target = os.path.join(place, _LOG, os.path.basename(os.path.dirname(log_path)), os.path.basename(log_path))
        with contextlib.ExitStack() as locks:  # both before the first move: who works on the tasks keeps the session whole
            locks.enter_context(ResourceLock(log_path, root=self._home.path))
            if not os.path.exists(log_path):
                raise SessionNotFound(session_id)
            has_tasks = os.path.isdir(tasks)
            if has_tasks:
                locks.enter_context(ResourceLock(tasks, folder=True, root=self._home.path))
            make_folder(os.path.dirname(target), self._durability)
            moves = [(log_path, target), *([(tasks, os.path.join(place, _TASKS))] if has_tasks else [])]
            try:
                self._move_all(moves)
            except StorageFailed:
                _remove_empty(os.path.dirname(target), os.path.join(place, _LOG), place)
                raise

    def restore(self, session_id: str) -> str:
        """Brings back the session deleted last under this id; the path of its log. What stands in its place by now is not touched."""
        check_name(session_id, "sessionId")
        self._begin()
        if self._latest_place(session_id) is None:
            raise SessionNotFound(session_id)
        with ResourceLock(self._home.trash, folder=True, root=self._home.path):
            return self._restore(session_id)

    def _restore(self, session_id: str) -> str:
        place = self._latest_place(session_id)
        if place is None:
            raise SessionNotFound(session_id)
        log = self._log_in(place)
        target = os.path.join(self._home.projects, os.path.basename(os.path.dirname(log)), os.path.basename(log))
        tasks, tasks_target = os.path.join(place, _TASKS), self._home.task_list(session_id)
        for found, wanted in ((log, target), (tasks, tasks_target)):
            if os.path.exists(found) and os.path.exists(wanted):
                raise StorageFailed(wanted, "EEXIST", "something stands where the deleted session was; move it away first")
        make_folder(os.path.dirname(target), self._durability)
        moves = [(log, target)]
        if os.path.isdir(tasks):
            make_folder(os.path.dirname(tasks_target), self._durability)
            moves.insert(0, (tasks, tasks_target))
        self._move_all(moves)
        _remove_empty(os.path.dirname(log), os.path.join(place, _LOG), place)
        return target

    def _begin(self) -> None:
        if self._durability.replacing_waits:
            require_waiting()

    def _free_place(self, session_id: str) -> str:
        number, place = 1, os.path.join(self._home.trash, session_id)
        while os.path.lexists(place):
            number += 1
            place = os.path.join(self._home.trash, f"{session_id}~{number}")
        return place

    def _latest_place(self, session_id: str) -> str | None:
        number, place, latest = 1, os.path.join(self._home.trash, session_id), None
        while os.path.isdir(place):
            latest = place if self._log_in(place) else latest
            number += 1
            place = os.path.join(self._home.trash, f"{session_id}~{number}")
        return latest

    def _log_in(self, place: str) -> str:
        """The log in a place of the trash; "" where there is none."""
        root = os.path.join(place, _LOG)
        try:
            return next(
                os.path.join(root, project, name)
                for project in sorted(os.listdir(root))
                for name in sorted(os.listdir(os.path.join(root, project)))
                if not name.startswith(".")
            )
        except (StopIteration, OSError):
            return ""

    def _move_all(self, moves: list[tuple[str, str]]) -> None:
        """All or none."""
        for _, target in moves:
            require_inside(target, self._home.path)
        done: list[tuple[str, str]] = []
        try:
            for source, target in moves:
                os.rename(source, target)
                done.append((source, target))
            for folder in {os.path.dirname(path) for move in moves for path in move}:
                self._durability.replaced(folder)
        except OSError as error:
            for source, target in reversed(done):
                with contextlib.suppress(OSError):  # the first error is the one to tell
                    os.rename(target, source)
            raise StorageFailed.from_os(error, moves[len(done)][0] if len(done) < len(moves) else moves[0][0]) from error


def _remove_empty(*folders: str) -> None:
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            return  # something else was put there: it stays
