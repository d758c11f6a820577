"""A task board's dependencies as a text tree and as Mermaid. Pure: tasks go in, text comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crewlog.cli.output import STATUS_COLOURS, STATUS_SIGNS, one_line, styled
from crewlog.protocol.records import TaskRecord


def tree(tasks: Sequence[TaskRecord]) -> str:
    """Each task under what it waits for; one that waits for several stands in full under the first, and is named under the others."""
    by_id = {task.id: task for task in tasks}
    children: dict[str, list[str]] = {task.id: [] for task in tasks}
    for blocker, blocked in edges(tasks):
        children[blocker].append(blocked)
    waiting = {blocked for _, blocked in edges(tasks)}
    lines: list[str] = []
    shown: set[str] = set()
    roots = [task.id for task in tasks if task.id not in waiting]
    for root in [*roots, *by_id]:  # a cycle has no root: what is left is begun anywhere
        if root not in shown:
            _branch(by_id, children, root, lines, shown)
    return "\n".join(lines)


def _branch(by_id: dict[str, TaskRecord], children: dict[str, list[str]], root: str, lines: list[str], shown: set[str]) -> None:
    waiting = [(root, "", "", "")]
    while waiting:
        task_id, lead, corner, below = waiting.pop()
        again = task_id in shown
        shown.add(task_id)
        lines.append(lead + corner + (_again(by_id[task_id]) if again else _line(by_id[task_id])))
        if again:
            continue
        under = children[task_id]
        for position, child in reversed(list(enumerate(under))):
            last = position == len(under) - 1
            waiting.append((child, lead + below, "└─ " if last else "├─ ", "   " if last else "│  "))


def _line(task: TaskRecord) -> str:
    owner = f"  {styled(holder(task), 'magenta')}" if holder(task) else ""
    return f"{sign(task)} {styled('#' + task.id, 'cyan')} {styled(one_line(task.subject, 100))}{owner}"


def _again(task: TaskRecord) -> str:
    return f"{sign(task)} {styled('#' + task.id, 'cyan')} {styled('see above', dim=True)}"


def sign(task: TaskRecord) -> str:
    return styled(STATUS_SIGNS.get(task.status, "?"), STATUS_COLOURS.get(task.status, "red"))


def holder(task: TaskRecord) -> str:
    """Who works on it now, or did it: nobody, where a lease lapsed."""
    return "" if task.claim is not None and task.claim.lapsed else task.owner


def waits_for(task: TaskRecord, by_id: Mapping[str, TaskRecord]) -> list[str]:
    """The tasks that it waits for now: neither done nor gone."""
    return [other for other in dict.fromkeys(task.blockedBy) if other in by_id and by_id[other].status != "completed"]


def edges(tasks: Sequence[TaskRecord]) -> list[tuple[str, str]]:
    """(blocker, blocked) in order, from either side's record, of tasks that are there."""
    known = {task.id for task in tasks}
    found: dict[tuple[str, str], None] = {}
    for task in tasks:
        found.update(dict.fromkeys((task.id, blocked) for blocked in task.blocks if blocked in known))
        found.update(dict.fromkeys((blocker, task.id) for blocker in task.blockedBy if blocker in known))
    order = {task.id: number for number, task in enumerate(tasks)}
    return sorted(found, key=lambda edge: (order[edge[0]], order[edge[1]]))


def mermaid(tasks: Sequence[TaskRecord]) -> str:
    """A flowchart that GitHub and editors draw."""
    names = {task.id: f"t{number}" for number, task in enumerate(tasks, 1)}
    lines = ["flowchart LR"]
    for task in tasks:
        owner = f"<br/>{_label(one_line(holder(task)))}" if holder(task) else ""
        status = f":::{task.status}" if task.status in STATUS_SIGNS else ""
        lines.append(f'    {names[task.id]}["#35;{_label(one_line(task.id))} {_label(one_line(task.subject, 80))}{owner}"]{status}')
    lines += [f"    {names[blocker]} --> {names[blocked]}" for blocker, blocked in edges(tasks)]
    lines += [
        "    classDef pending fill:#fff8e1,stroke:#b28704,color:#333",
        "    classDef in_progress fill:#e1f5fe,stroke:#0277bd,color:#333",
        "    classDef completed fill:#e8f5e9,stroke:#2e7d32,color:#333",
    ]
    return "\n".join(lines)


def _label(text: str) -> str:
    """Text inside a Mermaid label: what could end it, or be read as markup, as entities."""
    return "".join(f"#{ord(character)};" if character in '"<>&#`[]{}()|\\' else character for character in text)
