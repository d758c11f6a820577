"""A server at the other end of two pipes, spoken to with as little work as can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

YARDSTICKS = Path(__file__).with_name("yardsticks")
CREWLOG = [sys.executable, "-P", "-m", "crewlog.server"]


def yardstick(name: str) -> list[str]:
    return [sys.executable, "-P", str(YARDSTICKS / f"{name}.py")]


def frame(id: int, method: str, params: Mapping[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Pipes:
    """Starts `command`. Replies are counted by their frames and not decoded, so that the client is not what is measured."""

    def __init__(self, command: Sequence[str], options: Mapping[str, Any] | None = None, *, initialize: bool = True) -> None:
        self.process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._sink, self._source = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._buffer = bytearray()
        self._id = 0
        if initialize:
            self.initialize(options or {})

    def initialize(self, options: Mapping[str, Any]) -> None:
        params = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}
        self.ask("initialize", params)
        body = b'{"jsonrpc":"2.0","method":"initialized","params":{}}'
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def write(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            at += os.write(self._sink, data[at : at + (1 << 16)])

    def body(self) -> bytes:
        """The next message's body."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end >= 0:
                start = self._buffer.index(b"Content-Length: ", 0, end) + 16
                size = int(self._buffer[start:end].split(b"\r")[0])
                if len(self._buffer) >= end + 4 + size:
                    body = bytes(self._buffer[end + 4 : end + 4 + size])
                    del self._buffer[: end + 4 + size]
                    return body
            data = os.read(self._source, 1 << 18)
            if not data:
                raise RuntimeError(f"{self.process.args!r} ended with {self.process.wait()}")
            self._buffer += data

    def reply(self) -> bytes:
        """The next message that is no notification."""
        while True:
            body = self.body()
            if b'"method"' not in body[:300]:
                if b'"error"' in body[:60]:
                    raise RuntimeError(body.decode())
                return body

    def next_frame(self, method: str, params: Mapping[str, Any]) -> bytes:
        self._id += 1
        return frame(self._id, method, params)

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self.write(self.next_frame(method, params))
        return json.loads(self.reply())["result"]

    def latencies(self, method: str, params: Mapping[str, Any], count: int) -> list[float]:
        """Seconds of each of `count` round trips, one after another."""
        frames = [self.next_frame(method, params) for _ in range(count)]
        found = []
        for request in frames:
            start = time.perf_counter()
            self.write(request)
            self.reply()
            found.append(time.perf_counter() - start)
        return found

    def rate(self, method: str, params: Mapping[str, Any], count: int) -> float:
        """Requests per second when all are sent at once."""
        return self.rate_of(b"".join(self.next_frame(method, params) for _ in range(count)), count)

    def rate_of(self, requests: bytes, count: int) -> float:
        writer = threading.Thread(target=self.write, args=(requests,))
        start = time.perf_counter()
        writer.start()
        for _ in range(count):
            self.reply()
        took = time.perf_counter() - start
        writer.join()
        return count / took

    def memory(self) -> float:
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024.0

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
