"""The commands, with what each needs imported only when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

DONE, REFUSED, MISUSED = 0, 1, 2
"""Exit codes: done; refused, with the error's kind on standard error; the command line was not understood."""

LAZY = {
    "sessions": ("sessions:sessions", "Look at sessions, search, export, fork, rewind them."),
    "tasks": ("tasks:tasks", "Work with a task board: list, add, claim, finish."),
    "plans": ("papers:plans", "Look at plans, and write them."),
    "history": ("papers:history", "Look at what was typed."),
    "team": ("team:team", "Look at a team."),
    "transcript": ("team:transcript", "Look at a teammate's conversation."),
    "watch": ("watch:watch", "Watch a project live; q quits."),
    "status": ("status:status", "Who has servers on this home, and how large it is."),
    "doctor": ("doctor:doctor", "Check a home, and mend it with --fix."),
    "import": ("importing:import_", "Bring in the sessions and tasks of other agents."),
    "man": ("reference:man", "Print the manual page."),
    "completion": ("reference:completion", "Print the completion script of a shell."),
}
"""Command → where it is, and its line in the help: known without importing it."""


class _Lazy(click.Group):
    def invoke(self, context: click.Context) -> object:
        """A reader that went away, as in `crewlog … | head`, is no failure. Raises `OSError` where the output cannot be written."""
        try:
            done = super().invoke(context)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            return None
        return done

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*self.commands, *LAZY])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in LAZY:
            return super().get_command(context, name)
        module, _, attribute = LAZY[name][0].partition(":")
        command: click.Command = getattr(import_module(f"crewlog.cli.{module}"), attribute)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {name: command.get_short_help_str(100) for name, command in self.commands.items()}
        rows.update((name, short) for name, (_, short) in LAZY.items())
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))


def _discard_output() -> None:
    """Python writes what is left in its buffer when it ends, and must not complain then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--home", metavar="DIR", type=click.Path(file_okay=False), help="The home folder (default ~/.codebot; $CREWLOG_HOME overrides)."
)
@click.version_option(package_name="crewlog", prog_name="crewlog", message="%(prog)s %(version)s")
def crewlog(home: str | None) -> None:
    """The records of coding agents at work: sessions, tasks, plans, teams.

    Exit codes: 0 done, 1 refused (the kind of error is on standard error), 2 the command line was not understood.
    """


@crewlog.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> None:
    """Serve one client: JSON-RPC with LSP framing on stdin and stdout. This is what editors and agents start."""
    from crewlog.server.command import main

    home = _home_of_all()
    sys.exit(main(["--home", home, *arguments] if home is not None else arguments))


@crewlog.command()
def schema() -> None:
    """Print the protocol as an OpenRPC document."""
    from crewlog.protocol.schema import openrpc_json

    click.echo(openrpc_json(), nl=False)


@crewlog.command()
@click.option("--home", type=click.Path(file_okay=False), help="Keep the records in this folder instead of a temporary one.")
@click.option("--fast", is_flag=True, help="Do not pause between steps.")
def demo(home: str | None, fast: bool) -> None:
    """Two agents and a watcher at work, in real processes, for some ten seconds."""
    from crewlog.cli.demo import run_demo

    sys.exit(run_demo(home or _home_of_all(), fast=fast))


def _home_of_all() -> str | None:
    """`--home` where it stands before the command."""
    home = click.get_current_context().find_root().params.get("home")
    return home if isinstance(home, str) else None


def run(arguments: Sequence[str]) -> int:
    """Runs a command line; the exit code."""
    try:
        done = crewlog.main(args=[_as_text(argument) for argument in arguments], prog_name="crewlog", standalone_mode=False)
        return done if isinstance(done, int) else DONE
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return MISUSED
    except (click.Abort, KeyboardInterrupt):
        click.echo("crewlog: interrupted", err=True)
        return REFUSED
    except Exception as error:  # noqa: BLE001  # told where it is one of ours, raised again where it is a fault
        return _refused(error, as_json="--json" in arguments)


def _as_text(argument: str) -> str:
    """An argument whose bytes are UTF-8 is text in a locale that knows no UTF-8 too. Others stay as Python has them."""
    try:
        return argument if argument.isascii() else os.fsencode(argument).decode()
    except UnicodeError:
        return argument


def _refused(error: Exception, *, as_json: bool) -> int:
    """Tells the kind of an error on standard error. One that is none of ours is a fault of the program, and raised again."""
    from crewlog.cli.output import complain
    from crewlog.protocol.errors import to_wire

    told = to_wire(error)
    if told is None:
        from crewlog.client.errors import ClientError

        if isinstance(error, OSError):
            _discard_output()
            complain("ioFailed", f"{error.filename or 'standard output'}: {error.strerror or error}", as_json=as_json)
        elif isinstance(error, ClientError):
            name = type(error).__name__
            complain(name[0].lower() + name[1:], str(error), as_json=as_json)
        else:
            raise error
        return REFUSED
    if as_json:
        from crewlog.protocol.wire_json import encode_json

        click.echo(encode_json({"error": {"code": told.code, "message": told.message, "data": told.data}}), err=True)
    else:
        complain(told.kind, told.message)
    return REFUSED
