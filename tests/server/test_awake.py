"""The event loop stays awake for a client that asks one thing after another, and sleeps for any other."""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from crewlog.server import awake
from crewlog.server.awake import AwakeSelector, new_event_loop

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the loop is another one")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The timeouts with which the system was asked."""
    asked: list[float | None] = []
    select = selectors.DefaultSelector.select

    def noted(self: selectors.DefaultSelector, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        asked.append(timeout)
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", noted)
    return asked


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_after_a_short_wait_it_looks_without_sleeping_and_then_sleeps(
    looks: list[float | None], pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awake, "_SOON", 10.0)
    monkeypatch.setattr(awake, "_AWAKE", 0.02)
    source, sink = pipe
    with AwakeSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        os.write(sink, b"?")
        assert selector.select(5)
        assert looks == [5]

        looks.clear()
        assert selector.select(5)
        assert looks == [0], "what is there already is found at once"

        looks.clear()
        os.read(source, 1)
        assert selector.select(0.03) == []
        assert set(looks[:-1]) == {0}
        assert looks[-1] == 0.03


def test_after_a_long_wait_it_sleeps(looks: list[float | None], pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_SOON", 0.0)
    source, sink = pipe
    with AwakeSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        os.write(sink, b"?")
        assert selector.select(5)
        assert selector.select(5)
        assert looks == [5, 5]


def test_what_was_waited_for_in_vain_is_tried_ever_more_seldom(
    looks: list[float | None], pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where processors are few, who stays awake in vain takes them from the clients."""
    monkeypatch.setattr(awake, "_SOON", 10.0)
    source, sink = pipe

    def is_awake() -> bool:
        looks.clear()
        selector.select(0.000_5)
        return 0 in looks

    with AwakeSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        tried = [number for number in range(200) if is_awake()]
        assert tried == [1, 3, 7, 15, 31, 63, 127, 191]

        os.write(sink, b"?")
        while not is_awake():
            pass
        assert is_awake(), "as before, as soon as it was not in vain"


def test_it_is_not_awake_for_longer_than_it_may_wait(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_SOON", 100.0)
    monkeypatch.setattr(awake, "_AWAKE", 50.0)
    source, sink = pipe
    with AwakeSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        os.write(sink, b"?")
        assert selector.select(5)
        os.read(source, 1)
        begun = time.monotonic()
        assert selector.select(0.01) == []
        assert time.monotonic() - begun < 25


def test_timers_and_threads_have_their_turn_while_it_is_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_SOON", 100.0)
    monkeypatch.setattr(awake, "_AWAKE", 50.0)
    monkeypatch.setattr(awake, "_processors", lambda: 2)

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


def test_with_one_processor_it_is_the_usual_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_processors", lambda: 1)
    made: list[AwakeSelector] = []
    monkeypatch.setattr(awake, "AwakeSelector", lambda: made.append(AwakeSelector()))
    new_event_loop().close()
    assert made == []
