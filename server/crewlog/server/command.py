"""The command line of `crewlog serve`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from crewlog.server import stdio


def main(arguments: Sequence[str]) -> int:
    """Serves until the client is done; the exit code."""
    given = _parser().parse_args(arguments)
    try:
        streams = stdio.take_over()  # before anything else can write to the client's stream
    except OSError:
        _parser().error("there is no standard input or output: an editor or an agent starts this command with pipes to it")
    from crewlog.server import logs
    from crewlog.server.lifecycle import Options
    from crewlog.server.serve import serve

    try:
        logs.set_up(given.log_level, given.log_file)
    except OSError as error:
        _parser().error(f"--log-file: {error}")
    return serve(streams, Options(given.home, given.durability, given.max_message_bytes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="crewlog serve", description="Serve one client: JSON-RPC with LSP framing on stdin and stdout.")
    parser.add_argument("--home", help="the home folder (default: ~/.codebot; CREWLOG_HOME and the client's own wish override it)")
    parser.add_argument(
        "--durability", choices=("power", "process"), default="power", help="what a reply promises to survive (default: power)"
    )
    parser.add_argument("--log-file", help="where to log (default: standard error)")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="warning", help="default: warning")
    parser.add_argument("--max-message-bytes", type=_positive, default=256 << 20, help="the largest message taken (default: 268435456)")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError("it must be more than 0")
    return number
