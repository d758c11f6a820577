"""The manual: one source, the commands themselves, as a man page and as docs/cli.md; and the completion of shells.

python -m crewlog.cli.reference [--check]      writes docs/cli.md and docs/crewlog.1, or tells whether they are stale
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import click

EXITS = (
    ("0", "done"),
    ("1", "refused; standard error has the error's kind and a sentence (crewlog: blocked: …), with --json the error as on the wire"),
    ("2", "the command line was not understood"),
)
KINDS = (
    ("noTask", "there was no task to be had"),
    ("commandFailed", "the command of `tasks next --exec` ended with another code than 0, or by a signal; its task is given back"),
    ("problemsFound", "doctor found errors or warnings, or could not mend all"),
    ("notImported", "nothing of what was named could be read as a session of that agent"),
    ("tooLarge", "a note, no refusal: a part of the task does not fit into the environment of the command"),
    ("connectionLost", "the server that the command had started for itself ended before its time"),
    ("ioFailed", "the system refused what is no matter of the records, such as writing to standard output"),
)
"""What the command line refuses by itself; all others are those of the protocol."""
ENVIRONMENT = (
    ("CREWLOG_HOME", "the home folder; overrides --home"),
    ("CREWLOG_LIST", "the task list that is meant where --list names none"),
    ("CREWLOG_OWNER", "who works, where --owner names nobody"),
    ("NO_COLOR", "no colours, as when standard output is no terminal"),
    ("VISUAL, EDITOR", "what `edit` and `new` open"),
)
FILES = (
    ("~/.codebot", "the home: sessions, tasks, plans, history; private to its user"),
    (".trash/ in the home", "deleted sessions, and the originals of all that `doctor --fix` changed"),
)


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """(full name, command, context), each group before its commands."""
    from crewlog.cli.commands import crewlog

    yield from _walk("crewlog", crewlog, _context("crewlog", crewlog, None))


def _walk(name: str, command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield name, command, context
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            assert child is not None
            yield from _walk(f"{name} {child_name}", child, _context(child_name, child, context))


def _context(name: str, command: click.Command, parent: click.Context | None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def _usage(command: click.Command, context: click.Context) -> str:
    return " ".join(command.collect_usage_pieces(context))


def _text(command: click.Command) -> str:
    return re.sub(r"[ \t]*\n[ \t]*", "\n", (command.help or "").strip())


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    """(names, text). `--help`, which every command has, is told once."""
    is_top = context.parent is None
    options = [item for item in command.get_params(context) if isinstance(item, click.Option) and (is_top or "--help" not in item.opts)]
    return [record for option in options if (record := option.get_help_record(context)) is not None]


def markdown() -> str:
    """docs/cli.md."""
    lines = ["# The command line", "", "Made by `python -m crewlog.cli.reference` from the commands; do not edit.", ""]
    lines += ["Exit codes:", "", *(f"- `{code}`: {told}" for code, told in EXITS), ""]
    lines += ["Kinds of errors are those of the [protocol](protocol.md#errors), and the command line's own:", ""]
    lines += [*(f"- `{kind}`: {told}" for kind, told in KINDS), ""]
    lines += ["Environment:", "", *(f"- `{name}`: {told}" for name, told in ENVIRONMENT), ""]
    for name, command, context in commands():
        lines += [f"## {name}", "", "```", f"{name} {_usage(command, context)}".rstrip(), "```", "", _text(command), ""]
        told = _options(command, context)
        if told:
            lines += [*(f"- `{option}`: {text}" for option, text in told), ""]
    return "\n".join(lines)


def man_page() -> str:
    """crewlog.1, in the macros of man(7)."""
    version = metadata.version("crewlog")
    lines = [f'.TH CREWLOG 1 "" "crewlog {version}" "User Commands"', ".SH NAME", r"crewlog \- the records of coding agents at work"]
    lines += [".SH SYNOPSIS", r".B crewlog", r"[\-\-home DIR] COMMAND [ARGUMENT]..."]
    for name, command, context in commands():
        if name == "crewlog":
            lines += [".SH DESCRIPTION", *_roff(_text(command)), ".SH OPTIONS", *_listed(_options(command, context)), ".SH COMMANDS"]
            continue
        lines += [f".SS {_escape(f'{name} {_usage(command, context)}')}", *_roff(_text(command)), *_listed(_options(command, context))]
    for title, items in (("EXIT STATUS", EXITS), ("ERRORS", KINDS), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)):
        lines += [f".SH {title}", *_listed(items)]
    return "\n".join(lines) + "\n"


def _listed(items: Iterable[tuple[str, str]]) -> list[str]:
    return [line for name, text in items for line in (".TP", rf"\fB{_escape(name)}\fR", _escape(text))]


def _roff(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [".PP"] * bool(lines) + [_escape(line) for line in paragraph.split("\n")]
    return lines


def _escape(text: str) -> str:
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped


@click.command()
def man() -> None:
    """Print the manual page:  crewlog man | man -l -"""
    click.echo(man_page(), nl=False)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL.

    In ~/.bashrc:  eval "$(crewlog completion bash)"  and the same in ~/.zshrc.
    For fish:  crewlog completion fish > ~/.config/fish/completions/crewlog.fish
    """
    from click.shell_completion import get_completion_class

    from crewlog.cli.commands import crewlog

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(crewlog, {}, "crewlog", "_CREWLOG_COMPLETE")
    click.echo(made.source_template % made.source_vars())


def main(arguments: list[str]) -> int:
    """Writes, or with --check compares, the files under docs/; the exit code."""
    folder = Path(__file__).resolve().parents[3] / "docs"
    made = {"cli.md": markdown(), "crewlog.1": man_page()}
    if "--check" not in arguments:
        for name, text in made.items():
            (folder / name).write_text(text, "utf-8")
        return 0
    stale = [name for name, text in made.items() if not (folder / name).exists() or (folder / name).read_text("utf-8") != text]
    for name in stale:
        print(f"docs/{name} is stale: run python -m crewlog.cli.reference")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
