"""`task/claimNext` with `waitMs`: requests that wait for work.

A waiter costs nothing while it waits. Whatever may make a task claimable (a change of the list by anyone, a lease that lapses) lets the
waiters of the list try again, the one that waits longest first. Who is cancelled or gone while its try runs gives back what it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Tried = Callable[[bytes | None, Exception | None], None]
"""Called back with the taken task (None: there was none), or with an error."""

_LAPSE_MARGIN = 0.002


class Waiter:
    """One request. `attempt` starts a try; `settle` answers the request; `give_back` gets a task that came too late.

    `wants`: equal for those that any task suits equally (so that one vain try speaks for all), "" for those that any task suits.
    """

    __slots__ = ("attempt", "ended", "give_back", "list_id", "settle", "timer", "wants")

    def __init__(
        self, list_id: str, wants: bytes, attempt: Callable[[Tried], None], settle: Tried, give_back: Callable[[bytes], None]
    ) -> None:
        self.list_id = list_id
        self.wants = wants
        self.attempt = attempt
        self.settle = settle
        self.give_back = give_back
        self.timer: asyncio.TimerHandle | None = None
        self.ended = False


class _Queue:
    """The waiters of one list, and the round of tries that is under way."""

    def __init__(self) -> None:
        self.waiters: list[Waiter] = []
        self.trying = False
        self.again = False
        self.vain: set[bytes] = set()
        self.lapse: asyncio.TimerHandle | None = None


class Waiting:
    """The waiters of all lists. Used on the loop's thread only. `next_lapse`: seconds until a lease of a list may lapse, or None."""

    def __init__(self, next_lapse: Callable[[str], float | None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._next_lapse = next_lapse
        self._queues: dict[str, _Queue] = {}

    @property
    def count(self) -> int:
        return sum(len(queue.waiters) for queue in self._queues.values())

    def lists(self) -> set[str]:
        """The lists that somebody waits for."""
        return set(self._queues)

    def add(self, waiter: Waiter, seconds: float) -> None:
        """Lets a request wait that found nothing. It tries once more at once: something may have come meanwhile."""
        waiter.timer = self._loop.call_later(seconds, self._time_out, waiter)
        self._queues.setdefault(waiter.list_id, _Queue()).waiters.append(waiter)
        self.wake(waiter.list_id)

    def wake(self, list_id: str) -> None:
        """Something changed in the list."""
        queue = self._queues.get(list_id)
        if queue is None:
            return
        if queue.trying:
            queue.again = True
            return
        queue.trying = True
        queue.vain.clear()
        self._try_next(list_id, queue)

    def remove(self, waiter: Waiter) -> None:
        """The request was cancelled, or its client is gone."""
        waiter.ended = True
        if waiter.timer is not None:
            waiter.timer.cancel()
        queue = self._queues.get(waiter.list_id)
        if queue is not None and waiter in queue.waiters:
            queue.waiters.remove(waiter)
            if not queue.waiters:
                del self._queues[waiter.list_id]
                if queue.lapse is not None:
                    queue.lapse.cancel()

    def all(self) -> list[Waiter]:
        """Those who wait."""
        return [waiter for queue in self._queues.values() for waiter in queue.waiters]

    def _try_next(self, list_id: str, queue: _Queue) -> None:
        waiter = next((waiter for waiter in queue.waiters if waiter.wants not in queue.vain), None)
        if waiter is None or b"" in queue.vain:
            self._rest(list_id, queue)
        else:
            waiter.attempt(lambda result, error: self._tried(list_id, queue, waiter, result, error))

    def _tried(self, list_id: str, queue: _Queue, waiter: Waiter, result: bytes | None, error: Exception | None) -> None:
        if waiter.ended:
            if result is not None:
                waiter.give_back(result)
        elif result is None and error is None:
            queue.vain.add(waiter.wants)
        else:
            self.remove(waiter)
            waiter.settle(result, error)
        if self._queues.get(list_id) is queue:
            self._loop.call_soon(self._try_next, list_id, queue)  # not at once: many waiters must not hold up the loop

    def _rest(self, list_id: str, queue: _Queue) -> None:
        """Nobody can be served now."""
        queue.trying = False
        if queue.again:
            queue.again = False
            self.wake(list_id)
        elif self._queues.get(list_id) is queue:
            if queue.lapse is not None:
                queue.lapse.cancel()
            left = self._next_lapse(list_id)
            queue.lapse = None if left is None else self._loop.call_later(left + _LAPSE_MARGIN, self.wake, list_id)

    def _time_out(self, waiter: Waiter) -> None:
        if not waiter.ended:
            self.remove(waiter)
            waiter.settle(None, None)
