"""`task/claimNext` with `waitMs`: requests that wait for work.

A waiter costs nothing while it waits. Whatever may make a task claimable (a change of the list by anyone, a lease that lapses) makes the
first waiter of the list try again; when it gets a task the next one tries. Who is cancelled or gone while its try runs gives the task back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

Attempt = Callable[[Callable[[object, BaseException | None], None]], None]
"""Starts one try, which later calls back with what it got (None: nothing) or an error."""


class Waiter(msgspec.Struct):
    """`settle` answers the request; `give_back` is called with a task that came too late."""

    attempt: Attempt
    settle: Callable[[object, BaseException | None], None]
    give_back: Callable[[object], None]
    timer: asyncio.TimerHandle | None = None
    ended: bool = False


class Waiting:
    """The waiters of all lists. Used on the loop's thread only. `next_lapse` gives seconds until a lease of a list may lapse, or None."""

    def __init__(self, loop: asyncio.AbstractEventLoop, next_lapse: Callable[[str], float | None]) -> None:
        self._loop = loop
        self._next_lapse = next_lapse
        self._waiters: dict[str, deque[Waiter]] = {}
        self._trying: set[str] = set()
        self._again: set[str] = set()
        self._lapses: dict[str, asyncio.TimerHandle] = {}

    @property
    def count(self) -> int:
        return sum(len(waiters) for waiters in self._waiters.values())

    def lists(self) -> set[str]:
        """The lists that somebody waits for."""
        return set(self._waiters)

    def add(self, list_id: str, waiter: Waiter, seconds: float) -> None:
        """Lets a request wait that found nothing; it tries once more at once, since something may have come meanwhile."""
        waiter.timer = self._loop.call_later(seconds, self._time_out, list_id, waiter)
        self._waiters.setdefault(list_id, deque()).append(waiter)
        self.wake(list_id)

    def wake(self, list_id: str) -> None:
        """Something changed in the list."""
        if list_id not in self._waiters:
            return
        if list_id in self._trying:
            self._again.add(list_id)
            return
        self._try_first(list_id)

    def remove(self, list_id: str, waiter: Waiter) -> None:
        """The request was cancelled, or its client is gone."""
        self._end(list_id, waiter)

    def end(self) -> None:
        for list_id, waiters in list(self._waiters.items()):
            for waiter in list(waiters):
                self._end(list_id, waiter)

    def _try_first(self, list_id: str) -> None:
        waiters = self._waiters.get(list_id)
        if not waiters:
            return
        waiter = waiters[0]
        self._trying.add(list_id)
        self._again.discard(list_id)
        waiter.attempt(lambda result, error: self._tried(list_id, waiter, result, error))

    def _tried(self, list_id: str, waiter: Waiter, result: object, error: BaseException | None) -> None:
        self._trying.discard(list_id)
        if waiter.ended:
            if result is not None:
                waiter.give_back(result)
        elif result is not None or error is not None:
            self._end(list_id, waiter)
            waiter.settle(result, error)
        if list_id not in self._waiters:
            return
        if result is not None or error is not None or list_id in self._again or waiter.ended:
            self._loop.call_soon(self.wake, list_id)
        else:
            self._watch_lapse(list_id)

    def _watch_lapse(self, list_id: str) -> None:
        timer = self._lapses.pop(list_id, None)
        if timer is not None:
            timer.cancel()
        left = self._next_lapse(list_id)
        if left is not None:
            self._lapses[list_id] = self._loop.call_later(left + 0.002, self.wake, list_id)

    def _time_out(self, list_id: str, waiter: Waiter) -> None:
        if not waiter.ended:
            self._end(list_id, waiter)
            waiter.settle(None, None)

    def _end(self, list_id: str, waiter: Waiter) -> None:
        waiter.ended = True
        if waiter.timer is not None:
            waiter.timer.cancel()
        waiters = self._waiters.get(list_id)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[list_id]
                timer = self._lapses.pop(list_id, None)
                if timer is not None:
                    timer.cancel()
