"""What `locks` needs of a POSIX system."""

from __future__ import annotations

import fcntl
import os


def try_lock(descriptor: int) -> bool:
    """Takes the lock, or returns False at once where somebody holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def process_start(pid: int) -> int:
    """The start of a process in clock ticks since boot (field 22 of /proc/PID/stat); 0 where that is not to be had."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0 if _exists(pid) else -1


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
