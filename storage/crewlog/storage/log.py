"""An append-only file of lines that several processes write: sessions, transcripts and the input history are such logs.

Lines end at \\n and nowhere else. Writers take the file's lock, read what others added, and append whole lines with one write; readers
take no lock, read only what was added since they last looked, and never change the file. What follows the last line end is either a
complete record whose line end is still missing, or torn (a crash, or a writer half way through): which, is the owner's to say.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable
from enum import Enum
from functools import cached_property, partial
from operator import itemgetter

import msgspec

from crewlog.storage.errors import StorageError, StorageFailed
from crewlog.storage.files import (
    FILE_MODE,
    POWER,
    Durability,
    Undo,
    append_all,
    make_folder,
    name_new_file,
    require_inside,
    side_folder,
    temporary_name,
    unlink_quietly,
)
from crewlog.storage.locks import ResourceLock, require_waiting
from crewlog.storage.syncs import SharedSync

BLOCK = 64 << 10
"""Bytes read at a time: few enough to stay in the processor's cache until they are looked at."""
LONG_READ = 256 << 10
"""Bytes to read beyond which a call does not belong on an event loop."""
_FINGERPRINT = 4096
"""Bytes before the known end that are compared when the file grew, and as many at its beginning. A program without our locks that goes on
writing where it last saw the end writes over some of these; so does who removes a secret from the first message, and leaves the length as
it is. Elsewhere such an edit is seen where the file did not grow before we looked: then its time tells of it."""

_SETTLING = 0.02
"""Seconds that a write which has touched the file has to make it grow, before it counts as an edit in place."""


class Look(Enum):
    """What one look at the file tells, compared with what was read before."""

    SAME = "same"
    GREW = "grew"
    SHRANK = "shrank"
    REPLACED = "replaced"
    MISSING = "missing"


class Line(msgspec.Struct, gc=False):
    """`number` counts from 1, `offset` is in bytes, `content` is without the line end."""

    number: int
    offset: int
    content: bytes


class Block(msgspec.Struct, gc=False):
    """Whole lines that follow each other, the first with `number`, at `offset` in the file. `content` holds them with their line ends, and
    maybe the beginning of one more; `ends` tells where in it each ends.
    """

    number: int
    offset: int
    content: bytes
    ends: list[int]

    def line(self, index: int) -> Line:
        begin = self.ends[index - 1] if index else 0
        return Line(self.number + index, self.offset + begin, self.content[begin : self.ends[index] - 1])

    def whole(self) -> memoryview:
        """The lines, and nothing behind them."""
        return memoryview(self.content)[: self.ends[-1]]

    def looks_like_objects(self) -> bool:
        """Whether each line begins with `{` and ends with `}`. Of lines that are JSON together, none then is a part of a value: between
        those two JSON wants a comma, and a string holds no line end.
        """
        opening = itemgetter(0, 0, *self.ends[:-1])  # of two indices or more it makes a tuple
        closing = itemgetter(-1, *[end - 2 for end in self.ends])
        whole = self.whole()
        return set(opening(whole)) == _OPENING and set(closing(whole)) == _CLOSING


_OPENING, _CLOSING = {ord("{")}, {ord("}"), ord("\n")}

AcceptLine = Callable[[Line], None]
AcceptTail = Callable[[Line], bool]
AcceptBlock = Callable[[Block], bool]


class Tail(msgspec.Struct):
    """What stands behind the last line end, at `offset`."""

    line: Line
    complete: bool
    """Whether the owner took it for a whole record."""


