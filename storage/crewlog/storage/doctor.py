"""Checks a home as `git fsck` checks a repository, and mends what can be mended without losing a byte.

`examine` only reads. `mend` keeps the original of each file that it changes under `.trash/doctor-…`, works under the locks of all other
writers, and leaves alone what a person must decide. codebot takes no locks: end it before mending.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection

import msgspec

from crewlog.storage.doctor_boards import BoardFault, board_faults, misnamed
from crewlog.storage.doctor_files import Found, Usage, file_fault, make_private, walk
from crewlog.storage.doctor_index import BESIDE as ENDINGS
from crewlog.storage.doctor_index import bring_in_step, index_fault
from crewlog.storage.doctor_index import lock as lock_of_index
from crewlog.storage.doctor_logs import (
    Fault,
    Mended,
    Seen,
    line_faults,
    mended_messages,
    mended_session,
    see_entry,
    see_message,
    see_object,
    session_faults_of,
)
from crewlog.storage.entries import HEADER_ID, trim_blanks
from crewlog.storage.errors import StorageError, StorageFailed
from crewlog.storage.files import POWER, Durability, append_all, make_folder, replace_file, require_inside
from crewlog.storage.high_water_mark import NAME as HIGH_WATER_MARK
from crewlog.storage.high_water_mark import read_high_water_mark
from crewlog.storage.home import Home
from crewlog.storage.listing import SessionSummary
from crewlog.storage.locks import ResourceLock
from crewlog.storage.log import AppendLog, Line
from crewlog.storage.records import Task
from crewlog.storage.task_files import SUFFIX, NotATask, decode_task
from crewlog.storage.task_folder import is_task_file
from crewlog.storage.task_rules import parse_task_number
from crewlog.storage.tasks import TaskStore

BESIDE = ".unreadable"
"""Ending of the file beside a log that keeps the lines taken out of it."""
_UNREADABLE = "\0"
"""In the place of the id of a task whose file cannot be read; no id holds it."""
Progress = Callable[[int, int], None]
"""Called with the bytes looked at, and the bytes there are."""


class Finding(msgspec.Struct, rename="camel"):
    """One thing that is wrong. `line` from 1 and `byte` from 0 where it is in a log; `mendable`: `mend` sets it right.

    `severity`: "error" (something cannot be read or done), "warning", "note" (nothing is wrong, but worth knowing).
    `mended`: what was done about it, `kept`: where the original is.
    """

    kind: str
    severity: str
    path: str
    reason: str
    line: int = 0
    byte: int = 0
    mendable: bool = False
    mended: str = ""
    kept: str = ""


class Report(msgspec.Struct):
    """What `examine` found. `usage`: disk use by kind."""

    home: str
    findings: list[Finding]
    usage: dict[str, Usage]


def examine(home: Home, progress: Progress = lambda done, total: None) -> Report:
    """Looks at all that belongs to a home. Changes nothing."""
    report = Report(home.path, [], {})
    there = list(walk(home))
    total, done = sum(found.size for found in there if not found.is_folder) or 1, 0
    boards: dict[str, dict[str, Task]] = {}
    names: dict[str, dict[str, str]] = {}
    for found in there:
        fault = file_fault(home, found)
        if fault is not None:
            report.findings.append(Finding(fault.kind, fault.severity, fault.path, fault.reason, mendable=fault.mendable))
        if found.is_folder:
            continue
        usage = report.usage.setdefault(found.kind, Usage())
        usage.files += 1
        usage.bytes += found.size
        if found.is_file:
            _examine_file(home, found.path, found.kind, report, boards, names)
        done += found.size
        progress(done, total)
    for folder in names:
        _examine_board(home, folder, boards.get(folder, {}), names[folder], report)
    _examine_session_ids(home, there, report)
    index = index_fault(home)
    if index is not None:
        report.findings.append(Finding(index.kind, index.severity, index.path, index.reason, mendable=True))
    return report


def _examine_session_ids(home: Home, there: Collection[Found], report: Report) -> None:
    """Two logs of one id: each reader opens one of them, and shows nothing of the other."""
    logs: dict[str, list[str]] = {}
    for found in there:
        if found.kind == "sessions" and found.is_file and found.path.endswith(".jsonl"):
            logs.setdefault(os.path.basename(found.path).rpartition("_")[2], []).append(found.path)
    for paths in logs.values():
        for path in paths[1:]:
            reason = f"{os.path.relpath(paths[0], home.path)} has the same session id, by which only one of them opens; move one away"
            report.findings.append(Finding("duplicateSession", "warning", path, reason))


def _examine_file(
    home: Home, path: str, kind: str, report: Report, boards: dict[str, dict[str, Task]], names: dict[str, dict[str, str]]
) -> None:
    try:
        if kind == "sessions" and path.endswith(".jsonl"):
            report.findings += [_finding(path, fault) for fault in session_faults(path)]
        elif kind == "transcripts" and path.endswith(".jsonl"):
            report.findings += [_finding(path, fault) for fault in lines_faults(path, see_message)]
        elif path == home.history:
            report.findings += [_finding(path, _harmless(fault)) for fault in lines_faults(path, see_object)]
        elif kind == "tasks":
            _examine_task_file(path, report, boards, names)
    except StorageFailed as error:
        report.findings.append(Finding("unreadableFile", "error", error.path, error.reason))


def _harmless(fault: Fault) -> Fault:
    """Of a line of the history: all readers pass over it, and a torn one is closed by the next."""
    return msgspec.structs.replace(fault, severity="warning", mendable=False, reason=f"{fault.reason}; readers pass over it")


def _finding(path: str, fault: Fault) -> Finding:
    return Finding(fault.kind, fault.severity, path, fault.reason, fault.line, fault.offset, fault.mendable)


def session_faults(path: str) -> list[Fault]:
    """What is wrong with one session log. Raises `StorageFailed`."""
    lines: list[Seen] = []
    header = b""

    def accept(line: Line, torn: bool = False) -> None:
        nonlocal header
        if not trim_blanks(line.content):
            return
        seen = see_entry(line.number, line.offset, line.content, torn=torn)
        if not header and seen.id == HEADER_ID:
            header = line.content
        lines.append(seen)

    def accept_tail(line: Line) -> bool:
        accept(line, torn=True)
        return True

    AppendLog(path).read_added(accept, accept_tail)
    return session_faults_of(lines, header, path)


def lines_faults(path: str, see: Callable[..., Seen]) -> list[Fault]:
    """What is wrong with a log whose lines do not depend on each other; `see` tells what one is. Raises `StorageFailed`."""
    lines: list[Seen] = []

    def accept_tail(line: Line) -> bool:
        lines.append(see(line.number, line.offset, line.content, torn=True))
        return True

    AppendLog(path).read_added(lambda line: lines.append(see(line.number, line.offset, line.content)), accept_tail)
    return list(line_faults(lines))


def _examine_task_file(path: str, report: Report, boards: dict[str, dict[str, Task]], names: dict[str, dict[str, str]]) -> None:
    folder, name = os.path.split(path)
    if name == "roster.json" and os.path.basename(folder) == "team":
        _examine_roster(folder, report)
        return
    if name == HIGH_WATER_MARK:
        names.setdefault(folder, {})
    if not name.endswith(SUFFIX) or name.startswith(".") or os.path.basename(folder) == "team":
        return
    if not is_task_file(name):
        report.findings.append(Finding("strayFile", "note", path, "it is not named by a number, so that nobody reads it as a task"))
        return
    try:
        with open(path, "rb") as file:
            task = decode_task(file.read())
    except NotATask as error:
        reason = f"{error}; mend it by hand: what waits for this task must not begin because nobody can read it"
        report.findings.append(Finding("unreadableTask", "error", path, reason))
        names.setdefault(folder, {})[name] = _UNREADABLE
        return
    except OSError as error:
        raise StorageFailed.from_os(error, path) from error
    names.setdefault(folder, {})[name] = task.id
    boards.setdefault(folder, {})[task.id] = task


def _examine_roster(folder: str, report: Report) -> None:
    from crewlog.storage.roster import RosterStore

    store = RosterStore()
    try:
        store.set_dir(folder)
    except StorageFailed as error:
        report.findings.append(Finding("unreadableRoster", "error", error.path, error.reason, mendable=error.errno_name == "EBADMSG"))


def _examine_board(home: Home, folder: str, tasks: dict[str, Task], names: dict[str, str], report: Report) -> None:
    readable = {name: id for name, id in names.items() if id != _UNREADABLE}
    files = {id: name for name, id in readable.items()}
    for name, reason in misnamed(readable):
        report.findings.append(Finding("misnamedTask", "warning", os.path.join(folder, name), reason))
    odd = {id for name, id in readable.items() if name != id + SUFFIX}  # a person must say first which task it is
    for fault in board_faults(_with_claims(home, folder, tasks), _unreadable(folder, files)):
        path = os.path.join(folder, files.get(fault.task_id, fault.task_id + SUFFIX))
        mendable = fault.change is not None and not odd & {fault.task_id, *fault.change.add_blocks, *fault.change.add_blocked_by}
        report.findings.append(Finding(fault.kind, fault.severity, path, fault.reason, mendable=mendable))
    highest = _highest(names)
    if highest > read_high_water_mark(folder):
        path = os.path.join(folder, HIGH_WATER_MARK)
        report.findings.append(
            Finding(
                "lowHighWaterMark", "warning", path, f"it says {read_high_water_mark(folder)}, but there is a task {highest}", mendable=True
            )
        )


def _unreadable(folder: str, known: Collection[str]) -> set[str]:
    """The ids that files are named by, but for those whose tasks are known."""
    return {name[: -len(SUFFIX)] for name in os.listdir(folder) if is_task_file(name)} - set(known)


def _task_path(folder: str, task_id: str) -> str:
    return os.path.join(folder, task_id + SUFFIX)


def _highest(names: dict[str, str]) -> int:
    return max((parse_task_number(name[: -len(SUFFIX)]) or 0 for name in names), default=0)


def _with_claims(home: Home, folder: str, tasks: dict[str, Task]) -> dict[str, Task]:
    """The tasks with who holds them, as the list's ledger tells; without, where it cannot be read."""
    store = TaskStore(root=home.path)
    try:
        store.set_dir(folder)
        return {**tasks, **{task.id: task for task in store.list() if task.id in tasks}}
    except StorageError:
        return tasks
    finally:
        store.close()


