"""Order without waiting: one lane a resource, in which jobs take effect as they came; lanes do not wait for each other.

What is quick is done at once on the event loop; what would wait (a lock that somebody holds, the device, a long file) says so before it
has any effect, and is done again in a thread, while its lane, and no other, waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from crewlog.protocol.methods import Resource
from crewlog.server.workers import Workers
from crewlog.storage import stopping
from crewlog.storage.errors import WouldBlock
from crewlog.storage.locks import without_waiting

WAITING_THREADS = 256
"""Threads for what waits for locks and devices: one a lane at the most, so that many lanes may be stuck and the others go on."""
WORKING_THREADS = 3
"""Threads for what reads and computes for long: they compete with the event loop for the interpreter."""


class Job:
    """`run` does the work and returns the result or raises, in any thread; `done` is called on the loop's thread with either.

    A `slow` job reads or computes for long; it and one that goes `away` are never tried on the loop. `stopped` is asked by long reads
    now and then.
    """

    __slots__ = ("away", "begun", "done", "resource", "run", "slow", "stopped")

    def __init__(
        self,
        run: Callable[[], object],
        done: Callable[[object, Exception | None], None],
        resource: Resource | None = None,
        *,
        slow: bool = False,
        away: bool = False,
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        self.run = run
        self.done = done
        self.resource = resource
        self.slow = slow
        self.away = away or slow
        self.stopped = stopped
        self.begun = False


class Lanes:
    """Used on the loop's thread only. `turn_over` is called after jobs have come back from threads."""

    def __init__(self, turn_over: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._turn_over = turn_over
        self._waiting_threads = Workers("wait", WAITING_THREADS)
        self._working_threads = Workers("work", WORKING_THREADS)
        self._queues: dict[Resource, deque[Job]] = {}
        self._ready: deque[Resource] = deque()
        self._held = False
        self._finished: deque[Callable[[], None]] = deque()
        self._collecting = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.running = 0
        """Jobs in threads now."""
        self.queued = 0
        """Jobs that are not begun."""

    @property
    def busy(self) -> bool:
        """Whether anything that was submitted for a resource is still to be done."""
        return bool(self._queues)

    def is_free(self, resource: Resource) -> bool:
        """Whether nothing that was submitted for it is still to be done."""
        return resource not in self._queues

    def submit(self, job: Job) -> None:
        """Does the job at once, or in its turn. Jobs without a resource have no turn to wait for."""
        if job.resource is None:
            if not self._done_now(job):
                self._send_away(job)
            return
        queue = self._queues.get(job.resource)
        if queue is not None:
            queue.append(job)
            self.queued += 1
        elif not self._done_now(job):
            self._queues[job.resource] = deque()
            self._send_away(job)

    def remove(self, job: Job) -> bool:
        """Takes out a job that is not begun; whether it was there."""
        queue = self._queues.get(job.resource) if job.resource is not None else None
        if queue is None or job.begun or job not in queue:
            return False
        queue.remove(job)
        self.queued -= 1
        return True

    def hold(self) -> None:
        """Until `release` no job that waits for its turn is begun."""
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            self._go_on()

    async def finish(self, seconds: float) -> None:
        """Waits until no job runs, at most `seconds`. Who is still held up then is told of by the `busy` that it ends with."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)

    def _done_now(self, job: Job) -> bool:
        """False where it would have waited; it has had no effect then."""
        if job.away:
            return False
        try:
            with without_waiting():
                result = job.run()
        except WouldBlock:
            return False
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the job's error and nobody else's
            job.begun = True
            job.done(None, error)
            return True
        job.begun = True
        job.done(result, None)
        return True

    def _send_away(self, job: Job) -> None:
        job.begun = True
        self.running += 1
        self._idle.clear()
        threads = self._working_threads if job.slow else self._waiting_threads
        threads.submit(lambda: self._run(job))

    def _run(self, job: Job) -> None:
        """In a thread."""
        result, error = None, None
        try:
            with stopping.asked_by(job.stopped) if job.stopped is not None else contextlib.nullcontext():
                result = job.run()
        except Exception as caught:  # noqa: BLE001  # as above
            error = caught
        self._finished.append(lambda: self._came_back(job, result, error))
        if not self._collecting:
            self._collecting = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending, and nobody listens any more
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._collecting = False
        while self._finished:
            self._finished.popleft()()
        self._turn_over()

    def _came_back(self, job: Job, result: object, error: Exception | None) -> None:
        self.running -= 1
        job.done(result, error)
        if job.resource is not None:
            self._ready.append(job.resource)
            self._go_on()
        if not self.running and not self._ready:
            self._idle.set()

    def _go_on(self) -> None:
        while self._ready and not self._held:
            resource = self._ready.popleft()
            queue = self._queues[resource]
            away = False
            while queue and not away and not self._held:
                job = queue.popleft()
                self.queued -= 1
                if not self._done_now(job):
                    away = True
                    self._send_away(job)
            if away:
                continue
            if queue:
                self._ready.appendleft(resource)
            else:
                del self._queues[resource]
        if not self.running and not self._ready:
            self._idle.set()
