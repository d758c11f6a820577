"""The rest of the Language Server Protocol, served by pygls.

Crewlog's own methods never come here: pygls would read their params through its converter. It is brought in, in a thread, by the first
message that is for it, or the first one that it is to send: that costs as much as several starts of this server, and most clients need
neither. What it writes goes the way of all messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crewlog.server.lsp_server import CrewlogServer

_MOST_WAITING = 1000
logger = logging.getLogger(__name__)


def is_for_lsp(method: str) -> bool:
    """Whether a notification means something to a language server without documents; others are ignored."""
    return method == "$/setTrace" or method.startswith(("workspace/", "window/"))


class LspSide:
    """Used on the loop's thread only. `send` takes one message's body."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._server: CrewlogServer | None = None
        self._waiting: deque[Callable[[CrewlogServer], None]] = deque(maxlen=_MOST_WAITING)
        self._loading = False
        self._initialize = b""

    def remember(self, initialize: bytes) -> None:
        """The `initialize` that was answered, for when pygls comes to need what the client said of itself."""
        self._initialize = initialize

    def deliver(self, body: bytes) -> None:
        """A notification for pygls, or an answer to a request of its own."""
        self._do(lambda server: server.deliver(body))

    def warn(self, text: str) -> None:
        """Shows the client a sentence: `window/logMessage`."""
        self._do(lambda server: server.warn(text))

    def _do(self, work: Callable[[CrewlogServer], None]) -> None:
        if self._server is not None:
            work(self._server)
            return
        self._waiting.append(work)
        if not self._loading:
            self._loading = True
            threading.Thread(target=self._load, args=(asyncio.get_running_loop(),), name="crewlog-lsp", daemon=True).start()

    def _load(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            from crewlog.server.lsp_server import CrewlogServer
        except ImportError:
            logger.exception("pygls cannot be imported; messages for it are ignored")
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
            loop.call_soon_threadsafe(self._attach, CrewlogServer)

    def _attach(self, make: Callable[[Callable[[bytes], None], bytes], CrewlogServer]) -> None:
        self._server = make(self._send, self._initialize)
        while self._waiting:
            self._waiting.popleft()(self._server)
