"""Keeping the leases of this client alive for as long as its connection lives."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

from crewlog.server.call import ClaimChange, ClaimEvent, TaskKey
from crewlog.server.workers import Workers
from crewlog.storage.errors import LeaseLost, StorageError, TaskNotFound
from crewlog.storage.records import Claim

THREADS = 16
"""A list whose lock is stuck must not cost the client its tasks in the others."""
_SHARE = 3
"""A lease is renewed when a third of it is over: two tries may fail."""
_COMPLETED_KEPT = 1000
"""Claims on tasks completed last, which go on where the task is opened again."""
LOST_KEPT = 10_000
"""Claims that are not renewed (any more) which stay known."""
_STALE_KEPT = 64
"""Times to renew what is no longer held that may wait for their turn: with hour-long leases they would gather for twenty minutes."""

logger = logging.getLogger(__name__)


class Renewal:
    """The claims with a lease that this client took. A claim that was lost stays known, so that later writes under it are refused.

    `renew` renews one by so many milliseconds, in any thread, and returns whether it goes on: not where the task is completed. It
    raises `LeaseLost`, `TaskNotFound`, or another `StorageError`, after which it is tried again. The time is kept by a thread of its
    own: whatever the event loop does, no lease is forgotten.
    """

    def __init__(self, renew: Callable[[TaskKey, Claim, int], bool]) -> None:
        self._renew = renew
        self._workers = Workers("renew", THREADS)
        self._condition = threading.Condition()
        self._due: list[tuple[float, int, TaskKey, Claim]] = []
        self._numbers = itertools.count()
        self._leases: dict[TaskKey, int] = {}
        self._completed: dict[TaskKey, tuple[Claim, int]] = {}
        self._thread: threading.Thread | None = None
        self._ended = False
        self.held: dict[TaskKey, Claim] = {}

    @property
    def count(self) -> int:
        """Leases that are being renewed."""
        return len(self._leases)

    def note(self, event: ClaimEvent) -> None:
        """The client did something with a claim."""
        key, claim = event.key, event.claim
        with self._condition:
            known, renewed_by = self.held.pop(key, None), self._leases.pop(key, 0)
            if event.change is ClaimChange.COMPLETED and known is not None:
                self._remember_completed(key, known, renewed_by)
            elif event.change is ClaimChange.REOPENED and claim is not None:
                before, renew_ms = self._completed.pop(key, (known, renewed_by))
                if before is not None and before.generation == claim.generation:
                    self._hold(key, claim, renew_ms)
                elif known is not None:
                    self._hold(key, known, renewed_by)
            elif event.change is ClaimChange.RENEWED and claim is not None and known is not None:
                self._hold(key, claim, event.renew_ms if renewed_by else 0)
            elif event.change is ClaimChange.TOOK and claim is not None:
                self._completed.pop(key, None)
                self._hold(key, claim, event.renew_ms)

    def _hold(self, key: TaskKey, claim: Claim, renew_ms: int) -> None:
        self.held[key] = claim
        if renew_ms and not self._ended:
            self._leases[key] = renew_ms
            self._schedule(key, claim, renew_ms / 1000 / _SHARE)
        if len(self.held) - len(self._leases) > LOST_KEPT:
            del self.held[next(known for known in self.held if known not in self._leases)]

    def _remember_completed(self, key: TaskKey, claim: Claim, renew_ms: int) -> None:
        self._completed[key] = (claim, renew_ms)
        while len(self._completed) > _COMPLETED_KEPT:
            del self._completed[next(iter(self._completed))]

    def end(self) -> None:
        """No lease is renewed from now on."""
        with self._condition:
            self._ended = True
            self._leases.clear()
            self._condition.notify()

    def _schedule(self, key: TaskKey, claim: Claim, seconds: float) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), key, claim))
        if len(self._due) > 2 * len(self._leases) + _STALE_KEPT:
            self._due = [due for due in self._due if self._is_held(due[2], due[3])]
            heapq.heapify(self._due)
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_time, name="crewlog-leases", daemon=True)
            self._thread.start()
        self._condition.notify()

    def _keep_time(self) -> None:
        with self._condition:
            while not self._ended:
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is None or left > 0:
                    self._condition.wait(left)
                    continue
                _, _, key, claim = heapq.heappop(self._due)
                if self._is_held(key, claim):
                    self._workers.submit(lambda key=key, claim=claim: self._renew_one(key, claim))  # type: ignore[misc]

    def _is_held(self, key: TaskKey, claim: Claim) -> bool:
        """Whether it was neither given back nor taken anew since it was scheduled."""
        return key in self._leases and self.held.get(key) is claim

    def _renew_one(self, key: TaskKey, claim: Claim) -> None:
        share = _SHARE
        try:
            if not self._renew(key, claim, self._leases.get(key, 0)):
                with self._condition:
                    if self._is_held(key, claim):
                        self._remember_completed(key, claim, self._leases.pop(key))
                return
        except (LeaseLost, TaskNotFound):
            with self._condition:
                if self._is_held(key, claim):
                    del self._leases[key]
            return
        except StorageError as error:  # a full disk or a busy lock may pass before the lease lapses
            logger.warning("the lease of task %s in list %s was not renewed, trying again: %s", key[1], key[0], error)
            share = _SHARE * 4
        with self._condition:
            if self._is_held(key, claim) and not self._ended:
                self._schedule(key, claim, self._leases[key] / 1000 / share)
