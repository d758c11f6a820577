"""Noticing that the client's process is gone, also when something else keeps its end of our streams open."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable

POLL_SECONDS = 1.0


class ParentWatch:
    """Calls `gone` once when the process `pid` has ended; at once when there is no such process.

    On Linux the kernel tells (pidfd), elsewhere it is looked at every second; where the start time of a process can be had, a
    process that merely got the same number is not taken for it.
    """

    def __init__(self, pid: int, gone: Callable[[], None]) -> None:
        self._pid = pid
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._descriptor = -1
        self._timer: asyncio.TimerHandle | None = None
        self._started = _start_of(pid)
        if not _open_pidfd(self, pid):
            self._poll()

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop.add_reader(descriptor, self._ended)

    def _poll(self) -> None:
        if not is_alive(self._pid) or _start_of(self._pid) != self._started:
            self._timer = self._loop.call_later(0, self._ended)
        else:
            self._timer = self._loop.call_later(POLL_SECONDS, self._poll)

    def _ended(self) -> None:
        self.close()
        self._gone()


if sys.platform == "linux":

    def _open_pidfd(watch: ParentWatch, pid: int) -> bool:
        """False where the kernel has no pidfd (before 5.3), a sandbox forbids it, or there is no such process."""
        try:
            descriptor = os.pidfd_open(pid)
        except (OSError, OverflowError):
            return False
        watch._watch(descriptor)
        return True

    def _start_of(pid: int) -> str:
        """The start time as the kernel counts it; "" where it cannot be had."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            return ""
else:

    def _open_pidfd(watch: ParentWatch, pid: int) -> bool:
        return False

    def _start_of(pid: int) -> str:
        return ""


if sys.platform == "win32":
    import ctypes

    _SYNCHRONIZE, _WAIT_TIMEOUT = 0x0010_0000, 0x102

    def is_alive(pid: int) -> bool:
        """Whether there is a process of that number."""
        kernel32 = ctypes.windll.kernel32
        handle = kernel32.OpenProcess(_SYNCHRONIZE, False, pid)
        if not handle:
            return False
        try:
            return bool(kernel32.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
        finally:
            kernel32.CloseHandle(handle)
else:

    def is_alive(pid: int) -> bool:
        """Whether there is a process of that number."""
        if pid <= 0:
            return False
        with contextlib.suppress(PermissionError):  # it is there, and somebody else's
            try:
                os.kill(pid, 0)
            except (ProcessLookupError, OverflowError):
                return False
        return True
