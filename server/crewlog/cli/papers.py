"""`crewlog plans …` and `crewlog history …`."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, ParamSpec, TypeVar

import click

from crewlog.cli import options
from crewlog.cli.local import Local, edit_text
from crewlog.cli.output import ago, markdown, one_line, read_shown, say, say_json, sized, styled, table, told
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.storage import times
from crewlog.storage.errors import PlanChanged, StorageFailed

P = ParamSpec("P")
T = TypeVar("T")
name = click.argument("name", shell_complete=options.completed_by("plans"))


def text_options(command: Callable[P, T]) -> Callable[P, T]:
    command = click.option("--file", "-F", type=click.File("rb"), help="Take the text from this file; - for standard input.")(command)
    return click.option("--text", "-t", help="The text; without it and --file, your editor asks for it.")(command)


@click.group()
def plans() -> None:
    """Look at plans, and write them. All projects share them."""


@plans.command("list")
@options.home_and_json
def list_(home: str | None, as_json: bool) -> None:
    """All plans, the last changed first."""
    found = Local(home).ask("plan/list", r.PlanListResult)
    rows = [[styled(plan.name, "cyan"), ago(plan.modified), sized(plan.size), styled(plan.path, dim=True)] for plan in found.plans]
    told(as_json, found, table(rows, ["NAME", "CHANGED", "SIZE", "FILE"], flexible=3) if rows else "No plans yet.")


def _load(local: Local, name: str) -> r.PlanContent:
    """Raises `StorageFailed` where there is no such plan."""
    plan = local.ask("plan/load", r.PlanContent, name=name)
    if not plan.etag:
        path = local.ask("plan/path", r.PlanPath, name=name).path
        raise StorageFailed(path, "ENOENT", "there is no such plan; `crewlog plans list` names those there are")
    return plan


@plans.command()
@name
@options.home_and_json
def show(name: str, home: str | None, as_json: bool) -> None:
    """A plan's text."""
    plan = _load(Local(home), name)
    if as_json:
        say_json(plan)
    else:
        markdown(plan.content)


@plans.command()
@click.argument("name", required=False)
@text_options
@options.home_and_json
def new(name: str | None, text: str | None, file: BinaryIO | None, home: str | None, as_json: bool) -> None:
    """Write a new plan, under a NAME of yours or one that is made up; prints its file."""
    local = Local(home)
    chosen = name or local.ask("plan/generateName", r.PlanName).name
    local.ask("plan/path", r.PlanPath, name=chosen)  # a bad name is refused before anything is typed
    content = _given(text, file)
    if content is None:
        content = edit_text(f"# {chosen}\n", ".md")
    if content is None:
        raise click.UsageError("nothing was written, so nothing is saved")
    saved = local.ask("plan/save", r.PlanSaved, name=chosen, content=content, if_match="")
    told(as_json, saved, saved.path)


@plans.command()
@name
@text_options
@options.home_and_json
def edit(name: str, text: str | None, file: BinaryIO | None, home: str | None, as_json: bool) -> None:
    """Change a plan. What somebody else saves meanwhile is never overwritten: then your text is kept as a plan of its own."""
    local = Local(home)
    plan = _load(local, name)
    content = _given(text, file)
    if content is None:
        content = edit_text(plan.content, ".md")
    if content is None or content == plan.content:
        told(as_json, {"etag": plan.etag}, "unchanged")
        return
    try:
        saved = local.ask("plan/save", r.PlanSaved, name=name, content=content, if_match=plan.etag)
    except PlanChanged:
        aside = local.ask("plan/generateName", r.PlanName).name
        kept = local.ask("plan/save", r.PlanSaved, name=aside, content=content, if_match="")
        click.echo(f"crewlog: your text is kept in {kept.path}", err=True)
        raise
    told(as_json, saved, saved.path)


def _given(text: str | None, file: BinaryIO | None) -> str | None:
    """The text of the command line; None where a person is to be asked."""
    if text is not None and file is not None:
        raise click.UsageError("give either --text or --file")
    if file is not None:
        try:
            return file.read().decode()
        except UnicodeDecodeError as error:
            raise click.UsageError(f"{file.name}: a plan is UTF-8 text: {error}") from None
    return text if not text or text.endswith("\n") else text + "\n"


@plans.command()
@name
@options.home_and_json
def rm(name: str, home: str | None, as_json: bool) -> None:
    """Delete a plan."""
    local = Local(home)
    plan = _load(local, name)
    told(as_json, local.ask("plan/delete", r.Deleted, name=name, if_match=plan.etag), f"deleted {name}")


@click.group()
def history() -> None:
    """Look at what was typed in the project."""


@history.command("list")
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), default=20, show_default=True, help="At the most so many.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Pass over so many of the newest.")
@options.project
@options.home_and_json
def list_history(limit: int, offset: int, project: str | None, home: str | None, as_json: bool) -> None:
    """The prompts of the project, newest first."""
    _show(Local(home, project).ask("history/list", r.HistoryListResult, limit=limit, offset=offset), as_json)


@history.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), help="At the most so many.")
@options.project
@options.home_and_json
def search(query: tuple[str, ...], limit: int | None, project: str | None, home: str | None, as_json: bool) -> None:
    """The prompts that hold a text, in any case."""
    _show(Local(home, project).ask("history/list", r.HistoryListResult, limit=limit, query=" ".join(query)), as_json)


def _show(found: r.HistoryListResult, as_json: bool) -> None:
    if as_json:
        say_json(found)
        return
    rows = []
    for raw in found.items:
        line = read_shown(raw, records.HistoryRecord)
        when = _ago(line.timestamp)
        rows.append([when, styled(line.sessionId, "cyan"), styled(one_line(line.display))])
    say(table(rows, ["WHEN", "SESSION", "TEXT"], flexible=2) if rows else "Nothing was typed here.")
    if found.total > len(found.items):
        say(styled(f"{len(found.items)} of {found.total}", dim=True))


def _ago(milliseconds: int) -> str:
    """Nothing for no time, and for one that no calendar has."""
    try:
        return ago(times.format_ns(milliseconds * 1_000_000)) if milliseconds else ""
    except (OSError, OverflowError, ValueError):
        return ""
