"""`crewlog tasks …`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click
import msgspec

from crewlog.cli import graph, options
from crewlog.cli.local import Local, edit_text
from crewlog.cli.output import complain, one_line, read_shown, say, say_json, styled, table, told
from crewlog.protocol import results as r
from crewlog.protocol.records import Counts, TaskRecord
from crewlog.storage import rawjson
from crewlog.storage.errors import LeaseLost, TaskNotFound

known = options.completed_by("tasks")


def _plain(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """`#3`, as tasks are printed, means task 3."""
    return value.removeprefix("#") if isinstance(value, str) else tuple(one.removeprefix("#") for one in value)


task_id = click.argument("task_id", metavar="TASK", shell_complete=known, callback=lambda context, parameter, value: _plain(value))
several = click.argument(
    "task_ids",
    metavar="TASK...",
    nargs=-1,
    required=True,
    shell_complete=known,
    callback=lambda context, parameter, value: _plain(value),
)


@click.group()
def tasks() -> None:
    """Work with a task board: list, add, claim, finish.

    A shell script becomes a team member:  crewlog tasks next --owner me --wait 60 --lease 120 --exec './do "$CREWLOG_TASK_SUBJECT"'
    """


def read_task(raw: msgspec.Raw | bytes) -> TaskRecord:
    return read_shown(raw, TaskRecord)


def describe(task: TaskRecord) -> str:
    """A task in one line."""
    who = graph.holder(task)
    return f"{graph.sign(task)} {styled('#' + task.id, 'cyan')} {styled(one_line(task.subject), bold=True)}" + (
        f"  {styled(who, 'magenta')}" if who else ""
    )


def _tell_task(as_json: bool, raw: msgspec.Raw) -> None:
    told(as_json, raw, describe(read_task(raw)))


@tasks.command("list")
@click.option("--status", type=click.Choice(["pending", "in_progress", "completed"]), help="Only those.")
@click.option(
    "--owner",
    metavar="NAME",
    shell_complete=options.completed_by("owners"),
    help="Only those that NAME holds; empty for those nobody holds.",
)
@click.option("--claimable", is_flag=True, help="Only those that a claim would get now.")
@click.option("--lists", "show_lists", is_flag=True, help="The lists there are, in place of tasks.")
@options.task_list
@options.home_and_json
def list_(
    status: str | None,
    owner: str | None,
    claimable: bool,
    show_lists: bool,
    list_id: str | None,
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """The tasks of a list, by number."""
    local = Local(home, project)
    if show_lists:
        _show_lists(local, as_json)
        return
    chosen = local.list_id(list_id)
    found = local.ask("task/list", r.TaskListResult, list_id=chosen, status=status, owner=owner, claimable=claimable)
    if as_json:
        say_json(found)
        return
    say(f"{styled(chosen, bold=True)}  {_counted(found.counts)}")
    everything = _by_id(local, chosen) if len(found.items) < found.counts.total else {}
    tasks = [read_task(item) for item in found.items]
    by_id = {**everything, **{task.id: task for task in tasks}}
    rows = [_row(task, by_id) for task in tasks]
    if rows:
        say(table(rows, ["", "TASK", "OWNER", "WAITS FOR", "SUBJECT"], flexible=4))
    for skipped in found.skipped:
        say(f"{styled('skipped', 'red')} {styled(skipped.path)}: {styled(skipped.reason)}")


def _counted(counts: Counts) -> str:
    return f"{counts.completed} of {counts.total} done, {counts.in_progress} in progress, {counts.pending} pending"


def _by_id(local: Local, list_id: str) -> dict[str, TaskRecord]:
    found = local.ask("task/list", r.TaskListResult, list_id=list_id)
    return {task.id: task for task in map(read_task, found.items)}


def _row(task: TaskRecord, by_id: Mapping[str, TaskRecord]) -> list[str]:
    who = graph.holder(task)
    waits = ", ".join(graph.waits_for(task, by_id))
    return [graph.sign(task), styled(task.id, "cyan"), styled(who, "magenta"), styled(waits), styled(one_line(task.subject))]


def _show_lists(local: Local, as_json: bool) -> None:
    found = local.ask("task/lists", r.TaskListsResult)
    rows = [
        [
            styled(item.list_id, "cyan"),
            _counted(item.counts),
            styled(one_line(item.session.name or item.session.first_message, 60)) if item.session else "",
        ]
        for item in found.lists
    ]
    told(as_json, found, table(rows, ["LIST", "TASKS", "SESSION"], flexible=2) if rows else "No task lists yet.")


@tasks.command()
@task_id
@options.task_list
@options.home_and_json
def show(task_id: str, list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """All about a task."""
    local = Local(home, project)
    chosen = local.list_id(list_id)
    raw = local.ask("task/get", msgspec.Raw, list_id=chosen, id=task_id)
    if raw is None:
        raise TaskNotFound(task_id)
    if as_json:
        say_json(raw)
        return
    task = read_task(raw)
    say(describe(task))
    blockers = [local.ask("task/get", msgspec.Raw, list_id=chosen, id=other) for other in task.blockedBy]
    waits = graph.waits_for(task, {other.id: other for other in map(read_task, filter(None, blockers))})
    claim = task.claim
    lease = "" if claim is None or not claim.expires_at else f"{'lapsed' if claim.lapsed else 'lapses'} {claim.expires_at}"
    facts = [
        ("status", task.status),
        ("doing", task.activeForm),
        ("owner", task.owner),
        ("generation", str(claim.generation) if claim is not None else ""),
        ("lease", lease),
        ("waits for", ", ".join(waits)),
        ("waited for", ", ".join(other for other in task.blockedBy if other not in waits)),
        ("blocks", ", ".join(task.blocks)),
        ("completed", task.completedAt),
        *((key, bytes(value).decode("utf-8", "replace")) for key, value in task.metadata.items()),
    ]
    for name, value in facts:
        if value:
            say(f"  {styled(name, dim=True)}  {styled(one_line(value, 1000))}")
    if task.description:
        say("\n" + styled(task.description.rstrip("\n")))


@tasks.command()
@click.argument("subject")
@click.option("--description", "-d", help="What is to be done.")
@click.option("--active-form", help="What to show while somebody is at it: “Fixing the parser”.")
@click.option("--blocked-by", "-b", multiple=True, metavar="TASK", shell_complete=known, help="It waits for this task; may be repeated.")
@click.option("--blocks", multiple=True, metavar="TASK", shell_complete=known, help="This task waits for it; may be repeated.")
@click.option("--meta", "-m", multiple=True, metavar="KEY=JSON", help="Metadata; what is no JSON is text; may be repeated.")
@options.task_list
@options.home_and_json
def add(
    subject: str,
    description: str | None,
    active_form: str | None,
    blocked_by: tuple[str, ...],
    blocks: tuple[str, ...],
    meta: tuple[str, ...],
    list_id: str | None,
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Put a task on the board."""
    _require_words(subject, "SUBJECT")
    local = Local(home, project)
    raw = local.ask(
        "task/create",
        msgspec.Raw,
        list_id=local.list_id(list_id),
        subject=subject,
        description=description,
        active_form=active_form,
        metadata=_metadata(meta),
        blocked_by=list(blocked_by),
        blocks=list(blocks),
    )
    _tell_task(as_json, raw)


