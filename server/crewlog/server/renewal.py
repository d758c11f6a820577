"""Keeping the leases of this client alive for as long as its connection lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crewlog.server.call import ClaimEvent
from crewlog.storage.errors import LeaseLost, StorageError, TaskNotFound
from crewlog.storage.records import Claim

Key = tuple[str, str]


class Renewal:
    """The claims with a lease that this client holds. Used on the loop's thread only.

    `renew` renews one (list, task, claim) in a thread and calls back with the error, if any. A claim that was lost stays known, so that
    the client's later writes under it are refused, but is not renewed any more.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, renew: Callable[[Key, Claim, Callable[[BaseException | None], None]], None]
    ) -> None:
        self._loop = loop
        self._renew = renew
        self.held: dict[Key, Claim] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._ended = False

    @property
    def count(self) -> int:
        """Leases that are being renewed."""
        return len(self._timers)

    def note(self, event: ClaimEvent) -> None:
        """The client took or gave back a task."""
        key = (event.list_id, event.task_id)
        self._stop(key)
        if event.claim is None:
            self.held.pop(key, None)
            return
        self.held[key] = event.claim
        if event.auto_renew:
            self._schedule(key, event.claim, event.lease_ms)

    def end(self) -> None:
        """No lease is renewed from now on."""
        self._ended = True
        for key in list(self._timers):
            self._stop(key)

    def _schedule(self, key: Key, claim: Claim, lease_ms: int) -> None:
        if not self._ended:
            self._timers[key] = self._loop.call_later(lease_ms / 3000, self._due, key, claim, lease_ms)

    def _due(self, key: Key, claim: Claim, lease_ms: int) -> None:
        self._renew(key, claim, lambda error: self._renewed(key, claim, lease_ms, error))

    def _renewed(self, key: Key, claim: Claim, lease_ms: int, error: BaseException | None) -> None:
        if self.held.get(key) is not claim or key not in self._timers:
            return  # given back, or taken anew, meanwhile
        if isinstance(error, (LeaseLost, TaskNotFound)):
            self._stop(key)
            return
        # A full disk or a busy lock may pass before the lease lapses: try again sooner.
        self._schedule(key, claim, lease_ms if error is None or not isinstance(error, StorageError) else max(lease_ms // 4, 1))

    def _stop(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
