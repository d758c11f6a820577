"""Long reads that can be asked to stop half way: lists, searches, exports. They change nothing, so that stopping them leaves nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from crewlog.storage.errors import StorageError

_this_thread = threading.local()


class Stopped(StorageError):
    """The read was asked to stop, and did."""

    def __init__(self) -> None:
        super().__init__("the read was stopped before its end")


@contextlib.contextmanager
def asked_by(is_asked: Callable[[], bool]) -> Iterator[None]:
    """Inside, long reads of this thread look at `is_asked` now and then, and raise `Stopped` when it says so."""
    before = getattr(_this_thread, "is_asked", None)
    _this_thread.is_asked = is_asked
    try:
        yield
    finally:
        _this_thread.is_asked = before


def check() -> None:
    """To be called by a long read once for each file or thousand lines. Raises `Stopped`."""
    is_asked: Callable[[], bool] | None = getattr(_this_thread, "is_asked", None)
    if is_asked is not None and is_asked():
        raise Stopped


def keep_going() -> bool:
    """The same as a question, for reads that end with what they have."""
    is_asked: Callable[[], bool] | None = getattr(_this_thread, "is_asked", None)
    return is_asked is None or not is_asked()