# --- mending ---


def mend(home: Home, report: Report, durability: Durability = POWER) -> Report:
    """Mends what can be mended of what `report` tells, and returns what was done about each. Raises nothing for what cannot be done:
    the finding says why it was left.
    """
    kept = os.path.join(home.trash, f"doctor-{time.strftime('%Y%m%dT%H%M%S')}-{os.urandom(2).hex()}")
    done: dict[str, Finding] = {}
    for finding in report.findings:
        if not finding.mendable:
            continue
        before = done.get(finding.path)
        if before is not None and finding.kind not in _BY_ITSELF and before.kind not in _BY_ITSELF:
            finding.mended, finding.kept = before.mended, before.kept
            continue
        try:
            finding.mended, finding.kept = _mend(home, finding, kept, durability)
        except (StorageError, OSError) as error:
            finding.mended = ""
            finding.reason += f"; not mended: {error}"
            continue
        done[finding.path] = finding
    return report


_BY_ITSELF = frozenset({"readableByOthers", "lapsedLease", "danglingId", "oneSidedDependency"})
"""Kinds that are mended one by one, not with all else that is wrong with the file."""


def _mend(home: Home, finding: Finding, kept: str, durability: Durability) -> tuple[str, str]:
    """(what was done, where the original is)."""
    if finding.kind == "readableByOthers":
        make_private(finding.path)
        return "made private", ""
    if finding.kind == "staleTemporary":
        return "moved to the trash", _move_aside(home, finding.path, kept, durability)
    if finding.kind == "lowHighWaterMark":
        return _raise_high_water_mark(home, finding.path, kept, durability)
    if finding.kind == "unreadableRoster":
        return _set_roster_aside(home, finding.path, kept, durability)
    if finding.kind == "indexOutOfStep":
        return bring_in_step(home), ""
    if finding.kind == "damagedIndex":
        return _set_index_aside(home, finding.path, kept, durability)
    if finding.kind in _BY_ITSELF:
        return _mend_board(home, finding, kept, durability)
    return _mend_log(home, finding.path, kept, durability)


