"""The client's two streams, out of the reach of everything else in the process."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Streams(NamedTuple):
    """Descriptors that only the server knows: frames are read from `source` and written to `sink`."""

    source: int
    sink: int


def take_over() -> Streams:
    """Moves the client's streams to private descriptors, before anything can write to them.

    Afterwards descriptor 0 reads nothing, and descriptor 1 and `sys.stdout` lead to the error stream: what a handler prints, a C
    library writes or a child process says cannot end up between two frames. Where the error stream is the client's stream itself
    (`2>&1`), both lead nowhere. Raises `OSError` when there is no standard input or output.
    """
    source, sink = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(source, os.O_BINARY)
        msvcrt.setmode(sink, os.O_BINARY)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    if not _is_open(2) or _same_file(2, sink):
        os.dup2(nowhere, 2)
    os.dup2(2, 1)
    os.close(nowhere)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115  # lives as long as we
    sys.stdout = sys.stderr
    return Streams(source, sink)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _same_file(left: int, right: int) -> bool:
    a, b = os.fstat(left), os.fstat(right)
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino) and not os.isatty(left)
