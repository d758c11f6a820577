"""The stores that one server has open on its home, found by the names that requests use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from operator import methodcaller
from typing import TYPE_CHECKING

from crewlog.server.cache import Cache
from crewlog.server.lifecycle import check_folder
from crewlog.storage.errors import SessionNotFound, StorageFailed
from crewlog.storage.files import Durability
from crewlog.storage.home import Home, resolve_project_folder
from crewlog.storage.locks import require_waiting
from crewlog.storage.names import check_name, project_id

if TYPE_CHECKING:
    from crewlog.storage.history import History
    from crewlog.storage.index import SessionIndex
    from crewlog.storage.listing import SummaryState
    from crewlog.storage.manager import SessionManager
    from crewlog.storage.plans import PlanStore
    from crewlog.storage.roster import RosterStore
    from crewlog.storage.sessions import SessionStore
    from crewlog.storage.tasks import TaskStore
    from crewlog.storage.transcripts import TranscriptStore
    from crewlog.storage.trash import Trash

_STORES = ("history", "manager", "plans", "roster", "sessions", "tasks", "transcripts", "trash")
"""Imported when first used: a command needs one or two of these modules, and must not wait for the others."""

OPEN_STORES = 64
"""Stores of a kind that stay open: each holds up to two descriptors, and 1,024 are what many systems allow."""
CACHED_BYTES = 256 << 20
"""Payloads that snapshots may leave in memory, over all sessions."""
_KNOWN_PATHS = 20_000
_EMPTY_PROJECTS = 500


def import_stores() -> None:
    """For a server, whose first requests are not to wait for it."""
    for name in _STORES:
        import_module(f"crewlog.storage.{name}")


class Workspace:
    """One home, as one client works in it: `cwd` is its project where a request names none. Thread-safe."""

    def __init__(self, home: str, cwd: str, durability: Durability) -> None:
        self.home = Home(home)
        self.cwd = resolve_project_folder(cwd)
        self.durability = durability
        self.tasks: Cache[str, TaskStore] = Cache(self._make_tasks, _close, OPEN_STORES)
        self.rosters: Cache[str, RosterStore] = Cache(self._make_roster, lambda _: None, OPEN_STORES)
        self.transcripts: Cache[str, TranscriptStore] = Cache(self._make_transcripts, _close, OPEN_STORES // 4)
        self.histories: Cache[str, History] = Cache(self._make_history, _close, OPEN_STORES // 4)
        self._sessions: Cache[str, SessionStore] = Cache(
            self._open_session, _close, OPEN_STORES, weigh=_payload_bytes, max_weight=CACHED_BYTES
        )
        self._managers: dict[str, SessionManager] = {}
        self._most_managers = _EMPTY_PROJECTS
        self._paths: dict[str, str] = {}

    @cached_property
    def index(self) -> SessionIndex:
        """What is known of sessions without reading them."""
        from crewlog.storage.index import SessionIndex

        return SessionIndex(self.home)

    @cached_property
    def trash(self) -> Trash:
        """Where deleted sessions and lists are."""
        from crewlog.storage.trash import Trash

        return Trash(self.home, self.durability)

    @cached_property
    def plans(self) -> PlanStore:
        """The plan files of the home."""
        from crewlog.storage.plans import PlanStore

        return PlanStore(self.home.plans, durability=self.durability, root=self.home.path)

    @property
    def project_id(self) -> str:
        return project_id(self.cwd)

    def folder_of(self, cwd: str | None) -> str:
        """The working directory of a request, absolute and free of links. Raises `InvalidParams`."""
        return self.cwd if cwd is None else resolve_project_folder(check_folder(cwd, "$.cwd"))

    def manager(self, folder: str) -> SessionManager:
        """The sessions in one folder under `projects/`."""
        found = self._managers.get(folder)
        if found is None:
            from crewlog.storage.manager import SessionManager

            if len(self._managers) >= self._most_managers:
                self._forget_empty_projects()
            made = SessionManager(folder, durability=self.durability, root=self.home.path, known=self._known_summaries)
            found = self._managers.setdefault(folder, made)
        return found

    def _forget_empty_projects(self) -> None:
        """A client may ask for the sessions of any folder there is; most of them have none."""
        self._managers = {folder: manager for folder, manager in self._managers.items() if os.path.isdir(folder)}
        self._most_managers = 2 * len(self._managers) + _EMPTY_PROJECTS

    def managers(self, cwd: str | None, *, all_projects: bool = False) -> list[SessionManager]:
        """Those of a project, or of all. A project that was also worked in through a link has a folder for either name."""
        if all_projects:
            return [self.manager(folder) for folder in self._project_folders()]
        literal = self.cwd if cwd is None else os.path.abspath(check_folder(cwd, "$.cwd"))
        folders = dict.fromkeys(self.home.sessions(path) for path in (self.folder_of(cwd), literal))
        return [self.manager(folder) for folder in folders]

    def session(self, session_id: str) -> contextlib.AbstractContextManager[SessionStore]:
        """The session, open for the time of the block. Raises `InvalidName`, `SessionNotFound`, and what opening raises."""
        return self._sessions.use(self.session_path(session_id))

    @contextlib.contextmanager
    def session_at(self, path: str) -> Iterator[SessionStore]:
        """The session of a log inside this home or elsewhere, open for the time of the block."""
        with self._sessions.use(os.path.abspath(path)) as store:
            if path.startswith(self.home.projects + os.sep):
                self._remember(store.session_id, path)
            yield store

    def session_path(self, session_id: str) -> str:
        """The log of a session: of this project first, then of any other. Raises `InvalidName`, `SessionNotFound`."""
        check_name(session_id, "sessionId")
        known = self._paths.get(session_id)
        if known is not None and os.path.exists(known):
            return known
        require_waiting()  # folders with thousands of names are to be looked through
        for folder in dict.fromkeys([*(manager.dir for manager in self.managers(None)), *self._project_folders()]):
            try:
                path = self.manager(folder).find(session_id)
            except SessionNotFound:
                continue
            self._remember(session_id, path)
            return path
        raise SessionNotFound(session_id)

    def forget_session(self, session_id: str, path: str) -> None:
        """To be called when it was deleted."""
        self._paths.pop(session_id, None)
        self._sessions.drop(path)
        self.tasks.drop(session_id)
        self.rosters.drop(session_id)
        self.transcripts.drop(session_id)

    def list_ids(self) -> list[str]:
        """The task lists there are."""
        return [os.path.basename(path) for path in _folders_in(self.home.tasks)]

    def history(self, cwd: str | None) -> contextlib.AbstractContextManager[History]:
        """The history of a project, open for the time of the block."""
        return self.histories.use(self.folder_of(cwd))

    def close(self) -> None:
        """Gives all files back."""
        self._sessions.close()
        self.tasks.close()
        self.rosters.close()
        self.transcripts.close()
        self.histories.close()
        for opened in ("plans", "index"):
            if opened in self.__dict__:
                getattr(self, opened).close()

    def _known_summaries(self, folder: str) -> Mapping[str, SummaryState]:
        return self.index.summaries(folder) if os.path.dirname(folder) == self.home.projects else {}

    def _remember(self, session_id: str, path: str) -> None:
        if len(self._paths) >= _KNOWN_PATHS:
            self._paths.clear()
        self._paths[session_id] = path

    def _open_session(self, path: str) -> SessionStore:
        from crewlog.storage.sessions import SessionStore

        inside = path.startswith(self.home.path + os.sep)
        store = SessionStore(path, durability=self.durability, root=self.home.path if inside else os.path.dirname(path))
        try:
            store.refresh()
        except BaseException:
            store.close()
            raise
        return store

    def _project_folders(self) -> list[str]:
        return _folders_in(self.home.projects)

    def _make_tasks(self, list_id: str) -> TaskStore:
        from crewlog.storage.tasks import TaskStore

        store = TaskStore(durability=self.durability, root=self.home.path)
        store.set_dir(self.home.task_list(list_id))
        store.refresh()  # what is there now is no change
        return store

    def _make_roster(self, list_id: str) -> RosterStore:
        from crewlog.storage.roster import RosterStore

        store = RosterStore(durability=self.durability, root=self.home.path)
        store.set_dir(self.home.team(list_id))
        return store

    def _make_transcripts(self, list_id: str) -> TranscriptStore:
        from crewlog.storage.transcripts import TranscriptStore

        return TranscriptStore(self.home.transcripts(list_id), durability=self.durability, root=self.home.path)

    def _make_history(self, cwd: str) -> History:
        from crewlog.storage.history import History

        return History(self.home.history, cwd, durability=self.durability, root=self.home.path)


_close = methodcaller("close")


def _payload_bytes(store: SessionStore) -> int:
    return store.cached_bytes


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageFailed.from_os(error, folder) from error
