"""Which folders are watched for the client, and what an event in one of them may mean.

Only what the client subscribed to, or waits for, is watched; of a folder that does not exist yet, the one above it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from crewlog.server.subscriptions import Subscriptions
from crewlog.server.watching import PollingWatcher, Told, Unwatchable, Watcher
from crewlog.server.workspace import Workspace
from crewlog.storage.errors import InvalidName, StorageError
from crewlog.storage.manager import SUFFIX as LOG_SUFFIX
from crewlog.storage.names import check_name
from crewlog.storage.plans import SUFFIX as PLAN_SUFFIX
from crewlog.storage.roster import FILE_NAME as ROSTER
from crewlog.storage.task_folder import is_task_file

_SESSION_ID = re.compile("[0-9a-f]{8}")


class Kind(Enum):
    """What a watched folder is."""

    ABOVE = "above"
    HOME = "home"
    PROJECTS = "projects"
    PROJECT = "project"
    PLANS = "plans"
    LISTS = "lists"
    LIST = "list"
    TEAM = "team"


_PARENTS = frozenset({Kind.ABOVE, Kind.HOME, Kind.PROJECTS, Kind.LISTS})


class Place(NamedTuple):
    """`key`: the list of a LIST or TEAM, the folder of a PROJECT."""

    kind: Kind
    key: str = ""


class Mark(NamedTuple):
    """What is to be looked at. `topic`: task and roster (`key`: the list), session (the log's path), plan, or "all"."""

    topic: str
    key: str = ""


ALL = Mark("all")
PLANS = Mark("plan")


class Arrangement:
    """Keeps `watcher` watching what is wanted. Used on the loop's thread only.

    `told` gets the events of a watcher that takes over when the first one can no more; `changed_watcher` is told why.
    """

    def __init__(
        self,
        workspace: Workspace,
        subscriptions: Subscriptions,
        waited_lists: Callable[[], set[str]],
        watcher: Watcher,
        told: Told,
        changed_watcher: Callable[[str], None],
    ) -> None:
        self._workspace = workspace
        self._subscriptions = subscriptions
        self._waited_lists = waited_lists
        self._told = told
        self._changed_watcher = changed_watcher
        self._places: dict[str, Place] = {}
        self._there: set[str] = set()
        self.watcher = watcher
        self.used_lists: set[str] = set()
        """Lists that the client worked on: they belong to what it hears of."""
        self.own_sessions: set[str] = set()
        """Sessions of the client's own project."""
        self.known_lists: set[str] = set()
        """Lists of which the client was told, or could know, that they hold tasks: it is told when they go, wherever to."""
        self._foreign: set[str] = set()
        self._ownerless: set[str] = set()

    def arrange(self) -> set[str]:
        """Watches what is wanted now, and nothing else. The folders that are watched only since now: they may hold news."""
        fresh: set[str] = set()
        while True:
            wanted = dict(self._wanted())
            for folder in self._places.keys() - wanted.keys():
                self.watcher.unwatch(folder)
                self._there.discard(folder)
                self._not_told_of(folder)
            self._places = wanted
            new = {folder for folder in sorted(wanted, key=len) if self._watch(folder)}  # those above first, so that none is missed
            fresh |= new
            if not any(wanted[folder].kind in _PARENTS for folder in new):
                break  # else what came into such a folder before it was watched is wanted too
        lists = (place.key for place in wanted.values() if place.kind is Kind.LIST)
        self._workspace.tasks.kept = frozenset(lists) | self.known_lists
        return fresh

    def watches_list(self, list_id: str) -> bool:
        """Whether events of the list are asked for, whether it exists or not."""
        return self._workspace.home.task_list(list_id) in self._places

    def is_told_of(self, list_id: str) -> bool:
        """Whether the system tells of changes in the list, so that nobody need look for them."""
        return self._workspace.home.task_list(list_id) in self._there and not isinstance(self.watcher, PollingWatcher)

    def is_own(self, list_id: str) -> bool:
        """Whether a list is of the client's project: all are but those of sessions of other projects that it never used."""
        if (
            list_id in self.used_lists
            or list_id in self.own_sessions
            or list_id in self._ownerless
            or _SESSION_ID.fullmatch(list_id) is None
        ):
            return True
        if list_id in self._foreign:
            return False
        try:
            folder = os.path.dirname(self._workspace.session_path(list_id))
        except StorageError:
            return True
        if folder in {manager.dir for manager in self._workspace.managers(None)}:
            return True
        self._foreign.add(list_id)
        return False

    def _look_up_owners(self, list_ids: list[str]) -> None:
        """Of many lists at once: to look for the session of each of them takes long where there are many of both."""
        if not any(_SESSION_ID.fullmatch(id) and id not in self.used_lists | self.own_sessions | self._foreign for id in list_ids):
            return
        own = {manager.dir for manager in self._workspace.managers(None)}
        others: set[str] = set()
        for manager in self._workspace.managers(None, all_projects=True):
            found = self.own_sessions if manager.dir in own else others
            found.update(session_id_of(name) for name in log_names(manager.dir))
        self._foreign = others - self.own_sessions
        self._ownerless = set(list_ids) - self.own_sessions - self._foreign

    def wants_list(self, topic: str, list_id: str) -> bool:
        """`topic`: task or roster."""
        return self._subscriptions.wants_list(topic, list_id, own=self.is_own(list_id))

    def folders(self, kind: Kind) -> list[tuple[str, str]]:
        """(folder, key) of all that is watched of a kind."""
        return [(folder, place.key) for folder, place in self._places.items() if place.kind is kind]

    def watch_list(self, list_id: str) -> set[str]:
        """As `arrange`, for one list alone."""
        home = self._workspace.home
        self._places[home.task_list(list_id)] = Place(Kind.LIST, list_id)
        self._places[home.team(list_id)] = Place(Kind.TEAM, list_id)
        self._workspace.tasks.kept |= {list_id}
        return {folder for folder in (home.task_list(list_id), home.team(list_id)) if self._watch(folder)}

    def lost(self, folder: str) -> None:
        """The folder went away or moved, and all in it with it: none of it is watched any more."""
        beneath = folder + os.sep
        for path in [path for path in self._there if path == folder or path.startswith(beneath)]:
            self.watcher.unwatch(path)
            self._there.discard(path)
            self._not_told_of(path)

    def meaning(self, folder: str, name: str) -> Iterable[Mark]:
        """What is to be looked at after something happened to `name` in `folder`."""
        place = self._places.get(folder)
        if place is None or (name.startswith(".") and place.kind is not Kind.ABOVE):
            return ()
        kind, key = place
        if kind is Kind.LIST:
            return (Mark("roster", key),) if name == "team" else (Mark("task", key),) if is_task_file(name) else ()
        if kind is Kind.TEAM:
            return (Mark("roster", key),) if name == ROSTER else ()
        if kind is Kind.PROJECT:
            return (Mark("session", os.path.join(folder, name)),) if name.endswith(LOG_SUFFIX) else ()
        if kind is Kind.PLANS:
            return (PLANS,) if name.endswith(PLAN_SUFFIX) else ()
        if kind is Kind.LISTS:
            return (Mark("task", name), Mark("roster", name)) if self._is_wanted_list(name) else ()
        return (ALL,)

    def content(self, folder: str) -> Iterator[Mark]:
        """All that may be looked at in a watched folder."""
        place = self._places.get(folder)
        if place is None:
            return
        if place.kind is Kind.LIST:
            yield Mark("task", place.key)
            yield Mark("roster", place.key)
        elif place.kind is Kind.TEAM:
            yield Mark("roster", place.key)
        elif place.kind is Kind.PROJECT:
            yield from (Mark("session", os.path.join(folder, name)) for name in log_names(folder))
        elif place.kind is Kind.PLANS:
            yield PLANS

    def _watch(self, folder: str) -> bool:
        """Whether it is watched only since now."""
        try:
            there = self.watcher.watch(folder)
        except Unwatchable as problem:
            self._fall_back(str(problem))
            there = self.watcher.watch(folder)
        fresh = there and folder not in self._there
        if there:
            self._there.add(folder)
        else:
            self._there.discard(folder)
            self._not_told_of(folder)
        return fresh

    def _not_told_of(self, folder: str) -> None:
        place = self._places.get(folder)
        store = self._workspace.tasks.peek(place.key) if place is not None and place.kind is Kind.LIST else None
        if store is not None:
            store.watched = False

    def _fall_back(self, reason: str) -> None:
        self.watcher.close()
        self.watcher = PollingWatcher(self._told, reason)
        for folder in self._there:
            self.watcher.watch(folder)
            self._not_told_of(folder)
        self._changed_watcher(reason)

    def _wanted(self) -> Iterator[tuple[str, Place]]:
        home, subscriptions = self._workspace.home, self._subscriptions
        if not os.path.isdir(home.path):
            yield _existing_above(home.path), Place(Kind.ABOVE)
        yield home.path, Place(Kind.HOME)
        if subscriptions.wants("session"):
            yield home.projects, Place(Kind.PROJECTS)
            for folder in self._wanted_projects():
                yield folder, Place(Kind.PROJECT, folder)
        if subscriptions.wants("plan"):
            yield home.plans, Place(Kind.PLANS)
        if subscriptions.wants("task") or subscriptions.wants("roster") or self._waited_lists():
            yield home.tasks, Place(Kind.LISTS)
        for list_id in self._wanted_lists():
            yield home.task_list(list_id), Place(Kind.LIST, list_id)
            yield home.team(list_id), Place(Kind.TEAM, list_id)

    def _wanted_projects(self) -> set[str]:
        workspace, subscriptions = self._workspace, self._subscriptions
        found: set[str] = set()
        if subscriptions.wants_own_sessions():
            found.update(manager.dir for manager in workspace.managers(None))
        if subscriptions.all_projects:
            found.update(manager.dir for manager in workspace.managers(None, all_projects=True))
        for session_id in subscriptions.named_sessions():
            try:
                found.add(os.path.dirname(workspace.session_path(session_id)))
            except StorageError:
                found.update(manager.dir for manager in workspace.managers(None))  # it may come later, and most likely there
        return found

    def _wanted_lists(self) -> set[str]:
        found = self._subscriptions.named_lists() | self._waited_lists()
        if self._subscriptions.wants_any_own_list():
            list_ids = self._workspace.list_ids()
            self._look_up_owners(list_ids)
            found.update(filter(self._is_wanted_list, list_ids))  # one that comes later is told of by the folder above
        return found

    def _is_wanted_list(self, list_id: str) -> bool:
        if not is_name(list_id):
            return False
        return self.wants_list("task", list_id) or self.wants_list("roster", list_id) or list_id in self._waited_lists()


def log_names(folder: str) -> list[str]:
    """The session logs in a project's folder; none where it is not there."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(LOG_SUFFIX)]
    except OSError:
        return []


def session_id_of(path: str) -> str:
    """The id that a log's name tells: `<date>_<id>.jsonl`."""
    return os.path.basename(path).removesuffix(LOG_SUFFIX).rpartition("_")[2]


def is_name(name: str) -> bool:
    try:
        check_name(name)
    except InvalidName:
        return False
    return True


def _existing_above(path: str) -> str:
    """The nearest folder above that exists."""
    above = os.path.dirname(path)
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    return above
