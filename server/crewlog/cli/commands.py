"""The commands, with what each needs imported only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

DONE, REFUSED, MISUSED = 0, 1, 2
"""Exit codes: done; refused, with the error's kind on standard error; the command line was not understood."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="crewlog", prog_name="crewlog", message="%(prog)s %(version)s")
def crewlog() -> None:
    """The records of coding agents at work: sessions, tasks, plans, teams.

    Exit codes: 0 done, 1 refused (the kind of error is on standard error), 2 the command line was not understood.
    """


@crewlog.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> None:
    """Serve one client: JSON-RPC with LSP framing on stdin and stdout. This is what editors and agents start."""
    from crewlog.server.command import main

    sys.exit(main(arguments))


@crewlog.command()
def schema() -> None:
    """Print the protocol as an OpenRPC document."""
    from crewlog.protocol.schema import openrpc_json

    click.echo(openrpc_json(), nl=False)


@crewlog.command()
@click.option("--home", type=click.Path(file_okay=False), help="Keep the records in this folder instead of a temporary one.")
@click.option("--fast", is_flag=True, help="Do not pause between steps.")
def demo(home: str | None, fast: bool) -> None:
    """Two agents and a watcher at work, in real processes, for about a quarter of a minute."""
    from crewlog.cli.demo import run_demo

    sys.exit(run_demo(home, fast=fast))


def run(arguments: Sequence[str]) -> int:
    """Runs a command line; the exit code."""
    from crewlog.storage.errors import StorageError

    try:
        crewlog.main(args=list(arguments), prog_name="crewlog", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return MISUSED
    except click.Abort:
        click.echo("interrupted", err=True)
        return REFUSED
    except StorageError as error:
        from crewlog.protocol.errors import to_wire

        told = to_wire(error)
        click.echo(f"crewlog: {told.kind if told else 'error'}: {error}", err=True)
        return REFUSED
    except BrokenPipeError:
        return DONE
    return DONE
