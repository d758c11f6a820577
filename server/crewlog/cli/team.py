"""`crewlog team …` and `crewlog transcript …`."""

from __future__ import annotations

import click
import msgspec

from crewlog.cli import options
from crewlog.cli.local import Local
from crewlog.cli.output import one_line, read_record, read_shown, say, say_json, styled, table
from crewlog.protocol import records
from crewlog.protocol import results as r


@click.group()
def team() -> None:
    """Look at the team of a task list."""


def read_member(raw: msgspec.Raw) -> records.RosterMemberRecord:
    return read_shown(raw, records.RosterMemberRecord)


@team.command("show")
@options.task_list
@options.home_and_json
def show_team(list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Who is in the team, and how much each has said."""
    local = Local(home, project)
    chosen = local.list_id(list_id)
    roster = local.ask("roster/get", msgspec.Raw, list_id=chosen)
    if as_json:
        say_json(roster)
        return
    found = read_shown(roster, records.RosterRecord)
    said = {item.agent: item.count for item in local.ask("transcript/list", r.TranscriptListResult, list_id=chosen).agents}
    if not found.team and not found.members and not said:
        say(f"The list {chosen} has no team.")
        return
    say(f"{styled(found.team or 'no name', bold=True)}  {styled(found.description)}".rstrip())
    members = [read_member(raw) for raw in found.members]
    rows = [
        [styled(member.name, "cyan"), styled(member.agent_type), str(said.pop(member.name, 0)), styled(one_line(member.description))]
        for member in members
    ]
    rows += [[styled(name, "cyan"), styled("no member", dim=True), str(count), ""] for name, count in said.items()]
    say(table(rows, ["NAME", "TYPE", "MESSAGES", "DESCRIPTION"], flexible=3))


@click.group()
def transcript() -> None:
    """Look at a teammate's conversation."""


@transcript.command("show")
@click.argument("agent", shell_complete=options.completed_by("agents"))
@click.option("--limit", "-n", type=click.IntRange(1, 100_000), help="Only the last so many messages.")
@options.task_list
@options.home_and_json
def show_transcript(agent: str, limit: int | None, list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """What AGENT and its model said to each other."""
    local = Local(home, project)
    chosen = local.list_id(list_id)
    page = local.ask("transcript/load", r.TranscriptPage, list_id=chosen, agent=agent)
    if limit is not None:
        page.messages = page.messages[-limit:]
    if as_json:
        say_json(page)
        return
    for raw in page.messages:
        _say_message(raw)
    if not page.messages:
        say(f"{styled(agent)} has said nothing in {styled(chosen)}.")


def _say_message(raw: msgspec.Raw) -> None:
    try:
        message = read_record(raw, records.Message)
    except msgspec.MsgspecError:
        say(styled(one_line(bytes(raw).decode("utf-8", "replace")), dim=True))
        return
    colour = {"user": "green", "assistant": "cyan", "tool": "yellow"}.get(message.role, "white")
    say(styled(message.role, colour, bold=True))
    for block in message.content or ():
        if block.text:
            say("  " + styled(block.text.rstrip("\n"), dim=message.role == "tool").replace("\n", "\n  "))
        elif block.thinking:
            say("  " + styled(one_line(block.thinking, 400), dim=True))
        elif bytes(block.tool_call) != b"null":
            say("  " + styled(one_line(bytes(block.tool_call).decode("utf-8", "replace"), 400), "yellow"))
        else:
            say("  " + styled(f"[{block.type}]", dim=True))
