"""What is told of each topic: a look at the files, compared with what was told last.

`look` runs in the resource's lane, in a thread where it takes long; `tell` runs on the loop with what it found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Raw

from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.server.arrangement import Arrangement, is_name, log_names, session_id_of
from crewlog.server.board_methods import counts_record, task_record
from crewlog.server.session_records import info_record
from crewlog.server.subscriptions import Subscriptions
from crewlog.server.workspace import Workspace
from crewlog.storage.errors import SessionNotFound, StorageError, StorageFailed
from crewlog.storage.plans import SUFFIX as PLAN_SUFFIX
from crewlog.storage.records import SessionInfo, Task, TaskSnapshot

Notify = Callable[[str, object], None]
"""(method, params): sends a notification."""

LATE = 1.0
"""Seconds after a list was read in which an event may still tell of what had been read."""
TICK_NS = 20_000_000
"""File systems stamp times by the kernel's tick, up to 10 ms late."""
Stamp = tuple[int, int, int]
_BLOCK = 1 << 20


class ListLook(msgspec.Struct):
    """`lapse`: seconds until time alone may change the list."""

    changed: list[Task]
    removed: set[str]
    counts: TaskSnapshot
    lapse: float | None


class TaskTeller:
    """`revisions`: the number of the last notification of each list."""

    def __init__(self, workspace: Workspace, arrangement: Arrangement, notify: Notify, revisions: dict[str, int]) -> None:
        self._workspace = workspace
        self._arrangement = arrangement
        self._notify = notify
        self._revisions = revisions
        self._opened: dict[str, float] = {}

    def open(self, list_id: str, since: int) -> tuple[bool, bool]:
        """Reads a list that is watched, so that of its first change only what changed is told. In any thread.

        Whether it holds tasks, and whether some of it is news: the client could expect to hear of what changed `since` (in nanoseconds
        since 1970), which may have been before it was watched.
        """
        folder = self._workspace.home.task_list(list_id)
        if _changed_since(folder, since):
            return True, True
        opened = self._workspace.tasks.peek(list_id) is None
        try:
            with self._workspace.tasks.use(list_id) as store:
                if opened:
                    self._opened[list_id] = time.monotonic()
                return store.counts().total > 0, _changed_since(folder, since)
        except StorageError:
            return True, False  # it is looked at when it changes

    def look(self, list_id: str, names: set[str] | None) -> ListLook:
        """`names`: files that others may have changed, None for any."""
        unknown = self._workspace.tasks.peek(list_id) is None
        with self._workspace.tasks.use(list_id) as store:
            store.watched = self._arrangement.is_told_of(list_id)
            store.invalidate(names)
            changes = store.refresh()
            late = time.monotonic() - self._opened.pop(list_id, 0.0) < LATE
            if unknown or (late and not changes.changed and not changes.removed):
                changes.changed |= {task.id for task in store.list()}  # the change was there before the list was read
            return ListLook(store.peek(changes.changed), changes.removed, store.counts(), store.next_lapse())

    def tell(self, list_id: str, found: ListLook) -> bool:
        """Whether there was anything new."""
        if found.counts.total:
            self._arrangement.known_lists.add(list_id)
        else:
            self._arrangement.known_lists.discard(list_id)
        if not found.changed and not found.removed:
            return False
        if self._arrangement.wants_list("task", list_id):
            self._revisions[list_id] = self._revisions.get(list_id, 0) + 1
            self._notify(
                "task/didChange",
                r.TaskDidChange(
                    list_id=list_id,
                    revision=self._revisions[list_id],
                    changed=[task_record(task) for task in found.changed],
                    removed=sorted(found.removed),
                    counts=counts_record(found.counts),
                ),
            )
        return True


