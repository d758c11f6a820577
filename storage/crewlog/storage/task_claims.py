"""Who holds which task of a list, since which taking, and until when."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator

import msgspec

from crewlog.storage.errors import LeaseLost
from crewlog.storage.ledger import Line, Taking, new_taking
from crewlog.storage.records import Claim, Task, TaskStatus
from crewlog.storage.task_index import STALE_KEPT


class TaskClaims:
    """The takings that the ledger tells of. A task's file names its owner; of the takings of that task his is the one that counts."""

    def __init__(self) -> None:
        self.takings: dict[str, dict[str, Taking]] = {}
        """By task and owner."""
        self._lapses: list[tuple[float, str]] = []
        self._limit = STALE_KEPT

    def taking(self, task: Task) -> Taking | None:
        return self.takings.get(task.id, {}).get(task.owner)

    def owner_now(self, task: Task) -> str:
        """Who holds the task. A lease ends with its task: one that is completed stays with whoever completed it."""
        if not task.owner or task.status == TaskStatus.COMPLETED:
            return task.owner
        taking = self.taking(task)
        left = taking.lapses_in() if taking is not None else None
        return "" if left is not None and left <= 0 else task.owner

    def shown(self, task: Task) -> Task:
        """The task with its claim."""
        taking = self.taking(task) if task.owner else None
        if taking is None:
            return task
        claim = Claim(taking.owner, taking.generation) if task.status == TaskStatus.COMPLETED else taking.claim()
        return msgspec.structs.replace(task, claim=claim)

    def new_taking(self, task_id: str, owner: str, lease_ms: int = 0) -> Taking:
        previous = max((taking.generation for taking in self.takings.get(task_id, {}).values()), default=0)
        return new_taking(task_id, owner, previous, lease_ms)

    def require_holder(self, task: Task, owner: str, generation: int | None) -> Taking:
        """The taking under which `owner` holds the task. Raises `LeaseLost`."""
        if self.owner_now(task) != owner or not owner:
            raise LeaseLost(task.id, owner)
        taking = self.taking(task)
        if generation is not None and (taking is None or taking.generation != generation):
            raise LeaseLost(task.id, owner)
        return taking or self.new_taking(task.id, owner)

    def check_held(self, task: Task, held: Claim | None) -> None:
        """Raises `LeaseLost` where `held` is not the claim that counts; an empty owner in it stands for whoever holds the task."""
        if held is not None:
            self.require_holder(task, held.owner or task.owner, held.generation)

    def add(self, line: Line) -> None:
        """Takes over what a line of a ledger tells, for a list that has none."""
        for taking in takings_in(line):
            self.takings.setdefault(taking.id, {})[taking.owner] = taking

    def schedule(self, task_id: str) -> None:
        """Has the ends of the task's leases come up in `lapsed`."""
        takings = self.takings.get(task_id)
        if takings is None:
            return
        for taking in takings.values():
            left = taking.lapses_in()
            if left is not None:
                heapq.heappush(self._lapses, (now() + left, task_id))
        if len(self._lapses) > self._limit:
            self._forget_what_was_given_back()

    def _forget_what_was_given_back(self) -> None:
        moment_now = now()
        due = [(moment, id) for moment, id in self._lapses if moment <= moment_now]
        leases = [(id, taking.lapses_in()) for id, by_owner in self.takings.items() for taking in by_owner.values()]
        self._lapses = due + [(moment_now + left, id) for id, left in leases if left is not None and left > 0]
        heapq.heapify(self._lapses)
        self._limit = 2 * len(self._lapses) + STALE_KEPT

    def lapsed(self) -> Iterator[str]:
        """Tasks of which a lease has ended since the last look; it may have been renewed since."""
        while self._lapses and self._lapses[0][0] <= now():
            yield heapq.heappop(self._lapses)[1]

    def next_lapse(self) -> float | None:
        """When the next lease may end, in seconds of `now`."""
        return self._lapses[0][0] if self._lapses else None


def takings_in(line: Line) -> list[Taking]:
    return [*line.takings, *([line.renewed] if line.renewed else [])]


def now() -> float:
    """Seconds of a clock that nobody sets."""
    return time.monotonic()
