"""An append-only file of lines that several processes write: sessions, transcripts and the input history are such logs.

Lines end at \\n and nowhere else. Writers take the file's lock, read what others added, and append whole lines with one write; readers
take no lock, read only what was added since they last looked, and never change the file. What follows the last line end is either a
complete record whose line end is still missing, or torn (a crash, or a writer half way through): which, is the owner's to say.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property

import msgspec

from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import FILE_MODE, POWER, Durability, append_all, make_folder, require_inside
from crewlog.storage.locks import ResourceLock, require_waiting

BLOCK = 1 << 20
"""Bytes read at a time."""
LONG_READ = 256 << 10
"""Bytes to read beyond which a call does not belong on an event loop."""
_FINGERPRINT = 64


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


class Tail(msgspec.Struct):
    """What stands behind the last line end, at `offset`."""

    line: Line
    complete: bool
    """Whether the owner took it for a whole record."""


class AppendLog:
    """The file at `path` as far as it was read. Not thread-safe: its owner holds a mutex of its own.

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
        self._descriptor = -1
        self._descriptor_identity: tuple[int, int] | None = None

    @cached_property
    def lock(self) -> ResourceLock:
        """The file's lock; a reader never makes one."""
        return ResourceLock(self.path, root=self.root)

    @cached_property
    def _syncs(self) -> _SharedSync:
        return _SharedSync()

    def forget(self) -> None:
        """Begins anew: the next look reads the whole file."""
        self.end = 0
        self.line_count = 0
        self.tail = None
        self._identity = None
        self._seen = (-1, -1)
        self._fingerprint = b""

    def look(self) -> Look:
        """One `stat`, and where the file changed a look at the bytes before the known end. Raises `StorageFailed`."""
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
        if not self._still_stands():
            return Look.REPLACED
        return Look.GREW

    def read_added(self, accept: Callable[[Line], None], accept_tail: Callable[[Line], bool]) -> None:
        """Reads what follows the known end: each complete line goes to `accept`, what is left to `accept_tail`, which returns whether
        it is a whole record. What either raises leaves the log before the line that caused it. Raises `StorageFailed`; `WouldBlock`
        inside `without_waiting` when there is much to read.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        try:
            status = os.fstat(descriptor)
            if status.st_size - self.end > LONG_READ:
                require_waiting()
            self._read_lines(descriptor, accept, accept_tail)
            self._identity = (status.st_dev, status.st_ino)
            self._seen = (status.st_size, status.st_mtime_ns)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        finally:
            os.close(descriptor)

    def _read_lines(self, descriptor: int, accept: Callable[[Line], None], accept_tail: Callable[[Line], bool]) -> None:
        if self.tail is not None and self.tail.complete:
            after = os.pread(descriptor, 1, self.end)
            if after == b"\n":
                self.end += 1
                self._remember(after)
            elif after:  # somebody glued a record to it: the two are one line, and the owner must see that
                self.end = self.tail.line.offset
                self.line_count -= 1
            else:
                return
        self.tail = None
        offset = self.end
        rest = b""
        for number, line_offset, content in _split(descriptor, offset, self.line_count):
            if number < 0:
                rest, offset = content, line_offset
                break
            if content and not content.isspace():
                accept(Line(number, line_offset, content))
            self.end = line_offset + len(content) + 1
            self.line_count = number
            self._remember(content[-_FINGERPRINT:] + b"\n")
        if rest and not rest.isspace():
            line = Line(self.line_count + 1, offset, rest)
            complete = accept_tail(line)
            self.tail = Tail(line, complete)
            if complete:
                self.end = offset + len(rest)
                self.line_count += 1
                self._remember(rest)

    def append(self, lines: bytes) -> int:
        """Appends whole lines with one write and returns the offset of the first. The caller holds `lock` and has just read what
        others added. A torn tail is cut off before, a missing line end is added. All or nothing: raises `StorageFailed`.
        """
        try:
            descriptor = self._open_to_append()
            size = os.fstat(descriptor).st_size
            if self.tail is not None and not self.tail.complete:
                os.ftruncate(descriptor, self.tail.line.offset)
                size = self.tail.line.offset
            before = b"\n" if self.tail is not None and self.tail.complete else b""
            append_all(descriptor, before + lines, size)
            status = os.fstat(descriptor)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        self.tail = None
        offset = size + len(before)
        self.end = status.st_size
        self._identity = (status.st_dev, status.st_ino)
        self._seen = (status.st_size, status.st_mtime_ns)
        self._remember(lines)
        return offset

    def begin_at_end(self) -> None:
        """Makes an append begin a new line, without reading what is there. Raises `StorageFailed`."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                last = os.pread(file.fileno(), 1, size - 1) if size else b"\n"
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        self.tail = None if last == b"\n" else Tail(Line(0, size, b""), True)

    def begin_append(self) -> None:
        """To be called before the lock is taken: refuses inside `without_waiting` where the append would wait for the device."""
        if self.durability.appending_waits:
            require_waiting()

    def sync(self) -> None:
        """Makes what was appended as durable as was promised; to be called without the lock. Threads share one sync.

        Raises `StorageFailed`: then the lines are in the file, but the device has not confirmed them.
        """
        try:
            self._syncs.wait(lambda: self.durability.appended(self._descriptor))
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error

    def create(self, lines: bytes) -> None:
        """Makes the file with `lines` in it. Raises `StorageFailed`, also where it exists; nothing is left behind then."""
        require_inside(self.path, self.root)
        make_folder(os.path.dirname(self.path), self.durability)
        try:
            descriptor = os.open(self.path, _APPEND_FLAGS | os.O_CREAT | os.O_EXCL, FILE_MODE)
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        try:
            append_all(descriptor, lines, 0)
            self.durability.appended(descriptor)
            self.durability.replaced(os.path.dirname(self.path))
        except OSError as error:
            os.close(descriptor)
            os.unlink(self.path)
            raise StorageFailed.from_os(error, self.path) from error
        os.close(descriptor)

    def close(self) -> None:
        if "lock" in self.__dict__:
            self.lock.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._descriptor_identity = None

    def read_at(self, offset: int, length: int) -> bytes:
        """Raises `StorageFailed`, also when the file ends before that."""
        reader = BlockReader(self.path)
        try:
            return reader.read(offset, length)
        finally:
            reader.close()

    def _open_to_append(self) -> int:
        status = os.stat(self.path)
        identity = (status.st_dev, status.st_ino)
        if self._descriptor < 0 or identity != self._descriptor_identity:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            require_inside(self.path, self.root)
            self._descriptor = os.open(self.path, _APPEND_FLAGS)
            self._descriptor_identity = identity
        return self._descriptor

    def _remember(self, content: bytes) -> None:
        self._fingerprint = (self._fingerprint + content[-_FINGERPRINT:])[-_FINGERPRINT:]

    def _still_stands(self) -> bool:
        """Whether the bytes before the known end are those that were read: a writer at an offset of its own may have overwritten them."""
        length = len(self._fingerprint)
        try:
            with open(self.path, "rb", buffering=0) as file:
                return os.pread(file.fileno(), length, self.end - length) == self._fingerprint
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error


