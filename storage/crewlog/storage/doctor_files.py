"""What is wrong with the files of a home as files: who can read them, where links lead, what was left behind, how much room they take."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator

import msgspec

from crewlog.storage.files import FILE_MODE, FOLDER_MODE, SIDE_FOLDER
from crewlog.storage.home import Home

_LOGS = {"sessions": ".jsonl", "transcripts": ".jsonl", "tasks": ".json", "plans": ".md"}
"""The endings of what is read, by kind."""
STALE_AFTER = 3600.0
"""Seconds after which a temporary file of another program is taken for left behind."""
_OURS = re.compile(r"\..*\.(?P<pid>[0-9]+)-[0-9]+-[0-9a-f]{4}\.tmp")


class Usage(msgspec.Struct):
    """`bytes` on the device's count of the files' sizes."""

    files: int = 0
    bytes: int = 0


class Found(msgspec.Struct):
    """One file or folder of a home."""

    path: str
    kind: str
    size: int
    mode: int
    modified: float
    is_folder: bool
    is_file: bool
    link: str = ""


class FileFault(msgspec.Struct):
    kind: str
    path: str
    reason: str
    mendable: bool
    severity: str = "warning"


def walk(home: Home) -> Iterator[Found]:
    """All that belongs to a home, folders before what is in them; what others put beside it is left alone. Links are not followed."""
    for path in (home.projects, home.plans, home.tasks, home.history, home.trash, os.path.join(home.path, SIDE_FOLDER)):
        found = look(path, _kind(home, path))
        if found is None:
            continue
        yield found
        if found.is_folder:
            yield from _below(home, path)


def _below(home: Home, folder: str) -> Iterator[Found]:
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            names = sorted(os.listdir(current))
        except OSError:
            continue  # it went away, or nobody may look: then its mode is told
        for name in names:
            path = os.path.join(current, name)
            found = look(path, _kind(home, path))
            if found is None:
                continue
            yield found
            if found.is_folder:
                waiting.append(path)


def look(path: str, kind: str) -> Found | None:
    """None where nothing is there."""
    try:
        status = os.lstat(path)
        link = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return None
    return Found(
        path,
        kind,
        status.st_size,
        stat.S_IMODE(status.st_mode),
        status.st_mtime,
        stat.S_ISDIR(status.st_mode),
        stat.S_ISREG(status.st_mode),
        link,
    )


def _kind(home: Home, path: str) -> str:
    """What a file is for: the kinds under which disk use is told."""
    parts = os.path.relpath(path, home.path).split(os.sep)
    if parts[0] == os.path.basename(home.trash):
        return "trash"
    if SIDE_FOLDER in parts:
        return "locks and indexes"
    if parts[0] == "tasks":
        return "transcripts" if "transcripts" in parts[2:] else "tasks"
    return {"projects": "sessions", "plans": "plans"}.get(parts[0], "history")


def file_fault(home: Home, found: Found) -> FileFault | None:
    """What is wrong with one of them."""
    if found.link:
        real, root = os.path.realpath(found.path), os.path.realpath(home.path)
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            return FileFault(
                "linkOutside", found.path, f"a symbolic link to {found.link}, outside the home: nothing is written there", False
            )
        if not os.path.exists(real):
            return FileFault("brokenLink", found.path, f"a symbolic link to {found.link}, where nothing is", False)
        return None
    if not (found.is_file or found.is_folder):
        return FileFault("notAFile", found.path, "it is no regular file but a pipe, a socket or a device: nobody reads it", False)
    if found.is_folder and found.kind in _LOGS and found.path.endswith(_LOGS[found.kind]):
        return FileFault("notAFile", found.path, "it is a folder, where a file by such a name is expected: nobody reads it", False)
    if os.name != "nt" and found.mode & 0o077:
        what = "folder" if found.is_folder else "file"
        return FileFault("readableByOthers", found.path, f"others can get at this {what} (mode {found.mode:04o})", True)
    if not found.is_folder and found.path.endswith(".tmp") and is_stale(found):
        return FileFault("staleTemporary", found.path, f"left behind by a write that was cut short, {found.size} bytes", True)
    return None


def is_stale(found: Found) -> bool:
    """Whether nobody will finish this temporary file: its maker is gone, or had an hour."""
    ours = _OURS.fullmatch(os.path.basename(found.path))
    age = time.time() - found.modified
    if ours is not None and age > 10:
        return not _is_alive(int(ours["pid"])) or age > STALE_AFTER
    return age > STALE_AFTER


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's
    return True


def make_private(path: str) -> None:
    """Raises `OSError`."""
    os.chmod(path, FOLDER_MODE if os.path.isdir(path) else FILE_MODE)
