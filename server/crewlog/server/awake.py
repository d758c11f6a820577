"""An event loop that stays awake for a client which does one thing after another."""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import time

_SOON = 0.000_4
"""Seconds of waiting after which an event is no surprise: then the next one may be as near."""
_AWAKE = 0.000_1
"""Seconds for which that one is looked for without sleeping. To be woken takes nearly as long, and what is done after a sleep takes twice
its time: the processor has slowed down, and its caches hold something else. So a round trip takes half the time, and less of the
processor."""
_MOST_VAIN = 6
"""Times in vain beyond which the pauses do not become longer: one wait in 64 is tried."""


class AwakeSelector(selectors.DefaultSelector):
    """Waits without sleeping, for a moment, where the wait before was a short one.

    Where that was in vain it is not tried again for a while, and each time for longer: with more clients than processors, who stays awake
    takes one from somebody's client.
    """

    def __init__(self) -> None:
        super().__init__()
        self._soon = False
        self._vain = 0
        self._asleep = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        begun = time.monotonic()
        found: list[tuple[selectors.SelectorKey, int]] = []
        if self._soon and self._asleep:
            self._asleep -= 1
        elif self._soon:
            found = self._select_awake(begun, timeout)
            self._vain = 0 if found else min(self._vain + 1, _MOST_VAIN)
            self._asleep = (1 << self._vain) - 1
        if not found:
            found = super().select(timeout)
        self._soon = time.monotonic() - begun < _SOON
        return found

    def _select_awake(self, begun: float, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        end = begun + (_AWAKE if timeout is None else min(_AWAKE, timeout))
        while True:
            found = super().select(0)
            if found or time.monotonic() >= end:
                return found


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop that stays awake, where that helps: with one processor alone, the client gets on only while we sleep; on Windows it is a
    thread that waits for the client.
    """
    if sys.platform == "win32" or _processors() < 2:
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(AwakeSelector())


def _processors() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
