"""Advisory locks between processes, one a resource, that die with their holder.

The lock of a file F is `dirname(F)/.crewlog/basename(F).lock`, that of a folder D is `D/.crewlog/folder.lock`: every program that
knows the path knows the lock. The kernel's lock on that file (flock; on Windows a byte range) is the lock; the file's content only
names the holder, for the error message of whoever waits in vain, and is never deleted while somebody may hold it. A lock file that
is unlinked under a holder (`rm -rf` of the home) stops being the lock: after taking it, the path must still lead to the same file.

Not built on `filelock`, which opens and closes a file for each taking, looks only every 50 ms, and cannot tell who holds a lock:
an append takes 10 µs here, of which the lock is 3.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import weakref

import msgspec

from crewlog.storage import times
from crewlog.storage.errors import Busy, StorageFailed, WouldBlock
from crewlog.storage.files import FILE_MODE, NO_LINK, require_inside, side_folder

if sys.platform == "win32":
    from crewlog.storage import _lock_windows as _system
else:
    from crewlog.storage import _lock_posix as _system

TIMEOUT = 10.0
"""Seconds after which a lock that somebody else holds is reported as `Busy`."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_1, 0.01
_HOLDER_SIZE = 512
_waiting = threading.local()
_all_locks: weakref.WeakSet[ResourceLock] = weakref.WeakSet()
_client_name = ""


class Holder(msgspec.Struct, omit_defaults=True):
    """Who holds a lock. `started`: the process's start in the kernel's own count, since pids are reused."""

    pid: int
    started: int
    host: str
    client: str = ""


def name_client(name: str) -> None:
    """Sets the name under which this process is shown to those who wait for its locks."""
    global _client_name
    _client_name = name[:80]
    _holder_record.cache = b""