def _mend_log(home: Home, path: str, kept: str, durability: Durability) -> tuple[str, str]:
    with ResourceLock(path, root=home.path):
        content = _read(path)
        lines = [line for line in content.split(b"\n") if trim_blanks(line)]
        mended = mended_messages(lines) if f"{os.sep}transcripts{os.sep}" in path else _mended_session(path, lines)
        original = _keep(home, path, content, kept, durability)
        if mended.taken_out:
            _keep_beside(path, mended.taken_out, durability)
        replace_file(path, b"".join(line + b"\n" for line in mended.lines), durability)
    taken = f"; {len(mended.taken_out)} unreadable lines are in {os.path.basename(path)}{BESIDE}" if mended.taken_out else ""
    return f"rewritten with {len(mended.lines)} lines{taken}", original


def _mended_session(path: str, lines: list[bytes]) -> Mended:
    session_id = os.path.basename(path).removesuffix(".jsonl").rpartition("_")[2]
    return mended_session(lines, session_id, _working_directory(path))


def _working_directory(path: str) -> str:
    """That of another session in the same folder; "" where there is none to ask."""
    folder = os.path.dirname(path)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jsonl") and os.path.join(folder, name) != path:
            summary = SessionSummary(os.path.join(folder, name))
            try:
                summary.refresh()
            except StorageError:
                continue
            return summary.info().cwd
    return ""


