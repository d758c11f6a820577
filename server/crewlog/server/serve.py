"""Running a connection on this process's standard input and output."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable

from crewlog.server.connection import Connection, Options

READ_SIZE = 256 << 10


def serve(options: Options) -> int:
    """Serves the client on stdin and stdout until it is done; the exit code."""
    incoming, outgoing = claim_stdio()
    sys.setswitchinterval(0.001)  # small requests must not wait 5 ms for a thread that reads a long file
    return asyncio.run(_run(incoming, outgoing, options))


def claim_stdio() -> tuple[int, int]:
    """Descriptors for frames in and out. Whatever else writes to standard output, in Python, in C or in a child, goes to standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)  # there is no standard error
    os.close(nothing)
    sys.stdout = sys.stderr
    return incoming, outgoing


async def _run(incoming: int, outgoing: int, options: Options) -> int:
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not finished.done():
            finished.set_result(code)

    connection = Connection(loop, outgoing, options, end)
    source = _Source(loop, incoming, connection, end)
    connection.on_process_id = lambda pid: _watch_process(loop, pid, lambda: end(1))
    connection.on_full = source.pause
    connection.on_low = source.resume
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name) and sys.platform != "win32":
            loop.add_signal_handler(getattr(signal, name), end, 0 if name == "SIGTERM" else 1)
    source.start()
    code = await finished
    source.stop()
    await connection.end()
    logging.shutdown()
    return code


class _Source:
    """Reads the client's bytes: by the loop where the system can tell when there are some, else in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, connection: Connection, end: Callable[[int], None]) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._connection = connection
        self._end = end
        self._reading = False
        self._threaded = False
        self._may_read = threading.Event()

    def start(self) -> None:
        try:
            self._loop.add_reader(self._descriptor, self._read)
            self._reading = True
        except (OSError, NotImplementedError):
            self._threaded = True
            self._may_read.set()
            threading.Thread(target=self._read_in_thread, name="crewlog-stdin", daemon=True).start()

    def pause(self) -> None:
        """The client does not read what it asked for: nothing more is taken from it until it does."""
        self._may_read.clear()
        if self._reading:
            self._loop.remove_reader(self._descriptor)
            self._reading = False

    def resume(self) -> None:
        self._may_read.set()
        if not self._reading and not self._threaded:
            self._loop.add_reader(self._descriptor, self._read)
            self._reading = True

    def stop(self) -> None:
        self.pause()

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._connection.feed(data)
        else:
            self.pause()
            self._end(1)

    def _read_in_thread(self) -> None:
        while True:
            self._may_read.wait()
            try:
                data = os.read(self._descriptor, READ_SIZE)
            except OSError:
                data = b""
            try:
                if not data:
                    self._loop.call_soon_threadsafe(self._end, 1)
                    return
                self._loop.call_soon_threadsafe(self._connection.feed, data)
            except RuntimeError:
                return  # the loop has ended


def _watch_process(loop: asyncio.AbstractEventLoop, pid: int, gone: Callable[[], None]) -> None:
    """Calls `gone` when the process ends, even though its end of our stdin is still open somewhere."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        gone()
        return
    except (AttributeError, OSError):
        _poll_process(loop, pid, gone)
        return

    def ended() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        gone()

    loop.add_reader(descriptor, ended)


def _poll_process(loop: asyncio.AbstractEventLoop, pid: int, gone: Callable[[], None]) -> None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        gone()
        return
    except OSError:
        pass  # it is there, and somebody else's
    loop.call_later(1, _poll_process, loop, pid, gone)
