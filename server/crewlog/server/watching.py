"""Being told by the system where something changed: which folder, which name. What changed is found out by looking.

On Linux the folders are given to watchdog's shared inotify reader: one instance and one thread, however many folders, and only the events
of changes (its observers ask for opens and closes too, which our own reading makes). Elsewhere watchdog's observer does it. Where the
system has no more watches, or the folder is on a network file system, the folders are looked at twice a second.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol

Told = Callable[[str, "str | None"], None]
"""(folder, name); name None: anything in it, or the folder itself. Called in a thread of the watcher's."""

POLL_SECONDS = 0.5
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs", "lustre", "vboxsf"}
)
log = logging.getLogger(__name__)


class Unwatchable(Exception):
    """The system cannot watch; the text says why."""


class Watcher(Protocol):
    """Watches folders, not what is in folders in them. Thread-safe."""

    kind: str
    reason: str

    def watch(self, folder: str) -> bool:
        """Begins to watch; False where the folder does not exist. Raises `Unwatchable`."""

    def unwatch(self, folder: str) -> None: ...

    def close(self) -> None: ...


class InotifyWatcher:
    """On Linux."""

    kind = "inotify"
    reason = ""

    def __init__(self, told: Told, overflowed: Callable[[], None]) -> None:
        from watchdog.observers.inotify_c import InotifyConstants, InotifyFD

        c = InotifyConstants
        self._mask = (
            c.IN_MODIFY | c.IN_CREATE | c.IN_DELETE | c.IN_MOVED_FROM | c.IN_MOVED_TO | c.IN_DELETE_SELF | c.IN_MOVE_SELF | c.IN_ONLYDIR
        )
        self._told = told
        self._overflowed = overflowed
        self._mutex = threading.Lock()
        self._folders: dict[int, str] = {}
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
                descriptor = self._inotify.add_callback(os.fsencode(folder), self._mask, self, id(self))  # type: ignore[arg-type]
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR):
                    return False
                raise Unwatchable(_why(error)) from error
            self._folders[descriptor] = folder
            self._descriptors[folder] = descriptor
            return True

    def unwatch(self, folder: str) -> None:
        with self._mutex:
            descriptor = self._descriptors.pop(folder, None)
            if descriptor is not None:
                self._folders.pop(descriptor, None)
                self._inotify.remove_callbacks([(descriptor, id(self))])  # type: ignore[list-item]

    def close(self) -> None:
        self._inotify.stop()

    def on_event(self, event: object) -> None:
        """Called by watchdog."""
        folder = self._folders.get(event.wd)  # type: ignore[attr-defined]
        if folder is None:
            return
        name = os.fsdecode(event.name) if event.name else None  # type: ignore[attr-defined]
        self._told(folder, name)

    def on_watch_deleted(self, wd: int) -> None:
        """Called by watchdog when the folder is gone."""
        with self._mutex:
            folder = self._folders.pop(wd, None)
            if folder is not None:
                self._descriptors.pop(folder, None)
        if folder is not None:
            self._told(folder, None)

    def on_queue_overflow(self) -> None:
        """Called by watchdog when the kernel dropped events."""
        self._overflowed()


class ObserverWatcher:
    """Where there is no inotify: FSEvents, kqueue, Windows."""

    reason = ""

    def __init__(self, told: Told, overflowed: Callable[[], None]) -> None:
        from watchdog.events import FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type in ("opened", "closed_no_write"):
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
            self._observer.unschedule(watch)  # type: ignore[arg-type]

    def close(self) -> None:
        self._observer.stop()


class PollingWatcher:
    """Looks at the folders' files twice a second."""

    kind = "polling"

    def __init__(self, told: Told, reason: str) -> None:
        self.reason = reason
        self._told = told
        self._mutex = threading.Lock()
        self._seen: dict[str, dict[str, tuple[int, int, int]] | None] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._work, name="crewlog-poll", daemon=True).start()

    def watch(self, folder: str) -> bool:
        with self._mutex:
            if folder not in self._seen:
                self._seen[folder] = _stamps(folder)
            return self._seen[folder] is not None

    def unwatch(self, folder: str) -> None:
        with self._mutex:
            self._seen.pop(folder, None)

    def close(self) -> None:
        self._ended.set()

    def _work(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            with self._mutex:
                folders = list(self._seen.items())
            for folder, before in folders:
                now = _stamps(folder)
                with self._mutex:
                    if folder in self._seen:
                        self._seen[folder] = now
                if now is None or before is None:
                    if now is not before:
                        self._told(folder, None)
                    continue
                for name in now.keys() | before.keys():
                    if now.get(name) != before.get(name):
                        self._told(folder, name)


def _stamps(folder: str) -> dict[str, tuple[int, int, int]] | None:
    found = {}
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
    """The best watcher for folders under `folder`."""
    forced = os.environ.get("CREWLOG_WATCHER", "")
    kind = _file_system(folder)
    if forced == "polling":
        return PollingWatcher(told, "CREWLOG_WATCHER=polling")
    if kind in _NETWORK_FILE_SYSTEMS:
        return PollingWatcher(told, f"the home is on a network file system ({kind})")
    try:
        if sys.platform == "linux":
            try:
                return InotifyWatcher(told, overflowed)
            except (ImportError, AttributeError, TypeError) as error:
                log.warning("watchdog's inotify reader is another than expected (%s); using its observer", error)
        return ObserverWatcher(told, overflowed)
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
