"""A task list's ledger: which tasks Crewlog changed, in order, who claimed them, and changes of several files that must be finished.

It stands in the list's `.crewlog` folder, is appended to under the list's lock, and lets a reader that knows it up to byte N see with one
`stat` whether anything changed, and with one read what: the time stamps of file systems are too coarse for that. codebot ignores it.

Each line is written before the change that it tells of. A reader therefore looks again at the tasks that the last line names, until
there is a newer one: until then the change may still be under way. A change of several files is staged beside the files first; its
line names every move, so that whoever comes after a crash finishes it, and a line `done` tells that it is.

Losing the ledger loses leases (the claims stay, without their end) and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable

import msgspec

from crewlog.storage import times
from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import FILE_MODE, NO_LINK, PROCESS, SIDE_FOLDER, Durability, append_all, replace_file, side_folder, sync_data
from crewlog.storage.records import Claim

COMPACT_AT = 512 << 10
"""Bytes after which the ledger is rewritten to what still counts; later, where that alone is half as much: a list may have many claims."""
PAST_KEPT = 1000
"""Takings kept beside those that count, the last ones: the file of an older state of the list may come back, and name their owners."""
_PRINT = 64
"""Bytes before the known end that are compared: a file that replaced another may bear the number of one before it."""
_NAME = "ledger"


class Taking(msgspec.Struct, omit_defaults=True):
    """One taking of a task. With `lease_ms` it lapses at `until` (nanoseconds of the boot clock of the boot `boot`)."""

    id: str
    owner: str
    generation: int
    lease_ms: int = 0
    until: int = 0
    wall_until: int = 0
    boot: str = ""
    host: str = ""

    def lapses_in(self) -> float | None:
        """Seconds until the lease lapses, negative afterwards, None without a lease.

        Measured by the clock that runs since boot while the machine is awake, which nobody sets; a lease of another boot of this host
        ended with it. Only for a lease of another host, on a shared file system, the wall clock is all there is.
        """
        if not self.lease_ms:
            return None
        if self.host == HOST:
            return (self.until - boot_ns()) / 1e9 if self.boot == BOOT else -1.0
        return (self.wall_until - time.time_ns()) / 1e9

    def claim(self) -> Claim:
        left = self.lapses_in()
        if left is None:
            return Claim(self.owner, self.generation)
        return Claim(self.owner, self.generation, times.format_ns(time.time_ns() + int(left * 1e9)), left <= 0)


class Line(msgspec.Struct, omit_defaults=True):
    """One line. `ids`: tasks that may change; `high`: the highest id given out; `moves`: [from, to] file names.

    `stamps`: what files that are moved aside were like, by name: one that is another by then was put there by somebody else. `kept`:
    second names of the files that are replaced, to be removed at the end.
    """

    n: int
    ids: list[str] = []
    high: int = 0
    takings: list[Taking] = []
    renewed: Taking | None = None
    moves: list[tuple[str, str]] = []
    stamps: dict[str, tuple[int, int, int]] = {}
    kept: list[str] = []
    done: bool = False
    everything: bool = False


class Reading(msgspec.Struct):
    """What a look at the ledger brought.

    `fresh`: there were new lines; `ids`: tasks to look at again; `everything`: all of them; `taken`, `renewed`: tasks that were
    taken, and whose lease moved.
    """

    ids: set[str]
    fresh: bool = False
    everything: bool = False
    taken: set[str] = set()
    renewed: set[str] = set()


_decoder = msgspec.json.Decoder(Line)


class Ledger:
    """The ledger of the list in `folder`, as far as it was read. Not thread-safe; writers hold the list's lock."""

    def __init__(self, folder: str, durability: Durability = PROCESS) -> None:
        self._path = os.path.join(folder, SIDE_FOLDER, _NAME)
        self._folder = folder
        self._durability = durability
        self._made = False
        self._identity = (0, 0)
        self._offset = 0
        self._time = 0
        self._print = b""
        self._compacted_size = 0
        self._number = 0
        self._written = (0, 0)
        self._last_ids: list[str] = []
        self._descriptor = -1
        self._descriptor_identity = (0, 0)
        self.high = 0
        self.takings: dict[str, dict[str, Taking]] = {}
        """By task and owner: the one that counts is that of the owner whom the task's file names."""
        self.unfinished: Line | None = None
        self.owner_of: Callable[[str], str] = lambda task_id: ""
        """The owner whom a task's file names: his taking counts."""

    def is_current(self) -> bool:
        """Whether all is read, and no change of several files is under way; one `stat`."""
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        return self._is_as_read(status) and self.unfinished is None

    def _is_as_read(self, status: os.stat_result) -> bool:
        return (status.st_size, status.st_mtime_ns) == (self._offset, self._time) and (status.st_dev, status.st_ino) == self._identity

    def read(self) -> Reading:
        """What is new, with one `stat` where nothing is. Raises `StorageFailed`."""
        found = Reading(set(self._last_ids))
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            if self._identity != (0, 0):
                self._forget()
                found.everything = True
            return found
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        if (status.st_dev, status.st_ino) != self._identity or status.st_size < self._offset:
            known = self._identity != (0, 0)
            self._forget()
            self._identity = (status.st_dev, status.st_ino)
            found.everything = known
        if not self._is_as_read(status):
            self._read_lines(found)
        return found

    def _read_lines(self, found: Reading) -> None:
        try:
            with open(self._path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                known = len(self._print)
                content = os.pread(file.fileno(), status.st_size - self._offset + known, self._offset - known)
                if not content.startswith(self._print):  # another file than the one that was read
                    self._forget()
                    found.everything = True
                    known, content = 0, os.pread(file.fileno(), status.st_size, 0)
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        self._identity, self._time = (status.st_dev, status.st_ino), status.st_mtime_ns
        whole = content.rfind(b"\n") + 1
        if not self._offset:
            self._compacted_size = content.find(b"\n") + 1
        for raw in content[known:whole].splitlines():
            try:
                line = _decoder.decode(raw)
            except msgspec.MsgspecError:
                found.everything = True  # a line torn by a crash or by hand: whatever it told of is found by looking
                continue
            self._apply(line, found)
            found.fresh = True
        self._note_end(self._offset + max(whole - known, 0), content[known:whole])

    def _note_end(self, offset: int, last: bytes) -> None:
        """`last`: what stands between the end that was known and this one."""
        self._offset = offset
        self._print = (self._print + last)[-_PRINT:]

    def _apply(self, line: Line, found: Reading) -> None:
        self._number = max(self._number, line.n)
        self.high = max(self.high, line.high)
        for taking in line.takings:
            self.takings.setdefault(taking.id, {})[taking.owner] = taking
            found.taken.add(taking.id)
        if line.renewed is not None:
            self.takings.setdefault(line.renewed.id, {})[line.renewed.owner] = line.renewed
            found.renewed.add(line.renewed.id)
        if line.done:
            self.unfinished = None
        if line.ids or line.moves:
            found.ids.update(line.ids)
            self._last_ids = line.ids
            self.unfinished = line if line.moves else None
        found.everything = found.everything or line.everything

    def write(self, line: Line) -> None:
        """Appends under the lock, after `read`. All or nothing; raises `StorageFailed`. Waits for the device, where the list does, with
        what cannot be told from the files: how a change of several of them ends, and that a claim has an end.
        """
        sync = self._durability.replacing_waits and (bool(line.moves) or self._begins_a_lease(line))
        self._number += 1
        line.n = self._number
        raw = msgspec.json.encode(line) + b"\n"
        try:
            descriptor = self._open()
            size = os.fstat(descriptor).st_size
            if size > self._offset:  # a line that a crash tore: it must not swallow ours
                raw = b"\n" + raw
                self._print = b""
            append_all(descriptor, raw, size)
            self._written = (size, size + len(raw))
            if sync:
                self._sync(descriptor)
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        self._time = -1
        with contextlib.suppress(OSError):  # it is read again then
            self._time = os.fstat(descriptor).st_mtime_ns
        self._note_end(size + len(raw), raw)
        self._apply(line, Reading(set()))
        if self._offset > max(COMPACT_AT, 2 * self._compacted_size) and self.unfinished is None:
            with contextlib.suppress(StorageFailed):  # what was to be written is; the next line tries again
                self._compact()

    def _begins_a_lease(self, line: Line) -> bool:
        if line.renewed is not None and line.renewed.lease_ms:
            known = self.takings.get(line.renewed.id, {}).get(line.renewed.owner)
            if known is None or not known.lease_ms:
                return True
        return any(taking.lease_ms for taking in line.takings)

    def _sync(self, descriptor: int) -> None:
        try:
            sync_data(descriptor)
            if self._made:
                self._durability.replaced(os.path.dirname(self._path))
                self._made = False
        except OSError:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Drops the line that was written last, under the lock; all is read anew then. Raises `StorageFailed`.

        The file is replaced: who has read the line already would not notice that a file was cut and grew again.
        """
        start, end = self._written
        try:
            with open(self._path, "rb", buffering=0) as file:
                content = os.pread(file.fileno(), start, 0)
                if os.fstat(file.fileno()).st_size != end:
                    return  # something follows it, and counts in its place
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        replace_file(self._path, content, PROCESS)
        self.close()
        self._forget()

    def forget_task(self, task_id: str) -> None:
        self.takings.pop(task_id, None)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        try:
            status = os.stat(self._path)
            if self._descriptor >= 0 and (status.st_dev, status.st_ino) == self._descriptor_identity:
                return self._descriptor
        except FileNotFoundError:
            side_folder(self._folder)
            self._made = True
        self.close()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINK
        self._descriptor = os.open(self._path, flags, FILE_MODE)
        status = os.fstat(self._descriptor)
        self._descriptor_identity = (status.st_dev, status.st_ino)
        if self._identity != self._descriptor_identity:
            self._identity = self._descriptor_identity
            self._offset, self._print = 0, b""
        return self._descriptor

    def _compact(self) -> None:
        self._forget_what_is_long_past()
        takings = [taking for by_owner in self.takings.values() for taking in by_owner.values()]
        line = Line(self._number + 1, high=self.high, takings=takings, ids=self._last_ids)
        raw = msgspec.json.encode(line) + b"\n"
        status = replace_file(self._path, raw, self._durability)
        self._number = line.n
        self._identity, self._time = (status.st_dev, status.st_ino), status.st_mtime_ns
        self._print = b""
        self._note_end(len(raw), raw)
        self._compacted_size = len(raw)
        self.close()

    def _forget_what_is_long_past(self) -> None:
        """Else every name under which a task was ever taken would be kept, and every task that is gone."""
        past = [taking for by_owner in self.takings.values() for taking in by_owner.values() if taking.owner != self.owner_of(taking.id)]
        past.sort(key=lambda taking: taking.generation)
        for taking in past[:-PAST_KEPT]:
            by_owner = self.takings[taking.id]
            del by_owner[taking.owner]
            if not by_owner:
                del self.takings[taking.id]

    def _forget(self) -> None:
        """Begins anew, but never forgets an id that was given out."""
        self._identity = (0, 0)
        self._offset, self._print = 0, b""
        self._last_ids = []
        self.takings = {}
        self.unfinished = None


def boot_ns() -> int:
    """Nanoseconds since boot for which this machine was awake: the same count in every process of it.

    While it sleeps nobody works and nobody can renew; timers stand still as well.
    """
    return time.monotonic_ns()


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


BOOT = _boot_id()
HOST = socket.gethostname()


def new_taking(task_id: str, owner: str, previous: int, lease_ms: int = 0) -> Taking:
    """A taking later than the one numbered `previous`. Numbered by the clock, so that it rises even where the ledger was lost."""
    return with_lease(Taking(task_id, owner, max(previous + 1, time.time_ns() // 1000)), lease_ms)


def with_lease(taking: Taking, lease_ms: int) -> Taking:
    """The same taking, to lapse `lease_ms` from now; never with 0."""
    if not lease_ms:
        return msgspec.structs.replace(taking, lease_ms=0, until=0, wall_until=0)
    span = lease_ms * 1_000_000
    return msgspec.structs.replace(
        taking, lease_ms=lease_ms, until=boot_ns() + span, wall_until=time.time_ns() + span, boot=BOOT, host=HOST
    )


def with_longer_lease(taking: Taking, lease_ms: int) -> Taking:
    """As `with_lease`, but a lease that ends later than that stays as it is."""
    renewed = with_lease(taking, lease_ms)
    left = taking.lapses_in()
    return taking if left is not None and left * 1000 > lease_ms else renewed
