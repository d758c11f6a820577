"""The rules of the task board, without a disk: order of ids, what an update makes of a task, dependencies, who may claim."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.errors import DependencyCycle, InvalidArgument, TaskNotFound
from crewlog.storage.records import Task, TaskStatus, TaskUpdate

MAX_LEASE_MS = 86_400_000
"""A day: nobody means a longer lease, and a mistaken unit should be told."""
DELETED = "deleted"
STATUSES = frozenset(status.value for status in TaskStatus)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64 = 1 << 63


def parse_task_number(text: str) -> int | None:
    """The number that a task id or the name of a task file stands for, as Go's `strconv.Atoi` reads it; None where it is none."""
    if len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)
    if _INTEGER.fullmatch(text) is None or len(text) > 20:
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def task_id_key(task_id: str) -> tuple[int, int, str]:
    """Sorts ids as numbers, numbers before other text."""
    number = parse_task_number(task_id)
    return (1, 0, task_id) if number is None else (0, number, "")


def compare_task_ids(a: str, b: str) -> int:
    """Negative, zero or positive as `a` comes before, with or after `b`. Go: CompareTaskIDs."""
    left, right = task_id_key(a), task_id_key(b)
    return (left > right) - (left < right)


def sort_tasks_by_id(tasks: list[Task]) -> None:
    """Sorts in place. Go: SortTasksByID."""
    if _are_all_digits([task.id for task in tasks]):
        tasks.sort(key=lambda task: int(task.id))
    else:
        tasks.sort(key=lambda task: task_id_key(task.id))


def _are_all_digits(ids: list[str]) -> bool:
    """Whether all stand for small numbers, as nearly always: then they compare as those do."""
    digits = "".join(ids)
    return digits.isascii() and digits.isdigit() and "" not in ids and len(max(ids, key=len)) < 19


def check_lease_ms(lease_ms: object) -> int:
    """Raises `InvalidArgument` unless it is a whole number of milliseconds from 1 to a day."""
    if isinstance(lease_ms, bool) or not isinstance(lease_ms, int):
        raise InvalidArgument("leaseMs", f"a whole number of milliseconds was expected, not {lease_ms!r}")
    if not 1 <= lease_ms <= MAX_LEASE_MS:
        raise InvalidArgument("leaseMs", f"it must be from 1 to {MAX_LEASE_MS} milliseconds, not {lease_ms}")
    return lease_ms


def open_blockers(task: Task, tasks: Mapping[str, Task]) -> list[str]:
    """The blockers that are there and not completed. One that is no longer there blocks nobody."""
    return [blocker for blocker in task.blocked_by if (found := tasks.get(blocker)) is not None and found.status != TaskStatus.COMPLETED]


def updated(task: Task, update: TaskUpdate) -> Task:
    """The task with the update's fields in place; dependencies are left to `with_dependencies`. Raises `InvalidArgument`."""
    if update.status is not None and update.status not in STATUSES:
        raise InvalidArgument("status", f"it must be pending, in_progress, completed or deleted, not {update.status!r}")
    changed = msgspec.structs.replace(task)
    for field in ("subject", "description", "active_form", "owner"):
        value = getattr(update, field)
        if value is not None:
            setattr(changed, field, value)
    if update.metadata is not None:
        changed.metadata = merge_metadata(task.metadata, update.metadata)
    if update.status is not None and update.status != task.status:
        changed.status = update.status
        changed.completed_at = times.now() if update.status == TaskStatus.COMPLETED else ""
    return changed


def merge_metadata(present: Mapping[str, msgspec.Raw], given: Mapping[str, object]) -> dict[str, msgspec.Raw]:
    """Given values replace, a null deletes its key."""
    merged = dict(present)
    for key, value in given.items():
        raw = encode_value(value)
        if raw == b"null":
            merged.pop(key, None)
        else:
            merged[key] = msgspec.Raw(raw)
    return merged


def encode_value(value: object) -> bytes:
    """A metadata value as one line of raw JSON. Raises `InvalidArgument`."""
    if isinstance(value, (msgspec.Raw, bytes)):
        raw = rawjson.one_line(value).strip()
        try:
            rawjson.validate(raw)
        except rawjson.Invalid as error:
            raise InvalidArgument("metadata", str(error)) from None
        return raw
    try:
        raw = msgspec.json.encode(value)
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidArgument("metadata", str(error)) from None
    if raw == b"null" and value is not None:
        raise InvalidArgument("metadata", f"{value!r} cannot stand in JSON")
    return raw


def with_dependencies(
    tasks: Mapping[str, Task],
    task: Task,
    *,
    blocks: Sequence[str] = (),
    blocked_by: Sequence[str] = (),
    remove_blocks: Iterable[str] = (),
    remove_blocked_by: Iterable[str] = (),
) -> dict[str, Task]:
    """All tasks that change, `task` among them, when it comes to block and to wait for others. Both sides are kept, without doubles.

    Raises `TaskNotFound` for an id that is not there, `DependencyCycle` where tasks would wait for each other (or for themselves).
    """
    changed = {task.id: msgspec.structs.replace(task, blocks=list(task.blocks), blocked_by=list(task.blocked_by))}

    def of(task_id: str) -> Task:
        if task_id not in changed:
            if task_id not in tasks:
                raise TaskNotFound(task_id)
            found = tasks[task_id]
            changed[task_id] = msgspec.structs.replace(found, blocks=list(found.blocks), blocked_by=list(found.blocked_by))
        return changed[task_id]

    for other in remove_blocks:
        _drop(changed[task.id].blocks, other)
        if other in tasks:
            _drop(of(other).blocked_by, task.id)
    for other in remove_blocked_by:
        _drop(changed[task.id].blocked_by, other)
        if other in tasks:
            _drop(of(other).blocks, task.id)
    for other in blocks:
        _link(changed[task.id], of(other))
    for other in blocked_by:
        _link(of(other), changed[task.id])
    if blocks or blocked_by:
        cycle = find_cycle(task.id, lambda task_id: changed.get(task_id) or tasks.get(task_id))
        if cycle:
            raise DependencyCycle(cycle)
    return {key: value for key, value in changed.items() if key == task.id or value != tasks[key]}


def _link(blocker: Task, blocked: Task) -> None:
    if blocked.id not in blocker.blocks:
        blocker.blocks.append(blocked.id)
    if blocker.id not in blocked.blocked_by:
        blocked.blocked_by.append(blocker.id)


def _drop(ids: list[str], task_id: str) -> None:
    if task_id in ids:
        ids.remove(task_id)


def find_cycle(start: str, task_of: Callable[[str], Task | None]) -> list[str] | None:
    """A way from `start` along "blocks" back to `start`, as ids with `start` at both ends; None where there is none."""
    came_from = {start: ""}
    waiting = [start]
    while waiting:
        current = waiting.pop()
        task = task_of(current)
        for blocked in task.blocks if task is not None else ():
            if blocked == start:
                way = [start]
                while current:
                    way.append(current)
                    current = came_from[current]
                return way[::-1]
            if blocked not in came_from:
                came_from[blocked] = current
                waiting.append(blocked)
    return None


def without(tasks: Mapping[str, Task], task_id: str) -> dict[str, Task]:
    """The tasks that change when `task_id` is deleted: those that named it, without it."""
    return {
        task.id: msgspec.structs.replace(
            task,
            blocks=[other for other in task.blocks if other != task_id],
            blocked_by=[other for other in task.blocked_by if other != task_id],
        )
        for task in tasks.values()
        if task.id != task_id and (task_id in task.blocks or task_id in task.blocked_by)
    }
