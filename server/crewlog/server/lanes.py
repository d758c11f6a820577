"""Who may run now: requests on one resource in the order in which they came, those on different ones without waiting for each other.

A lane is the queue of one resource. Its first job runs at once, on the event loop where it can be done without waiting; else it moves
to a worker thread, and what comes after it on the same resource waits for it. Lanes exist only while something waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Generic, Protocol, TypeVar


class Begun(Enum):
    """What became of a job that was begun."""

    DONE = "done"
    """It is over."""
    AWAY = "away"
    """A thread works on it; its lane waits until `Lanes.leave`."""
    ASIDE = "aside"
    """A thread works on it, but it changes nothing: its lane goes on."""


class Job(Protocol):
    @property
    def lane(self) -> Hashable | None:
        """The resource; None for a job that need not keep any order."""


J = TypeVar("J", bound=Job)


class Lanes(Generic[J]):
    """`begin` starts a job and tells what became of it; it must not raise. Used by the event loop's thread only."""

    def __init__(self, begin: Callable[[J], Begun]) -> None:
        self._begin = begin
        self._queues: dict[Hashable, deque[J]] = {}
        self._held = False
        self._ready: deque[Hashable] = deque()
        self.waiting = 0
        """Jobs that are not begun."""

    def enter(self, job: J) -> None:
        """Begins the job, now or when its lane is free."""
        lane = job.lane
        if lane is None:
            self._begin(job)
            return
        queue = self._queues.get(lane)
        if queue is not None:
            queue.append(job)
            self.waiting += 1
        elif self._begin(job) is Begun.AWAY:
            self._queues[lane] = deque()

    def leave(self, job: J) -> None:
        """A job that was away is over: its lane goes on."""
        if job.lane is not None:
            self._ready.append(job.lane)
            if not self._held:
                self._go_on()

    def remove(self, job: J) -> bool:
        """Takes out a job that is not begun; whether it was there."""
        queue = self._queues.get(job.lane)
        if queue is None or job not in queue:
            return False
        queue.remove(job)
        self.waiting -= 1
        return True

    def hold(self) -> None:
        """Until `release` no job that waits is begun."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self._go_on()

    def _go_on(self) -> None:
        while self._ready and not self._held:
            lane = self._ready.popleft()
            queue = self._queues[lane]
            while queue and not self._held:
                self.waiting -= 1
                if self._begin(queue.popleft()) is Begun.AWAY:
                    break
            else:
                if queue:
                    self._ready.appendleft(lane)
                else:
                    del self._queues[lane]
