"""The command line of `crewlog serve`. Read by hand-sized argparse, since every editor window waits for it."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence

from crewlog.server.connection import Options

LEVELS = ("debug", "info", "warning", "error")


def main(arguments: Sequence[str]) -> int:
    """Serves until the client is done; the exit code."""
    parser = argparse.ArgumentParser(prog="crewlog serve", description="Serve one client: JSON-RPC with LSP framing on stdin and stdout.")
    parser.add_argument("--home", help="the home folder (default: ~/.codebot; CREWLOG_HOME and the client's own wish override it)")
    parser.add_argument(
        "--durability", choices=("power", "process"), default="power", help="what a reply promises to survive (default: power)"
    )
    parser.add_argument("--log-file", help="where to log; without it, warnings go to standard error")
    parser.add_argument("--log-level", choices=LEVELS, default="warning", help="what to log (default: warning)")
    parser.add_argument("--max-message-bytes", type=int, default=256 << 20, help="the largest message taken (default: 268435456)")
    given = parser.parse_args(arguments)
    _set_up_logging(given.log_file, given.log_level)
    from crewlog.server.serve import serve

    return serve(Options(given.home, given.durability, given.max_message_bytes))


def _set_up_logging(path: str | None, level: str) -> None:
    style = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    if path is None:
        logging.basicConfig(level=level.upper(), format=style)
        return
    descriptor = os.open(os.path.expanduser(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    logging.basicConfig(level=level.upper(), format=style, stream=os.fdopen(descriptor, "a", encoding="utf-8"))
