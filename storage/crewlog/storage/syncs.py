"""One sync for all threads that wait for the same file."""

from __future__ import annotations

import threading
from collections.abc import Callable

from crewlog.storage.files import Undo, take_back


class _Batch:
    """Those who are served by one sync."""

    def __init__(self) -> None:
        self.done = False
        self.error: BaseException | None = None
        self.undos: list[Undo] = []


class SharedSync:
    """Who comes while a sync runs waits for the next one, which covers all that came meanwhile; one of them carries it out."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._next = _Batch()
        self._running = False

    def wait(self, sync: Callable[[], None], undo: Undo) -> None:
        """Returns when a `sync` that began after this call is done. What it raises is raised to all it was for, and what they wrote is
        taken back: the system tells of a failed write only once, so that trying again would seem to succeed.
        """
        with self._condition:
            batch = self._next
            batch.undos.append(undo)
            while self._running and not batch.done:
                self._condition.wait()
            leads = not batch.done
            if leads:
                self._running = True
                self._next = _Batch()
        if leads:
            self._lead(batch, sync)
        if batch.error is not None:
            raise batch.error

    def _lead(self, batch: _Batch, sync: Callable[[], None]) -> None:
        try:
            sync()
        except BaseException as error:  # noqa: BLE001  # raised again by each who waits
            batch.error = error
            take_back(batch.undos)
        with self._condition:
            self._running = False
            batch.done = True
            self._condition.notify_all()