class without_waiting:  # read as the context that it is
    """Inside, this thread waits for nothing and does nothing long: such calls raise `WouldBlock` before any effect."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = getattr(_waiting, "refused", False)
        _waiting.refused = True

    def __exit__(self, *_: object) -> None:
        _waiting.refused = self._before


def may_wait() -> bool:
    """False inside `without_waiting`."""
    return not getattr(_waiting, "refused", False)


def require_waiting() -> None:
    """Raises `WouldBlock` inside `without_waiting`; to be called before anything long, and before any effect."""
    if getattr(_waiting, "refused", False):
        raise WouldBlock


class Mutex:
    """A reentrant lock between threads. Where it is taken and this thread must not wait, entering raises `WouldBlock`."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            require_waiting()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class ResourceLock:
    """The lock of one file, or with `folder` of one folder. A context manager; not reentrant.

    Between threads that share the object it excludes as well. `root`: the folder that symbolic links must not lead out of.
    `existing`: no lock is made for a resource that is gone (`StorageFailed`, ENOENT).
    Entering raises `Busy` after `timeout` seconds (at once while a holding goes on that was waited out before), `StorageFailed` where no
    lock file can be made, `WouldBlock` inside `without_waiting`.
    """

    def __init__(
        self, resource: str, *, folder: bool = False, root: str | None = None, timeout: float = TIMEOUT, existing: bool = False
    ) -> None:
        self.resource = resource
        self.timeout = timeout
        self._folder = folder
        self._existing = existing
        self._root = root
        self._path = ""
        self._descriptor = -1
        self._file = (0, 0)
        self._thread_lock = threading.Lock()
        self._stuck: bytes | None = None
        self.held = False
        """Whether the lock is taken through this object."""
        _all_locks.add(self)

    def __enter__(self) -> ResourceLock:
        if not self._thread_lock.acquire(blocking=False):
            require_waiting()
            if not self._thread_lock.acquire(timeout=self.timeout):
                raise Busy(self.resource, msgspec.to_builtins(_this_process()))
        try:
            self._take()
        except BaseException:
            self._thread_lock.release()
            raise
        self.held = True
        return self

    def __exit__(self, *_: object) -> None:
        self.held = False
        try:
            _system.unlock(self._descriptor)
        finally:
            self._thread_lock.release()

    @property
    def opened(self) -> bool:
        """Whether it was taken before: then nothing is made when it is taken again, but where its file was removed."""
        return self._descriptor >= 0

    def close(self) -> None:
        """Gives the descriptor back; entering again opens a new one."""
        with self._thread_lock:
            self._forget()

    def _take(self) -> None:
        while True:
            if self._descriptor < 0:
                self._open()
            if not _system.try_lock(self._descriptor):
                self._wait()
            if self._is_still_the_lock():
                try:
                    os.pwrite(self._descriptor, _holder_record(), 0)
                except OSError:
                    pass  # naming the holder is a courtesy: a full disk must not forbid the lock
                self._stuck = None
                return
            self._forget()

    def _wait(self) -> None:
        """Returns with the lock taken. Of those who queue for one that is stuck only the first waits the whole time."""
        require_waiting()
        if self._stuck is not None and self._stuck == self._holding():
            raise Busy(self.resource, self._read_holder())
        begun = time.monotonic()
        pause = _FIRST_PAUSE
        while not _system.try_lock(self._descriptor):
            waited = time.monotonic() - begun
            if waited >= self.timeout:
                self._stuck = self._holding()
                raise Busy(self.resource, self._read_holder())
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)  # many that look all the time would take the processor from the holder

    def _open(self) -> None:
        folder = self.resource if self._folder else os.path.dirname(self.resource)
        name = "folder" if self._folder else os.path.basename(self.resource)
        if not self._folder and os.path.islink(self.resource):
            folder, name = os.path.split(os.path.realpath(self.resource))
        if self._root is not None:
            require_inside(self.resource, self._root)
        if self._existing and not os.path.lexists(self.resource):
            raise StorageFailed(self.resource, "ENOENT", "the file is gone")
        path = os.path.join(side_folder(os.path.realpath(folder)), name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, FILE_MODE)
        except OSError as error:
            raise StorageFailed.from_os(error, path) from error
        status = os.fstat(descriptor)
        self._path, self._descriptor, self._file = path, descriptor, (status.st_dev, status.st_ino)

    def _is_still_the_lock(self) -> bool:
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._file

    def _forget(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _holding(self) -> bytes | None:
        """What tells one holding of the lock from another: whoever takes it writes to its file."""
        try:
            return b"%d %b" % (os.fstat(self._descriptor).st_mtime_ns, os.pread(self._descriptor, _HOLDER_SIZE, 0))
        except OSError:
            return None

    def _read_holder(self) -> dict[str, str | int]:
        try:
            record = os.pread(self._descriptor, _HOLDER_SIZE, 0)
            holder = msgspec.json.decode(record.rstrip(b"\x00 \n"), type=Holder)
            since = os.fstat(self._descriptor).st_mtime_ns
        except (OSError, msgspec.MsgspecError):
            return {}
        if holder.host == socket.gethostname() and _system.process_start(holder.pid) != holder.started:
            return {}
        return {"pid": holder.pid, "client": holder.client, "host": holder.host, "since": times.format_ns(since)}

    def __del__(self) -> None:
        self._forget()


def is_same_process(holder: Holder) -> bool:
    """Whether the holder still lives, on this host: its pid may belong to another process by now."""
    return _system.process_start(holder.pid) == holder.started


def _this_process() -> Holder:
    return Holder(os.getpid(), _system.process_start(os.getpid()), socket.gethostname(), _client_name)


class _HolderRecord:
    """This process's `Holder` as it stands in a lock file, made once."""

    cache = b""

    def __call__(self) -> bytes:
        if not self.cache:
            self.cache = msgspec.json.encode(_this_process())[: _HOLDER_SIZE - 1].ljust(_HOLDER_SIZE - 1) + b"\n"
        return self.cache


_holder_record = _HolderRecord()


def _after_fork_in_child() -> None:
    """A forked child shares its parent's open files, and with them its locks: it must open its own."""
    _holder_record.cache = b""
    for lock in list(_all_locks):
        lock._thread_lock = threading.Lock()
        lock._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
