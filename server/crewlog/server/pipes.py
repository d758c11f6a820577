"""Reading from and writing to the client without ever waiting for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable

READ_SIZE = 64 << 10
"""Bytes asked for at a time: what a pipe holds."""
_JOIN_BELOW = 256 << 10


class Input:
    """Chunks of the descriptor `source`, as they come. `accept` gets each, `ended` is called once, after the last.

    A descriptor that the event loop cannot wait for (a file, or any on Windows) is read by a thread.
    """

    def __init__(self, source: int, accept: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self._source = source
        self._accept = accept
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._paused = True
        self._over = False
        self._held: bytes | None = None
        self._thread: _ReadingThread | None = None
        self._was_blocking = True
        try:
            self._loop.add_reader(source, self._readable)
            self._loop.remove_reader(source)
            self._was_blocking = os.get_blocking(source)
            os.set_blocking(source, False)
        except (OSError, NotImplementedError, AttributeError):
            self._thread = _ReadingThread(source, self._loop, self._from_thread)

    def resume(self) -> None:
        """Begins, or goes on after `pause`."""
        if not self._paused or self._over:
            return
        self._paused = False
        if self._thread is None:
            self._loop.add_reader(self._source, self._readable)
        elif self._held is None:
            self._thread.proceed()
        else:
            held, self._held = self._held, None
            self._from_thread(held)

    def pause(self) -> None:
        """Nothing is accepted until `resume`; the client is held up by its full pipe."""
        if not self._paused and self._thread is None:
            self._loop.remove_reader(self._source)
        self._paused = True

    def close(self) -> None:
        """Stops for good; `ended` is not called any more."""
        if self._over:
            return
        self.pause()
        self._over = True
        if self._thread is None:
            with contextlib.suppress(OSError):  # a terminal is shared with the shell, which expects it as it was
                os.set_blocking(self._source, self._was_blocking)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._source, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the other side is gone, however the system puts it (a pseudo terminal says EIO)
            chunk = b""
        self._take(chunk)

    def _from_thread(self, chunk: bytes) -> None:
        if self._paused:
            self._held = chunk
            return
        self._take(chunk)
        if not self._paused and self._thread is not None:
            self._thread.proceed()

    def _take(self, chunk: bytes) -> None:
        if self._over:
            return
        if chunk:
            self._accept(chunk)
        else:
            self.close()
            self._ended()


class _ReadingThread:
    """Reads one chunk each time it is told to proceed."""

    def __init__(self, source: int, loop: asyncio.AbstractEventLoop, accept: Callable[[bytes], None]) -> None:
        self._source = source
        self._loop = loop
        self._accept = accept
        self._wanted = threading.Semaphore(0)
        threading.Thread(target=self._run, name="crewlog-input", daemon=True).start()

    def proceed(self) -> None:
        self._wanted.release()

    def _run(self) -> None:
        chunk = b"more"
        while chunk:
            self._wanted.acquire()
            try:
                chunk = os.read(self._source, READ_SIZE)
            except OSError:
                chunk = b""
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
                self._loop.call_soon_threadsafe(self._accept, chunk)


class Output:
    """Bytes on their way to the descriptor `sink`. What the client does not take yet is kept, and sent when it does.

    `drained` is called whenever all has been taken after a wait, `broken` once when the client's end is gone.
    """

    def __init__(self, sink: int, drained: Callable[[], None], broken: Callable[[], None]) -> None:
        self._sink = sink
        self._drained = drained
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._pending: deque[bytes] = deque()
        self._rest: memoryview = memoryview(b"")
        self._waiting = False
        self._over = False
        self._empty = asyncio.Event()
        self._thread: _WritingThread | None = None
        self.size = 0
        """Bytes that are still to be taken."""
        try:
            os.set_blocking(sink, False)
        except (OSError, AttributeError):
            self._thread = _WritingThread(sink, self._loop, self._taken_by_thread)

    def add(self, data: bytes) -> None:
        """Queues `data`; `flush` sends it."""
        if not self._over:
            self._pending.append(data)
            self.size += len(data)

    def flush(self) -> None:
        """Sends what the client takes without waiting, in as few writes as possible."""
        if self._waiting or self._over:
            return
        if self._thread is not None:
            self._hand_to_thread(self._thread)
            return
        try:
            while self._rest or self._pending:
                if not self._rest:
                    self._rest = memoryview(self._next_batch())
                written = os.write(self._sink, self._rest)
                self.size -= written
                self._rest = self._rest[written:]
        except (BlockingIOError, InterruptedError):
            self._wait()
        except OSError:
            self._break()

    async def drained(self, seconds: float) -> None:
        """Waits until all is taken, or the client is gone, at most `seconds`."""
        self._empty.clear()
        self.flush()
        if self.size:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._empty.wait(), seconds)

    def close(self) -> None:
        """Forgets what is still to be taken."""
        if self._waiting and self._thread is None and not self._over:
            self._loop.remove_writer(self._sink)
        self._over = True
        self._pending.clear()
        self._rest = memoryview(b"")
        self.size = 0
        self._empty.set()

    def _next_batch(self) -> bytes:
        first = self._pending.popleft()
        if not self._pending or len(first) >= _JOIN_BELOW:
            return first
        batch, size = [first], len(first)
        while self._pending and size + len(self._pending[0]) <= _JOIN_BELOW:
            size += len(self._pending[0])
            batch.append(self._pending.popleft())
        return b"".join(batch)

    def _wait(self) -> None:
        self._waiting = True
        self._loop.add_writer(self._sink, self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._sink)
        self._waiting = False
        self.flush()
        self._check_drained()

    def _check_drained(self) -> None:
        if not self._waiting and not self._over:
            self._empty.set()
            self._drained()

    def _hand_to_thread(self, thread: _WritingThread) -> None:
        if self._pending:
            self._waiting = True
            thread.write(self._next_batch())

    def _taken_by_thread(self, size: int) -> None:
        self._waiting = False
        if size < 0:
            self._break()
            return
        self.size -= size
        self.flush()
        self._check_drained()

    def _break(self) -> None:
        self.close()
        self._broken()


class _WritingThread:
    """For systems whose pipes cannot be told not to wait: writes one batch at a time and tells its size, -1 when the client is gone."""

    def __init__(self, sink: int, loop: asyncio.AbstractEventLoop, taken: Callable[[int], None]) -> None:
        self._sink = sink
        self._loop = loop
        self._taken = taken
        self._batch = b""
        self._ready = threading.Semaphore(0)
        threading.Thread(target=self._run, name="crewlog-output", daemon=True).start()

    def write(self, batch: bytes) -> None:
        self._batch = batch
        self._ready.release()

    def _run(self) -> None:
        while True:
            self._ready.acquire()
            size = len(self._batch)
            try:
                view = memoryview(self._batch)
                while view:
                    view = view[os.write(self._sink, view) :]
            except OSError:
                size = -1
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
                self._loop.call_soon_threadsafe(self._taken, size)
            if size < 0:
                return
