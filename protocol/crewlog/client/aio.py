"""The asyncio client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar, cast

import msgspec
from msgspec import Raw

from crewlog.client import launch
from crewlog.client._async_api import Methods
from crewlog.client.backlog import Backlog, Change, Kind, read_change
from crewlog.client.errors import ConnectionLost, NotStarted, RequestTimeout
from crewlog.client.exchange import Answer, Exchange, Reply, Server, Told, given, read_server, result_of
from crewlog.client.launch import Durability, ErrorStream, Options
from crewlog.client.results import RosterDidChange, TaskDidChange
from crewlog.client.undo import undo
from crewlog.protocol.errors import CANCELLED, ResponseError
from crewlog.protocol.params import Subscribe
from crewlog.protocol.results import PlanDidChange, SessionDidChange

T = TypeVar("T")
C = TypeVar("C", TaskDidChange, RosterDidChange, PlanDidChange, SessionDidChange)

logger = logging.getLogger("crewlog.client")

_WITHDRAW_TIMEOUT = 5.0
"""Seconds for which the answer to a withdrawn request is waited for."""


class AsyncNotifications:
    """Changes as they come: `async for`, or `get` one. Iteration ends when the stream or the client is closed, or the server is gone.

    When more than 1,000 wait, those of one list, team, plan or session are merged into one that tells the same.
    """

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self._kinds = kinds
        self._backlog = Backlog()
        self._changed = asyncio.Event()
        self._closed = False

    async def get(self) -> Change | None:
        """The next change; None when the stream is closed and read to its end."""
        while not self._backlog and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        return self._backlog.take()

    async def __aiter__(self) -> AsyncIterator[Change]:
        while (change := await self.get()) is not None:
            yield change

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    @property
    def closed(self) -> bool:
        return self._closed

    def __enter__(self) -> AsyncNotifications:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, change: Change) -> None:
        if not self._closed and (not self._kinds or isinstance(change, self._kinds)):
            self._backlog.add(change)
            self._changed.set()


class AsyncClient(Methods):
    """A server of one's own, and the methods of the protocol: `await client.task.claim_next("list", owner="me")`.

    The options and the errors are those of `crewlog.client.Client`. A client belongs to the event loop that started it. Cancelling a
    task that waits for an answer withdraws the request and waits until that is settled: what had not begun has no effect, and a task
    that `claim_next` took in the same moment is given back. The other effects of a request that was withdrawn too late stay.
    """

    def __init__(
        self,
        *,
        home: str | os.PathLike[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        durability: Durability | None = None,
        subscribe: Subscribe | bool | None = None,
        name: str = "crewlog-python",
        command: Sequence[str] | None = None,
        stderr: ErrorStream = None,
    ) -> None:
        super().__init__(self._ask)
        self._options = Options(home=home, cwd=cwd, durability=durability, subscribe=subscribe, name=name, command=command, stderr=stderr)
        self._exchange = Exchange()
        self._calls: dict[int, asyncio.Future[Answer]] = {}
        self._connection: _Connection | None = None
        self._lost: ConnectionLost | None = None
        self._streams: list[AsyncNotifications] = []
        self._callbacks: list[tuple[type[Change], Callable[[Change], object]]] = []
        self._server: Server | None = None
        self._settling: set[asyncio.Task[Answer | None]] = set()
        self._closing = False

    # --- life ---

    async def start(self) -> AsyncClient:
        """Starts the server and waits until it is ready. Raises `ConnectionLost` when it does not come up."""
        if self._connection is not None:
            raise NotStarted("this client was started before; make a new one")
        connection = self._connection = _Connection(self._take, self._lose)
        try:
            await connection.open(self._options)
            self._server = await self._initialize()
        except BaseException:
            await connection.close(patience=1.0)
            raise
        return self

    async def close(self) -> None:
        """Ends the server; kills it when it does not end by itself. Requests on their way end with `ConnectionLost`. May be repeated."""
        if self._connection is None:
            return
        self._closing = True
        if self._server is not None and self._lost is None:
            with contextlib.suppress(ConnectionLost, RequestTimeout):
                await self._carry_out("shutdown", {}, launch.END_TIMEOUT)
                self._send(self._exchange.notification("exit", {}))
        await self._connection.close(patience=launch.END_TIMEOUT)

    async def __aenter__(self) -> AsyncClient:
        return self if self._connection is not None else await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def server(self) -> Server:
        """Who answers: version, home, project, methods."""
        if self._server is None:
            raise NotStarted("this client has no server: await start(), or use it in an async with statement")
        return self._server

    @property
    def pid(self) -> int:
        """The server's process."""
        if self._connection is None or self._connection.pid is None:
            raise NotStarted("this client has no server: await start(), or use it in an async with statement")
        return self._connection.pid

    # --- changes ---

    def notifications(self, *kinds: Kind) -> AsyncNotifications:
        """Changes from now on, of these classes; of all when none is named."""
        stream = AsyncNotifications(kinds)
        self._streams = [open for open in self._streams if not open.closed]
        if self._lost is None:
            self._streams.append(stream)
        else:
            stream.close()
        return stream

    def on(self, kind: type[C], call: Callable[[C], object]) -> Callable[[], None]:
        """Calls `call` with each change of a class, on the event loop. What it gives back ends that."""
        entry = (kind, cast("Callable[[Change], object]", call))
        self._callbacks.append(entry)

        def end() -> None:
            if entry in self._callbacks:
                self._callbacks.remove(entry)

        return end

    # --- requests ---

    async def request(self, method: str, params: Mapping[str, object] | None = None, *, timeout: float | None = None) -> Raw:
        """Any method by its name on the wire, for what has no method here. The result as raw JSON."""
        return await self._carry_out(method, params or {}, timeout)

    async def _ask(self, method: str, params: Mapping[str, object], read: Callable[[Raw], T], timeout: float | None) -> T:
        return read(await self._carry_out(method, given(params), timeout))

    async def _carry_out(self, method: str, params: Mapping[str, object], timeout: float | None) -> Raw:
        connection = self._check()
        id, frame = self._exchange.request(method, params)
        future = self._expect(id)
        self._send(frame)
        try:
            if timeout is None:
                await connection.room()
                answer = await future
            else:
                await asyncio.wait({future}, timeout=timeout)
                answer = future.result() if future.done() else await self._withdraw_late(id, method, timeout)
        except asyncio.CancelledError:
            await asyncio.shield(self._settle(id, future, method, params))
            raise
        return result_of(answer)

    async def _withdraw_late(self, id: int, method: str, timeout: float) -> Answer:
        answer = await self._withdraw(id)
        if answer is None or _was_cancelled(answer):
            raise RequestTimeout(method, timeout, withdrawn=answer is not None)
        return answer

    async def _withdraw(self, id: int) -> Answer | None:
        """Cancels the request and waits for its end; None when that does not come."""
        future = self._expect(id)
        self._send(self._exchange.notification("$/cancelRequest", {"id": id}))
        await asyncio.wait({future}, timeout=_WITHDRAW_TIMEOUT)
        self._calls.pop(id, None)
        return future.result() if future.done() else None

    def _settle(self, id: int, future: asyncio.Future[Answer], method: str, params: Mapping[str, object]) -> asyncio.Task[Answer | None]:
        """Brings a cancelled request to its end, whatever becomes of the task that asked."""

        async def settle() -> Answer | None:
            done = future.done() and not future.cancelled()
            answer = future.result() if done else await self._withdraw(id)
            if answer is not None and answer.error is None:
                release = undo(method, params, answer.result)
                if release is not None:
                    self._send(self._exchange.request(release.method, release.params)[1])
            return answer

        task = asyncio.ensure_future(settle())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    def _expect(self, id: int) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self._lost is None:
            self._calls[id] = future
        else:
            future.set_result(Answer(id, error=self._lost))
        return future

    def _send(self, frame: bytes) -> None:
        if self._connection is not None:
            self._connection.send(frame)

    def _check(self) -> _Connection:
        if self._connection is None or self._server is None:
            raise NotStarted("this client has no server: await start(), or use it in an async with statement")
        return self._connection

    async def _initialize(self) -> Server:
        id, frame = self._exchange.initialize(self._options)
        future = self._expect(id)
        self._send(frame)
        await asyncio.wait({future}, timeout=launch.START_TIMEOUT)
        if not future.done():
            raise ConnectionLost(f"the server did not answer within {launch.START_TIMEOUT:g} s")
        try:
            server = read_server(result_of(future.result()))
        except msgspec.ValidationError as error:
            raise ConnectionLost(f"what was started is no Crewlog server: {error}") from error
        self._send(self._exchange.notification("initialized", {}))
        return server

    # --- what the server sends ---

    def _take(self, data: bytes) -> None:
        for event in self._exchange.receive(data):
            if isinstance(event, Answer):
                future = self._calls.pop(event.id, None)
                if future is not None and not future.done():
                    future.set_result(event)
            elif isinstance(event, Reply):
                self._send(event.frame)
            else:
                self._tell(event)

    def _tell(self, told: Told) -> None:
        if not self._streams and not self._callbacks:
            return
        try:
            change = read_change(told.method, told.params)
        except msgspec.ValidationError as error:
            logger.warning("%s is not understood: %s", told.method, error)
            return
        if change is None:
            return
        for stream in self._streams:
            stream._add(change)
        for kind, call in list(self._callbacks):
            if isinstance(change, kind):
                try:
                    call(change)
                except Exception:
                    logger.exception("a callback for %s failed", kind.__name__)

    def _lose(self, exit_code: int | None) -> None:
        self._lost = ConnectionLost("this client was closed" if self._closing else "the server ended unexpectedly", exit_code)
        calls, self._calls = self._calls, {}
        for id, future in calls.items():
            if not future.done():
                future.set_result(Answer(id, error=self._lost))
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.close()


