"""The rest of the Language Server Protocol, served by pygls.

Crewlog's own methods never come here. The first message that is neither one of them nor part of the lifecycle brings pygls in, which costs
as much as starting Python does; most clients send none. pygls writes through the same outbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from crewlog.protocol.framing import encode_frame


class CrewlogProtocol(LanguageServerProtocol):
    """pygls's protocol with the envelope already read. Custom params never reach its converter."""

    def deliver(self, message: dict[str, Any]) -> None:
        """One message that the connection does not serve itself."""
        try:
            structured = self.structure_message(message)
        except Exception as error:  # noqa: BLE001 - whatever its converter meets in foreign params, the client's request gets an answer
            if "id" in message and "method" in message:
                failure = types.ResponseError(code=-32602, message=f"the params of {message['method']} cannot be read: {error}")
                self._send_response(message["id"], None, failure)
            return
        self.handle_message(structured)


class _Writer:
    """What pygls writes to."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send

    def write(self, data: bytes) -> None:
        self._send(data)

    def close(self) -> None:
        pass


class LspSide:
    """`send` takes one message's body."""

    def __init__(self, name: str, version: str, send: Callable[[bytes], None]) -> None:
        self._server = LanguageServer(name, version, protocol_cls=CrewlogProtocol, converter_factory=default_converter)
        protocol = self._server.protocol
        assert isinstance(protocol, CrewlogProtocol)
        self._protocol = protocol
        self._protocol.set_writer(_Writer(send), include_headers=False)
        self._accept_document_notifications()

    def deliver(self, body: bytes) -> None:
        """Hands a message to pygls."""
        self._protocol.deliver(json.loads(body))

    def log(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """`window/logMessage`."""
        self._server.window_log_message(types.LogMessageParams(type=kind, message=message))

    def _accept_document_notifications(self) -> None:
        """Clients that take us for a language server tell of documents: accepted and ignored."""

        def ignore(*_: object) -> None:
            return None

        for name in _IGNORED:
            self._server.feature(name)(ignore)


_IGNORED = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.TEXT_DOCUMENT_DID_SAVE,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)

__all__ = ["LspSide", "encode_frame"]