def _require_words(subject: str, where: str) -> None:
    if not subject.strip():
        raise click.BadParameter("a task without words says nothing to those who look for work", param_hint=where)


def _metadata(pairs: tuple[str, ...]) -> dict[str, msgspec.Raw] | None:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r}: KEY=JSON is expected", param_hint="--meta")
        try:
            raw = value.encode()
        except UnicodeEncodeError:
            raise click.BadParameter(f"{pair!a} is no UTF-8 text", param_hint="--meta") from None
        try:
            rawjson.validate(raw)
        except rawjson.Invalid:
            raw = rawjson.encode_string(value)
        found[key] = msgspec.Raw(raw)
    return found or None


@tasks.command()
@task_id
@options.owner
@options.lease
@options.task_list
@options.home_and_json
def claim(
    task_id: str, owner: str, lease_s: float | None, list_id: str | None, project: str | None, home: str | None, as_json: bool
) -> None:
    """Take a task. With --lease it is for you to renew it (`tasks renew`); without, the claim never lapses."""
    local = Local(home, project)
    lease_ms = options.milliseconds(lease_s)
    raw = local.ask("task/claim", msgspec.Raw, list_id=local.list_id(list_id), id=task_id, owner=owner, lease_ms=lease_ms)
    _tell_task(as_json, raw)


