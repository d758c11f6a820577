"""Files that only their user can read, replaced whole or appended to whole, never outside the folder they belong to.

Replacing follows the known recipe (temporary file in the same folder, sync, rename, sync of the folder): a reader sees the old
content or the new, and so does the machine after a power cut.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from crewlog.storage.errors import StorageFailed

FILE_MODE = 0o600
FOLDER_MODE = 0o700
SIDE_FOLDER = ".crewlog"
"""Beside the files of a folder: their locks, a task list's ledger, the derived index. codebot ignores it; so does git."""

NO_LINK = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""For files of our own that are no records (locks, ledgers): a link in their place would lead a write elsewhere."""

Undo = Callable[[], bool]
"""Takes back what was appended; whether it could. False where something was written behind it."""

_temporary_numbers = itertools.count(1)


class Durability(Protocol):
    """How far a write has got when the call that made it returns."""

    @property
    def replacing_waits(self) -> bool:
        """Whether replacing a file waits for the device, so that it must not be done on an event loop."""

    @property
    def appending_waits(self) -> bool:
        """The same of appending lines."""

    def replacing(self, descriptor: int) -> None:
        """Called with a complete temporary file before it is renamed over the old one."""

    def replaced(self, folder: str) -> None:
        """Called after names in `folder` changed (rename, create, delete)."""

    def appended(self, descriptor: int, undo: Undo) -> None:
        """Called after whole lines were appended. Where it raises, the caller takes them back; `undo` is for what fails later."""


class _Power:
    replacing_waits = True
    appending_waits = True

    def replacing(self, descriptor: int) -> None:
        sync_data(descriptor)

    def replaced(self, folder: str) -> None:
        sync_folder(folder)

    def appended(self, descriptor: int, undo: Undo) -> None:
        sync_data(descriptor)


class _Process:
    replacing_waits = False
    appending_waits = False

    def replacing(self, descriptor: int) -> None:
        pass

    def replaced(self, folder: str) -> None:
        pass

    def appended(self, descriptor: int, undo: Undo) -> None:
        pass


POWER: Durability = _Power()
"""On the device before the call returns: survives a power cut."""
PROCESS: Durability = _Process()
"""With the kernel before the call returns: survives the death of every process, not of the machine."""


if hasattr(os, "fdatasync"):

    def sync_data(descriptor: int) -> None:
        """Waits until the file's content is on the device."""
        os.fdatasync(descriptor)
else:  # not on this platform: macOS
    import fcntl

    def sync_data(descriptor: int) -> None:
        """Waits until the file's content is on the device; macOS needs its own call for that."""
        full_sync = getattr(fcntl, "F_FULLFSYNC", None)
        if full_sync is None:
            os.fsync(descriptor)
        else:
            fcntl.fcntl(descriptor, full_sync)


def sync_folder(folder: str) -> None:
    """Waits until the names in `folder` are on the device. Where folders cannot be opened (Windows) there is nothing to do."""
    if os.name == "nt":  # not on this platform
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: str, durability: Durability = PROCESS) -> None:
    """Creates `folder` and what is missing above it, each for its user only. Raises `StorageFailed`."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    if above and above != folder:
        make_folder(above, durability)
    try:
        os.mkdir(folder, FOLDER_MODE)
        durability.replaced(above)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise StorageFailed(folder, "ENOTDIR", "a file is where a folder is needed") from None
    except OSError as error:
        raise StorageFailed.from_os(error, folder) from error


def side_folder(folder: str) -> str:
    """`folder`'s `.crewlog`, created with a `.gitignore` of its own where it is missing. Raises `StorageFailed`."""
    path = os.path.join(folder, SIDE_FOLDER)
    if os.path.islink(path):
        raise StorageFailed(path, "ELOOP", "locks and ledgers are not kept behind a symbolic link; remove it")
    if not os.path.isdir(path):
        make_folder(path)
        _write_ignore(os.path.join(path, ".gitignore"))
    return path


