"""`crewlog import claude-code|codex PATH…`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from crewlog.cli import claude_code, codex, options
from crewlog.cli.foreign import Draft, ForeignFile, imported, members
from crewlog.cli.local import chosen_home
from crewlog.cli.output import complain, counted, say, say_json, styled
from crewlog.storage import rawjson
from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import POWER
from crewlog.storage.home import Home
from crewlog.storage.names import check_name
from crewlog.storage.records import Task, TaskUpdate
from crewlog.storage.task_files import NotATask, decode_task
from crewlog.storage.task_rules import sort_tasks_by_id
from crewlog.storage.tasks import TaskStore

paths = click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))


class Outcome(msgspec.Struct, rename="camel", omit_defaults=True):
    """What became of one file or folder: `id` names the session or task list; `there` if it was imported before; `count`: entries and
    messages, or tasks, that were added now.
    """

    path: str
    kind: str
    id: str = ""
    count: int = 0
    there: bool = False
    problem: str = ""
    skipped: list[str] = []


@click.group()
def import_() -> None:
    """Bring in the sessions and tasks of other agents.

    Nothing of theirs is changed, and each record of ours keeps the original it was made of. Of a session that was imported before,
    what was added to it since comes in; a task list that was is left as it is.
    """


@import_.command("claude-code")
@paths
@options.home_and_json
def claude(paths: tuple[Path, ...], home: str | None, as_json: bool) -> None:
    """Claude Code's sessions and tasks: files, or folders of them (default: ~/.claude/projects and ~/.claude/tasks).

    Conversations of subagents (sidechains) become transcripts.
    """
    given = paths or _those_there("~/.claude/projects", "~/.claude/tasks")
    place = Home(chosen_home(home))
    outcomes = [_task_list(place, folder) for folder in _task_folders(given)]
    outcomes += [_session(place, path, claude_code.Reader) for path in _files(given, lambda name: name.endswith(".jsonl"))]
    _tell(outcomes, as_json)


@import_.command("codex")
@paths
@options.home_and_json
def codex_(paths: tuple[Path, ...], home: str | None, as_json: bool) -> None:
    """Codex's rollout files, or folders of them (default: ~/.codex/sessions)."""
    given = paths or _those_there("~/.codex/sessions")
    place = Home(chosen_home(home))
    _tell([_session(place, path, codex.Reader) for path in _files(given, lambda name: name.endswith(".jsonl"))], as_json)


def _those_there(*folders: str) -> list[Path]:
    found = [path for folder in folders if (path := Path(folder).expanduser()).is_dir()]
    if not found:
        raise click.UsageError(f"there is no {folders[0]}; name files or folders")
    return found


def _files(given: Sequence[Path], fits: Callable[[str], bool]) -> Iterator[Path]:
    for path in given:
        if path.is_file():
            yield path
            continue
        for folder, names, files in os.walk(path):
            names.sort()
            yield from (Path(folder, name) for name in sorted(files) if fits(name))


def _session(home: Home, path: Path, reader_of: type[claude_code.Reader] | type[codex.Reader]) -> Outcome:
    try:
        draft = _read(path, reader_of)
        draft.cwd = draft.cwd or str(path.absolute().parent)
        leaf = draft.leaf_id
        done = draft.write(home, leaf)
    except ForeignFile as error:
        return Outcome(str(path), "session", problem=str(error))
    return Outcome(str(path), "session", done.session_id, done.added, done.there, skipped=draft.skipped)


def _read(path: Path, reader_of: type[claude_code.Reader] | type[codex.Reader]) -> Draft:
    """Raises `ForeignFile`, `StorageFailed`."""
    reader = reader_of(path.stem)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and not members(line):
                    reader.draft.skipped.append(f"line {number}: no line end, still being written or torn; it comes in when it is whole")
                elif line.strip():
                    reader.read(line.strip(), number)
    except OSError as error:
        raise StorageFailed.from_os(error, str(path)) from error
    draft = reader.finished()
    if isinstance(reader, claude_code.Reader):
        draft.leaf_id = reader.main_leaf
    return draft


def _task_folders(given: Sequence[Path]) -> Iterator[Path]:
    """Folders that hold files such as `1.json`."""
    for path in given:
        for folder, names, files in os.walk(path) if path.is_dir() else ():
            names.sort()
            if any(name.removesuffix(".json").isdigit() for name in files if name.endswith(".json")):
                yield Path(folder)


def _task_list(home: Home, folder: Path) -> Outcome:
    list_id = check_name(folder.name, "listId")
    store = TaskStore(durability=POWER, root=home.path)
    outcome = Outcome(str(folder), "tasks", list_id)
    try:
        store.set_dir(home.task_list(list_id))
        if store.snapshot().total:
            outcome.there = True
            return outcome
        outcome.count = _copy_tasks(store, _tasks_in(folder, outcome))
    finally:
        store.close()
    return outcome


def _tasks_in(folder: Path, outcome: Outcome) -> list[Task]:
    tasks = []
    for path in sorted(folder.glob("*.json")):
        try:
            task = decode_task(path.read_bytes())
        except (NotATask, OSError) as error:
            outcome.skipped.append(f"{path.name}: {error}")
            continue
        if task.id:
            tasks.append(task)
    sort_tasks_by_id(tasks)
    return tasks


def _copy_tasks(store: TaskStore, tasks: Sequence[Task]) -> int:
    """Makes the tasks anew, in order, under numbers of ours; how many."""
    numbers: dict[str, str] = {}
    for task in tasks:
        metadata = {**task.metadata, "imported": msgspec.Raw(_imported_task(task))}
        numbers[task.id] = store.create(task.subject, task.description, task.active_form, metadata).id
    waits = {task.id: set(task.blocked_by) | {other.id for other in tasks if task.id in other.blocks} for task in tasks}
    for task in tasks:
        blockers = sorted(numbers[other] for other in waits[task.id] if other in numbers and other != task.id)
        status = task.status if task.status in ("pending", "in_progress", "completed") else None
        store.update(numbers[task.id], TaskUpdate(add_blocked_by=blockers, owner=task.owner or None, status=status))
    return len(tasks)


def _imported_task(task: Task) -> bytes:
    from crewlog.cli.foreign import encode

    record = task.source if members(task.source) else rawjson.join_members({})
    return encode(imported(claude_code.SOURCE, record))


def _tell(outcomes: Sequence[Outcome], as_json: bool) -> None:
    """Exit code 1 where nothing could be imported though there was something."""
    if as_json:
        say_json({"imported": outcomes})
    else:
        for outcome in outcomes:
            say(_line(outcome))
        if not outcomes:
            say("Nothing to import there.")
    if outcomes and all(outcome.problem for outcome in outcomes):
        complain("notImported", "nothing of that could be read", as_json=as_json)
        sys.exit(1)


def _line(outcome: Outcome) -> str:
    if outcome.problem:
        return f"{styled('skipped', 'red')}  {styled(outcome.path)}: {styled(outcome.problem)}"
    what = counted(outcome.count, *(("task",) if outcome.kind == "tasks" else ("entry", "entries")))
    if outcome.there:
        what = f"is here already; {what} added since" if outcome.count else "is here already"
    kept = ", see --json" if outcome.kind == "session" else ""
    odd = f"  ({counted(len(outcome.skipped), 'line or file', 'lines or files')} could not be read{kept})" if outcome.skipped else ""
    return f"{styled(outcome.id, 'cyan')}  {what}{odd}  {styled(outcome.path, dim=True)}"