@tasks.command("next")
@options.owner
@options.lease
@click.option("--wait", "wait_s", type=options.Seconds(0, 86_400), default=0.0, metavar="SECONDS", help="Wait so long for work.")
@click.option("--exec", "command", metavar="COMMAND", help="Run this in a shell for the task; the lease is renewed meanwhile.")
@click.option("--match", "-m", multiple=True, metavar="KEY=JSON", help="Only a task that has this in its metadata; may be repeated.")
@options.task_list
@options.home_and_json
def next_(
    owner: str,
    lease_s: float | None,
    wait_s: float,
    command: str | None,
    match: tuple[str, ...],
    list_id: str | None,
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Take the next task that can be had: of the lowest number, whoever else is after it.

    With --exec the command finds CREWLOG_TASK_ID, CREWLOG_TASK_SUBJECT, CREWLOG_TASK_DESCRIPTION, CREWLOG_LIST, CREWLOG_OWNER and
    CREWLOG_HOME in its environment, and the task as JSON in CREWLOG_TASK. When it exits with 0 the task is completed, else it is given
    back. Where there is no task, the command is refused as noTask.
    """
    local = Local(home, project)
    chosen = local.list_id(list_id)
    wanted = _metadata(match)
    if command is not None or wait_s:
        from crewlog.cli.next_task import Taking, take_next

        taking = Taking(
            local.ws.home.path, local.ws.cwd, chosen, owner, options.milliseconds(lease_s), options.milliseconds(wait_s), wanted
        )
        sys.exit(take_next(taking, command, as_json=as_json))
    lease_ms = options.milliseconds(lease_s)
    raw = local.ask("task/claimNext", msgspec.Raw, list_id=chosen, owner=owner, lease_ms=lease_ms, match=wanted)
    if raw is None:
        complain("noTask", f"nothing can be claimed in {chosen} now; wait for work with --wait", as_json=as_json)
        sys.exit(1)
    _tell_task(as_json, raw)


@tasks.command()
@task_id
@options.owner
@options.lease
@options.task_list
@options.home_and_json
def renew(
    task_id: str, owner: str, lease_s: float | None, list_id: str | None, project: str | None, home: str | None, as_json: bool
) -> None:
    """Let your lease begin anew."""
    local = Local(home, project)
    lease_ms = options.milliseconds(lease_s)
    raw = local.ask("task/renew", msgspec.Raw, list_id=local.list_id(list_id), id=task_id, owner=owner, lease_ms=lease_ms)
    _tell_task(as_json, raw)


@tasks.command()
@task_id
@options.owner
@options.task_list
@options.home_and_json
def release(task_id: str, owner: str, list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Give a task back."""
    local = Local(home, project)
    _tell_task(as_json, local.ask("task/release", msgspec.Raw, list_id=local.list_id(list_id), id=task_id, owner=owner))


def _update(local: Local, chosen: str, task_ids: tuple[str, ...], as_json: bool, **change: object) -> None:
    for task_id in task_ids:
        _tell_task(as_json, local.ask("task/update", msgspec.Raw, list_id=chosen, id=task_id, **change))


@tasks.command()
@several
@click.option(
    "--owner",
    metavar="NAME",
    shell_complete=options.completed_by("owners"),
    help="Only where NAME still holds it: refused as leaseLost otherwise.",
)
@options.task_list
@options.home_and_json
def done(task_ids: tuple[str, ...], owner: str | None, list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Complete tasks."""
    local = Local(home, project)
    chosen = local.list_id(list_id)
    for task_id in task_ids:
        generation = None if owner is None else _held_generation(local, chosen, task_id, owner)
        _update(local, chosen, (task_id,), as_json, status="completed", generation=generation)


def _held_generation(local: Local, list_id: str, task_id: str, owner: str) -> int:
    """The number of `owner`'s present claim, by which the update is refused should it be lost until then. Raises `LeaseLost`."""
    raw = local.ask("task/get", msgspec.Raw, list_id=list_id, id=task_id)
    if raw is None:
        raise TaskNotFound(task_id)
    claim = read_task(raw).claim
    if claim is None or claim.lapsed or claim.owner != owner:
        raise LeaseLost(task_id, owner)
    return claim.generation


@tasks.command()
@several
@options.task_list
@options.home_and_json
def reopen(task_ids: tuple[str, ...], list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Make tasks pending again, and nobody's."""
    local = Local(home, project)
    _update(local, local.list_id(list_id), task_ids, as_json, status="pending", owner="")


@tasks.command()
@task_id
@click.option("--subject", "-s", help="A new subject.")
@click.option("--description", "-d", help="A new description; without any of these options, your editor asks for it.")
@click.option("--active-form", help="What to show while somebody is at it.")
@click.option("--status", type=click.Choice(["pending", "in_progress", "completed"]), help="A new status.")
@click.option("--owner", metavar="NAME", shell_complete=options.completed_by("owners"), help="A new owner; empty for nobody.")
@click.option("--meta", "-m", multiple=True, metavar="KEY=JSON", help="Metadata; null takes the key away; may be repeated.")
@click.option("--block-by", multiple=True, metavar="TASK", shell_complete=known, help="It shall wait for this task; may be repeated.")
@click.option(
    "--unblock-by", multiple=True, metavar="TASK", shell_complete=known, help="It shall no longer wait for this task; may be repeated."
)
@options.task_list
@options.home_and_json
def edit(
    task_id: str,
    subject: str | None,
    description: str | None,
    active_form: str | None,
    status: str | None,
    owner: str | None,
    meta: tuple[str, ...],
    block_by: tuple[str, ...],
    unblock_by: tuple[str, ...],
    list_id: str | None,
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Change a task: what is not named stays as it is."""
    if subject is not None:
        _require_words(subject, "--subject")
    local = Local(home, project)
    chosen = local.list_id(list_id)
    change: dict[str, object] = {
        "subject": subject,
        "description": description,
        "active_form": active_form,
        "status": status,
        "owner": owner,
        "metadata": _metadata(meta),
        "add_blocked_by": list(block_by) or None,
        "remove_blocked_by": list(unblock_by) or None,
    }
    if all(value is None for value in change.values()):
        change = _edited(local, chosen, task_id)
    _tell_task(as_json, local.ask("task/update", msgspec.Raw, list_id=chosen, id=task_id, **change))


def _edited(local: Local, list_id: str, task_id: str) -> dict[str, object]:
    """Subject and description as they come back from the user's editor, the subject on the first line."""
    raw = local.ask("task/get", msgspec.Raw, list_id=list_id, id=task_id)
    if raw is None:
        raise TaskNotFound(task_id)
    task = read_task(raw)
    text = edit_text(f"{task.subject}\n\n{task.description}\n", ".md")
    if text is None:
        return {}
    subject, _, description = text.partition("\n")
    _require_words(subject, "the first line")
    return {"subject": subject.strip(), "description": description.strip()}


@tasks.command()
@several
@options.task_list
@options.home_and_json
def rm(task_ids: tuple[str, ...], list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Delete tasks. Their numbers do not come again, and no other task waits for them any more."""
    local = Local(home, project)
    chosen = local.list_id(list_id)
    for task_id in task_ids:
        if not local.ask("task/delete", bool, list_id=chosen, id=task_id):
            raise TaskNotFound(task_id)
        told(as_json, {"id": task_id, "deleted": True}, f"deleted #{task_id}")


@tasks.command("graph")
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart.")
@options.task_list
@options.home_and_json
def graph_(mermaid: bool, list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """What waits for what, as a tree or as a Mermaid flowchart."""
    local = Local(home, project)
    chosen = local.list_id(list_id)
    found = local.ask("task/list", r.TaskListResult, list_id=chosen)
    board = [read_task(item) for item in found.items]
    if as_json:
        say_json({"listId": chosen, "items": found.items, "edges": [{"blocker": a, "blocked": b} for a, b in graph.edges(board)]})
    elif mermaid:
        say(graph.mermaid(board))
    else:
        say(graph.tree(board) if board else f"The list {chosen} is empty.")
