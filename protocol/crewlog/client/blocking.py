"""The blocking client: for scripts and agents with threads. Many threads may use one client at once."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TypeVar, cast

import msgspec
from msgspec import Raw

from crewlog.client import launch
from crewlog.client._blocking_api import Methods
from crewlog.client.backlog import Backlog, Change, Kind, read_change
from crewlog.client.calls import Calls, Waiter
from crewlog.client.errors import ConnectionLost, NotStarted, RequestTimeout
from crewlog.client.exchange import Answer, Exchange, Reply, Server, Told, given, read_server, result_of
from crewlog.client.launch import Durability, ErrorStream, Options
from crewlog.client.outbound import Outbound
from crewlog.client.results import RosterDidChange, TaskDidChange
from crewlog.client.undo import undo
from crewlog.protocol.errors import CANCELLED, ResponseError
from crewlog.protocol.params import Subscribe
from crewlog.protocol.results import PlanDidChange, SessionDidChange

T = TypeVar("T")
C = TypeVar("C", TaskDidChange, RosterDidChange, PlanDidChange, SessionDidChange)

logger = logging.getLogger("crewlog.client")

_READ_SIZE = 1 << 18
_WITHDRAW_TIMEOUT = 5.0
"""Seconds for which the answer to a withdrawn request is waited for."""


class Notifications:
    """Changes as they come: iterate, or `get` one. Iteration ends when the stream or the client is closed, or the server is gone.

    When more than 1,000 wait, those of one list, team, plan or session are merged into one that tells the same.
    """

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self._kinds = kinds
        self._backlog = Backlog()
        self._changed = threading.Condition()
        self._closed = False

    def get(self, timeout: float | None = None) -> Change | None:
        """The next change; None when none came within `timeout` seconds, and when the stream is closed and read to its end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._backlog) > 0, timeout)
            return self._backlog.take()

    def __iter__(self) -> Iterator[Change]:
        while (change := self.get()) is not None:
            yield change

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def __enter__(self) -> Notifications:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, change: Change) -> None:
        if self._kinds and not isinstance(change, self._kinds):
            return
        with self._changed:
            if not self._closed:
                self._backlog.add(change)
                self._changed.notify()


