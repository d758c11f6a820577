"""The tasks of a list in memory, and which of them can be claimed, kept up to date at a cost that does not grow with the list."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterator, Mapping

import msgspec

from crewlog.storage.records import Task, TaskSnapshot, TaskStatus
from crewlog.storage.task_rules import open_blockers, sort_tasks_by_id, task_id_key

STALE_KEPT = 64
"""Entries of a heap beside twice those that count, before it is built anew: taking and giving back for hours adds one each time."""
_Key = tuple[int, int, str]


class TaskIndex:
    """`owner_of` tells who holds a task now: a lapsed lease counts as nobody."""

    def __init__(self, owner_of: Callable[[Task], str]) -> None:
        self.tasks: dict[str, Task] = {}
        self._owner_of = owner_of
        self._waiting_for: dict[str, set[str]] = {}
        self._claimable: set[str] = set()
        self._heap: list[tuple[_Key, str]] = []
        self._unsorted: list[str] = []
        """Claimable tasks that are not in the heap yet: who only reads a list needs no order among them."""
        self.counts: dict[str, int] = {}
        """Tasks by status."""

    def put(self, task: Task) -> None:
        """Adds or replaces a task."""
        old = self.tasks.get(task.id)
        self.tasks[task.id] = task
        self._count(old, -1)
        self._count(task, 1)
        if old is None or old.blocked_by != task.blocked_by:
            self._unlist_waiting(old)
            for blocker in task.blocked_by:
                self._waiting_for.setdefault(blocker, set()).add(task.id)
        self.look_again(task.id)
        if old is None or (old.status == TaskStatus.COMPLETED) != (task.status == TaskStatus.COMPLETED):
            self._look_at_waiting(task.id)

    def drop(self, task_id: str) -> None:
        old = self.tasks.pop(task_id, None)
        self._count(old, -1)
        self._claimable.discard(task_id)
        self._unlist_waiting(old)
        self._look_at_waiting(task_id)

    def clear(self) -> None:
        self.tasks.clear()
        self._waiting_for.clear()
        self._claimable.clear()
        self._heap.clear()
        self._unsorted.clear()
        self.counts.clear()

    def _count(self, task: Task | None, change: int) -> None:
        if task is not None:
            self.counts[task.status] = self.counts.get(task.status, 0) + change

    def look_again(self, task_id: str) -> None:
        """To be called when something that is not in the task itself changed: a lease that began or lapsed."""
        task = self.tasks.get(task_id)
        if task is None or not self.is_claimable(task):
            self._claimable.discard(task_id)
        elif task_id not in self._claimable:
            self._claimable.add(task_id)
            self._unsorted.append(task_id)
            if len(self._heap) + len(self._unsorted) > 2 * len(self._claimable) + STALE_KEPT:
                self._heap, self._unsorted = [], list(self._claimable)

    def is_claimable(self, task: Task) -> bool:
        if task.status == TaskStatus.COMPLETED or self._owner_of(task):
            return False
        return not task.blocked_by or not open_blockers(task, self.tasks)

    def first_claimable(self, match: Mapping[str, msgspec.Raw] | None = None, but: Container[str] = ()) -> Task | None:
        """The claimable task of the lowest id, `but` those; with `match` the lowest whose metadata has those keys and values."""
        if match or but:
            return next((task for task in self.claimable() if task.id not in but and _matches(task, match or {})), None)
        self._sort_in()
        while self._heap:
            task_id = self._heap[0][1]
            if task_id in self._claimable:
                return self.tasks[task_id]
            heapq.heappop(self._heap)
        return None

    def _sort_in(self) -> None:
        fresh = [(task_id_key(task_id), task_id) for task_id in self._unsorted]
        self._unsorted = []
        if len(fresh) > len(self._heap):
            self._heap += fresh
            heapq.heapify(self._heap)
        else:
            for item in fresh:
                heapq.heappush(self._heap, item)

    def claimable(self) -> Iterator[Task]:
        """All claimable tasks by id."""
        for task_id in sorted(self._claimable, key=task_id_key):
            yield self.tasks[task_id]

    def sorted(self) -> list[Task]:
        tasks = list(self.tasks.values())
        sort_tasks_by_id(tasks)
        return tasks

    def snapshot(self) -> TaskSnapshot:
        return TaskSnapshot(
            self.sorted(),
            self.counts.get(TaskStatus.PENDING, 0),
            self.counts.get(TaskStatus.IN_PROGRESS, 0),
            self.counts.get(TaskStatus.COMPLETED, 0),
            len(self.tasks),
        )

    def _look_at_waiting(self, blocker: str) -> None:
        for task_id in self._waiting_for.get(blocker, ()):
            self.look_again(task_id)

    def _unlist_waiting(self, task: Task | None) -> None:
        for blocker in task.blocked_by if task is not None else ():
            waiting = self._waiting_for.get(blocker)
            if waiting is not None and task is not None:
                waiting.discard(task.id)
                if not waiting:
                    del self._waiting_for[blocker]


def _matches(task: Task, match: Mapping[str, msgspec.Raw]) -> bool:
    return all(key in task.metadata and same_json(task.metadata[key], value) for key, value in match.items())


def same_json(left: msgspec.Raw, right: msgspec.Raw) -> bool:
    """Whether two raw JSON values mean the same; values that cannot be decoded are compared as bytes."""
    if bytes(left) == bytes(right):
        return True
    try:
        return bool(msgspec.json.decode(left) == msgspec.json.decode(right))
    except (msgspec.DecodeError, RecursionError):
        return False