class _Connection(asyncio.SubprocessProtocol):
    """The server's process and its pipes. `lost` is called once, when its output has ended and it is gone."""

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[int | None], None]) -> None:
        self._take = take
        self._lost = lost
        self._transport: asyncio.SubprocessTransport | None = None
        self._input: asyncio.WriteTransport | None = None
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._gone = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return None if self._transport is None else self._transport.get_pid()

    async def open(self, options: Options) -> None:
        """Raises `ConnectionLost` when there is no such program."""
        command = list(options.command or launch.server_command())
        stderr = launch.open_error_stream(options.stderr)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *command,
                stderr=stderr,
                start_new_session=launch.OWN_SESSION,
                creationflags=launch.CREATION_FLAGS,
            )
        except OSError as error:
            self._gone.set()
            raise launch.not_startable(command, error) from error
        finally:
            if isinstance(stderr, int) and stderr is not options.stderr:
                os.close(stderr)

    def send(self, frame: bytes) -> None:
        if self._input is not None and not self._input.is_closing():
            self._input.write(frame)

    async def room(self) -> None:
        """Waits while the server's pipe is full."""
        if not self._has_room.is_set():
            await self._has_room.wait()

    async def close(self, *, patience: float) -> None:
        """Ends the input, waits for the server to end, kills it when it does not. `patience` in seconds."""
        if self._input is not None:
            self._input.close()
        if self._transport is None:
            return
        for stop in (None, self._transport.terminate, self._transport.kill):
            if stop is not None:
                with contextlib.suppress(ProcessLookupError):
                    stop()
            try:
                await asyncio.wait_for(self._gone.wait(), patience if stop is None else 1.0)
                break
            except asyncio.TimeoutError:
                continue
        self._transport.close()

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._input = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._take(data)

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    def pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
        self._has_room.set()
        if fd == 1 and self._transport is not None and not self._gone.is_set():
            asyncio.get_running_loop().call_later(launch.END_TIMEOUT, self._end)

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if not self._gone.is_set():
            self._gone.set()
            self._has_room.set()
            self._lost(None if self._transport is None else self._transport.get_returncode())


def _was_cancelled(answer: Answer) -> bool:
    return isinstance(answer.error, ResponseError) and answer.error.code == CANCELLED
