"""Tells the client how far a request is: `$/progress`, as the Language Server Protocol has it, under the token that the request brought."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

PATIENCE = 0.25
"""Seconds after which a request takes long."""
_EVERY = 0.1

Token = int | str


class Progress:
    """Of one request. `report` may be called from any thread; the rest on the loop's. `post` brings a call there."""

    def __init__(self, token: Token, title: str, send: Callable[[bytes], None], post: Callable[[Callable[[], None]], None]) -> None:
        self._token = token
        self._title = title
        self._send = send
        self._post = post
        self._begun = False
        self._ended = False
        self._due = time.monotonic() + PATIENCE
        self._mutex = threading.Lock()

    def report(self, done: int, total: int) -> None:
        """So much of so much is done."""
        now = time.monotonic()
        if now < self._due:
            return
        with self._mutex:
            if now < self._due:
                return
            self._due = now + _EVERY
        self._post(lambda: self._tell(done, total))

    def end(self) -> None:
        """To be called before the answer is sent."""
        if self._begun and not self._ended:
            self._notify({"kind": "end"})
        self._ended = True

    def _tell(self, done: int, total: int) -> None:
        if self._ended:
            return
        percentage = min(100, done * 100 // total) if total > 0 else 0
        if not self._begun:
            self._begun = True
            self._notify({"kind": "begin", "title": self._title, "cancellable": True, "percentage": percentage})
        else:
            self._notify({"kind": "report", "cancellable": True, "percentage": percentage})

    def _notify(self, value: dict[str, object]) -> None:
        params = {"token": self._token, "value": value}
        self._send(msgspec.json.encode({"jsonrpc": "2.0", "method": "$/progress", "params": params}))
