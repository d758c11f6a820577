"""One client's connection: bytes become messages, and each goes where it belongs in the state that the connection is in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from crewlog.protocol.envelope import Id, Malformed, Message, decode_message, decode_params, encode_error, encode_reply, encode_result
from crewlog.protocol.errors import INVALID_REQUEST, METHOD_NOT_FOUND, NOT_INITIALIZED, PARSE_ERROR, ResponseError, to_wire
from crewlog.protocol.framing import Damage, Event, Frame, FrameReader, Oversized
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, PROTOCOL_VERSION, Method
from crewlog.protocol.params import Subscribe
from crewlog.server.lifecycle import Options, Wishes, read_initialize
from crewlog.server.lsp import LspSide, is_for_lsp
from crewlog.server.outbox import Outbox
from crewlog.server.subscriptions import check_subscribe
from crewlog.server.version import VERSION
from crewlog.storage.errors import StorageError, TooLarge
from crewlog.storage.home import resolve_project_folder
from crewlog.storage.locks import name_client
from crewlog.storage.names import project_id

if TYPE_CHECKING:
    from crewlog.server.service import Service

_PATIENCE = 0.1
"""Seconds after which a client that does not say `initialized` is taken to be ready."""
MOST_OPEN_BYTES = 512 << 20
"""Bytes of requests not answered yet beyond which no more are read."""

logger = logging.getLogger(__name__)


class State(Enum):
    NEW = "new"
    READY = "ready"
    SHUT_DOWN = "shut down"
    OVER = "over"


class _Cancel(msgspec.Struct):
    id: Id


class Connection:
    """Fed with bytes on the loop's thread. `over` is called once, with the exit code, when the client is done with us.

    `served_process` is told the number of the process that we serve; `full` and `room` when to stop reading, and when to go on.
    """

    def __init__(
        self,
        sink: int,
        options: Options,
        *,
        over: Callable[[int], None],
        served_process: Callable[[int], None],
        full: Callable[[], None],
        room: Callable[[], None],
    ) -> None:
        self._options = options
        self._over = over
        self._served_process = served_process
        self._full = full
        self._room = room
        self._reader = FrameReader(options.max_message_bytes)
        self._events: deque[Event] = deque()
        self._outbox = Outbox(sink, self._on_room, lambda: self._be_over(1))
        self._state = State.NEW
        self._paused = False
        self._service: Service | None = None
        self._lsp = LspSide(self._outbox.send)

    def feed(self, data: bytes) -> None:
        """Serves what `data` completes; the answers are written together."""
        self._events.extend(self._reader.feed(data))
        self._serve_events()

    def is_shut_down(self) -> bool:
        return self._state is State.SHUT_DOWN

    async def end(self, *, client_is_there: bool) -> None:
        """Finishes what was begun; what is asked of a client that is gone is dropped."""
        if self._service is not None:
            if not client_is_there:
                self._service.abandon()
            await self._service.end()
        await self._outbox.drained(2 if client_is_there else 0)
        self._outbox.close()

    def _serve_events(self) -> None:
        while True:
            self._outbox.held = True
            while self._events and not self._is_full() and self._state is not State.OVER:
                event = self._events.popleft()
                if isinstance(event, Frame):
                    self._on_body(event.body)
                else:
                    self._on_damage(event)
            self._outbox.held = False
            if self._service is not None:
                self._service.turn_over()
            else:
                self._outbox.flush()
            if self._is_full():
                self._paused = True
                self._full()
                return
            if not self._events or self._state is State.OVER:
                return

    def _is_full(self) -> bool:
        return self._outbox.full or (self._service is not None and self._service.open_bytes > MOST_OPEN_BYTES)

    def _on_room(self) -> None:
        """The client has taken what it was owed."""
        if self._service is not None:
            self._service.release()
        self._paused = False
        self._serve_events()
        if not self._paused:
            self._room()

    def _on_progress(self) -> None:
        """Requests have been answered."""
        if self._paused and not self._is_full():
            self._on_room()

    def _on_damage(self, event: Damage | Oversized) -> None:
        if isinstance(event, Oversized):
            self._refuse(None, to_wire(TooLarge(self._reader.limit)))
        else:
            self._refuse(None, Malformed(PARSE_ERROR, f"{event.reason}; the bytes up to the next Content-Length were passed over"))

    def _on_body(self, body: bytes) -> None:
        try:
            message = decode_message(body)
        except Malformed as error:
            self._refuse(error.id, error)
            return
        if message.is_response:
            self._lsp.deliver(body)
            return
        id = None if isinstance(message.id, UnsetType) else message.id
        if message.method == "exit":
            self._be_over(0 if self._state is State.SHUT_DOWN else 1)
        elif self._state is State.READY:
            self._on_message(id, message, body)
        elif self._state is State.NEW and message.method == "initialize" and id is not None:
            self._initialize(id, message, body)
        elif id is not None and self._state is State.NEW:
            self._refuse(id, ResponseError(NOT_INITIALIZED, "serverNotInitialized", "send initialize first"))
        elif id is not None:
            self._refuse(id, ResponseError(INVALID_REQUEST, "invalidRequest", "the server was shut down; only exit may follow"))

    def _on_message(self, id: Id | None, message: Message, body: bytes) -> None:
        service = self._service
        assert service is not None
        method = METHODS.get(message.method)
        if id is not None and service.is_open(id):
            self._refuse(id, ResponseError(INVALID_REQUEST, "invalidRequest", "a request of this id is not answered yet"))
        elif method is not None:
            self._on_own(service, id, method, message, len(body))
        elif id is None:
            self._on_notification(service, message, body)
        elif message.method == "shutdown":
            self._state = State.SHUT_DOWN
            service.stop_waiting()
            self._outbox.send(encode_reply(id, b"null"))
        elif message.method == "initialize":
            self._refuse(id, ResponseError(INVALID_REQUEST, "invalidRequest", "initialize was sent before; it is sent once"))
        else:
            told = f"there is no method {message.method[:200]!r}"
            self._refuse(id, ResponseError(METHOD_NOT_FOUND, "methodNotFound", told, method=message.method[:200]))

    def _on_own(self, service: Service, id: Id | None, method: Method, message: Message, size: int) -> None:
        try:
            params = decode_params(message.params, _decoder_of(method.name), method.params)
        except ResponseError as error:
            if id is not None:
                self._refuse(id, error)
            return
        service.request(id, method, params, size)

    def _on_notification(self, service: Service, message: Message, body: bytes) -> None:
        if message.method == "$/cancelRequest":
            try:
                cancel = decode_params(message.params, msgspec.json.Decoder(_Cancel), _Cancel)
            except ResponseError:
                return  # nobody waits for an answer to a notification
            assert isinstance(cancel, _Cancel)
            service.cancel(cancel.id)
        elif message.method == "initialized":
            service.begin()
        elif is_for_lsp(message.method):
            self._lsp.deliver(body)

    def _initialize(self, id: Id, message: Message, body: bytes) -> None:
        try:
            wishes = read_initialize(message.params, self._options)
            if isinstance(wishes.subscribe, Subscribe):
                check_subscribe(wishes.subscribe)
        except (ResponseError, StorageError) as error:
            self._refuse(id, to_wire(error))
            return
        told = {
            "protocolVersion": PROTOCOL_VERSION,
            "home": wishes.home,
            "projectId": project_id(resolve_project_folder(wishes.cwd)),
            "methods": list(METHODS),
            "notifications": list(NOTIFICATIONS),
        }
        capabilities = {"positionEncoding": "utf-16", "textDocumentSync": 0, "experimental": {"crewlog": told}}
        result = {"capabilities": capabilities, "serverInfo": {"name": "crewlog", "version": VERSION}}
        since = time.time_ns()
        self._outbox.send(encode_reply(id, encode_result(result)))
        self._outbox.flush()
        self._lsp.remember(body)
        self._begin_service(wishes, since)

    def _begin_service(self, wishes: Wishes, since: int) -> None:
        """After the reply: the stores are imported while the client reads it. From then on (`since`) it expects to hear of changes."""
        from crewlog.server.service import Service
        from crewlog.server.workspace import import_stores

        import_stores()
        self._service = Service(wishes, self._outbox, self._lsp.warn, self._on_progress, since)
        self._state = State.READY
        name_client(wishes.client)
        asyncio.get_running_loop().call_later(_PATIENCE, self._service.begin)
        if wishes.process_id is not None:
            self._served_process(wishes.process_id)

    def _refuse(self, id: Id | None, error: ResponseError | None) -> None:
        assert error is not None
        self._outbox.send(encode_error(id, error))

    def _be_over(self, code: int) -> None:
        if self._state is not State.OVER:
            self._state = State.OVER
            self._over(code)


@cache
def _decoder_of(name: str) -> msgspec.json.Decoder[msgspec.Struct]:
    return msgspec.json.Decoder(METHODS[name].params)
