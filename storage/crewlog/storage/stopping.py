"""Long reads that can be asked to stop half way: lists, searches, exports. They change nothing, so that stopping them leaves nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from crewlog.storage.errors import StorageError

_TURN = 0.001
"""Seconds of a long read after which it steps aside."""
_ASIDE = 0.000_05


class _OfThread(threading.local):
    is_asked: Callable[[], bool] | None = None
    began_turn = 0.0


_this_thread = _OfThread()


class Stopped(StorageError):
    """The read was asked to stop, and did."""

    def __init__(self) -> None:
        super().__init__("the read was stopped before its end")


@contextlib.contextmanager
def asked_by(is_asked: Callable[[], bool]) -> Iterator[None]:
    """Inside, long reads of this thread look at `is_asked` now and then, and raise `Stopped` when it says so."""
    before = _this_thread.is_asked
    _this_thread.is_asked = is_asked
    try:
        yield
    finally:
        _this_thread.is_asked = before


def check() -> None:
    """To be called by a long read once for each file or thousand lines. Raises `Stopped`."""
    if not keep_going():
        raise Stopped


def keep_going() -> bool:
    """The same as a question, for reads that end with what they have."""
    is_asked = _this_thread.is_asked
    if is_asked is None:
        return True
    _step_aside()
    return not is_asked()


def _step_aside() -> None:
    """Lets other threads have Python's lock. A read that makes a system call every few dozen microseconds takes the lock back after each
    before one that waits for it has woken, who then waits for a whole interval anew: only sleeping lets it through.
    """
    if time.perf_counter() - _this_thread.began_turn > _TURN:
        time.sleep(_ASIDE)
        _this_thread.began_turn = time.perf_counter()