class Client(Methods):
    """A server of one's own, and the methods of the protocol: `client.task.claim_next("list", owner="me")`.

    `home`: the folder of the records (default: $CREWLOG_HOME, else ~/.codebot). `cwd`: the folder that names the project (default: the
    process's). `durability`: "power" (default: on the device before the reply) or "process" (handed to the kernel). `subscribe`: what
    to be told of (default: the project of `cwd`; False for nothing). `name`: how the server calls this client to others, for example
    as the holder of a lock. `command`: how to start the server (default: this Python). `stderr`: where the server's log goes: a path, a
    descriptor, `subprocess.DEVNULL`; by default to this process's error stream.

    The server is started by `start` or by `with`, and ended by `close` or at the end of `with`. Errors are those of
    `crewlog.storage.errors`, with their fields; `ResponseError` for what has no class of its own; `ConnectionLost` when the server is gone.
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
        self._calls = Calls()
        self._process: subprocess.Popen[bytes] | None = None
        self._outbound: Outbound | None = None
        self._reader: threading.Thread | None = None
        self._owner = os.getpid()
        self._streams: list[Notifications] = []
        self._streams_lock = threading.Lock()
        self._closing = False
        self._server: Server | None = None

    # --- life ---

    def start(self) -> Client:
        """Starts the server and waits until it is ready. Raises `ConnectionLost` when it does not come up."""
        if self._process is not None:
            raise NotStarted("this client was started before; make a new one")
        self._owner = os.getpid()
        command = list(self._options.command or launch.server_command())
        stderr = launch.open_error_stream(self._options.stderr)
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=launch.OWN_SESSION,
                creationflags=launch.CREATION_FLAGS,
            )
        except OSError as error:
            raise launch.not_startable(command, error) from error
        finally:
            if isinstance(stderr, int) and stderr is not self._options.stderr:
                os.close(stderr)
        assert self._process.stdin is not None
        self._outbound = Outbound(os.dup(self._process.stdin.fileno()))
        self._process.stdin.close()
        self._reader = threading.Thread(target=self._read, name="crewlog-client-read", daemon=True)
        self._reader.start()
        try:
            self._server = self._initialize()
        except BaseException:
            self._end_process(polite=False)
            raise
        return self

    def close(self) -> None:
        """Ends the server; kills it when it does not end by itself. Requests on their way end with `ConnectionLost`. May be repeated."""
        if self._process is not None and self._owner == os.getpid():
            self._closing = True
            self._end_process(polite=self._server is not None)

    def __enter__(self) -> Client:
        return self if self._process is not None else self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def server(self) -> Server:
        """Who answers: version, home, project, methods."""
        if self._server is None:
            raise NotStarted("this client has no server: call start(), or use it in a with statement")
        return self._server

    @property
    def pid(self) -> int:
        """The server's process."""
        if self._process is None:
            raise NotStarted("this client has no server: call start(), or use it in a with statement")
        return self._process.pid

    # --- changes ---

    def notifications(self, *kinds: Kind) -> Notifications:
        """Changes from now on, of these classes; of all when none is named."""
        stream = Notifications(kinds)
        with self._streams_lock:
            self._streams = [open for open in self._streams if not open.closed]
            if self._calls.lost is None:
                self._streams.append(stream)
            else:
                stream.close()
        return stream

    def on(self, kind: type[C], call: Callable[[C], object]) -> Callable[[], None]:
        """Calls `call` with each change of a class, in a thread of its own, in order. What it gives back ends that."""
        stream = self.notifications(kind)

        def run() -> None:
            for change in stream:
                try:
                    call(cast("C", change))
                except Exception:
                    logger.exception("a callback for %s failed", kind.__name__)

        threading.Thread(target=run, name=f"crewlog-client-{kind.__name__}", daemon=True).start()
        return stream.close

    # --- requests ---

    def request(self, method: str, params: Mapping[str, object] | None = None, *, timeout: float | None = None) -> Raw:
        """Any method by its name on the wire, for what has no method here. The result as raw JSON."""
        return self._carry_out(method, params or {}, timeout)

    def _ask(self, method: str, params: Mapping[str, object], read: Callable[[Raw], T], timeout: float | None) -> T:
        return read(self._carry_out(method, given(params), timeout))

    def _carry_out(self, method: str, params: Mapping[str, object], timeout: float | None) -> Raw:
        self._check()
        id, frame = self._exchange.request(method, params)
        waiter = self._calls.add(id, method)
        self._send(frame)
        try:
            answer = waiter.wait(timeout)
        except BaseException:  # the keyboard's interrupt, most of all: nothing must be claimed behind the caller's back
            self._withdraw(id, waiter, params)
            raise
        if answer is None:
            answer = self._withdraw(id, waiter, params, keep=True)
            if answer is None or _was_cancelled(answer):
                raise RequestTimeout(method, timeout or 0, withdrawn=answer is not None)
        return result_of(answer)

    def _withdraw(self, id: int, waiter: Waiter, params: Mapping[str, object], *, keep: bool = False) -> Answer | None:
        """Cancels the request and waits for its end. A result that came all the same is kept, or undone where it would bind somebody."""
        self._send(self._exchange.notification("$/cancelRequest", {"id": id}))
        answer = waiter.wait(_WITHDRAW_TIMEOUT)
        if answer is None:
            self._calls.forget(id)
        elif not keep and answer.error is None:
            release = undo(waiter.method, params, answer.result)
            if release is not None:
                self._send(self._exchange.request(release.method, release.params)[1])
        return answer

    def _send(self, frame: bytes) -> None:
        if self._outbound is not None:
            self._outbound.send(frame)

    def _check(self) -> None:
        if self._owner != os.getpid():
            raise NotStarted("a client cannot be used in a forked child: make a new one there")
        if self._server is None:
            raise NotStarted("this client has no server: call start(), or use it in a with statement")

    def _initialize(self) -> Server:
        id, frame = self._exchange.initialize(self._options)
        waiter = self._calls.add(id, "initialize")
        self._send(frame)
        answer = waiter.wait(launch.START_TIMEOUT)
        if answer is None:
            raise ConnectionLost(f"the server did not answer within {launch.START_TIMEOUT:g} s")
        try:
            server = read_server(result_of(answer))
        except msgspec.ValidationError as error:
            raise ConnectionLost(f"what was started is no Crewlog server: {error}") from error
        self._send(self._exchange.notification("initialized", {}))
        return server

    # --- the reading thread ---

    def _read(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        reason = "the server ended unexpectedly"
        try:
            while data := os.read(process.stdout.fileno(), _READ_SIZE):
                self._take(data)
        except Exception as error:
            logger.exception("reading from the server failed")
            reason = f"reading from the server failed: {error}"
        finally:
            self._lose(reason)

    def _take(self, data: bytes) -> None:
        for event in self._exchange.receive(data):
            if isinstance(event, Answer):
                self._calls.end(event)
            elif isinstance(event, Reply):
                self._send(event.frame)
            else:
                self._tell(event)

    def _tell(self, told: Told) -> None:
        with self._streams_lock:
            streams = list(self._streams)
        if not streams:
            return
        try:
            change = read_change(told.method, told.params)
        except msgspec.ValidationError as error:
            logger.warning("%s is not understood: %s", told.method, error)
            return
        if change is not None:
            for stream in streams:
                stream._add(change)

    def _lose(self, reason: str) -> None:
        assert self._process is not None
        code = None
        try:
            code = self._process.wait(launch.END_TIMEOUT)
        except subprocess.TimeoutExpired:
            reason = "the server closed its output"
        self._calls.end_all(ConnectionLost("this client was closed" if self._closing else reason, code))
        with self._streams_lock:
            streams, self._streams = self._streams, []
        for stream in streams:
            stream.close()

    def _end_process(self, *, polite: bool) -> None:
        process, outbound = self._process, self._outbound
        assert process is not None
        assert outbound is not None
        if polite and self._calls.lost is None:
            self._say_goodbye()
        outbound.close()
        if not _ended(process, launch.END_TIMEOUT if polite else 1.0):
            process.terminate()
            if not _ended(process, 1.0):
                process.kill()
                process.wait()
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join(launch.END_TIMEOUT)
        if process.stdout is not None and (self._reader is None or not self._reader.is_alive()):
            process.stdout.close()

    def _say_goodbye(self) -> None:
        id, frame = self._exchange.request("shutdown", {})
        try:
            waiter = self._calls.add(id, "shutdown")
        except ConnectionLost:
            return
        self._send(frame)
        if waiter.wait(launch.END_TIMEOUT) is not None:
            self._send(self._exchange.notification("exit", {}))


def _ended(process: subprocess.Popen[bytes], timeout: float) -> bool:
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


def _was_cancelled(answer: Answer) -> bool:
    return isinstance(answer.error, ResponseError) and answer.error.code == CANCELLED
