"""The server's log: to the error stream, or to a file. Never to the client's stream."""

from __future__ import annotations

import logging
import os
import sys

LEVELS = ("debug", "info", "warning", "error")
logger = logging.getLogger("crewlog")

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def set_up(level: str, file: str | None) -> None:
    """Begins to log messages of `level` and above; `file` is appended to and is private to the user. Raises `OSError`."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        descriptor = os.open(os.path.expanduser(file), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        handler = logging.StreamHandler(open(descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1))  # noqa: SIM115
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.raiseExceptions = False  # a full disk under the log is no reason to fail
