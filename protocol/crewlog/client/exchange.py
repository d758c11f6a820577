"""The client's side of the conversation, without any I/O: requests become frames, bytes become answers and notifications."""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType

from crewlog.client.launch import Options
from crewlog.client.stored import Reader, json_value
from crewlog.protocol.envelope import Malformed, Message, decode_message, encode_error, encode_notification, encode_reply, encode_request
from crewlog.protocol.errors import METHOD_NOT_FOUND, ResponseError, from_wire
from crewlog.protocol.framing import Frame, FrameReader, encode_frame
from crewlog.protocol.results import Capabilities
from crewlog.protocol.wire_json import encode_json

logger = logging.getLogger("crewlog.client")

_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG, 5: logging.DEBUG}
_LOGGED = frozenset({"window/logMessage", "window/showMessage"})
_GRANTED = frozenset({"window/workDoneProgress/create", "client/registerCapability", "client/unregisterCapability"})
"""What a server may ask of any client; it is answered with null, and what follows from it is ignored."""


class Answer(msgspec.Struct):
    """The end of a request: its result, or the error to be raised."""

    id: int
    result: Raw = Raw(b"null")
    error: Exception | None = None


def result_of(answer: Answer) -> Raw:
    """Raises the answer's error."""
    if answer.error is not None:
        raise answer.error
    return answer.result


class Told(msgspec.Struct):
    """A notification of the server."""

    method: str
    params: Raw


class Reply(msgspec.Struct):
    """A frame to be sent at once, which answers a request of the server."""

    frame: bytes


Event = Answer | Told | Reply


class Server(msgspec.Struct):
    """Who answered `initialize`. `home` is the folder of the records, `project_id` names the project of the client's `cwd`."""

    name: str
    version: str
    protocol_version: int
    home: str
    project_id: str
    methods: list[str]
    notifications: list[str]


def given(params: Mapping[str, object]) -> dict[str, object]:
    """The params without those that are None, which stands for "left out" in the typed methods."""
    return {key: value for key, value in params.items() if value is not None}


class Exchange:
    """One connection. Not thread-safe but for `request`, `notification`."""

    def __init__(self) -> None:
        self._reader = FrameReader(limit=sys.maxsize)
        self._ids = itertools.count(1)

    def request(self, method: str, params: Mapping[str, object]) -> tuple[int, bytes]:
        """A request's id and its frame. Raises what `encode_json` raises."""
        id = next(self._ids)
        return id, encode_frame(encode_request(id, method, encode_json(params)))

    def initialize(self, options: Options) -> tuple[int, bytes]:
        return self.request("initialize", options.initialize_params())

    def notification(self, method: str, params: Mapping[str, object]) -> bytes:
        return encode_frame(encode_notification(method, encode_json(params)))

    def receive(self, data: bytes) -> Iterator[Event]:
        """What the bytes complete. Bytes that are no message are logged and passed over."""
        for event in self._reader.feed(data):
            if not isinstance(event, Frame):
                logger.warning("the server sent something that is no message: %s", event)
                continue
            try:
                message = decode_message(event.body)
            except Malformed as error:
                logger.warning("the server sent something that is no message: %s", error)
                continue
            found = _event_of(message)
            if isinstance(found, Told) and found.method in _LOGGED:
                _log(found.params)
            elif found is not None:
                yield found


def _event_of(message: Message) -> Event | None:
    if message.is_response:
        if not isinstance(message.id, int):
            logger.warning("the server could not read a message of ours: %s", _text(message.error))
            return None
        if isinstance(message.error, UnsetType):
            return Answer(message.id, Raw(b"null") if isinstance(message.result, UnsetType) else message.result)
        return Answer(message.id, error=_exception(message.error))
    params = Raw(b"{}") if isinstance(message.params, UnsetType) else message.params
    if message.id is UNSET or message.id is None:
        return Told(message.method, params)
    assert not isinstance(message.id, UnsetType)
    if message.method in _GRANTED:
        return Reply(encode_frame(encode_reply(message.id, b"null")))
    refusal = ResponseError(METHOD_NOT_FOUND, "methodNotFound", f"this client has no method {message.method!r}")
    return Reply(encode_frame(encode_error(message.id, refusal)))


class _WireError(msgspec.Struct):
    code: int = 0
    message: str = ""
    data: Raw | UnsetType = UNSET


class _LogMessage(msgspec.Struct):
    type: int = 3
    message: str = ""


_read_error = Reader(_WireError)
_read_log = Reader(_LogMessage)


def _exception(raw: Raw) -> Exception:
    try:
        error = _read_error(raw)
    except msgspec.ValidationError as wrong:
        return ResponseError(0, "unknown", f"the server sent an error that is none: {wrong}")
    data = {} if isinstance(error.data, UnsetType) else json_value(error.data)
    return from_wire(error.code, error.message, data if isinstance(data, dict) else {})


def _log(params: Raw) -> None:
    try:
        entry = _read_log(params)
    except msgspec.ValidationError:
        return
    logger.log(_LEVELS.get(entry.type, logging.INFO), "%s", entry.message)


def _text(raw: Raw | UnsetType) -> str:
    return "" if isinstance(raw, UnsetType) else bytes(raw)[:500].decode("utf-8", "replace")


class _Crewlog(msgspec.Struct):
    crewlog: Capabilities


class _Experimental(msgspec.Struct):
    experimental: _Crewlog


class _ServerInfo(msgspec.Struct):
    name: str
    version: str = ""


class _Initialized(msgspec.Struct, rename="camel"):
    capabilities: _Experimental
    server_info: _ServerInfo


_read_initialized = Reader(_Initialized)


def read_server(result: Raw) -> Server:
    """Raises `msgspec.ValidationError` for a server that is none of Crewlog's."""
    found = _read_initialized(result)
    about = found.capabilities.experimental.crewlog
    return Server(
        found.server_info.name,
        found.server_info.version,
        about.protocol_version,
        about.home,
        about.project_id,
        about.methods,
        about.notifications,
    )