_APPEND_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class BlockReader:
    """Reads ranges of a file that mostly follow each other, a block at a time. Raises `StorageFailed`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._block = b""
        self._start = 0
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise StorageFailed.from_os(error, path) from error

    def read(self, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at >= 0 and at + length <= len(self._block):
            return self._block[at : at + length]
        try:
            if length >= BLOCK:
                content = os.pread(self._descriptor, length, offset)
            else:
                self._block, self._start = os.pread(self._descriptor, BLOCK, offset), offset
                content = self._block[:length]
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        if len(content) < length:
            raise StorageFailed(self._path, "ESTALE", "the file became shorter while it was read; read it anew")
        return content

    def close(self) -> None:
        os.close(self._descriptor)


def _split(descriptor: int, offset: int, line_count: int) -> Iterator[tuple[int, int, bytes]]:
    """(number, offset, content) of each complete line from `offset` on; last (-1, offset, rest) where the file does not end in \\n."""
    pending: list[bytes] = []
    pending_offset = offset
    while True:
        block = os.pread(descriptor, BLOCK, offset)
        if not block:
            break
        offset += len(block)
        first, *others = block.split(b"\n")
        if not others:
            pending.append(first)
            continue
        pending.append(first)
        others.insert(0, b"".join(pending))
        pending = [others.pop()]
        for content in others:
            line_count += 1
            yield line_count, pending_offset, content
            pending_offset += len(content) + 1
    rest = b"".join(pending)
    if rest:
        yield -1, pending_offset, rest


class _SharedSync:
    """Lets threads that wait for the same file share a sync: who comes while one runs waits for the next, which covers all of them."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._asked = 0
        self._done = 0
        self._running = False

    def wait(self, sync: Callable[[], None]) -> None:
        with self._condition:
            self._asked += 1
            mine = self._asked
            while self._running and self._done < mine:
                self._condition.wait()
            if self._done >= mine:
                return
            self._running = True
            covered = self._asked
        try:
            sync()
        except BaseException:
            with self._condition:
                self._running = False
                self._condition.notify_all()
            raise
        with self._condition:
            self._running = False
            self._done = max(self._done, covered)
            self._condition.notify_all()
