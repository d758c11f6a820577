"""The command `crewlog`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """The console script. `crewlog serve` is what every editor window waits for, and takes the shortest way."""
    _open_standard_streams()
    if sys.argv[1:2] == ["serve"]:
        from crewlog.server.command import main as serve

        return serve(sys.argv[2:])
    from crewlog.cli.commands import run

    return run(sys.argv[1:])


def _open_standard_streams() -> None:
    """Where one was closed (`crewlog … >&-`), the first file that is opened would take its number, and get what is printed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