def _keep_beside(path: str, lines: list[bytes], durability: Durability) -> None:
    require_inside(path + BESIDE, os.path.dirname(path))
    descriptor = os.open(path + BESIDE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        append_all(descriptor, b"".join(line + b"\n" for line in lines), os.fstat(descriptor).st_size)
        durability.appended(descriptor, lambda: False)
    finally:
        os.close(descriptor)


def _mend_board(home: Home, finding: Finding, kept: str, durability: Durability) -> tuple[str, str]:
    folder, name = os.path.split(finding.path)
    store = TaskStore(durability=durability, root=home.path)
    try:
        store.set_dir(folder)
        tasks = {task.id: task for task in store.list()}
        fault = next((fault for fault in board_faults(tasks, _unreadable(folder, tasks)) if _same(fault, finding, name)), None)
        if fault is None or fault.change is None:
            return "already right", ""
        originals = [_keep(home, path, _read(path), kept, durability) for path in _files_of(folder, fault)]
        store.update(fault.task_id, fault.change)
    finally:
        store.close()
    return {"lapsedLease": "given back", "danglingId": "the missing ids are taken out"}.get(fault.kind, "entered on both sides"), originals[
        0
    ]


def _same(fault: BoardFault, finding: Finding, name: str) -> bool:
    return fault.kind == finding.kind and fault.task_id + SUFFIX == name and fault.change is not None


def _files_of(folder: str, fault: BoardFault) -> list[str]:
    """The files that the change will rewrite."""
    change = fault.change
    others = [*change.add_blocks, *change.add_blocked_by] if change is not None else []
    return [path for id in (fault.task_id, *others) if os.path.exists(path := _task_path(folder, id))]


def _set_roster_aside(home: Home, path: str, kept: str, durability: Durability) -> tuple[str, str]:
    """The team opens again, without members; what its file held stands beside it too, where a person will look for it."""
    with ResourceLock(path, root=home.path):
        content = _read(path)
        original = _keep(home, path, content, kept, durability)
        _keep_beside(path, [content], durability)
        os.unlink(path)
        durability.replaced(os.path.dirname(path))
    return f"the team is empty now; what its file held is in {os.path.basename(path)}{BESIDE}", original


def _set_index_aside(home: Home, path: str, kept: str, durability: Durability) -> tuple[str, str]:
    with lock_of_index(home):
        moved = [_move_aside(home, path + ending, kept, durability) for ending in ENDINGS if os.path.exists(path + ending)]
    bring_in_step(home)
    return "set aside; what is needed of it is made anew from the logs", moved[0]


def _raise_high_water_mark(home: Home, path: str, kept: str, durability: Durability) -> tuple[str, str]:
    folder = os.path.dirname(path)
    with ResourceLock(folder, folder=True, root=home.path):
        highest = _highest(dict.fromkeys((name for name in os.listdir(folder) if name.endswith(SUFFIX)), ""))
        original = _keep(home, path, _read(path), kept, durability) if os.path.exists(path) else ""
        highest = max(highest, read_high_water_mark(folder))
        replace_file(path, str(highest).encode(), durability)
    return f"now {highest}", original


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise StorageFailed.from_os(error, path) from error


def _keep(home: Home, path: str, content: bytes, kept: str, durability: Durability) -> str:
    """Puts the original in the trash, under the same name as in the home; the first one counts."""
    target = os.path.join(kept, os.path.relpath(path, home.path))
    if not os.path.exists(target):
        make_folder(os.path.dirname(target), durability)
        require_inside(target, home.path)
        replace_file(target, content, durability)
    return target


def _move_aside(home: Home, path: str, kept: str, durability: Durability) -> str:
    target = os.path.join(kept, os.path.relpath(path, home.path))
    make_folder(os.path.dirname(target), durability)
    require_inside(target, home.path)
    shutil.move(path, target)
    durability.replaced(os.path.dirname(path))
    return target
