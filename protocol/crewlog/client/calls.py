"""Requests of many threads on their way, each with who waits for its answer."""

from __future__ import annotations

import threading

from crewlog.client.errors import ConnectionLost
from crewlog.client.exchange import Answer


class Waiter:
    """One thread that waits for one answer. A lock that is taken twice is the cheapest way to wait."""

    __slots__ = ("_answer", "_lock", "method")

    def __init__(self, method: str) -> None:
        self.method = method
        self._answer: Answer | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, timeout: float | None) -> Answer | None:
        """The answer; None when none came within `timeout` seconds. To be called again for another try."""
        if self._answer is None and not self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            return None
        return self._answer

    def end(self, answer: Answer) -> None:
        self._answer = answer
        self._lock.release()


class Calls:
    """Thread-safe. Every waiter gets exactly one end: its answer, or the loss of the connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, Waiter] = {}
        self._lost: ConnectionLost | None = None

    @property
    def lost(self) -> ConnectionLost | None:
        return self._lost

    def add(self, id: int, method: str) -> Waiter:
        """Raises `ConnectionLost` when the connection is lost already."""
        waiter = Waiter(method)
        with self._lock:
            if self._lost is not None:
                raise self._lost
            self._waiting[id] = waiter
        return waiter

    def forget(self, id: int) -> None:
        """An answer that comes later is nobody's."""
        with self._lock:
            self._waiting.pop(id, None)

    def end(self, answer: Answer) -> None:
        with self._lock:
            waiter = self._waiting.pop(answer.id, None)
        if waiter is not None:
            waiter.end(answer)

    def end_all(self, error: ConnectionLost) -> None:
        with self._lock:
            self._lost = self._lost or error
            waiting, self._waiting = self._waiting, {}
        for id, waiter in waiting.items():
            waiter.end(Answer(id, error=self._lost))
