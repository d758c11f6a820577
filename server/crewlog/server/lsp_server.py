"""The pygls server: lifecycle state, trace, workspace notifications, log and show messages, progress. See `lsp`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from crewlog.server.version import VERSION

logger = logging.getLogger(__name__)


class CrewlogProtocol(LanguageServerProtocol):
    """pygls' protocol for messages whose envelope was read already, and that are none of Crewlog's own."""

    def deliver(self, message: dict[str, Any]) -> None:
        """Damaged params of a notification are logged and ignored: nobody waits for an answer to it."""
        try:
            self.handle_message(self.structure_message(message))
        except Exception as error:  # noqa: BLE001  # whatever pygls' converter meets in foreign params
            logger.warning("%s was not understood: %s", message.get("method", "an answer"), error)


class _Writer:
    """What pygls writes to; its first answer, to the `initialize` that was answered long ago, is kept from the client."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.muted = False

    def write(self, data: bytes) -> None:
        if not self.muted:
            self._send(data)

    def close(self) -> None:
        """The connection is not pygls' to close."""


class CrewlogServer(LanguageServer):
    """`send` takes one message's body; `initialize` is the client's request of that name."""

    def __init__(self, send: Callable[[bytes], None], initialize: bytes) -> None:
        super().__init__("crewlog", VERSION, types.TextDocumentSyncKind.None_, protocol_cls=CrewlogProtocol)
        logging.getLogger("pygls").setLevel(logging.ERROR)  # it logs every message, whole
        self._writer = _Writer(send)
        self.protocol.set_writer(self._writer, include_headers=False)
        self._writer.muted = True
        self._deliver(initialize or _BARE_INITIALIZE)
        if not hasattr(self.protocol, "server_capabilities"):
            self._deliver(_BARE_INITIALIZE)  # what the client sent was too bare for pygls
        self._writer.muted = False
        self.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(_ignore)
        self.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_ignore)

    def deliver(self, body: bytes) -> None:
        """Hands a message to pygls."""
        self._deliver(body)

    def warn(self, text: str) -> None:
        """`window/logMessage`."""
        self.window_log_message(types.LogMessageParams(type=types.MessageType.Warning, message=text))

    def report_server_error(self, error: Exception, source: object) -> None:
        """To the log: a notification that cannot be served is nothing to show to the user."""
        logger.warning("pygls: %s", error)

    def _deliver(self, body: bytes) -> None:
        try:
            message = json.loads(body)
        except ValueError:
            return  # valid JSON to us, such as nesting beyond a thousand levels, but not to pygls
        protocol = self.protocol
        assert isinstance(protocol, CrewlogProtocol)
        if isinstance(message, dict):
            protocol.deliver(message)


_BARE_INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'


def _ignore(*_: object) -> None:
    """Accepted: these change nothing here."""
