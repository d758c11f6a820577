"""Notifications that wait to be read: kept one by one while they are few, merged per resource when they are many.

So a reader that is slow, or never comes, costs memory by what there is to know, not by how often it changed; and nothing is missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

import msgspec

from crewlog.client import results
from crewlog.client.results import RosterDidChange, TaskDidChange
from crewlog.protocol.results import PlanDidChange, SessionDidChange

LIMIT = 1_000
"""Waiting notifications that are kept one by one."""

Change = TaskDidChange | RosterDidChange | PlanDidChange | SessionDidChange
Kind = type[TaskDidChange] | type[RosterDidChange] | type[PlanDidChange] | type[SessionDidChange]

READERS: dict[str, Callable[[msgspec.Raw], Change]] = {
    "task/didChange": results.TASK_DID_CHANGE,
    "roster/didChange": results.ROSTER_DID_CHANGE,
    "plan/didChange": results.PLAN_DID_CHANGE,
    "session/didChange": results.SESSION_DID_CHANGE,
}


def read_change(method: str, params: msgspec.Raw) -> Change | None:
    """The notification as its class; None for one that this version does not know. Raises `msgspec.ValidationError`."""
    read = READERS.get(method)
    return None if read is None else read(params)


class Backlog:
    """A queue of changes. Not thread-safe."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._threshold = limit
        self._waiting: deque[Change] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, change: Change) -> None:
        self._waiting.append(change)
        if len(self._waiting) > self._threshold:
            self._waiting = deque(merged(self._waiting))
            self._threshold = max(self._limit, 2 * len(self._waiting))

    def take(self) -> Change | None:
        """The oldest one; None when there is none."""
        return self._waiting.popleft() if self._waiting else None


def merged(changes: Iterable[Change]) -> list[Change]:
    """One change for each resource, which tells all that those given tell of it; in the order of the last change of each."""
    latest: dict[Hashable, Change] = {}
    for change in changes:
        key = _resource(change)
        earlier = latest.pop(key, None)
        latest[key] = change if earlier is None else _both(earlier, change)
    return list(latest.values())


def _resource(change: Change) -> Hashable:
    if isinstance(change, SessionDidChange):
        return SessionDidChange, change.session.id
    if isinstance(change, PlanDidChange):
        return PlanDidChange, change.name
    return type(change), change.list_id


def _both(earlier: Change, later: Change) -> Change:
    if isinstance(earlier, TaskDidChange) and isinstance(later, TaskDidChange):
        return _both_of_tasks(earlier, later)
    if isinstance(earlier, SessionDidChange) and isinstance(later, SessionDidChange):
        starts_anew = later.change in ("created", "replaced", "deleted")
        return msgspec.structs.replace(
            later,
            entries=later.entries if starts_anew else earlier.entries + later.entries,
            change=later.change if starts_anew else earlier.change,
        )
    if isinstance(earlier, PlanDidChange) and isinstance(later, PlanDidChange):
        return msgspec.structs.replace(later, change=_PLAN_CHANGES.get((earlier.change, later.change), later.change))
    return later


_PLAN_CHANGES = {("created", "changed"): "created", ("deleted", "created"): "changed"}


def _both_of_tasks(earlier: TaskDidChange, later: TaskDidChange) -> TaskDidChange:
    changed = {task.id: task for task in earlier.changed}
    removed = dict.fromkeys(earlier.removed)
    for id in later.removed:
        changed.pop(id, None)
        removed[id] = None
    for task in later.changed:
        changed[task.id] = task
        removed.pop(task.id, None)
    return msgspec.structs.replace(later, changed=list(changed.values()), removed=list(removed))