class RosterTeller:
    """Tells of teams."""

    def __init__(self, workspace: Workspace, arrangement: Arrangement, notify: Notify) -> None:
        self._workspace = workspace
        self._arrangement = arrangement
        self._notify = notify
        self._told: dict[str, bytes] = {}
        self._opened: dict[str, float] = {}
        self._expected: set[str] = set()

    def known(self) -> list[str]:
        """The lists of which the client knows a team."""
        return [list_id for list_id, document in self._told.items() if document != _NO_TEAM]

    def open(self, list_id: str, since: int) -> bytes | None:
        """The team of a list that is watched; None where it is news to the client, having changed `since`. In any thread."""
        document = self.look(list_id)
        if _changed_since(self._workspace.home.team(list_id), since):
            return None
        return None if document == _NO_TEAM and self._may_have_gone(list_id, since) else document

    def _may_have_gone(self, list_id: str, since: int) -> bool:
        """Whether there may have been a team: the list is gone, or something went from its folder or came to it."""
        try:
            return os.stat(self._workspace.home.task_list(list_id)).st_mtime_ns >= since - TICK_NS
        except OSError:
            return True

    def expect(self, list_id: str) -> None:
        """It is about to be opened; until then the client may know of it what we do not."""
        self._expected.add(list_id)

    def take_as_opened(self, list_id: str, document: bytes) -> None:
        """The client could know of it. An event soon after may tell of what had been read already."""
        self._expected.discard(list_id)
        if list_id not in self._told:
            self._told[list_id] = document
            self._opened[list_id] = time.monotonic()

    def look(self, list_id: str) -> bytes:
        with self._workspace.rosters.use(list_id) as store:
            return store.snapshot().document

    def tell(self, list_id: str, document: bytes) -> None:
        late = time.monotonic() - self._opened.pop(list_id, -LATE) < LATE
        expected = list_id in self._expected
        self._expected.discard(list_id)
        if self._told.get(list_id, _NO_TEAM) == document and not expected and (document == _NO_TEAM or not late):
            return
        self._told[list_id] = document
        if self._arrangement.wants_list("roster", list_id):
            self._notify("roster/didChange", r.RosterDidChange(list_id=list_id, roster=Raw(document)))

    def take_as_told(self, list_id: str, document: bytes) -> None:
        """The client was given it."""
        self._told[list_id] = document


_NO_TEAM = b'{"team":""}'


class PlanTeller:
    """Tells of plans."""

    def __init__(self, workspace: Workspace, subscriptions: Subscriptions, notify: Notify) -> None:
        self._workspace = workspace
        self._subscriptions = subscriptions
        self._notify = notify
        self._told: dict[str, Stamp] = {}

    def look(self) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        try:
            with os.scandir(self._workspace.plans.dir) as entries:
                for entry in entries:
                    name = entry.name.removesuffix(PLAN_SUFFIX)
                    if entry.name.endswith(PLAN_SUFFIX) and is_name(name):
                        try:
                            status = entry.stat()
                        except FileNotFoundError:
                            continue  # deleted since it was listed; the others are there all the same
                        found[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return found  # no plans, or none any more
        return found

    def tell(self, now: dict[str, Stamp]) -> None:
        before, self._told = self._told, now
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) == now.get(name) or not self._subscriptions.wants("plan"):
                continue
            change = "deleted" if name not in now else "changed" if name in before else "created"
            try:
                etag = self._workspace.plans.load(name).etag if name in now else ""
            except StorageError:
                continue  # another change is under way; it is told of by itself
            self._notify("plan/didChange", r.PlanDidChange(name=name, change=change, etag=etag))

    def take_as_told(self, now: dict[str, Stamp], since: int) -> None:
        """The client knows of them, but for those that changed since (in nanoseconds since 1970)."""
        self._told = {**{name: stamp for name, stamp in now.items() if stamp[0] < since - TICK_NS}, **self._told}


class _Told(msgspec.Struct):
    """What was told of a session last. `stamp` where only the file was seen; its `entries` are counted when it changes."""

    id: str
    stamp: Stamp | None
    entries: int = -1
    epoch: int = -1
    updated: str = ""


class SessionLook(msgspec.Struct):
    """`before`: entries that were there when only the file was seen; -1 where that was another, or none of it is left."""

    info: SessionInfo
    leaf_id: str
    entries: int
    epoch: int
    before: int


