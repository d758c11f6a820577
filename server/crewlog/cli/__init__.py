"""The command `crewlog`."""

from __future__ import annotations

import sys


def main() -> int:
    """The console script. `crewlog serve` is what every editor window waits for, and takes the shortest way."""
    if sys.argv[1:2] == ["serve"]:
        from crewlog.server.command import main as serve

        return serve(sys.argv[2:])
    from crewlog.cli.commands import run

    return run(sys.argv[1:])
