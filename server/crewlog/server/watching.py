"""Being told by the system where something changed: which folder, which name. What changed is found out by looking.

On Linux the folders are given to watchdog's inotify reader directly: one instance and one thread, however many folders, and only the
events of changes (its observers make a thread for each folder, and ask for opens and closes too, which our own reading makes). Elsewhere
watchdog's observer does it. Where the system has no more watches, or the folder is on a network file system, the folders are looked at
twice a second.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

Told = Callable[[str, "str | None"], None]
"""(folder, name). name None: the folder itself went away or moved, and is no longer watched. Called in a thread of the watcher's."""

POLL_SECONDS = 0.5
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs", "lustre", "vboxsf", "prl_fs"}
)
logger = logging.getLogger(__name__)


class Unwatchable(Exception):
    """The system cannot watch; the text says why."""


class Watcher(Protocol):
    """Watches folders, not what is in folders in them. Thread-safe. `reason`: why it is not the system's own."""

    kind: str
    reason: str

    def watch(self, folder: str) -> bool:
        """Begins to watch; False where the folder does not exist. Raises `Unwatchable`."""

    def unwatch(self, folder: str) -> None: ...

    def close(self) -> None: ...


class InotifyWatcher:
    """On Linux. `overflowed` is called when the kernel dropped events."""

    kind = "inotify"
    reason = ""

    def __init__(self, told: Told, overflowed: Callable[[], None]) -> None:
        from watchdog.observers.inotify_c import InotifyConstants as Flags
        from watchdog.observers.inotify_c import InotifyFD

        self._moved = Flags.IN_MOVE_SELF
        changes = Flags.IN_MODIFY | Flags.IN_CREATE | Flags.IN_DELETE | Flags.IN_MOVED_FROM | Flags.IN_MOVED_TO
        self._mask = changes | Flags.IN_MOVE_SELF | Flags.IN_ONLYDIR
        self._told = told
        self._overflowed = overflowed
        self._mutex = threading.RLock()
        self._folders: dict[int, set[str]] = {}
        """By watch: the system has one for a folder, also where links give it several names."""
        self._descriptors: dict[str, int] = {}
        try:
            self._inotify = InotifyFD()
        except OSError as error:
            raise Unwatchable(_why(error)) from error
        self._inotify.daemon = True
        self._inotify.start()

    def watch(self, folder: str) -> bool:
        with self._mutex:
            if folder in self._descriptors:
                return True
            try:
                descriptor = self._inotify.add_callback(os.fsencode(folder), self._mask, self, id(self))  # type: ignore[arg-type]  # NewTypes of int
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR):
                    return False
                raise Unwatchable(_why(error)) from error
            self._folders.setdefault(descriptor, set()).add(folder)
            self._descriptors[folder] = descriptor
            return True

    def unwatch(self, folder: str) -> None:
        with self._mutex:
            descriptor = self._descriptors.pop(folder, None)
            if descriptor is None:
                return
            names = self._folders.get(descriptor, set())
            names.discard(folder)
            if not names:
                self._folders.pop(descriptor, None)
                self._inotify.remove_callbacks([(descriptor, id(self))])  # type: ignore[list-item]  # NewTypes of int

    def close(self) -> None:
        self._inotify.stop()

    def on_event(self, event: _InotifyEvent) -> None:
        """Called by watchdog."""
        moved = bool(event.mask & self._moved)
        with self._mutex:
            folders = list(self._folders.get(event.wd, ()))
            for folder in folders if moved else ():
                self.unwatch(folder)  # the watch would follow a folder that was renamed, and not see what takes its place
        for folder in folders if moved or event.name else ():
            self._told(folder, None if moved else os.fsdecode(event.name))

    def on_watch_deleted(self, wd: int) -> None:
        """Called by watchdog when the kernel ended a watch: the folder was removed, or its file system unmounted."""
        with self._mutex:
            folders = self._folders.pop(wd, set())
            for folder in folders:
                if self._descriptors.get(folder) == wd:
                    del self._descriptors[folder]
        for folder in folders:
            self._told(folder, None)

    def on_queue_overflow(self) -> None:
        """Called by watchdog when the kernel dropped events."""
        self._overflowed()


class _InotifyEvent(Protocol):
    """What is used of watchdog's event."""

    wd: int
    mask: int
    name: bytes


