"""What is wrong with a task board. Pure: tasks go in, faults come out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from crewlog.storage.records import Task, TaskUpdate
from crewlog.storage.task_files import SUFFIX
from crewlog.storage.task_rules import STATUSES, find_cycle, parse_task_number


class BoardFault(msgspec.Struct):
    """One thing that is wrong with the task `task_id`. `change`: the update that sets it right; None where a person must decide."""

    kind: str
    task_id: str
    reason: str
    change: TaskUpdate | None = None
    severity: str = "error"


def board_faults(tasks: Mapping[str, Task], unreadable: Collection[str] = ()) -> Iterator[BoardFault]:
    """`tasks`: all of a list, by id. `unreadable`: the ids whose files are there but cannot be read: to name one of them is no fault."""
    yield from _dependency_faults(tasks, unreadable)
    yield from _cycle_faults(tasks)
    for task in tasks.values():
        if task.status not in STATUSES:
            hint = f"; set one with `crewlog tasks edit {task.id} --status`" if task.id else ""
            yield BoardFault("badStatus", task.id, f"its status is {task.status!r}{hint}")
        if task.claim is not None and task.claim.lapsed:
            reason = f"the lease of {task.claim.owner} lapsed at {task.claim.expires_at}; anybody may take it, codebot shows it as taken"
            yield BoardFault("lapsedLease", task.id, reason, TaskUpdate(owner=""), "note")


def _dependency_faults(tasks: Mapping[str, Task], unreadable: Collection[str]) -> Iterator[BoardFault]:
    for task in tasks.values():
        gone = [other for other in task.blocks if other not in tasks and other not in unreadable]
        gone_blockers = [other for other in task.blocked_by if other not in tasks and other not in unreadable]
        if gone or gone_blockers:
            reason = f"it names tasks that are not there: {', '.join(dict.fromkeys(gone + gone_blockers))}"
            yield BoardFault("danglingId", task.id, reason, TaskUpdate(remove_blocks=gone, remove_blocked_by=gone_blockers))
        one_sided = [
            other
            for other in dict.fromkeys(task.blocks)
            if other in tasks and other != task.id and task.id not in tasks[other].blocked_by  # itself: that is a circle
        ]
        if one_sided:
            reason = f"it blocks {', '.join(one_sided)}, which do not know of it"
            yield BoardFault("oneSidedDependency", task.id, reason, TaskUpdate(add_blocks=one_sided))
        one_sided = [
            other for other in dict.fromkeys(task.blocked_by) if other in tasks and other != task.id and task.id not in tasks[other].blocks
        ]
        if one_sided:
            reason = f"it waits for {', '.join(one_sided)}, which do not know of it"
            yield BoardFault("oneSidedDependency", task.id, reason, TaskUpdate(add_blocked_by=one_sided))


def _cycle_faults(tasks: Mapping[str, Task]) -> Iterator[BoardFault]:
    waiting = _with_both_sides(tasks)
    told: set[str] = set()
    for id in _entangled(waiting):
        cycle = None if id in told else find_cycle(id, waiting.get)
        if cycle:
            told.update(cycle)
            hint = f"break it with `crewlog tasks edit {cycle[1]} --unblock-by {cycle[0]}`"
            yield BoardFault("dependencyCycle", id, f"tasks wait for each other: {' -> '.join(cycle)}; {hint}")


def _with_both_sides(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """The tasks, each blocking all that it says it blocks, and all that say they wait for it."""
    blocks: dict[str, dict[str, None]] = {id: dict.fromkeys(other for other in task.blocks if other in tasks) for id, task in tasks.items()}
    for id, task in tasks.items():
        for blocker in task.blocked_by:
            if blocker in blocks:
                blocks[blocker][id] = None
    return {id: msgspec.structs.replace(task, blocks=list(blocks[id])) for id, task in tasks.items()}


def _entangled(tasks: Mapping[str, Task]) -> list[str]:
    """What is left when tasks that wait for nobody are taken away again and again: circles, and what waits for them."""
    waits_for = dict.fromkeys(tasks, 0)
    for task in tasks.values():
        for blocked in task.blocks:
            waits_for[blocked] += 1
    free = [id for id, count in waits_for.items() if not count]
    while free:
        for blocked in tasks[free.pop()].blocks:
            waits_for[blocked] -= 1
            if not waits_for[blocked]:
                free.append(blocked)
    return [id for id, count in waits_for.items() if count]


def misnamed(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(file name, what is odd). `names`: task id by file name."""
    seen: dict[str, str] = {}
    for name, id in sorted(names.items()):
        if name != id + SUFFIX:
            yield name, f"the task in it has the id {id!r}"
        elif parse_task_number(id) is None or str(parse_task_number(id)) != id:
            yield name, "its id is not a plain number from 1 on"
        if id in seen:
            yield name, f"the file {seen[id]} holds a task of the same id"
        seen[id] = name
