"""A single-document JSON file that is replaced whole under its lock, and known again by its stamp."""

from __future__ import annotations

import os
import stat

from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import POWER, Durability, make_folder, remove_file, replace_file, require_inside
from crewlog.storage.locks import ResourceLock, require_waiting

Stamp = tuple[int, int, int]


class DocumentFile:
    """The file at `path`. Not thread-safe. Raises `StorageFailed`.

    Two changes within one tick of the file system's clock are told apart by the inode, which a replacement always changes, and by the
    time, which each replacement has of its own.
    """

    def __init__(self, path: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.path = path
        self.durability = durability
        self.root = root or os.path.dirname(path)
        self.lock = ResourceLock(path, root=self.root)
        self._stamp: Stamp | None = None

    def stamp(self) -> Stamp | None:
        """None where the file is not there; one `stat`."""
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        if not stat.S_ISREG(status.st_mode):
            raise StorageFailed(self.path, "EINVAL", "it is no regular file")  # to open a pipe would wait for its other end
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def is_current(self) -> bool:
        """Whether the file is as it was last read or written."""
        return self.stamp() == self._stamp

    def read(self) -> bytes | None:
        """None where the file is not there."""
        stamp = self.stamp()
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except (FileNotFoundError, NotADirectoryError):
            self._stamp = None
            return None
        except OSError as error:
            raise StorageFailed.from_os(error, self.path) from error
        self._stamp = stamp
        return content

    def mark_unread(self) -> None:
        """To be called when what was read could not be used: the next look reads it again."""
        self._stamp = (-1, -1, -1)

    def begin(self) -> None:
        """To be called before the lock is taken: makes the folder, and refuses inside `without_waiting` where writing would wait."""
        if self.durability.replacing_waits:
            require_waiting()
        require_inside(os.path.dirname(self.path), self.root)
        make_folder(os.path.dirname(self.path), self.durability)

    def write(self, content: bytes) -> None:
        """Under the lock."""
        require_inside(self.path, self.root)
        status = replace_file(self.path, content, self.durability)
        self._stamp = (status.st_mtime_ns, status.st_size, status.st_ino)

    def remove(self) -> bool:
        """Under the lock; whether it was there."""
        existed = remove_file(self.path, self.durability)
        self._stamp = None
        return existed
