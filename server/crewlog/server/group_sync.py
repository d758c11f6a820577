"""Durability "power" for many at once: appends do not wait for the device, their replies do, and one sync serves all that wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

from crewlog.storage.files import Undo, sync_data, sync_folder, take_back
from crewlog.storage.locks import may_wait

_File = tuple[int, int]
Waiter = Callable[[OSError | None], None]
"""Called when what it waits for is on the device, or with the reason why it may not be."""


class Ticket:
    """What one request appended that is not on the device yet: files, each with the batch in which it will be synced."""

    def __init__(self) -> None:
        self.parts: dict[tuple[_Batch, _File], None] = {}

    def last(self) -> _Batch:
        """Batches are synced in order: when this one is done, all are."""
        return next(reversed(self.parts))[0]

    def error(self) -> OSError | None:
        return next((batch.errors[file] for batch, file in self.parts if file in batch.errors), None)


class _Batch:
    """Files to be synced together, and who waits for that. `descriptors` are duplicates of our own."""

    def __init__(self) -> None:
        self.descriptors: dict[_File, int] = {}
        self.undos: dict[_File, list[Undo]] = {}
        self.waiters: list[tuple[Ticket, Waiter]] = []
        self.errors: dict[_File, OSError] = {}
        self.done = False


class GroupSync:
    """A `files.Durability`. Replacing a file is waited for at once, in a worker thread; appending only notes the file.

    After its work a request takes its `ticket`; where it has one, its reply waits by `when_synced`. `start` begins a sync; while one
    runs, those who come wait for the next, which serves them all. `post` has a call made where the waiters are to be called.
    """

    replacing_waits = True
    appending_waits = False

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._mutex = threading.Lock()
        self._begin = threading.Condition(self._mutex)
        self._open = _Batch()
        self._wanted = False
        self._thread: threading.Thread | None = None
        self._mine = threading.local()
        self.syncs = 0
        """Files synced so far."""

    def replacing(self, descriptor: int) -> None:
        sync_data(descriptor)

    def replaced(self, folder: str) -> None:
        """Waits for the folder, or where this thread must not wait, notes it for the next sync."""
        if may_wait():
            sync_folder(folder)
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            self.appended(descriptor, _stays)
        finally:
            os.close(descriptor)

    def appended(self, descriptor: int, undo: Undo) -> None:
        """Notes the file for the next sync; `undo` is called where that fails. Raises `OSError` when there are no descriptors left."""
        status = os.fstat(descriptor)
        file = (status.st_dev, status.st_ino)
        with self._mutex:
            batch = self._open
            if file not in batch.descriptors:
                batch.descriptors[file] = os.dup(descriptor)
            batch.undos.setdefault(file, []).append(undo)
        ticket: Ticket | None = getattr(self._mine, "ticket", None)
        if ticket is None:
            ticket = self._mine.ticket = Ticket()
        ticket.parts[batch, file] = None

    def take_ticket(self) -> Ticket | None:
        """What this thread appended since the last call; None when there is nothing to wait for."""
        ticket: Ticket | None = getattr(self._mine, "ticket", None)
        self._mine.ticket = None
        return ticket

    def when_synced(self, ticket: Ticket, waiter: Waiter) -> None:
        """Has `waiter` called when the ticket's files are on the device, or at once when they are already."""
        batch = ticket.last()
        with self._mutex:
            if not batch.done:
                batch.waiters.append((ticket, waiter))
                return
        waiter(ticket.error())

    def start(self) -> None:
        """Begins a sync for all that wait now. Does not wait itself."""
        with self._mutex:
            if self._open.descriptors and not self._wanted:
                self._wanted = True
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="crewlog-sync", daemon=True)
                    self._thread.start()
                self._begin.notify()

    def _run(self) -> None:
        while True:
            with self._mutex:
                while not self._wanted:
                    self._begin.wait()
                self._wanted = False
                batch, self._open = self._open, _Batch()
            _sync(batch)
            self.syncs += len(batch.descriptors)
            with self._mutex:
                batch.done = True
            self._post(partial(_tell, batch))


def _sync(batch: _Batch) -> None:
    """Each file once, however many wait for it."""
    for file, descriptor in batch.descriptors.items():
        try:
            sync_data(descriptor)
        except OSError as error:
            batch.errors[file] = error
            take_back(batch.undos[file])
        finally:
            os.close(descriptor)


def _stays() -> bool:
    return False


def _tell(batch: _Batch) -> None:
    for ticket, waiter in batch.waiters:
        waiter(ticket.error())
