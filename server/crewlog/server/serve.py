"""The process: a connection on standard input and output, for as long as its client is there."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable

from crewlog.server.awake import new_event_loop
from crewlog.server.connection import Connection
from crewlog.server.lifecycle import Options
from crewlog.server.parent import ParentWatch
from crewlog.server.pipes import Input
from crewlog.server.stdio import Streams

SWITCH_INTERVAL = 0.000_2
"""Seconds after which a thread that reads a long file lets a small request go ahead (Python's default is 0.005)."""
MOST_DESCRIPTORS = 4096

logger = logging.getLogger(__name__)


def serve(streams: Streams, options: Options) -> int:
    """Serves the client until it is done; the exit code: 0 after shutdown or a signal, else 1."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    _allow_more_descriptors()
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    code = loop.run_until_complete(_run(streams, options))
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)  # a thread that waits for a lock somebody holds is no reason to stay


async def _run(streams: Streams, options: Options) -> int:
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[tuple[int, bool]] = loop.create_future()
    parent: list[ParentWatch] = []

    def end(code: int, *, client_is_there: bool = True) -> None:
        if not finished.done():
            finished.set_result((code, client_is_there))

    def gone() -> None:
        end(1, client_is_there=False)

    def ended() -> None:
        end(0 if connection.is_shut_down() else 1)

    connection = Connection(
        streams.sink,
        options,
        over=end,
        served_process=lambda pid: parent.append(ParentWatch(pid, gone)),
        full=lambda: source.pause(),
        room=lambda: source.resume(),
    )
    source = Input(streams.source, connection.feed, ended)
    _heed_signals(loop, streams, lambda: end(0))
    source.resume()
    code, client_is_there = await finished
    source.close()
    for watch in parent:
        watch.close()
    await connection.end(client_is_there=client_is_there)
    return code


def _heed_signals(loop: asyncio.AbstractEventLoop, streams: Streams, end: Callable[[], None]) -> None:
    """SIGTERM and SIGHUP end the server cleanly. SIGINT goes to a whole group of processes and is meant for the client, with which we
    end anyway; only somebody who types to us directly means us by it."""
    if sys.platform == "win32":
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    loop.add_signal_handler(signal.SIGINT, end if os.isatty(streams.source) else _ignore)


def _ignore() -> None:
    logger.debug("an interrupt was left to the client")


def _allow_more_descriptors() -> None:
    """As many as the system allows, up to a bound: some systems give 256 to begin with."""
    try:
        import resource
    except ImportError:
        return  # Windows
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MOST_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
