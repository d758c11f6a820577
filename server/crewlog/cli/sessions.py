"""`crewlog sessions …`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from crewlog.cli import options
from crewlog.cli.local import Local
from crewlog.cli.output import ago, counted, markdown, one_line, read_record, say, say_document, say_json, sized, styled, table, told
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.storage import times

everywhere = click.option("--all", "all_projects", is_flag=True, help="The sessions of all projects.")
session = click.argument("session", shell_complete=options.completed_by("sessions"))


@click.group()
def sessions() -> None:
    """Look at sessions, and work with them.

    A SESSION is named by its id, by the beginning of it, or as `last`: the project's newest.
    """


@sessions.command("list")
@click.option("--query", "-q", default="", help="Only those whose name or first message holds these words.")
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), help="At the most so many.")
@everywhere
@options.project
@options.home_and_json
def list_(query: str, limit: int | None, all_projects: bool, project: str | None, home: str | None, as_json: bool) -> None:
    """The sessions of the project, newest first. Files that are no sessions are named with the reason."""
    local = Local(home, project)
    found = local.ask("session/list", r.SessionListResult, all_projects=all_projects, query=query, limit=limit)
    if as_json:
        say_json(found)
        return
    titles = ["ID", "UPDATED", "MESSAGES", "NAME", "FIRST MESSAGE", *(["PROJECT"] if all_projects else [])]
    rows = [
        [
            styled(info.id, "cyan"),
            ago(info.updated),
            str(info.message_count),
            styled(one_line(info.name, 40), bold=True),
            styled(one_line(info.first_message)),
            *([styled(info.cwd)] if all_projects else []),
        ]
        for info in found.sessions
    ]
    say(table(rows, titles, flexible=4) if rows else _none_here(local, all_projects, query))
    for skipped in found.skipped:
        say(f"{styled('skipped', 'red')} {styled(skipped.path)}: {styled(skipped.reason)}")


def _none_here(local: Local, all_projects: bool, query: str) -> str:
    what = f"No sessions with {styled(one_line(query, 60))}" if query else "No sessions"
    if all_projects:
        return f"{what} in {styled(local.ws.home.path)}."
    return f"{what} in {styled(local.ws.cwd)}. See those of all projects with --all."


@sessions.command()
@session
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), help="Only the last so many entries.")
@click.option("--branches", "show_branches", is_flag=True, help="The leaves of its tree in place of its text.")
@options.project
@options.home_and_json
def show(session: str, limit: int | None, show_branches: bool, project: str | None, home: str | None, as_json: bool) -> None:
    """What was said in a session, as Markdown; with --json its entries."""
    local = Local(home, project)
    session_id = local.session_id(session)
    if show_branches:
        _show_branches(local, session_id, as_json)
    elif as_json or limit is not None:
        _show_entries(local, session_id, limit, as_json)
    else:
        markdown(local.ask("session/export", r.ExportResult, session_id=session_id, format="markdown").text)


def _show_branches(local: Local, session_id: str, as_json: bool) -> None:
    found = local.ask("session/branches", r.BranchesResult, session_id=session_id)
    rows = [
        [styled(branch.leaf_id, "cyan", bold=branch.current), str(branch.length), ago(branch.timestamp), _branch_text(branch)]
        for branch in found.branches
    ]
    told(as_json, found, table(rows, ["LEAF", "ENTRIES", "WHEN", "LAST TEXT"], flexible=3))


def _branch_text(branch: records.Branch) -> str:
    broken = f" {styled('broken: ' + branch.broken.reason, 'red')}" if branch.broken else ""
    return styled(one_line(branch.last_text)) + broken


def _show_entries(local: Local, session_id: str, limit: int | None, as_json: bool) -> None:
    page = local.ask("session/entries", r.EntriesResult, session_id=session_id, limit=limit or 100_000)
    if as_json:
        say_json(page)
        return
    for raw in page.entries:
        say(_entry_line(raw))
    if page.broken is not None:
        say(styled(f"the chain breaks here: {page.broken.reason}; see `crewlog doctor`", "red"))


def _entry_line(raw: msgspec.Raw) -> str:
    try:
        entry = read_record(raw, records.EntryRecord)
    except msgspec.ValidationError:  # of a shape that is no entry's; a reader of text sees what it is
        return styled(one_line(bytes(raw).decode("utf-8", "replace")), dim=True)
    data = one_line(bytes(entry.data).decode("utf-8", "replace"))
    return f"{styled(entry.id, 'cyan')}  {styled(entry.kind, bold=True)}  {styled(data)}"


@sessions.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), help="At the most so many hits.")
@everywhere
@options.project
@options.home_and_json
def search(query: tuple[str, ...], limit: int | None, all_projects: bool, project: str | None, home: str | None, as_json: bool) -> None:
    """Entries that hold all words. Also "a phrase", pre*, role:user, kind:…, tool:…, model:…, after:2026-01-31, before:…"""
    words = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in query)
    found = Local(home, project).ask("session/search", r.SearchResult, query=words, all_projects=all_projects, limit=limit)
    if as_json:
        say_json(found)
        return
    for hit in found.hits:
        where = f"{styled(hit.session.id, 'cyan')}:{styled(hit.entry_id, 'cyan')}"
        say(f"{where}  {ago(hit.timestamp)}  {styled(one_line(hit.session.name or hit.session.first_message, 50), bold=True)}")
        say(f"    {styled(one_line(hit.snippet, 400))}")
    if not found.hits:
        say("Nothing found.")


@sessions.command()
@click.argument("session", required=False, shell_complete=options.completed_by("sessions"))
@click.option("--since", help="Only what was spent since then: a date or an RFC 3339 time.")
@everywhere
@options.project
@options.home_and_json
def stats(session: str | None, since: str | None, all_projects: bool, project: str | None, home: str | None, as_json: bool) -> None:
    """What a session, or all of the project, took: tokens, cache, money, latency."""
    local = Local(home, project)
    moment = f"{since}T00:00:00Z" if since is not None and times.parse_ns(f"{since}T00:00:00Z") is not None else since
    session_id = local.session_id(session) if session is not None else None
    found = local.ask("session/stats", r.StatsResult, session_id=session_id, since=moment, all_projects=all_projects)
    if as_json:
        say_json(found)
        return
    models = [*sorted(found.by_model.items()), (f"all, {counted(found.sessions, 'session')}", found.total)]
    titles = ["MODEL", "CALLS", "IN", "OUT", "FROM CACHE", "HIT RATE", "COST", "MEDIAN", "P95"]
    say(table([[styled(name or "unknown", "cyan"), *_numbers(usage)] for name, usage in models], titles))
    for broken in found.cache_breaks:
        reasons = ", ".join(broken.reasons) or broken.note or "unknown reason"
        where = f"{styled(broken.session_id, 'cyan')}:{styled(broken.entry_id)}"
        say(f"cache break in {where}: {broken.dropped_tokens:,} tokens, {styled(reasons)}")


def _numbers(usage: records.Usage) -> list[str]:
    latency = usage.latency
    return [
        str(usage.calls),
        f"{usage.input_tokens:,}",
        f"{usage.output_tokens:,}",
        f"{usage.cache_read_tokens:,}",
        f"{usage.cache_hit_rate:.0%}",
        f"{usage.cost:.4f}" if usage.cost else "",
        f"{latency.median:.0f} ms" if latency else "",
        f"{latency.p95:.0f} ms" if latency else "",
    ]


@sessions.command()
@session
@click.option("--format", "format_", type=click.Choice(["markdown", "html", "json"]), default="markdown", show_default=True)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, which must not exist.")
@options.project
@options.home_and_json
def export(session: str, format_: str, output: Path | None, project: str | None, home: str | None, as_json: bool) -> None:
    """A session as Markdown, as one self-contained HTML page, or as JSON."""
    local = Local(home, project)
    found = local.ask("session/export", r.ExportResult, session_id=local.session_id(session), format=format_)
    if output is None:
        if as_json:
            say_json(found)
        else:
            say_document(found.text)
        return
    content = found.text.encode("utf-8", "backslashreplace")
    _write_new(output, content)
    told(as_json, {"path": str(output.absolute()), "bytes": len(content)}, f"{output}  ({sized(len(content))})")


def _write_new(path: Path, content: bytes) -> None:
    """Raises `OSError`; then there is no part of it."""
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            path.unlink()
            raise


@sessions.command()
@session
@click.option("--at", "entry_id", metavar="ENTRY", help="The last entry to take over (default: the newest).")
@click.option("--into", "cwd", metavar="DIR", type=options.FOLDER, help="The new session's folder (default: the old one's).")
@options.project
@options.home_and_json
def fork(session: str, entry_id: str | None, cwd: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """A new session that goes on from an entry of this one; prints its id."""
    local = Local(home, project)
    folder = None if cwd is None else str(Path(cwd).expanduser().absolute())
    made = local.ask("session/fork", r.SessionAndLeaf, session_id=local.session_id(session), entry_id=entry_id, cwd=folder)
    told(as_json, made, made.session.id)


@sessions.command()
@session
@click.argument("entry")
@options.project
@options.home_and_json
def rewind(session: str, entry: str, project: str | None, home: str | None, as_json: bool) -> None:
    """Go on from an earlier ENTRY of the session. Nothing is removed: what came after it stays as a branch."""
    local = Local(home, project)
    done = local.ask("session/rewind", r.AppendResult, session_id=local.session_id(session), entry_id=entry)
    told(as_json, done, f"goes on from {entry}; to come back, rewind to the leaf that `sessions show --branches` names")


@sessions.command()
@session
@click.argument("name")
@options.project
@options.home_and_json
def rename(session: str, name: str, project: str | None, home: str | None, as_json: bool) -> None:
    """Give a session a NAME; an empty one takes it away."""
    local = Local(home, project)
    session_id = local.session_id(session)
    done = local.ask("session/setName", r.AppendResult, session_id=session_id, name=name)
    told(as_json, done, f"{session_id} is now {styled(name)}" if name else f"{session_id} has no name now")


@sessions.command()
@session
@options.project
@options.home_and_json
def delete(session: str, project: str | None, home: str | None, as_json: bool) -> None:
    """Move a session, its tasks and its team to the trash."""
    local = Local(home, project)
    session_id = local.session_id(session)
    done = local.ask("session/delete", r.Deleted, session_id=session_id)
    told(as_json, done, f"{session_id} is in the trash; `crewlog sessions restore {session_id}` brings it back")


@sessions.command()
@session
@options.project
@options.home_and_json
def restore(session: str, project: str | None, home: str | None, as_json: bool) -> None:
    """Bring a deleted session back."""
    done = Local(home, project).ask("session/restore", r.OneSession, session_id=session)
    told(as_json, done, f"{done.session.id}  {styled(done.session.name or done.session.first_message)}")
