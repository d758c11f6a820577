"""Writing to the server from many threads: at once where its pipe has room, else by a thread that waits for room.

A caller never waits for a server that has stopped reading, so that its own time limit holds.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections import deque

_CAN_BE_PUT_OFF = sys.platform != "win32"
"""Where a pipe can be written to without waiting."""


class Outbound:
    """Frames leave in the order of the calls. `descriptor` becomes this object's to close."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Condition()
        self._waiting: deque[memoryview] = deque()
        self._thread: threading.Thread | None = None
        self._broken = False
        if _CAN_BE_PUT_OFF:
            os.set_blocking(descriptor, False)

    def send(self, frame: bytes) -> None:
        """Hands the frame on. What cannot be written because the server is gone is dropped: the end of its output tells."""
        with self._lock:
            if self._broken:
                return
            rest = memoryview(frame)
            if not self._waiting:
                rest = rest[self._write(rest) :]
            if rest and not self._broken:
                self._waiting.append(rest)
                self._start_thread()
                self._lock.notify()

    def close(self) -> None:
        """Closes the pipe, which the server sees as the end of its input. What waits is dropped."""
        with self._lock:
            if self._broken and self._descriptor < 0:
                return
            self._broken = True
            self._waiting.clear()
            os.close(self._descriptor)
            self._descriptor = -1
            self._lock.notify()

    def _write(self, data: memoryview) -> int:
        """How many bytes went out."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._broken = True
            self._waiting.clear()
            return 0

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="crewlog-client-write", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._waiting and not self._broken:
                    self._lock.wait()
                if self._broken:
                    return
                descriptor = self._descriptor
            _wait_for_room(descriptor)
            with self._lock:
                if self._waiting and not self._broken:
                    self._write_some()

    def _write_some(self) -> None:
        first = self._waiting[0]
        written = self._write(first)
        if self._broken:
            return
        if written == len(first):
            self._waiting.popleft()
        else:
            self._waiting[0] = first[written:]


def _wait_for_room(descriptor: int) -> None:
    """At most a second: the pipe may be closed meanwhile."""
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        poll.poll(1_000)
    except (OSError, ValueError):
        return