class AppendLog:
    """The file at `path` as far as it was read. Not thread-safe, but for `sync`: its owner holds a mutex of its own.

    `root`: the folder that symbolic links must not lead a write out of.
    """

    def __init__(self, path: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.path = path
        self.durability = durability
        self.root = root or os.path.dirname(path)
        self.end = 0
        """Bytes read and accepted."""
        self.line_count = 0
        self.tail: Tail | None = None
        self._identity: tuple[int, int] | None = None
        self._seen: tuple[int, int] = (-1, -1)
        self._fingerprint = b""
        self._beginning = b""
        self._descriptor = -1
        self._descriptor_identity: tuple[int, int] | None = None
        self._made = False
        self._descriptor_mutex = threading.Lock()
        """Held while the descriptor changes or is taken along for a sync, which happens outside of the owner's mutex."""

    @property
    def found(self) -> bool:
        """Whether the file was there when it was read."""
        return self._identity is not None

    @cached_property
    def lock(self) -> ResourceLock:
        """The file's lock; a reader never makes one, and nobody makes one for a file that is gone."""
        return ResourceLock(self.path, root=self.root, existing=True)

    @cached_property
    def _mine(self) -> _OfThread:
        return _OfThread()

    @cached_property
    def _syncs(self) -> SharedSync:
        return SharedSync()

    def forget(self) -> None:
        """Begins anew: the next look reads the whole file."""
        self.end = 0
        self.line_count = 0
        self.tail = None
        self._identity = None
        self._seen = (-1, -1)
        self._fingerprint = b""
        self._beginning = b""

    def look(self) -> Look:
        """One `stat`, and where the file grew a look at the bytes before the known end. Raises `StorageFailed`.

        A file that was written to and keeps its size counts as replaced: somebody edited it in place. `WouldBlock` inside
        `without_waiting` where that must be waited for.
        """
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return Look.MISSING
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        if not stat.S_ISREG(status.st_mode):
            raise StorageFailed(self.path, "EINVAL", "it is no regular file")  # to open a pipe would wait for its other end
        if self._identity is None:
            return Look.GREW
        if (status.st_dev, status.st_ino) != self._identity:
            return Look.REPLACED
        if (status.st_size, status.st_mtime_ns) == self._seen:
            return Look.SAME
        if status.st_size < self.end:
            return Look.SHRANK
        if status.st_size == self._seen[0] and not self._is_being_appended_to():
            return Look.REPLACED
        return Look.GREW if self._still_stands() else Look.REPLACED

    def read_added(self, accept: AcceptLine, accept_tail: AcceptTail, accept_block: AcceptBlock | None = None) -> None:
        """Reads what follows the known end: each complete line goes to `accept`, what is left to `accept_tail`, which returns whether
        it is a whole record. What either raises leaves the log before the line that caused it. Raises `StorageFailed`; `WouldBlock`
        inside `without_waiting` when there is much to read.

        `accept_block` may take many lines at once; where it returns False, having changed nothing, they go to `accept` one by one.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        try:
            status = os.fstat(descriptor)
            if status.st_size - self.end > LONG_READ:
                require_waiting()
            self._read_lines(descriptor, accept, accept_tail, accept_block)
            self._beginning, self._fingerprint = read_ends(descriptor, self.end)
            self._note(status)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        finally:
            os.close(descriptor)

    def _note(self, status: os.stat_result) -> None:
        """The file, as it was when the reading that is done now began."""
        self._identity = (status.st_dev, status.st_ino)
        self._seen = (status.st_size, status.st_mtime_ns)

    def _read_lines(self, descriptor: int, accept: AcceptLine, accept_tail: AcceptTail, accept_block: AcceptBlock | None) -> None:
        if self.tail is not None and self.tail.complete:
            after = os.pread(descriptor, 1, self.end)
            if after == b"\n":
                self.end += 1
            elif after:  # somebody glued a record to it: the two are one line, and the owner must see that
                self.end = self.tail.line.offset
                self.line_count -= 1
            else:
                return
        self.tail = None
        while True:
            content = os.pread(descriptor, BLOCK, self.end)
            ends = _line_ends(content)
            if ends:
                self._read_block(Block(self.line_count + 1, self.end, content, ends), accept, accept_block)
                if ends[-1] == len(content) < BLOCK:
                    return
            elif len(content) < BLOCK:
                self._read_tail(Line(self.line_count + 1, self.end, content), accept_tail)
                return
            else:
                del content  # a long line is held once: its end is found first
                length, ended = _measure_line(descriptor, self.end)
                line = Line(self.line_count + 1, self.end, os.pread(descriptor, length, self.end))
                if not ended:
                    self._read_tail(line, accept_tail)
                    return
                self._read_line(line, accept)

    def _read_block(self, block: Block, accept: AcceptLine, accept_block: AcceptBlock | None) -> None:
        if accept_block is not None and accept_block(block):
            self.end += block.ends[-1]
            self.line_count += len(block.ends)
        else:
            for index in range(len(block.ends)):
                self._read_line(block.line(index), accept)

    def _read_line(self, line: Line, accept: AcceptLine) -> None:
        if line.content and not line.content.isspace():
            accept(line)
        self.end = line.offset + len(line.content) + 1
        self.line_count = line.number

    def _read_tail(self, line: Line, accept_tail: AcceptTail) -> None:
        if not line.content or line.content.isspace():
            return
        self.tail = Tail(line, accept_tail(line))
        if self.tail.complete:
            self.end = line.offset + len(line.content)
            self.line_count = line.number

    def append(self, lines: bytes) -> int:
        """Appends whole lines with one write and returns the offset of the first. The caller holds `lock` and has just read what
        others added. A torn tail is cut off before, a missing line end is added. All or nothing: raises `StorageFailed`.
        """
        try:
            descriptor = self._open_to_append()
            size = self._cut_torn_tail(descriptor)
            before = b"\n" if self.tail is not None and self.tail.complete else b""
            self._append_all(descriptor, before + lines, size)
            status = os.fstat(descriptor)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        self.tail = None
        self.end = status.st_size
        self._identity = (status.st_dev, status.st_ino)
        self._seen = (status.st_size, status.st_mtime_ns)
        self._fingerprint = (self._fingerprint + before + lines[-_FINGERPRINT:])[-_FINGERPRINT:]
        if size == len(self._beginning) < _FINGERPRINT:
            self._beginning = (self._beginning + before + lines)[:_FINGERPRINT]
        offset = size + len(before)
        if status.st_size != offset + len(lines):  # a program without our locks wrote at the same time: all must be read anew
            self._identity = (-1, -1)
        return offset

    def _cut_torn_tail(self, descriptor: int) -> int:
        """The file's size afterwards."""
        if self.tail is None or self.tail.complete:
            return self._seen[0]
        size = self.tail.line.offset
        if os.fstat(descriptor).st_size != size + len(self.tail.line.content):
            raise OSError(errno.ESTALE, "")  # it is no torn line: somebody who takes no lock is writing it
        os.ftruncate(descriptor, size)
        self.tail = None
        return size

    def _append_all(self, descriptor: int, content: bytes, size: int) -> None:
        undo = partial(self._take_back, size, size + len(content))
        try:
            append_all(descriptor, content, size)
            if self.durability.appending_waits:
                self._mine.undo = undo
            else:
                self._note_append(descriptor, size, undo)
        except OSError:
            status = os.fstat(descriptor)
            if status.st_size == size:  # it was cut back: nothing is new
                self._seen = (status.st_size, status.st_mtime_ns)
            raise

    def _note_append(self, descriptor: int, size: int, undo: Undo) -> None:
        try:
            self.durability.appended(descriptor, undo)
        except OSError:
            os.ftruncate(descriptor, size)
            raise

    def _take_back(self, start: int, end: int) -> bool:
        """Cuts off lines that the device did not take, unless something stands behind them by now."""
        try:
            with ResourceLock(self.path, root=self.root, existing=True, timeout=_UNDO_TIMEOUT):
                descriptor = os.open(self.path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
                try:
                    if os.fstat(descriptor).st_size != end:
                        return False
                    if start == 0 and self._made:
                        os.unlink(self.path)
                    else:
                        os.ftruncate(descriptor, start)
                finally:
                    os.close(descriptor)
        except (OSError, StorageError):
            return False  # the error that led here is told already; who reads the log finds the lines
        return True

    def begin_at_end(self) -> None:
        """Makes an append begin a new line, without reading what is there. Raises `StorageFailed`."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                last = os.pread(file.fileno(), 1, status.st_size - 1) if status.st_size else b"\n"
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        self._identity = (status.st_dev, status.st_ino)
        self._seen = (status.st_size, status.st_mtime_ns)
        self.tail = None if last == b"\n" else Tail(Line(0, status.st_size, b""), True)

    def begin_append(self) -> None:
        """To be called before the lock is taken: refuses inside `without_waiting` where the append would wait for the device."""
        if self.durability.appending_waits:
            require_waiting()

    def sync(self) -> None:
        """Makes what this thread appended last as durable as was promised; to be called without the lock. Threads share one sync.

        Raises `StorageFailed`: then the lines are gone from the file again, unless others wrote behind them meanwhile.
        """
        if not self.durability.appending_waits:
            return
        try:
            self._syncs.wait(self._sync, self._mine.undo)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error

    def _sync(self) -> None:
        """The log may be closed, or opened anew, while the device works: hence a descriptor of our own."""
        with self._descriptor_mutex:
            descriptor = os.dup(self._descriptor) if self._descriptor >= 0 else os.open(self.path, os.O_RDONLY)
        try:
            self.durability.appended(descriptor, _nothing)  # `SharedSync` does that for each whom this sync is for
        finally:
            os.close(descriptor)

    def create(self, lines: bytes) -> None:
        """Makes the file with `lines` in it: whole, or not at all. Raises `StorageFailed`, also where it exists; nothing is left behind
        then.
        """
        require_inside(self.path, self.root)
        make_folder(os.path.dirname(self.path), self.durability)
        made = temporary_name(self.path) if lines else self.path
        try:
            descriptor = os.open(made, _APPEND_FLAGS | os.O_CREAT | os.O_EXCL, FILE_MODE)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        try:
            append_all(descriptor, lines, 0)
            self.durability.appended(descriptor, partial(self._remove_again, len(lines)))
            if made != self.path:
                name_new_file(made, self.path)
                made = self.path
            self.durability.replaced(os.path.dirname(self.path))
        except OSError as error:
            os.close(descriptor)
            unlink_quietly(made)
            raise StorageFailed.from_os(error, self.path) from error
        os.close(descriptor)

    def create_empty(self) -> bool:
        """Whether it was not there. Raises `StorageFailed`."""
        if os.path.exists(self.path):
            return False
        require_inside(self.path, self.root)
        make_folder(os.path.dirname(self.path), self.durability)
        side_folder(os.path.dirname(os.path.realpath(self.path)))  # what the lock needs: where it cannot be had, no file is left behind
        try:
            self.create(b"")
        except StorageFailed as error:
            if error.errno_name != "EEXIST":
                raise
            return False
        self._made = True
        return True

    def remove_empty(self) -> None:
        """Removes the file that was made for an append which failed."""
        self._remove_again(0)

    def _remove_again(self, size: int) -> bool:
        try:
            with ResourceLock(self.path, root=self.root, existing=True, timeout=_UNDO_TIMEOUT):
                if os.stat(self.path).st_size != size:
                    return False
                os.unlink(self.path)
        except (OSError, StorageError):
            return False  # as above
        return True

    def close(self) -> None:
        if "lock" in self.__dict__:
            self.lock.close()
        with self._descriptor_mutex:
            self._close_descriptor()

    def _close_descriptor(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._descriptor_identity = None

    def _open_to_append(self) -> int:
        if self._descriptor < 0 or self._identity != self._descriptor_identity:
            with self._descriptor_mutex:
                self._close_descriptor()
                require_inside(self.path, self.root)
                self._descriptor = os.open(self.path, _APPEND_FLAGS)
                status = os.fstat(self._descriptor)
                self._descriptor_identity = (status.st_dev, status.st_ino)
        return self._descriptor

    def _is_being_appended_to(self) -> bool:
        """Whether a file with a new time and its old size grows within a moment: systems set a write's time before the new size."""
        deadline = time.monotonic() + _SETTLING
        looks = 0
        while time.monotonic() < deadline:
            try:
                size = os.stat(self.path).st_size
            except OSError as error:
                raise StorageFailed.from_os(error, self.path) from error
            if size != self._seen[0]:
                return size > self._seen[0]
            looks += 1
            if looks > 3:
                require_waiting()
                time.sleep(_SETTLING / 20)
        return False

    def _still_stands(self) -> bool:
        """Whether the bytes before the known end, and the first, are those that were read: a writer at an offset of its own may have
        overwritten them, or somebody edited the file in place.
        """
        try:
            with open(self.path, "rb", buffering=0) as file:
                ends = read_ends(file.fileno(), self.end)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        return self._are_as_read(*ends)

    def _are_as_read(self, beginning: bytes, last: bytes) -> bool:
        return beginning.startswith(self._beginning) and last.endswith(self._fingerprint)


def _nothing() -> bool:
    return False


class _OfThread(threading.local):
    """How to take back what this thread appended last."""

    undo: Undo = staticmethod(_nothing)


_UNDO_TIMEOUT = 1.0
"""Seconds that taking back waits for a lock: somebody waits for the error."""
_APPEND_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class BlockReader:
    """Reads ranges of a file that mostly follow each other, a block at a time. Raises `StorageFailed`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._block = memoryview(b"")
        self._start = 0
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise StorageFailed.from_os(error, path) from error

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self.view(offset, length)) if length < BLOCK else self._read(offset, length, length)  # a long one is held once

    def view(self, offset: int, length: int) -> memoryview:
        """Without a copy: as long as it is held, so is the block that it was read with."""
        at = offset - self._start
        if at < 0 or at + length > len(self._block):
            self._block, self._start, at = memoryview(self._read(offset, max(length, BLOCK), length)), offset, 0
        return self._block[at : at + length]

    def _read(self, offset: int, length: int, at_least: int) -> bytes:
        try:
            content = os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        if len(content) < at_least:
            raise StorageFailed(self._path, "ESTALE", "the file became shorter while it was read; read it anew")
        return content

    def close(self) -> None:
        os.close(self._descriptor)


def read_ends(descriptor: int, end: int) -> tuple[bytes, bytes]:
    """The first and the last bytes of what stands before `end`."""
    return os.pread(descriptor, min(_FINGERPRINT, end), 0), os.pread(descriptor, min(_FINGERPRINT, end), max(0, end - _FINGERPRINT))


def _line_ends(content: bytes) -> list[int]:
    """The offset behind each line's end. The search for one byte is the fastest way to go through many."""
    ends: list[int] = []
    at = content.find(b"\n") + 1
    while at:
        ends.append(at)
        at = content.find(b"\n", at) + 1
    return ends


def _measure_line(descriptor: int, offset: int) -> tuple[int, bool]:
    """The length of the line at `offset`, and whether it has its line end."""
    at = offset
    while True:
        block = os.pread(descriptor, 16 * BLOCK, at)
        end = block.find(b"\n")
        if end >= 0:
            return at + end - offset, True
        if not block:
            return at - offset, False
        at += len(block)
