"""One sync for all appends that wait for it.

Appends are made on the loop as they come; their replies wait until the device has confirmed them. While a sync runs, the appends that
come in meanwhile gather, and the next sync covers them all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

from crewlog.storage.files import sync_data, sync_folder

Done = Callable[[OSError | None], None]


class GroupSync:
    """A `Durability` that syncs appends later, in a thread of its own. `deliver` runs a call on the loop's thread."""

    replacing_waits = True
    appending_waits = False

    def __init__(self, deliver: Callable[[Callable[[], None]], object]) -> None:
        self._deliver = deliver
        self._made = threading.local()
        self._condition = threading.Condition()
        self._waiting: list[tuple[list[int], Done]] = []
        self._thread: threading.Thread | None = None
        self._ended = False
        self.syncs = 0

    def replacing(self, descriptor: int) -> None:
        sync_data(descriptor)

    def replaced(self, folder: str) -> None:
        sync_folder(folder)

    def appended(self, descriptor: int) -> None:
        """Notes that what this thread does now is to be synced before it is answered."""
        if not hasattr(self._made, "descriptors"):
            self._made.descriptors = []
        self._made.descriptors.append(os.dup(descriptor))

    def take(self) -> list[int]:
        """What this thread has appended to since the last call, as descriptors that the caller now owns."""
        made: list[int] = getattr(self._made, "descriptors", [])
        self._made.descriptors = []
        return made

    def when_synced(self, descriptors: list[int], done: Done) -> None:
        """Calls `done` on the loop's thread once all of them are on the device, with the error where one failed."""
        with self._condition:
            self._waiting.append((descriptors, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="crewlog-sync", daemon=True)
                self._thread.start()
            self._condition.notify()

    def end(self) -> None:
        """Syncs what waits, then ends the thread."""
        with self._condition:
            self._ended = True
            self._condition.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._waiting and not self._ended:
                    self._condition.wait()
                batch, self._waiting = self._waiting, []
                if not batch:
                    return
            outcome = self._sync(batch)
            self._deliver(partial(_tell, outcome))

    def _sync(self, batch: list[tuple[list[int], Done]]) -> list[tuple[Done, OSError | None]]:
        """Each file once, whatever many appends to it wait."""
        results: dict[tuple[int, int], OSError | None] = {}
        outcome: list[tuple[Done, OSError | None]] = []
        for descriptors, done in batch:
            error: OSError | None = None
            for descriptor in descriptors:
                status = os.fstat(descriptor)
                file = (status.st_dev, status.st_ino)
                if file not in results:
                    results[file] = self._sync_one(descriptor)
                error = error or results[file]
                os.close(descriptor)
            outcome.append((done, error))
        return outcome

    def _sync_one(self, descriptor: int) -> OSError | None:
        self.syncs += 1
        try:
            sync_data(descriptor)
        except OSError as error:
            return error
        return None


def _tell(outcome: list[tuple[Done, OSError | None]]) -> None:
    for done, error in outcome:
        done(error)
