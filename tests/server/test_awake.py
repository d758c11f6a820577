"""The event loop stays awake for a client that asks one thing after another, and sleeps for any other."""

from __future__ import annotations

import asyncio
import selectors
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from crewlog.server import awake
from crewlog.server.awake import AwakeSelector, new_event_loop


class Client:
    """One that asks through a socket, and the selector that waits for it. `looks`: the timeouts with which the system was asked."""

    def __init__(self, selector: AwakeSelector, looks: list[float | None]) -> None:
        self.selector = selector
        self.looks = looks
        self._ours, self._its = socket.socketpair()
        selector.register(self._ours, selectors.EVENT_READ)

    def ask(self) -> None:
        self._its.send(b"?")

    def is_answered(self) -> None:
        self._ours.recv(1)

    def wait(self, timeout: float) -> bool:
        """Whether there was a question."""
        self.looks.clear()
        return bool(self.selector.select(timeout))

    def close(self) -> None:
        self._ours.close()
        self._its.close()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """It has asked, and the wait for it is over."""
    looks: list[float | None] = []
    select = selectors.DefaultSelector.select

    def noted(self: selectors.DefaultSelector, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        looks.append(timeout)
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", noted)
    monkeypatch.setattr(awake, "_SOON", 100.0)
    with AwakeSelector() as selector:
        client = Client(selector, looks)
        client.ask()
        assert client.wait(5)
        assert looks == [5], "nothing is known of it yet"
        yield client
        client.close()


def test_after_a_short_wait_it_looks_without_sleeping_and_then_sleeps(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_AWAKE", 0.02)
    assert client.wait(5)
    assert client.looks == [0], "what is there already is found at once"
    client.is_answered()
    assert not client.wait(0.03)
    assert set(client.looks[:-1]) == {0}
    assert client.looks[-1] == 0.03


def test_after_a_long_wait_it_sleeps(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_SOON", 0.0)
    client.wait(5)
    assert client.wait(5)
    assert client.looks == [5]


def test_what_was_waited_for_in_vain_is_tried_ever_more_seldom(client: Client) -> None:
    """Where processors are few, who stays awake in vain takes them from the clients."""
    client.is_answered()

    def is_awake() -> bool:
        client.wait(0.000_5)
        return 0 in client.looks

    tried = [number for number in range(200) if is_awake()]
    assert tried == [0, 2, 6, 14, 30, 62, 126, 190]

    client.ask()
    while not is_awake():
        pass
    assert is_awake(), "as before, as soon as it was not in vain"


def test_it_is_not_awake_for_longer_than_it_may_wait(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_AWAKE", 50.0)
    client.is_answered()
    begun = time.monotonic()
    assert not client.wait(0.01)
    assert time.monotonic() - begun < 25


@pytest.mark.parametrize("processors", [1, 2])
def test_timers_and_threads_have_their_turn(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is awake, and where it never is: with one processor, and on Windows, where a thread reads."""
    monkeypatch.setattr(awake, "_SOON", 100.0)
    monkeypatch.setattr(awake, "_AWAKE", 50.0)
    monkeypatch.setattr(awake, "_processors", lambda: processors)
    waits: list[float | None] = []
    select = AwakeSelector.select

    def noted(self: AwakeSelector, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        waits.append(timeout)
        return select(self, timeout)

    monkeypatch.setattr(AwakeSelector, "select", noted)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(3):
            await asyncio.sleep(0.001)
            came = loop.create_future()
            threading.Timer(0.001, lambda came=came: loop.call_soon_threadsafe(came.set_result, None)).start()
            await came

    loop = new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(work(), 25))
    finally:
        loop.close()
    assert bool(waits) == (processors > 1 and sys.platform != "win32")
