"""Order without waiting: one lane a resource, in which requests take effect as they arrived; lanes do not wait for each other.

What is quick is done at once on the loop; what would wait (a lock that somebody holds, the device, a long file) says so before it has any
effect, and is done again in a thread, while its lane, and no other, waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from crewlog.protocol.methods import Resource
from crewlog.storage.errors import WouldBlock
from crewlog.storage.locks import without_waiting

THREADS = 32


class Job(msgspec.Struct):
    """`run` does the work and returns the result or raises; `done` is called on the loop's thread with either."""

    run: Callable[[], object]
    done: Callable[[object, BaseException | None], None]
    cancelled: bool = False
    begun: bool = False


class Lanes:
    """Used on the loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="crewlog")
        self._queues: dict[Resource, deque[Job]] = {}
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> int:
        """Jobs in threads now."""
        return self._running

    def submit(self, job: Job, resource: Resource | None, *, slow: bool = False) -> None:
        """Does the job at once or in its turn. Jobs without a resource have no turn to wait for."""
        if resource is None:
            if slow or not self._do_now(job):
                self._do_in_thread(job, None)
            return
        queue = self._queues.get(resource)
        if queue is not None:
            queue.append(job)
        elif not self._do_now(job):
            self._queues[resource] = deque()
            self._do_in_thread(job, resource)

    async def finish(self, seconds: float) -> None:
        """Waits until no job runs, at most `seconds`."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except (TimeoutError, asyncio.TimeoutError):
            pass  # whoever holds them up is told of by the `busy` that they will end with
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _do_now(self, job: Job) -> bool:
        """False where it would have waited; it has had no effect then."""
        if job.cancelled:
            return True
        try:
            with without_waiting():
                result = job.run()
        except WouldBlock:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is becomes the request's error
            job.begun = True
            job.done(None, error)
            return True
        job.begun = True
        job.done(result, None)
        return True

    def _do_in_thread(self, job: Job, resource: Resource | None) -> None:
        self._running += 1
        self._idle.clear()
        job.begun = True
        future = self._pool.submit(job.run)
        future.add_done_callback(lambda done: self._loop.call_soon_threadsafe(self._finished, job, resource, done))

    def _finished(self, job: Job, resource: Resource | None, future: Future[object]) -> None:
        self._running -= 1
        error = future.exception()
        job.done(None if error else future.result(), error)
        if resource is not None:
            self._next(resource)
        if not self._running:
            self._idle.set()

    def _next(self, resource: Resource) -> None:
        queue = self._queues[resource]
        while queue:
            job = queue.popleft()
            if not job.cancelled and not self._do_now(job):
                self._do_in_thread(job, resource)
                return
        del self._queues[resource]
