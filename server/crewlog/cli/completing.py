"""What a shell offers after Tab: the sessions, lists, tasks, plans and agents that there are. Reads only, and never complains.

The options that stand on the line already count: `crewlog tasks show --list work <Tab>` offers the tasks of that list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ParamSpec

import click
import msgspec
from click.shell_completion import CompletionItem

from crewlog.cli.local import Local
from crewlog.cli.output import counted, one_line, read_shown, styled
from crewlog.cli.team import read_member
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.storage.errors import StorageError

P = ParamSpec("P")
_Found = Iterator[tuple[str, str]]
_Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completion(find: Callable[[Local, click.Context], _Found]) -> _Completion:
    """`find` gives values with a line of help each. One that a shell would have to quote, or that would end its line, is left out."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        home = context.params.get("home") or context.find_root().params.get("home")
        try:
            found = list(find(Local(home, context.params.get("project"), quiet=True), context))
        except (StorageError, click.UsageError, msgspec.MsgspecError, OSError):
            return []  # a complaint would stand in the middle of what is being typed
        return [
            CompletionItem(value, help=styled(one_line(told, 60)).replace(":", "\u2236"))
            for value, told in found
            if value.startswith(incomplete) and value.isprintable() and " " not in value and "," not in value
        ]

    return complete


def _told(session: records.SessionInfo | None) -> str:
    return (session.name or session.first_message) if session is not None else ""


@_completion
def sessions(local: Local, context: click.Context) -> _Found:
    found = local.ask("session/list", r.SessionListResult, all_projects=bool(context.params.get("all_projects")))
    yield from ((info.id, _told(info)) for info in found.sessions)
    yield "last", "the newest"


@_completion
def lists(local: Local, context: click.Context) -> _Found:
    for item in local.ask("task/lists", r.TaskListsResult).lists:
        yield item.list_id, _told(item.session) or f"{item.counts.completed} of {item.counts.total} done"


def _tasks(local: Local, context: click.Context) -> Iterator[records.TaskRecord]:
    found = local.ask("task/list", r.TaskListResult, list_id=local.list_id(context.params.get("list_id")))
    yield from (read_shown(item, records.TaskRecord) for item in found.items)


@_completion
def tasks(local: Local, context: click.Context) -> _Found:
    given = context.params.get("task_ids") or ()
    yield from ((task.id, task.subject) for task in _tasks(local, context) if task.id not in given)


@_completion
def owners(local: Local, context: click.Context) -> _Found:
    chosen = local.list_id(context.params.get("list_id"))
    roster = read_shown(local.ask("roster/get", msgspec.Raw, list_id=chosen), records.RosterRecord)
    members = [read_member(raw) for raw in roster.members]
    names = {member.name: member.agent_type for member in members}
    yield from {**{task.owner: "" for task in _tasks(local, context) if task.owner}, **names}.items()


@_completion
def agents(local: Local, context: click.Context) -> _Found:
    chosen = local.list_id(context.params.get("list_id"))
    for item in local.ask("transcript/list", r.TranscriptListResult, list_id=chosen).agents:
        yield item.agent, counted(item.count, "message")


@_completion
def plans(local: Local, context: click.Context) -> _Found:
    yield from ((plan.name, "") for plan in local.ask("plan/list", r.PlanListResult).plans)