def _write_ignore(path: str) -> None:
    try:
        descriptor = os.open(path, _NEW, FILE_MODE)
    except FileExistsError:
        return
    except OSError as error:
        raise StorageFailed.from_os(error, path) from error
    try:
        try:
            write_all(descriptor, b"*\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        unlink_quietly(path)
        with contextlib.suppress(OSError):  # so that the next one who needs the folder writes the file with it
            os.rmdir(os.path.dirname(path))
        raise StorageFailed.from_os(error, path) from error


def require_inside(path: str, root: str) -> None:
    """Raises `StorageFailed` where writing to `path` would, by a symbolic link, write outside the folder `root`.

    `root` itself may be a link. What `path` names need not exist.
    """
    real_root = os.path.realpath(root)
    real_path = os.path.realpath(path)
    if real_path != real_root and not real_path.startswith(real_root.rstrip(os.sep) + os.sep):
        raise StorageFailed(path, "ELOOP", f"a symbolic link leads out of {root}; remove the link, or move the files in")


def temporary_name(path: str, folder: str = "") -> str:
    """A name beside `path`, or in `folder`, that nobody else uses and that neither codebot nor Crewlog takes for a record."""
    beside, name = os.path.split(path)
    return os.path.join(folder or beside, f".{name}.{os.getpid()}-{next(_temporary_numbers)}-{os.urandom(2).hex()}.tmp")


def stage(path: str, content: bytes, durability: Durability, folder: str = "") -> str:
    """Writes `content` to a temporary file beside `path`, or in `folder`, and returns its name; `os.replace` makes it real.

    Raises `StorageFailed` and leaves nothing behind.
    """
    temporary = temporary_name(path, folder)
    try:
        descriptor = os.open(temporary, _NEW, FILE_MODE)
    except OSError as error:
        raise StorageFailed.from_os(error, path) from error
    try:
        try:
            write_all(descriptor, content)
            _stamp(descriptor)
            durability.replacing(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        unlink_quietly(temporary)
        raise StorageFailed.from_os(error, path) from error
    return temporary


if os.utime in os.supports_fd:

    def _stamp(descriptor: int) -> None:
        """Gives the file a time of its own: the system's are as coarse as its clock's tick, and the number of a file that was replaced
        is soon another's, so that a file replaced twice within a tick could not be told from what it was.
        """
        now = time.time_ns()
        os.utime(descriptor, ns=(now, now))
else:  # not on this platform: Windows

    def _stamp(descriptor: int) -> None:
        pass


def replace_file(path: str, content: bytes, durability: Durability = POWER) -> os.stat_result:
    """Makes `content` the content of `path` in one step; returns the new file's stat.

    Raises `StorageFailed`: then the old file stands as it was and nothing is left behind.
    """
    return put_in_place(stage(path, content, durability), path, durability)


def name_new_file(staged: str, path: str) -> None:
    """Makes the file `staged` the one at `path`, where there is none. Raises `OSError`, and `FileExistsError` where there is one."""
    try:
        os.link(staged, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, or a name that cannot be made
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.rename(staged, path)
    else:
        unlink_quietly(staged)


def put_in_place(staged: str, path: str, durability: Durability, folder: str = "") -> os.stat_result:
    """Makes the file `staged` the one at `path`; returns its stat. Raises as `replace_file` does; `staged` is gone then, too.

    `folder`: where the old file is kept meanwhile, if not beside the new one.
    """
    kept = ""
    try:
        status = os.stat(staged)
        if durability.replacing_waits:
            kept = keep(path, folder)
        os.replace(staged, path)
    except OSError as error:
        unlink_quietly(staged)
        if kept:
            unlink_quietly(kept)
        raise StorageFailed.from_os(error, path) from error
    try:
        durability.replaced(os.path.dirname(path))
    except OSError as error:
        put_back(kept, path)
        raise StorageFailed.from_os(error, path) from error
    if kept:
        unlink_quietly(kept)
    return status


def keep(path: str, folder: str = "") -> str:
    """A second name for the file at `path`, to `put_back`; "" where there is no file. Raises `OSError`."""
    kept = temporary_name(path, folder)
    try:
        os.link(path, kept, follow_symlinks=False)
    except FileNotFoundError:
        return ""
    except OSError:  # a file system without hard links
        if not os.path.lexists(path):
            return ""
        os.close(os.open(kept, _NEW, FILE_MODE))
        try:
            shutil.copy2(path, kept)
        except OSError:
            unlink_quietly(kept)
            raise
    return kept


def put_back(kept: str, path: str) -> None:
    """Undoes a replacement: what `keep` returned stands at `path` again, or nothing does. The error that led here is the one to tell."""
    with contextlib.suppress(OSError):
        if kept:
            os.replace(kept, path)
            unlink_quietly(kept)  # renaming to another name of the same file does nothing
        else:
            os.unlink(path)


def remove_file(path: str, durability: Durability) -> bool:
    """Whether it was there. Raises `StorageFailed`: then it still is."""
    if not durability.replacing_waits:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageFailed.from_os(error, path) from error
        return True
    aside = temporary_name(path)
    try:
        os.replace(path, aside)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageFailed.from_os(error, path) from error
    try:
        durability.replaced(os.path.dirname(path))
    except OSError as error:
        put_back(aside, path)
        raise StorageFailed.from_os(error, path) from error
    unlink_quietly(aside)
    return True


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK


def write_all(descriptor: int, content: bytes) -> None:
    """`os.write` until all is written; a short write is followed by the error that caused it. Raises `OSError`."""
    view = memoryview(content)
    while view:
        written = os.write(descriptor, view)
        if written == 0:
            raise OSError(errno.EIO, "nothing was written")
        view = view[written:]


def append_all(descriptor: int, content: bytes, size_before: int) -> None:
    """Appends `content` whole or not at all: after an error the file is cut back to `size_before`, unless somebody else wrote behind
    it meanwhile. Raises `OSError`.
    """
    view = memoryview(content)
    try:
        while view:
            written = os.write(descriptor, view)
            if written == 0:
                raise OSError(errno.EIO, "nothing was written")
            view = view[written:]
    except OSError:
        with contextlib.suppress(OSError):  # the first error is the one to tell; a torn tail is mended by the next append
            if os.fstat(descriptor).st_size == size_before + len(content) - len(view):
                os.ftruncate(descriptor, size_before)
        raise


def take_back(undos: Iterable[Undo]) -> None:
    """Calls each until none has an effect any more: of lines that follow each other, only the last can be cut off."""
    left = list(undos)
    while True:
        stuck = [undo for undo in left if not undo()]
        if len(stuck) == len(left):
            return
        left = stuck


def unlink_quietly(path: str) -> None:
    """Removes a file of our own that may be gone already; a temporary file that stays is no reason to fail."""
    with contextlib.suppress(OSError):
        os.unlink(path)
