"""A client of the wire made of the standard library alone: the server is tested against the protocol and not against itself."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TIMEOUT = 30.0
"""Seconds after which something that must come is missed: generous, as CI machines are slow."""

COMMAND = [sys.executable, "-P", "-m", "crewlog.server"]


class RpcError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        self.code: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}
        self.kind: str = self.data.get("kind", "")
        self.message: str = error["message"]
        super().__init__(f"{self.code} {self.kind}: {self.message}")


def frame(body: bytes | object) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(raw), raw)


class RawClient:
    """One server process. `options` are the initializationOptions; with None the server is not initialized."""

    def __init__(
        self,
        home: Path | None,
        options: dict[str, Any] | None = None,
        *,
        initialize: bool = True,
        arguments: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        command: list[str] | None = None,
        read: bool = True,
        **initialize_params: Any,
    ) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "CREWLOG_HOME"}
        self.process = subprocess.Popen(
            [*(command or COMMAND), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, **(env or {})},
            cwd=cwd,
        )
        self._condition = threading.Condition()
        self._write_lock = threading.Lock()
        self._next = 0
        self._replies: dict[Any, list[dict[str, Any]]] = {}
        self.messages: list[dict[str, Any]] = []
        """All that came and is no reply, in order."""
        self.garbage = b""
        """What came and was no frame."""
        self.ended = False
        self.stderr = b""
        self._threads = [threading.Thread(target=self._read_stderr, daemon=True)]
        if read:
            self._threads.append(threading.Thread(target=self._read, daemon=True))
        for thread in self._threads:
            thread.start()
        if initialize:
            given = {"home": str(home)} if home is not None else {}
            self.initialized = self.request(
                "initialize",
                {"processId": os.getpid(), "capabilities": {}, "initializationOptions": {**given, **(options or {})}, **initialize_params},
            )
            self.notify("initialized", {})

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with self._write_lock:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.send_raw(frame(message))

    def start(self, method: str, params: object = None, *, id: Any = None) -> Any:
        """Sends a request; `wait` gives its reply."""
        with self._write_lock:
            self._next += 1
            chosen = self._next if id is None else id
        message = {"jsonrpc": "2.0", "id": chosen, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return chosen

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def wait_reply(self, id: Any, timeout: float = TIMEOUT) -> dict[str, Any]:
        """The whole reply, with result or error."""
        deadline = time.monotonic() + timeout
        with self._condition:
            while not self._replies.get(id):
                left = deadline - time.monotonic()
                if left <= 0 or (self.ended and not self._replies.get(id)):
                    raise AssertionError(f"no reply to {id!r}; ended: {self.ended}; stderr: {self.stderr[-2000:]!r}")
                self._condition.wait(left)
            return self._replies[id].pop(0)

    def wait(self, id: Any, timeout: float = TIMEOUT) -> Any:
        """The result. Raises `RpcError`."""
        reply = self.wait_reply(id, timeout)
        if "error" in reply:
            raise RpcError(reply["error"])
        return reply["result"]

    def request(self, method: str, params: object = None, timeout: float = TIMEOUT) -> Any:
        return self.wait(self.start(method, params), timeout)

    def cancel(self, id: Any) -> None:
        self.notify("$/cancelRequest", {"id": id})

    def has_reply(self, id: Any) -> bool:
        with self._condition:
            return bool(self._replies.get(id))

    def notifications(self, method: str) -> list[dict[str, Any]]:
        """The params of all notifications of that method so far."""
        with self._condition:
            return [message.get("params") or {} for message in self.messages if message.get("method") == method]

    def wait_until(self, holds: Callable[[], bool], timeout: float = TIMEOUT) -> None:
        """Waits until `holds()`, which is asked after each message."""
        deadline = time.monotonic() + timeout
        while not holds():
            left = deadline - time.monotonic()
            assert left > 0, f"it did not become true; last messages: {self.messages[-5:]}; stderr: {self.stderr[-2000:]!r}"
            with self._condition:
                self._condition.wait(min(left, 0.2))

    def wait_notification(self, method: str, wanted: Callable[[dict[str, Any]], bool] = lambda _: True, timeout: float = TIMEOUT) -> Any:
        """The params of the first notification of that method for which `wanted` holds."""
        self.wait_until(lambda: any(wanted(params) for params in self.notifications(method)), timeout)
        return next(params for params in self.notifications(method) if wanted(params))

    def ping(self) -> None:
        """Returns when the server has dealt with all that was sent before."""
        self.request("plan/path", {"name": "ping"})

    def close(self) -> int:
        """Shuts the server down as the protocol says; its exit code."""
        with contextlib.suppress(BrokenPipeError, AssertionError):
            self.request("shutdown")
            self.notify("exit")
        return self.end()

    def end(self, timeout: float = TIMEOUT) -> int:
        """Closes the server's input and waits for its end."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.wait_exit(timeout)

    def wait_exit(self, timeout: float = TIMEOUT) -> int:
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end; stderr: {self.stderr[-2000:]!r}") from None
        for thread in self._threads:
            thread.join(5)
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line

    def _read(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        while True:
            line = stream.readline()
            if not line:
                break
            if not line.startswith(b"Content-Length: "):
                self.garbage += line
                continue
            length = int(line[16:])
            blank = stream.readline()
            if blank != b"\r\n":
                self.garbage += blank
            body = stream.read(length)
            if len(body) < length:
                self.garbage += body
                break
            self._take(json.loads(body))
        with self._condition:
            self.ended = True
            self._condition.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        with self._condition:
            if "method" in message or "id" not in message:
                self.messages.append(message)
            else:
                self._replies.setdefault(message["id"], []).append(message)
            self._condition.notify_all()


@contextlib.contextmanager
def serving(home: Path, options: dict[str, Any] | None = None, **more: Any) -> Iterator[RawClient]:
    """A server for the time of the block, which must end cleanly afterwards and have sent nothing but frames."""
    client = RawClient(home, {"durability": "process", **(options or {})}, **more)
    try:
        yield client
    except BaseException:
        client.kill()
        raise
    code = client.close()
    assert client.garbage == b""
    assert code == 0, client.stderr.decode()


@contextlib.contextmanager
def held(lock: Path) -> Iterator[None]:
    """Another process's lock on a resource, as far as the system is concerned."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)
