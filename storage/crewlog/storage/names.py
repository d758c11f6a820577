"""Names: which of those given from outside may become file names, and how folders and sessions are named."""

from __future__ import annotations

import functools
import re

from crewlog.storage.errors import InvalidName

MAX_NAME_BYTES = 200
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789\u00b9\u00b2\u00b3"]
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]+")


def check_name(name: str, field: str = "name") -> str:
    """Returns `name` where it is fit to be a file name on every system, before anything touches the disk.

    Raises `InvalidName` when it is empty, `.` or `..`, begins with a dot, holds `/`, `\\`, NUL or a control character, is longer
    than 200 bytes in UTF-8, ends in a dot or a space, or is a device name of Windows. `field` names it in the error.
    """
    reason = _objection(name) if len(name) <= MAX_NAME_BYTES else _objection.__wrapped__(name)  # what is too long is not kept in memory
    if reason:
        raise InvalidName(name, reason, field)
    return name


@functools.lru_cache(maxsize=1024)
def _objection(name: str) -> str | None:
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "it names a folder, not a file"
    if name.startswith("."):
        return "it begins with a dot"
    if "/" in name or "\\" in name:
        return "it holds a slash or a backslash"
    if _CONTROL.search(name):
        return "it holds a control character"
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair"
    if size > MAX_NAME_BYTES:
        return f"it is {size} bytes long, more than {MAX_NAME_BYTES}"
    if name[-1] in ". ":
        return "it ends in a dot or a space"
    if name.split(".")[0].rstrip(" ").lower() in _DEVICES:
        return "it is a device name on Windows"
    return None


def project_id(cwd: str) -> str:
    """The name of a project's folder: its absolute path, each run of characters outside `[A-Za-z0-9]` made one `-`."""
    return _NOT_ALNUM.sub("-", cwd)
