"""Long reads can be asked to stop; locks can be given back."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import pytest

from crewlog.storage import Busy, WouldBlock, stopping
from crewlog.storage.locks import Mutex, ResourceLock, may_wait, without_waiting


def test_a_long_read_is_asked_to_stop() -> None:
    stopping.check()
    assert stopping.keep_going()
    wanted = False
    with stopping.asked_by(lambda: wanted):
        stopping.check()
        wanted = True
        assert not stopping.keep_going()
        with pytest.raises(stopping.Stopped):
            stopping.check()
        with stopping.asked_by(lambda: False):
            stopping.check()
        with pytest.raises(stopping.Stopped):
            stopping.check()
    stopping.check()


def test_a_long_read_steps_aside_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a thread that waits for Python's lock beside one that makes many short system calls may wait for long."""
    slept: list[float] = []
    now = time.perf_counter()
    clock = (now + number / 10_000 for number in itertools.count())  # a tenth of a millisecond passes from look to look
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    for _ in range(100):
        stopping.keep_going()
    assert not slept, "nobody is beside a read that cannot be stopped"
    with stopping.asked_by(lambda: False):
        for _ in range(1_000):
            stopping.check()
    assert 50 <= len(slept) <= 110
    assert all(0 < seconds < 0.001 for seconds in slept)


def test_waiting_is_forbidden_for_a_while_only() -> None:
    assert may_wait()
    with without_waiting():
        assert not may_wait()
        with without_waiting():
            assert not may_wait()
        assert not may_wait()
    assert may_wait()


def test_a_mutex_is_reentrant_and_never_holds_up_an_event_loop() -> None:
    mutex = Mutex()
    with mutex, mutex:
        refused: list[bool] = []

        def attempt() -> None:
            try:
                with without_waiting(), mutex:
                    refused.append(False)
            except WouldBlock:
                refused.append(True)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert refused == [True]


def test_a_lock_that_was_given_back_can_be_taken_again(tmp_path: Path) -> None:
    lock = ResourceLock(str(tmp_path / "x"))
    with lock:
        assert lock.held
    lock.close()
    assert not lock.held
    with lock:
        pass
    with lock:
        (tmp_path / ".crewlog/x.lock").write_bytes(b"no record of ours")
        with pytest.raises(Busy) as caught, ResourceLock(str(tmp_path / "x"), timeout=0.05):
            pass
    assert caught.value.holder == {}
    assert "another process" in str(caught.value)
