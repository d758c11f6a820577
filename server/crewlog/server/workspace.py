"""The stores that one server has open on its home."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from crewlog.storage.errors import SessionNotFound, StorageError, StorageFailed
from crewlog.storage.files import Durability
from crewlog.storage.history import History
from crewlog.storage.home import Home, resolve_project_folder
from crewlog.storage.manager import SessionManager
from crewlog.storage.names import check_name, project_id
from crewlog.storage.plans import PlanStore
from crewlog.storage.roster import RosterStore
from crewlog.storage.sessions import SessionStore
from crewlog.storage.tasks import TaskStore
from crewlog.storage.transcripts import TranscriptStore
from crewlog.storage.trash import Trash

OPEN_STORES = 64
"""Stores of a kind that stay open; the one not used for longest gives its files back."""
CACHED_BYTES = 256 << 20
"""Payloads that snapshots may leave in memory, over all sessions."""

_Store = TypeVar("_Store")


class Recent(Generic[_Store]):
    """The stores used last, by key. Thread-safe."""

    def __init__(self, make: Callable[[str], _Store], release: Callable[[_Store], None]) -> None:
        self._make = make
        self._release = release
        self._mutex = threading.Lock()
        self._stores: OrderedDict[str, _Store] = OrderedDict()
        self.kept: set[str] = set()
        """Keys whose stores stay, however long they are not used."""

    def get(self, key: str) -> _Store:
        with self._mutex:
            store = self._stores.get(key)
            if store is not None:
                self._stores.move_to_end(key)
                return store
        made = self._make(key)
        with self._mutex:
            store = self._stores.setdefault(key, made)
            dropped = self._drop_oldest()
        if store is not made:
            dropped.append(made)
        for old in dropped:
            self._release(old)
        return store

    def peek(self, key: str) -> _Store | None:
        return self._stores.get(key)

    def values(self) -> list[_Store]:
        with self._mutex:
            return list(self._stores.values())

    def forget(self, key: str) -> None:
        with self._mutex:
            store = self._stores.pop(key, None)
        if store is not None:
            self._release(store)

    def _drop_oldest(self) -> list[_Store]:
        dropped = []
        for key in list(self._stores)[:-1]:
            if len(self._stores) <= OPEN_STORES + len(self.kept):
                break
            if key not in self.kept:
                dropped.append(self._stores.pop(key))
        return dropped


class Workspace:
    """One home, as one client works in it: `cwd` is its project where a request names none."""

    def __init__(self, home: str, cwd: str, durability: Durability) -> None:
        self.home = Home(home)
        self.cwd = resolve_project_folder(cwd)
        self.durability = durability
        self.trash = Trash(self.home, durability)
        self.plans = PlanStore(self.home.plans, durability=durability, root=self.home.path)
        self.tasks = Recent(self._make_tasks, TaskStore.close)
        self.rosters = Recent(self._make_roster, lambda store: None)
        self.transcripts = Recent(self._make_transcripts, TranscriptStore.close)
        self.histories = Recent(self._make_history, History.close)
        self._managers: dict[str, SessionManager] = {}
        self._sessions: Recent[SessionStore] = Recent(self._open_session, SessionStore.release)
        self._paths: dict[str, str] = {}

    @property
    def project_id(self) -> str:
        return project_id(self.cwd)

    def folder_of(self, cwd: str | None) -> str:
        """The working directory of a request, absolute and free of links."""
        return self.cwd if cwd is None else resolve_project_folder(cwd)

    def manager(self, folder: str) -> SessionManager:
        """The sessions in one folder under `projects/`."""
        found = self._managers.get(folder)
        if found is None:
            found = self._managers[folder] = SessionManager(folder, durability=self.durability, root=self.home.path)
        return found

    def managers(self, cwd: str | None, *, all_projects: bool = False) -> list[SessionManager]:
        """Those of a project, or of all. A project that was also worked in through a link has a folder for either name."""
        if all_projects:
            return [self.manager(folder) for folder in self._project_folders()]
        literal = self.cwd if cwd is None else os.path.abspath(os.path.expanduser(cwd))
        folders = dict.fromkeys(self.home.sessions(path) for path in (self.folder_of(cwd), literal))
        return [self.manager(folder) for folder in folders]

    def session(self, session_id: str) -> SessionStore:
        """Raises `InvalidName`, `SessionNotFound`, and what opening raises."""
        path = self.session_path(session_id)
        try:
            return self._sessions.get(path)
        except StorageError:
            self._paths.pop(session_id, None)
            raise

    def session_at(self, path: str) -> SessionStore:
        """The session of a log inside this home or elsewhere."""
        real = os.path.abspath(os.path.expanduser(path))
        if not os.path.exists(real):
            raise SessionNotFound(path)
        store = self._sessions.get(real)
        if real.startswith(self.home.projects + os.sep):
            self._paths.setdefault(store.session_id, real)
        return store

    def session_path(self, session_id: str) -> str:
        """The log of a session: of this project first, then of any other. Raises `InvalidName`, `SessionNotFound`."""
        check_name(session_id, "sessionId")
        known = self._paths.get(session_id)
        if known is not None and os.path.exists(known):
            return known
        seen = dict.fromkeys([*(manager.dir for manager in self.managers(None)), *self._project_folders()])
        for folder in seen:
            try:
                path = self._paths[session_id] = self.manager(folder).find(session_id)
            except SessionNotFound:
                continue
            return path
        raise SessionNotFound(session_id)

    def forget_session(self, session_id: str, path: str) -> None:
        self._paths.pop(session_id, None)
        self._sessions.forget(path)

    def bound_caches(self) -> None:
        """Lets go of payloads that snapshots left in memory, beyond `CACHED_BYTES` in all."""
        total = 0
        for store in reversed(self._sessions.values()):
            total += store.cached_bytes
            if total > CACHED_BYTES:
                store.drop_cache()

    def list_ids(self) -> list[str]:
        """The task lists there are."""
        try:
            with os.scandir(self.home.tasks) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed.from_os(error, self.home.tasks) from error

    def history(self, cwd: str | None) -> History:
        return self.histories.get(self.folder_of(cwd))

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        for tasks in self.tasks.values():
            tasks.close()
        for transcripts in self.transcripts.values():
            transcripts.close()
        for history in self.histories.values():
            history.close()
        self.plans.close()

    def _open_session(self, path: str) -> SessionStore:
        inside = path.startswith(self.home.path + os.sep)
        root = self.home.path if inside else os.path.dirname(path)
        store = SessionStore(path, durability=self.durability, root=root)
        store.refresh()
        return store

    def _project_folders(self) -> list[str]:
        try:
            with os.scandir(self.home.projects) as entries:
                return sorted(entry.path for entry in entries if not entry.name.startswith(".") and entry.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed.from_os(error, self.home.projects) from error

    def _make_tasks(self, list_id: str) -> TaskStore:
        store = TaskStore(durability=self.durability, root=self.home.path)
        store.set_dir(self.home.task_list(list_id))
        return store

    def _make_roster(self, list_id: str) -> RosterStore:
        store = RosterStore(durability=self.durability, root=self.home.path)
        store.set_dir(self.home.team(list_id))
        return store

    def _make_transcripts(self, list_id: str) -> TranscriptStore:
        return TranscriptStore(self.home.transcripts(list_id), durability=self.durability, root=self.home.path)

    def _make_history(self, cwd: str) -> History:
        return History(self.home.history, cwd, durability=self.durability, root=self.home.path)
