"""The file that holds the highest id ever given out in a task list."""

from __future__ import annotations

import contextlib
import os
import stat

from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import Durability, replace_file

NAME = ".highwatermark"
MAX = (1 << 53) - 1
"""A mark beyond the whole numbers that every JSON reader keeps is absurd, and is recovered from the files."""
_LONGEST = 64


def read_high_water_mark(folder: str) -> int:
    """0 where there is none, or none that can be believed."""
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            text = file.read(_LONGEST).strip()
    except OSError:
        return 0
    if not text.isdigit() or int(text) > MAX:
        return 0
    return int(text)


class HighWaterMark:
    """The mark at `path` while it is raised, and can be set back. Written in place where only digits change, which costs half of a
    replacement; else replaced. Raises `StorageFailed`: then it is as it was.
    """

    def __init__(self, path: str, durability: Durability) -> None:
        self._path = path
        self._durability = durability
        self._before: bytes | None = None
        self._written = False

    def write(self, high: int) -> None:
        content = b"%d" % high
        try:
            descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            self._replace(content)
            return
        except OSError as error:
            raise StorageFailed.from_os(error, self._path) from error
        try:
            self._before = os.pread(descriptor, _LONGEST, 0)
            if not self._fits(descriptor, content):
                self._replace(content)
                return
            self._written = True
            os.pwrite(descriptor, content, 0)
            self._durability.replacing(descriptor)
        except OSError as error:
            self.put_back()
            raise StorageFailed.from_os(error, self._path) from error
        finally:
            os.close(descriptor)

    def put_back(self) -> None:
        """Sets it back. The error that led here is the one to tell."""
        if not self._written:
            return
        self._written = False
        with contextlib.suppress(OSError, StorageFailed):
            if self._before is None:
                os.unlink(self._path)
            elif not self._put_back_in_place(self._before):
                replace_file(self._path, self._before, self._durability)

    def _put_back_in_place(self, before: bytes) -> bool:
        descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            if not self._fits(descriptor, before):
                return False
            os.pwrite(descriptor, before, 0)
            return True
        finally:
            os.close(descriptor)

    def _fits(self, descriptor: int, content: bytes) -> bool:
        """Whether the file, which is no second name of another one (a backup by links), is as long as its content."""
        status = os.fstat(descriptor)
        return stat.S_ISREG(status.st_mode) and status.st_size == len(content) and status.st_nlink == 1

    def _replace(self, content: bytes) -> None:
        replace_file(self._path, content, self._durability)
        self._written = True
