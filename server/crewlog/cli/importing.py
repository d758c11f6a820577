"""`crewlog import claude-code|codex PATH…`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from crewlog.cli import claude_code, claude_tasks, codex, options
from crewlog.cli.foreign import Draft, ForeignFile, members
from crewlog.cli.local import chosen_home
from crewlog.cli.output import complain, counted, say, say_json, styled
from crewlog.storage.errors import InvalidName
from crewlog.storage.home import Home

paths = click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))


class Outcome(msgspec.Struct, rename="camel", omit_defaults=True):
    """What became of one file or folder: `id` names the session or task list; `there` if it was imported before; `count`: entries and
    messages, or tasks, that were added now; `changed`: tasks that were changed there since.
    """

    path: str
    kind: str
    id: str = ""
    count: int = 0
    changed: int = 0
    there: bool = False
    problem: str = ""
    skipped: list[str] = []


@click.group()
def import_() -> None:
    """Bring in the sessions and tasks of other agents.

    Nothing of theirs is changed, and each record of ours keeps the original it was made of. Of what was imported before, what
    was added to it since comes in; a task takes over what was changed there and was left alone here.
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
    return Outcome(str(path), "session", done.session_id, done.added, there=done.there, skipped=draft.skipped)


def _read(path: Path, reader_of: type[claude_code.Reader] | type[codex.Reader]) -> Draft:
    """Raises `ForeignFile`."""
    reader = reader_of(path.stem)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and not members(line):
                    reader.draft.skipped.append(f"line {number}: no line end, still being written or torn; it comes in when it is whole")
                elif line.strip():
                    reader.read(line.strip(), number)
    except OSError as error:
        raise ForeignFile(f"it cannot be read: {error.strerror}") from error
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
    try:
        list_id = claude_tasks.list_id_of(folder)
    except InvalidName as error:
        return Outcome(str(folder), "tasks", problem=str(error))
    outcome = Outcome(str(folder), "tasks", list_id)
    tasks = claude_tasks.read_folder(folder, outcome.skipped)
    done = claude_tasks.copy_tasks(home, list_id, tasks, outcome.skipped)
    outcome.count, outcome.changed, outcome.there = done.added, done.changed, done.there
    return outcome


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
        news = [f"{what} added"] if outcome.count else []
        news += [f"{counted(outcome.changed, 'task')} changed"] if outcome.changed else []
        what = f"is here already; {', '.join(news)} since" if news else "is here already"
    kept = ", see --json" if outcome.kind == "session" else ""
    odd = f"  ({counted(len(outcome.skipped), 'line or file', 'lines or files')} could not be read{kept})" if outcome.skipped else ""
    return f"{styled(outcome.id, 'cyan')}  {what}{odd}  {styled(outcome.path, dim=True)}"
