"""From "something happened there" to what the client is told.

Events are hints: what is told comes from comparing the files with what was told last. A first change is told at once, those that follow
within `WINDOW` seconds together; while the client does not read, nothing is made, and afterwards it gets the final state.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable

import msgspec

from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.protocol.envelope import encode_notification, encode_result
from crewlog.server.board_methods import counts_record, task_record
from crewlog.server.lanes import Job, Lanes
from crewlog.server.session_methods import info_record
from crewlog.server.subscriptions import Subscriptions
from crewlog.server.watching import PollingWatcher, Unwatchable, Watcher, start_watcher
from crewlog.server.workspace import Workspace
from crewlog.storage.errors import InvalidName, StorageError
from crewlog.storage.names import check_name
from crewlog.storage.plans import SUFFIX as PLAN_SUFFIX
from crewlog.storage.records import SessionInfo, Task, TaskSnapshot
from crewlog.storage.roster import FILE_NAME as ROSTER
from crewlog.storage.tasks import TaskChanges

WINDOW = 0.03
log = logging.getLogger(__name__)

Mark = tuple[str, str]
"""(topic, key): what may have changed. Topics: task and roster by list, session by path, plan by name; "all" for everything."""


class _Session(msgspec.Struct):
    """What was told of a session last."""

    id: str
    entries: int
    epoch: int
    updated: str
    name: str


class _SessionLook(msgspec.Struct):
    info: SessionInfo
    leaf_id: str
    now: _Session


class _ListLook(msgspec.Struct):
    changes: TaskChanges
    tasks: list[Task]
    counts: TaskSnapshot


class Changes:
    """Watches what the client subscribed to and tells it of changes. Used on the loop's thread, but for the watcher's hints."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ws: Workspace,
        lanes: Lanes,
        subscriptions: Subscriptions,
        send: Callable[[bytes], None],
        may_send: Callable[[], bool],
        list_changed: Callable[[str], None],
        watcher_changed: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._ws = ws
        self._lanes = lanes
        self._subscriptions = subscriptions
        self._send = send
        self._may_send = may_send
        self._list_changed = list_changed
        self._watcher_changed = watcher_changed
        self._watcher: Watcher | None = None
        self._folders: dict[str, tuple[str, str]] = {}
        self._dirty: dict[Mark, set[str] | None] = {}
        self._due = False
        self._told_at = 0.0
        self._ended = False
        self._sessions: dict[str, _Session] = {}
        self._own_ids: set[str] = set()
        self._plans: dict[str, tuple[int, int, int]] = {}
        self._rosters: dict[str, bytes] = {}
        self._told_tasks: dict[str, set[str]] = {}
        self.revisions: dict[str, int] = {}
        self.used_lists: set[str] = set()
        self.waited_lists: Callable[[], set[str]] = set
        self.sent = 0

    @property
    def state(self) -> records.WatcherState:
        if self._watcher is None:
            return records.WatcherState(kind="none", state="off")
        return records.WatcherState(kind=self._watcher.kind, state="ready", reason=self._watcher.reason)

    def start(self) -> None:
        """Starts to watch, and takes what is there as told."""
        if self._watcher is None and not self._ended:
            self._watcher = start_watcher(self._ws.home.path, self._hint, self._overflowed)
            if isinstance(self._watcher, PollingWatcher):
                self._watcher_changed(self._watcher.reason)
            self.rearrange()
            self._take_sessions_as_told()
            self._plans = self._plan_stamps()

    def end(self) -> None:
        self._ended = True
        if self._watcher is not None:
            self._watcher.close()

    def use_list(self, list_id: str) -> None:
        """The client worked on this list: it belongs to what it hears of."""
        if list_id not in self.used_lists and list_id:
            self.used_lists.add(list_id)
            self.rearrange()

    def own_lists(self) -> set[str]:
        """The lists of this client's project: those named like its sessions, and those it used."""
        return self.used_lists | self._own_ids

    def touch(self, topic: str, key: str, names: Iterable[str] | None = ()) -> None:
        """Something may have changed; to be looked at soon. `names`: files that others may have changed, None for any."""
        known = self._dirty.setdefault((topic, key), set())
        if names is None:
            self._dirty[(topic, key)] = None
        elif known is not None:
            known.update(names)
        self._schedule()

    def rearrange(self) -> None:
        """Watches what the subscriptions ask for now, and no longer what they do not."""
        if self._watcher is None:
            return
        home = self._ws.home
        wanted: dict[str, tuple[str, str]] = {home.path: ("home", "")}
        above = _existing_above(home.path)
        if not os.path.isdir(home.path):
            wanted[above] = ("above", "")
        if self._subscriptions.wants("session"):
            wanted[home.projects] = ("projects", "")
            for manager in self._ws.managers(None, all_projects=self._subscriptions.all_projects):
                wanted[manager.dir] = ("project", manager.dir)
            for session_id in self._subscriptions.named_sessions():
                try:
                    folder = os.path.dirname(self._ws.session_path(session_id))
                except StorageError:
                    continue  # it may come later, in a project that is watched
                wanted[folder] = ("project", folder)
        if self._subscriptions.wants("plan"):
            wanted[home.plans] = ("plans", "")
        for list_id in self._wanted_lists():
            wanted[home.task_list(list_id)] = ("list", list_id)
            wanted[home.team(list_id)] = ("team", list_id)
        if self._subscriptions.wants("task") or self._subscriptions.wants("roster") or self.waited_lists():
            wanted[home.tasks] = ("tasks", "")
        for folder in self._folders.keys() - wanted.keys():
            self._watcher.unwatch(folder)
            del self._folders[folder]
        for folder, (kind, key) in wanted.items():
            self._watch(folder, kind, key)
        if above in wanted and os.path.isdir(home.path):
            self.touch("all", "", None)  # it came back before its place was watched
        self._ws.tasks.kept = {key for kind, key in self._folders.values() if kind == "list"}

    def _wanted_lists(self) -> Iterable[str]:
        found = self._subscriptions.named_lists() | self.waited_lists()
        if self._subscriptions.wants("task") or self._subscriptions.wants("roster"):
            own = self.own_lists()
            there = set(self._ws.list_ids())
            found |= {
                list_id
                for list_id in (there if self._subscriptions.all_projects else there & own) | self.used_lists
                if self._subscriptions.wants_list("task", list_id, own) or self._subscriptions.wants_list("roster", list_id, own)
            }
        return sorted(list_id for list_id in found if _is_name(list_id))

    def _watch(self, folder: str, kind: str, key: str) -> None:
        if self._watcher is None:
            return
        self._folders[folder] = (kind, key)
        try:
            watched = self._watcher.watch(folder)
        except Unwatchable as problem:
            self._fall_back(str(problem))
            return
        if kind == "list":
            store = self._ws.tasks.peek(key)
            if store is not None:
                store.watched = watched

    def _fall_back(self, reason: str) -> None:
        assert self._watcher is not None
        self._watcher.close()
        self._watcher = PollingWatcher(self._hint, reason)
        for folder in self._folders:
            self._watcher.watch(folder)
        self._watcher_changed(reason)
        self.touch("all", "", None)

    # --- hints ---

    def _hint(self, folder: str, name: str | None) -> None:
        """In the watcher's thread."""
        self._deliver(lambda: self._hinted(folder, name))

    def _overflowed(self) -> None:
        self._deliver(lambda: self.touch("all", "", None))

    def _deliver(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            if not self._ended:
                raise

    def _hinted(self, folder: str, name: str | None) -> None:
        place = self._folders.get(folder)
        if place is None or self._ended:
            return
        kind, key = place
        if name is None or kind == "above":
            self.touch("all", "", None)  # the folder itself came, went or was renamed
        elif name.startswith("."):
            return
        elif kind == "list":
            self._hinted_in_list(key, name)
        elif kind == "team" and name == ROSTER:
            self.touch("roster", key)
        elif kind == "project":
            self.touch("session", os.path.join(folder, name))
        elif kind == "plans" and name.endswith(PLAN_SUFFIX):
            self.touch("plan", "")
        elif kind == "tasks":
            self._hinted_list(name)
        elif kind == "projects" or (kind == "home" and name in ("projects", "plans", "tasks")):
            self.touch("all", "", None)

    def _hinted_in_list(self, list_id: str, name: str) -> None:
        if name == "team":
            self._watch(self._ws.home.team(list_id), "team", list_id)
            self.touch("roster", list_id)
        else:
            self.touch("task", list_id, [name])

    def _hinted_list(self, list_id: str) -> None:
        """A list's folder came or went."""
        wanted = self._subscriptions.wants_list("task", list_id, self.own_lists()) or list_id in self.waited_lists()
        if _is_name(list_id) and (wanted or self._subscriptions.wants_list("roster", list_id, self.own_lists())):
            self._watch(self._ws.home.task_list(list_id), "list", list_id)
            self._watch(self._ws.home.team(list_id), "team", list_id)
            self.touch("task", list_id, None)
            self.touch("roster", list_id)

    # --- telling ---

    def _schedule(self) -> None:
        if self._due or self._ended:
            return
        self._due = True
        wait = self._told_at + WINDOW - self._loop.time()
        if wait <= 0:
            self._loop.call_soon(self._tell)
        else:
            self._loop.call_later(wait, self._tell)

    def resume(self) -> None:
        """The client reads again."""
        if self._dirty:
            self._schedule()

    def _tell(self) -> None:
        self._due = False
        if not self._may_send() or self._ended:
            return  # `resume` comes back to it
        self._told_at = self._loop.time()
        dirty, self._dirty = self._dirty, {}
        if ("all", "") in dirty:
            self.rearrange()
            dirty = self._everything()
        for (topic, key), names in dirty.items():
            if topic == "task":
                self._look_at_list(key, names)
            elif topic == "roster":
                self._look_at_roster(key)
            elif topic == "session":
                self._look_at_session(key)
            elif topic == "plan":
                self._look_at_plans()

    def _everything(self) -> dict[Mark, set[str] | None]:
        marks: dict[Mark, set[str] | None] = {("plan", ""): None}
        for folder, (kind, key) in self._folders.items():
            if kind == "list":
                marks[("task", key)] = None
                marks[("roster", key)] = None
            elif kind == "project":
                paths = {path for path in self._sessions if os.path.dirname(path) == folder} | set(_logs(folder))
                marks.update((("session", path), None) for path in paths)
        return marks

    def _run(self, resource: tuple[str, str], work: Callable[[], object], done: Callable[[object], None]) -> None:
        def finished(result: object, error: BaseException | None) -> None:
            if error is None:
                done(result)
            else:
                log.info("could not look at %s: %s", resource, error)

        self._lanes.submit(Job(work, finished), resource)

    def _look_at_list(self, list_id: str, names: set[str] | None) -> None:
        def look() -> _ListLook:
            store = self._ws.tasks.get(list_id)
            store.invalidate(names)
            changes = store.refresh()
            return _ListLook(changes, store.peek(changes.changed), store.counts())

        def tell(found: object) -> None:
            assert isinstance(found, _ListLook)
            changes, tasks, counts = found.changes, found.tasks, found.counts
            self._watch_new(list_id)
            if not changes.changed and not changes.removed:
                return
            self._list_changed(list_id)
            told = self._told_tasks.setdefault(list_id, set())
            told.update(task.id for task in tasks)
            removed = sorted(changes.removed)
            told.difference_update(removed)
            if not self._subscriptions.wants_list("task", list_id, self.own_lists()):
                return
            self.revisions[list_id] = self.revisions.get(list_id, 0) + 1
            self._notify(
                "task/didChange",
                r.TaskDidChange(
                    list_id=list_id,
                    revision=self.revisions[list_id],
                    changed=[task_record(task) for task in tasks],
                    removed=removed,
                    counts=counts_record(counts),
                ),
            )

        self._run(("tasks", list_id), look, tell)

    def _watch_new(self, list_id: str) -> None:
        folder = self._ws.home.task_list(list_id)
        if folder in self._folders:
            self._watch(folder, "list", list_id)
            self._watch(self._ws.home.team(list_id), "team", list_id)

    def take_as_told(self, list_id: str, ids: Iterable[str]) -> None:
        """The client was given the list's state."""
        self._told_tasks[list_id] = set(ids)

    def take_roster_as_told(self, list_id: str, document: bytes) -> None:
        self._rosters[list_id] = document

    def _look_at_roster(self, list_id: str) -> None:
        def look() -> object:
            store = self._ws.rosters.get(list_id)
            store.refresh()
            return store.snapshot().document

        def tell(found: object) -> None:
            assert isinstance(found, bytes)
            if self._rosters.get(list_id, b'{"team":""}') == found:
                return
            self._rosters[list_id] = found
            if self._subscriptions.wants_list("roster", list_id, self.own_lists()):
                self._notify("roster/didChange", r.RosterDidChange(list_id=list_id, roster=msgspec.Raw(found)))

        self._run(("roster", list_id), look, tell)

    def _look_at_plans(self) -> None:
        now = self._plan_stamps()
        before, self._plans = self._plans, now
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) == now.get(name):
                continue
            change = "deleted" if name not in now else "changed" if name in before else "created"
            try:
                etag = self._ws.plans.load(name).etag if name in now else ""
            except StorageError:
                continue  # another change is under way; it is told of by itself
            if self._subscriptions.wants("plan"):
                self._notify("plan/didChange", r.PlanDidChange(name=name, change=change, etag=etag))

    def _plan_stamps(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        try:
            with os.scandir(self._ws.home.plans) as entries:
                for entry in entries:
                    name = entry.name.removesuffix(PLAN_SUFFIX)
                    if entry.name.endswith(PLAN_SUFFIX) and _is_name(name):
                        status = entry.stat()
                        found[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return found  # no plans, or none any more
        return found

    def _look_at_session(self, path: str) -> None:
        if not path.endswith(".jsonl"):
            return

        def look() -> object:
            if not os.path.exists(path):
                return None
            summary = self._ws.manager(os.path.dirname(path)).summary(path)
            info = summary.info()
            return _SessionLook(info, summary.leaf_id, _Session(info.id, summary.entry_count, summary.epoch, info.updated, info.name))

        self._run(("summary", path), look, lambda found: self._tell_session(path, found))

    def _tell_session(self, path: str, found: object) -> None:
        before = self._sessions.get(path)
        own = os.path.dirname(path) in self._own_folders()
        if found is None:
            if before is not None:
                del self._sessions[path]
                self._tell_deleted(path, before, own=own)
            return
        assert isinstance(found, _SessionLook)
        info, leaf_id, now = found.info, found.leaf_id, found.now
        if before == now:
            return
        self._sessions[path] = now
        if before is None:
            change, added = "created", now.entries
            if own:
                self._own_ids.add(now.id)
                self._hinted_list(now.id)
        elif before.epoch != now.epoch or now.entries < before.entries:
            change, added = "replaced", now.entries
        else:
            change, added = "appended", now.entries - before.entries
        if self._subscriptions.wants_session(info.id, own=own):
            self._notify(
                "session/didChange",
                r.SessionDidChange(session=info_record(info), leaf_id=leaf_id, entries=added, change=change),
            )

    def _own_folders(self) -> set[str]:
        return {manager.dir for manager in self._ws.managers(None)}

    def _tell_deleted(self, path: str, before: _Session, *, own: bool) -> None:
        if not self._subscriptions.wants_session(before.id, own=own):
            return
        gone = records.SessionInfo(
            id=before.id, name=before.name, path=path, cwd="", created="", updated=before.updated, message_count=0, first_message=""
        )
        self._notify("session/didChange", r.SessionDidChange(session=gone, leaf_id="", entries=0, change="deleted"))

    def _take_sessions_as_told(self) -> None:
        """In a thread: a project may hold thousands. A session that changes meanwhile is told of once more, which harms nobody."""
        folders = [folder for folder, (kind, _) in self._folders.items() if kind == "project"]

        def look() -> object:
            found: dict[str, _Session] = {}
            for folder in folders:
                manager = self._ws.manager(folder)
                for info in manager.list().sessions:
                    try:
                        summary = manager.summary(info.path)
                    except StorageError:
                        continue
                    found[info.path] = _Session(info.id, summary.entry_count, summary.epoch, info.updated, info.name)
            return found

        def take(result: object, error: BaseException | None) -> None:
            if isinstance(result, dict):
                self._sessions = {**result, **self._sessions}
                own = self._own_folders()
                self._own_ids = {told.id for path, told in self._sessions.items() if os.path.dirname(path) in own}
                self.rearrange()

        self._lanes.submit(Job(look, take), None, slow=True)

    def _notify(self, method: str, params: object) -> None:
        self.sent += 1
        self._send(encode_notification(method, encode_result(params)))


def _existing_above(path: str) -> str:
    """The nearest folder above that exists."""
    above = os.path.dirname(path)
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    return above


def _logs(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".jsonl")]
    except OSError:
        return []


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except InvalidName:
        return False
    return True