class ObserverWatcher:
    """Where there is no inotify: FSEvents, kqueue, Windows."""

    reason = ""

    def __init__(self, told: Told) -> None:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type in ("opened", "closed", "closed_no_write"):
                    return
                for path in (event.src_path, event.dest_path):
                    if path:
                        folder, name = os.path.split(os.fsdecode(path))
                        told(folder, name)

        self.kind = "fsevents" if sys.platform == "darwin" else "watchdog"
        self._handler = Handler()
        self._observer = Observer()
        self._observer.daemon = True
        self._watches: dict[str, object] = {}
        self._observer.start()

    def watch(self, folder: str) -> bool:
        if folder in self._watches:
            return True
        if not os.path.isdir(folder):
            return False
        try:
            self._watches[folder] = self._observer.schedule(self._handler, folder, recursive=False)
        except OSError as error:
            raise Unwatchable(_why(error)) from error
        return True

    def unwatch(self, folder: str) -> None:
        watch = self._watches.pop(folder, None)
        if watch is not None:
            self._observer.unschedule(watch)  # type: ignore[arg-type]  # an ObservedWatch, whose module is not imported here

    def close(self) -> None:
        self._observer.stop()


_Stamps = dict[str, tuple[int, int, int]]


class PollingWatcher:
    """Looks at the folders' files twice a second."""

    kind = "polling"

    def __init__(self, told: Told, reason: str) -> None:
        self.reason = reason
        self._told = told
        self._mutex = threading.Lock()
        self._seen: dict[str, _Stamps] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._work, name="crewlog-poll", daemon=True).start()

    def watch(self, folder: str) -> bool:
        with self._mutex:
            if folder in self._seen:
                return True
            stamps = _stamps(folder)
            if stamps is None:
                return False
            self._seen[folder] = stamps
            return True

    def unwatch(self, folder: str) -> None:
        with self._mutex:
            self._seen.pop(folder, None)

    def close(self) -> None:
        self._ended.set()

    def _work(self) -> None:
        pause = POLL_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            with self._mutex:
                folders = list(self._seen)
            for folder in folders:
                for name in self._compare(folder):
                    self._told(folder, name)
            pause = max(POLL_SECONDS - (time.monotonic() - began), 0.1)

    def _compare(self, folder: str) -> list[str | None]:
        """The names of what changed since the last look."""
        now = _stamps(folder)
        with self._mutex:
            before = self._seen.get(folder)
            if before is None:
                return []
            if now is None:
                del self._seen[folder]
                return [None]
            self._seen[folder] = now
        return [name for name in now.keys() | before.keys() if now.get(name) != before.get(name)]


def _stamps(folder: str) -> _Stamps | None:
    found: _Stamps = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:
                    continue  # it went away meanwhile: the next look tells
                found[entry.name] = (status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError:
        return None
    return found


def start_watcher(folder: str, told: Told, overflowed: Callable[[], None]) -> Watcher:
    """The best watcher for folders under `folder`. The environment variable CREWLOG_WATCHER=polling asks for looking instead."""
    if os.environ.get("CREWLOG_WATCHER") == "polling":
        return PollingWatcher(told, "CREWLOG_WATCHER=polling asks for it")
    kind = _file_system(folder)
    if kind in _NETWORK_FILE_SYSTEMS:
        return PollingWatcher(told, f"the home is on a network file system ({kind})")
    try:
        if sys.platform == "linux":
            try:
                return InotifyWatcher(told, overflowed)
            except (ImportError, AttributeError, TypeError) as error:  # its reader is no public part of watchdog
                logger.warning("watchdog's inotify reader is another than expected (%s); using its observer", error)
        return ObserverWatcher(told)
    except (Unwatchable, OSError) as error:
        return PollingWatcher(told, str(error))


def _file_system(folder: str) -> str:
    """The type of the file system that `folder` is, or will be, on; "" where that cannot be told."""
    real = os.path.realpath(folder)
    best, kind = "", ""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                _, point, found, *_ = line.split(" ")
                point = point.replace("\\040", " ")
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, found
    except (OSError, ValueError):
        return ""
    return kind


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE):
        return "the system has no more inotify watches: raise fs.inotify.max_user_watches or max_user_instances"
    return f"the system cannot watch: {error.strerror or error}"
