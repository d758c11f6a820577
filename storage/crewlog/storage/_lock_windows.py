"""What `locks` needs of Windows: a lock on one byte far behind the content, so that the content stays readable."""

from __future__ import annotations

import os
import sys

_BYTE = 0x7FFF_0000

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Takes the lock, or returns False at once where somebody holds it."""
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)


def process_start(pid: int) -> int:
    """Windows tells no start without its own API: 0 for every process."""
    return 0
