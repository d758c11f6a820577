"""One picture of a project for `crewlog watch`: tasks, team, latest messages. Pure: records go in, lines come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from crewlog.cli import graph
from crewlog.cli.output import ago, counted, one_line, styled, table, width
from crewlog.protocol.records import Counts, Message, RosterMemberRecord, SessionInfo, TaskRecord

_BAR = 24
_ORDER = {"in_progress": 0, "pending": 1, "completed": 2}


class Said(msgspec.Struct):
    """A message as it is shown: who, when (RFC 3339), and its text in one line."""

    who: str
    when: str
    text: str


class View(msgspec.Struct, rename="camel"):
    """What there is to see. `note`: what stands on the last line."""

    title: str
    session: SessionInfo | None
    list_id: str
    tasks: list[TaskRecord]
    counts: Counts
    members: list[RosterMemberRecord]
    said: list[Said]
    note: str


def frame(view: View, columns: int, rows: int) -> list[str]:
    """At most `rows` lines, none wider than `columns`. What there is no room for is counted."""
    head = [f"{styled('crewlog', 'cyan', bold=True)}  {styled(view.title, bold=True)}", _session(view.session), ""]
    team = _team(view)
    room = max(3, rows - len(head) - len(team) - 2)
    messages = [_said(said) for said in view.said][-max(2, room // 3) :]
    tasks = _tasks(view, max(2, room - len(messages) - 4))
    body = [*tasks, *team]
    if messages:
        body += ["", styled("LATEST", dim=True), *messages]
    lines = [*head, *body][: rows - 1]
    lines += [""] * (rows - 1 - len(lines))
    return [clip(line, columns) for line in [*lines, styled(view.note, dim=True)]]


def _session(info: SessionInfo | None) -> str:
    if info is None:
        return styled("no session yet", dim=True)
    name = info.name or info.first_message
    return f"session {styled(info.id, 'cyan')}  {styled(one_line(name, 80))}  {counted(info.message_count, 'message')}, {ago(info.updated)}"


def _tasks(view: View, room: int) -> list[str]:
    counts = view.counts
    if not view.tasks:
        return [styled(f"TASKS  {view.list_id or 'no list yet'}", dim=True)]
    filled = round(_BAR * counts.completed / counts.total) if counts.total else 0
    bar = styled("━" * filled, "green") + styled("━" * (_BAR - filled), dim=True)
    title = f"{styled('TASKS', dim=True)}  {bar}  {counts.completed}/{counts.total} done, {counts.in_progress} in progress"
    ordered = sorted(view.tasks, key=lambda task: _ORDER.get(task.status, 1))
    by_id = {task.id: task for task in view.tasks}
    rows = [_task(task, by_id) for task in ordered[:room]]
    more = [styled(f"… and {len(ordered) - room} more", dim=True)] if len(ordered) > room else []
    return [title, *table(rows, ["", "", "", "", ""]).split("\n")[1:], *more]


def _task(task: TaskRecord, by_id: Mapping[str, TaskRecord]) -> list[str]:
    who = graph.holder(task)
    open_blockers = graph.waits_for(task, by_id) if task.status == "pending" and not who else []
    waits = f"waits for {', '.join(open_blockers)}" if open_blockers else ""
    doing = task.activeForm if task.status == "in_progress" and task.activeForm else task.subject
    return [graph.sign(task), styled("#" + task.id, "cyan"), styled(who, "magenta"), styled(one_line(doing, 90)), styled(waits, dim=True)]


def _team(view: View) -> list[str]:
    busy: dict[str, list[str]] = {}
    for task in view.tasks:
        if graph.holder(task) and task.status != "completed":
            busy.setdefault(graph.holder(task), []).append("#" + task.id)
    names = dict.fromkeys([*(member.name for member in view.members), *busy])
    if not names:
        return []
    parts = [
        f"{styled(name, 'magenta')} {styled(' '.join(busy[name]), 'cyan') if name in busy else styled('idle', dim=True)}" for name in names
    ]
    return ["", styled("TEAM", dim=True), "   ".join(parts)]


def _said(said: Said) -> str:
    colour = {"user": "green", "assistant": "cyan", "tool": "yellow"}.get(said.who, "white")
    return f"{styled(said.who.rjust(9), colour)}  {styled(one_line(said.text, 300))}  {styled(ago(said.when), dim=True)}"


def message_text(message: Message) -> str:
    """What a message says, in a few words."""
    for block in message.content or ():
        if block.text:
            return block.text
    calls = [block for block in message.content or () if bytes(block.tool_call) != b"null"]
    return "calls a tool" if calls else ""


def clip(line: str, columns: int) -> str:
    """The line, cut where the terminal ends; its styles end with it."""
    if width(line) <= columns:
        return line
    kept, used, position = "", 0, 0
    while position < len(line):
        if line[position] == "\x1b":
            end = line.index("m", position) + 1
            kept += line[position:end]
            position = end
            continue
        used += width(line[position])
        if used > columns - 1:
            break
        kept += line[position]
        position += 1
    return kept + "…\x1b[0m"


def plain(lines: Sequence[str]) -> str:
    """A picture as text for those who have no terminal."""
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")