class SessionTeller:
    """Tells of session logs, by their paths."""

    def __init__(self, workspace: Workspace, subscriptions: Subscriptions, notify: Notify) -> None:
        self._workspace = workspace
        self._subscriptions = subscriptions
        self._notify = notify
        self._told: dict[str, _Told] = {}

    def known(self) -> list[str]:
        """The logs that the client knows of."""
        return list(self._told)

    def look_at_folders(self, folders: Iterable[str], since: int) -> tuple[dict[str, _Told], list[str]]:
        """What is in the folders of projects, by names and sizes alone, as there may be thousands; and what changed `since`."""
        found: dict[str, _Told] = {}
        news = []
        for folder in folders:
            for name in log_names(folder):
                path = os.path.join(folder, name)
                try:
                    status = os.stat(path)
                except OSError:
                    continue  # it went away meanwhile
                if status.st_mtime_ns >= since - TICK_NS:
                    news.append(path)
                else:
                    found[path] = _Told(session_id_of(path), _stamp(status))
        return found, news

    def take_as_told(self, found: dict[str, _Told]) -> None:
        self._told = {**found, **self._told}

    def look(self, path: str) -> SessionLook | None:
        """None where it is gone."""
        try:
            summary = self._workspace.manager(os.path.dirname(path)).summary(path)
        except SessionNotFound:
            return None
        except StorageFailed as error:
            if error.errno_name == "ENOENT":
                return None
            raise
        told = self._told.get(path)
        before = _entries_then(path, told.stamp) if told is not None and told.stamp is not None else -1
        return SessionLook(summary.info(), summary.leaf_id, summary.entry_count, summary.epoch, before)

    def tell(self, path: str, found: SessionLook | None, *, own: bool) -> str:
        """What it was: "created", "appended", "replaced", "deleted", or "" where nothing is new."""
        told = self._told.get(path)
        if found is None:
            return self._tell_deleted(path, told, own=own)
        now = _Told(found.info.id, None, found.entries, found.epoch, found.info.updated)
        self._told[path] = now
        known = -1 if told is None else found.before if told.stamp is not None else told.entries
        if told == now or (told is not None and told.stamp is not None and known == found.entries):
            return ""
        if told is None:
            change, added = "created", found.entries
        elif (told.epoch >= 0 and told.epoch != found.epoch) or found.entries < known or known < 0:
            change, added = "replaced", found.entries
        else:
            change, added = "appended", found.entries - known
        if self._subscriptions.wants_session(found.info.id, own=own):
            params = r.SessionDidChange(session=info_record(found.info), leaf_id=found.leaf_id, entries=added, change=change)
            self._notify("session/didChange", params)
        return change

    def _tell_deleted(self, path: str, told: _Told | None, *, own: bool) -> str:
        if told is None:
            return ""
        del self._told[path]
        if self._subscriptions.wants_session(told.id, own=own):
            gone = records.SessionInfo(
                id=told.id, name="", path=path, cwd="", created="", updated=told.updated, message_count=0, first_message=""
            )
            self._notify("session/didChange", r.SessionDidChange(session=gone, leaf_id="", entries=0, change="deleted"))
        return "deleted"


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _changed_since(folder: str, since: int) -> bool:
    """Whether something in a folder was put there, changed or taken away since (in nanoseconds since 1970)."""
    try:
        if os.stat(folder).st_mtime_ns >= since - TICK_NS:
            return True
        with os.scandir(folder) as entries:
            return any(entry.stat().st_mtime_ns >= since - TICK_NS for entry in entries)
    except OSError:
        return False  # there is no such folder, or it went away, which an event tells of


def _entries_then(path: str, stamp: Stamp) -> int:
    """The entries, the header not counted, of a log when it was as `stamp` tells; -1 where what it held then was replaced."""
    _, size, inode = stamp
    left, lines, last, following = size, 0, b"", b""
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != inode or status.st_size < size or (status.st_size == size and _stamp(status) != stamp):
                return -1
            while left > 0 and (block := file.read(min(left, _BLOCK))):
                left -= len(block)
                lines += block.count(b"\n")
                last = block[-1:]
            following = file.read(1)
    except OSError:
        return -1  # it went away meanwhile, and is told of by that
    if last == b"\n":
        return max(lines - 1, 0)
    return lines if following in (b"", b"\n") else -1  # a line end that was still missing then
