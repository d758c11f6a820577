"""Threads for what would hold up the event loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

IDLE_SECONDS = 10.0

Work = Callable[[], None]


class Workers:
    """At most `limit` threads, started when needed and ended after `IDLE_SECONDS` without work. `work` must not raise.

    What is given beyond that waits in order. The threads are daemons: a process that ends does not wait for one that is stuck.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._queue: deque[Work] = deque()
        self._condition = threading.Condition()
        self._threads = 0
        self._idle = 0

    @property
    def threads(self) -> int:
        return self._threads

    def submit(self, work: Work) -> None:
        with self._condition:
            self._queue.append(work)
            if self._idle >= len(self._queue):
                self._condition.notify()
            elif self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._run, name=f"crewlog-{self._name}", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._queue:
                    self._idle += 1
                    woken = self._condition.wait(IDLE_SECONDS)
                    self._idle -= 1
                    if not woken and not self._queue:
                        self._threads -= 1
                        return
                work = self._queue.popleft()
            work()
