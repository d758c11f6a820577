"""What goes to the client: whole frames, written as the pipe takes them, never blocking the loop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable

from crewlog.protocol.framing import encode_frame

FULL = 8 << 20
"""Bytes waiting for the client at which no more of its requests are read."""
LOW = 256 << 10
"""Bytes waiting at or below which requests are read again, and notifications are made."""
_MOST_BUFFERS = 64


class Outbox:
    """Used on the loop's thread only. `on_low` is called when a full or busy outbox has drained; `on_broken` when the client is gone."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, on_low: Callable[[], None], on_broken: Callable[[], None]) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._on_low = on_low
        self._on_broken = on_broken
        self._frames: deque[bytes | memoryview] = deque()
        self._size = 0
        self._flush_due = False
        self._waiting = False
        self._broken = False
        try:
            os.set_blocking(descriptor, False)
        except OSError:
            pass  # a file: its writes do not block anyway

    @property
    def full(self) -> bool:
        return self._size > FULL

    @property
    def low(self) -> bool:
        return self._size <= LOW

    @property
    def empty(self) -> bool:
        return not self._frames

    def send(self, body: bytes) -> None:
        """Queues a message; all that one turn of the loop sends is written together."""
        if self._broken:
            return
        frame = encode_frame(body)
        self._frames.append(frame)
        self._size += len(frame)
        if not self._flush_due and not self._waiting:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Writes what the pipe takes now; the rest when it can take more."""
        self._flush_due = False
        was_low = self.low
        while self._frames and not self._broken:
            try:
                written = os.writev(self._descriptor, [frame for _, frame in zip(range(_MOST_BUFFERS), self._frames)])
            except BlockingIOError:
                self._wait()
                break
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                self._break()
                return
            self._drop(written)
        if not self._frames and self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._descriptor)
        if self.low and not was_low:
            self._on_low()

    async def drained(self, seconds: float) -> None:
        """Waits until all is written, at most `seconds`."""
        deadline = self._loop.time() + seconds
        self.flush()
        while self._frames and not self._broken and self._loop.time() < deadline:
            await asyncio.sleep(0.005)

    def _drop(self, written: int) -> None:
        self._size -= written
        while written:
            first = self._frames[0]
            if written >= len(first):
                written -= len(first)
                self._frames.popleft()
            else:
                self._frames[0] = memoryview(first)[written:]
                return

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._descriptor, self.flush)

    def _break(self) -> None:
        self._broken = True
        self._frames.clear()
        self._size = 0
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._descriptor)
        self._on_broken()
