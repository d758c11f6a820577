"""A log whose reading goes on where another process stopped: what was read is remembered outside of this process, by the index."""

from __future__ import annotations

import hashlib
import os
import time

import msgspec

from crewlog.storage.errors import StorageFailed
from crewlog.storage.log import AcceptBlock, AcceptLine, AcceptTail, AppendLog, Line, Look, Tail, read_ends

_SETTLED_NS = 100_000_000
"""Nanoseconds without a write after which a file's time tells all later writes from what was read: clocks of file systems tick slowly."""


class LogState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How far a log was read, and of which file. `identity`: (device, inode); `seen`: (bytes, nanoseconds of its modification).

    `ends`: a digest of the first and the last bytes that were read. `tail_at`: where the last record begins if it lacks its line end,
    else -1. `changed`: when the file's content, name or rights changed last, in nanoseconds as the system tells it (`st_ctime_ns`), which
    no program can set back as it can the time of modification.
    """

    identity: tuple[int, int]
    seen: tuple[int, int]
    changed: int
    end: int
    line_count: int
    ends: bytes
    tail_at: int

    def fits(self, status: os.stat_result) -> bool:
        """Whether the file of that `stat` is the one that was read, with nothing written to it since."""
        return (
            (status.st_dev, status.st_ino) == self.identity
            and (status.st_size, status.st_mtime_ns) == self.seen
            and status.st_ctime_ns == self.changed
        )

    def unread(self, path: str, status: os.stat_result) -> tuple[int, int] | None:
        """The range of bytes of whole lines that was added to the file since; None where it has changed in another way."""
        if (status.st_dev, status.st_ino) != self.identity or status.st_size <= self.seen[0]:
            return None
        try:
            with open(path, "rb", buffering=0) as file:
                stands = _digest(b"".join(read_ends(file.fileno(), self.end))) == self.ends
        except OSError:
            return None
        return (self.end if self.tail_at < 0 else self.tail_at, status.st_size) if stands else None


class ResumableLog(AppendLog):
    """An `AppendLog` that can be asked for its state, and made from one. It is only read.

    Of the bytes that are compared when it grew it keeps a digest: there may be many thousands of these.
    """

    def __init__(self, path: str, state: LogState | None = None) -> None:
        super().__init__(path)
        self._ends = b""
        self._changed = -1
        self._read_at = 0
        if state is not None:
            self.end, self.line_count = state.end, state.line_count
            self._identity, self._seen, self._changed = state.identity, state.seen, state.changed
            self._ends = state.ends
            if state.tail_at >= 0:
                self.tail = Tail(Line(state.line_count, state.tail_at, b""), True)

    def state(self) -> LogState | None:
        """None where nothing lasting can be said: nothing was read, or the file changed a moment before it was read, so that a further
        change might not show in its time.
        """
        if self._identity is None or not is_settled(self._seen[1], self._read_at):
            return None
        tail_at = self.tail.line.offset if self.tail is not None and self.tail.complete else -1
        return LogState(self._identity, self._seen, self._changed, self.end, self.line_count, self._ends, tail_at)

    def look(self) -> Look:
        """As of `AppendLog`; a file whose time was set back after an edit in place is seen too."""
        look = super().look()
        if look is Look.SAME and self._change_time() != self._changed:
            look = super().look()  # it may have been written to just now
            if look is Look.SAME:
                return Look.REPLACED
        if look is Look.GREW and self.tail is not None and self.tail.complete and self._is_glued():
            return Look.REPLACED
        return look

    def _is_glued(self) -> bool:
        """Whether something else than a line end was written behind the last record, so that it is no record any more."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                return os.pread(file.fileno(), 1, self.end) not in (b"", b"\n")
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error

    def read_added(self, accept: AcceptLine, accept_tail: AcceptTail, accept_block: AcceptBlock | None = None) -> None:
        read_at = time.time_ns()
        super().read_added(accept, accept_tail, accept_block)
        self._read_at = read_at
        self._ends = _digest(self._beginning + self._fingerprint)
        self._beginning = self._fingerprint = b""

    def _note(self, status: os.stat_result) -> None:
        super()._note(status)
        self._changed = status.st_ctime_ns

    def _are_as_read(self, beginning: bytes, last: bytes) -> bool:
        return _digest(beginning + last) == self._ends

    def _change_time(self) -> int:
        try:
            return os.stat(self.path).st_ctime_ns
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error


def is_settled(modified_ns: int, now_ns: int) -> bool:
    """Whether a file's next change will show in its time."""
    return abs(now_ns - modified_ns) >= _SETTLED_NS


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:12]  # of all the quickest, where the processor knows it
