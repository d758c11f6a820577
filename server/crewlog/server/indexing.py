"""Keeps the home's index up to date in a thread of its own, when somebody has asked for what it helps with."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from crewlog.protocol import records
from crewlog.storage import stopping

if TYPE_CHECKING:
    from crewlog.storage.index import SessionIndex, Updated

FIRST_LOOK = 2.0
"""Seconds after the start at which the home is looked at, whatever is asked for: many clients need nothing of it, and are gone by then."""
_UNSETTLED = 0.3
_BUSY = 3.0
_OFF = 60.0
_REST = 3
"""Times as long as an update took that the next one waits."""
logger = logging.getLogger(__name__)


class Indexer:
    """`index` gives the index when it is first needed. `kick` may be called from any thread."""

    def __init__(self, index: Callable[[], SessionIndex]) -> None:
        self._index = index
        self._condition = threading.Condition()
        self._due: float | None = None
        self._thread: threading.Thread | None = None
        self._ended = False
        self._next = 0.0
        self._state = records.IndexState(state="none")

    @property
    def state(self) -> records.IndexState:
        return self._state

    def kick(self, delay: float = 0.0) -> None:
        """An update begins after so many seconds, or when the one that runs is over, or when the last one is long enough ago."""
        with self._condition:
            if self._ended:
                return
            due = max(time.monotonic() + delay, self._next)
            self._due = due if self._due is None else min(due, self._due)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="crewlog-index", daemon=True)
                self._thread.start()
            self._condition.notify()

    def end(self) -> None:
        """Stops an update that runs; what it has read by then is kept."""
        with self._condition:
            self._ended = True
            self._condition.notify()

    def _run(self) -> None:
        while self._wait():
            begun = time.monotonic()
            try:
                with stopping.asked_by(lambda: self._ended):
                    done = self._index().update(progress=self._tell)
                again = self._tell_result(done)
            except stopping.Stopped:
                return
            except Exception:  # whatever it is, logs are read instead
                logger.exception("the index was not brought up to date")
                again = _OFF
                self._state = records.IndexState(state="off", reason="a fault of the server, which its log tells of")
            self._next = time.monotonic() + max(_UNSETTLED, (time.monotonic() - begun) * _REST, again if self._state.state == "off" else 0)
            if again:
                self.kick(again)

    def _wait(self) -> bool:
        """Until an update is due; False when there is to be none any more."""
        with self._condition:
            while not self._ended:
                now = time.monotonic()
                if self._due is not None and self._due <= now:
                    self._due = None
                    return True
                if self._due is None:
                    self._thread = None
                    return False
                self._condition.wait(self._due - now)
            return False

    def _tell(self, done: int, total: int) -> None:
        self._state = records.IndexState(
            state="reading", sessions=self._state.sessions, size=self._state.size, read_bytes=done, total_bytes=total
        )

    def _tell_result(self, done: Updated) -> float:
        """The seconds after which to look again, 0 for not at all."""
        found = self._index().status()
        self._state = records.IndexState(state=found.state, reason=found.reason, sessions=found.sessions, size=found.bytes)
        if found.state == "off":
            return _OFF
        if done.busy:
            return _BUSY
        return _UNSETTLED * 2 if done.unsettled else 0.0
