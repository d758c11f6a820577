"""The records of coding agents, as a library: synchronous, for many processes at once, in the files of codebot 0.3.0.

    from crewlog.storage import SessionManager, TaskStore

    store = TaskStore()
    store.set_dir("~/.codebot/tasks/my-list")
    task = store.claim_next("me", lease_ms=60_000)

Each name of the Go package and its counterpart here is in the README beside the package; all errors are in `crewlog.storage.errors`.
Nothing here knows of JSON-RPC, asyncio or editors. Beside msgspec it needs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crewlog.storage.entries import NewEntry
    from crewlog.storage.errors import (
        AlreadyClaimed,
        AlreadyResolved,
        Blocked,
        Busy,
        DependencyCycle,
        EntryNotFound,
        InvalidArgument,
        InvalidName,
        LeafMoved,
        LeaseLost,
        PlanChanged,
        SessionCorrupt,
        SessionNotFound,
        StorageError,
        StorageFailed,
        StoreClosed,
        TaskNotFound,
        TooLarge,
        UnsupportedVersion,
        WouldBlock,
    )
    from crewlog.storage.files import POWER, PROCESS, Durability
    from crewlog.storage.history import History, HistoryLine
    from crewlog.storage.home import Home, resolve_home
    from crewlog.storage.listing import Skipped
    from crewlog.storage.manager import SessionList, SessionManager
    from crewlog.storage.names import check_name, project_id
    from crewlog.storage.plans import Plan, PlanStore, generate_name
    from crewlog.storage.records import (
        CacheBreakInfo,
        Claim,
        Compaction,
        ContextSnapshot,
        Entry,
        EntryKind,
        GoalStateEntry,
        Header,
        HistoryEntry,
        LLMCallEntry,
        ModelChange,
        PlanFile,
        PlanStateEntry,
        ReasoningEffortChange,
        RosterMember,
        SessionInfo,
        Task,
        TaskSnapshot,
        TaskStatus,
        TaskUpdate,
    )
    from crewlog.storage.roster import Roster, RosterStore
    from crewlog.storage.sessions import SessionStore
    from crewlog.storage.task_rules import compare_task_ids, sort_tasks_by_id
    from crewlog.storage.tasks import TaskNotifyFn, TaskStore
    from crewlog.storage.transcripts import TranscriptStore

_MODULES = {
    "entries": "NewEntry",
    "errors": (
        "AlreadyClaimed AlreadyResolved Blocked Busy DependencyCycle EntryNotFound InvalidArgument InvalidName "
        "LeafMoved LeaseLost PlanChanged SessionCorrupt SessionNotFound StorageError StorageFailed StoreClosed "
        "TaskNotFound TooLarge UnsupportedVersion WouldBlock"
    ),
    "files": "POWER PROCESS Durability",
    "history": "History HistoryLine",
    "home": "Home resolve_home",
    "listing": "Skipped",
    "manager": "SessionList SessionManager",
    "names": "check_name project_id",
    "plans": "Plan PlanStore generate_name",
    "records": (
        "CacheBreakInfo Claim Compaction ContextSnapshot Entry EntryKind GoalStateEntry Header HistoryEntry "
        "LLMCallEntry ModelChange PlanFile PlanStateEntry ReasoningEffortChange RosterMember SessionInfo Task "
        "TaskSnapshot TaskStatus TaskUpdate"
    ),
    "roster": "Roster RosterStore",
    "sessions": "SessionStore",
    "task_rules": "compare_task_ids sort_tasks_by_id",
    "tasks": "TaskNotifyFn TaskStore",
    "transcripts": "TranscriptStore",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """A module is imported when one of its names is asked for: a client that wants the errors alone need not wait for the stores."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "POWER",
    "PROCESS",
    "AlreadyClaimed",
    "AlreadyResolved",
    "Blocked",
    "Busy",
    "CacheBreakInfo",
    "Claim",
    "Compaction",
    "ContextSnapshot",
    "DependencyCycle",
    "Durability",
    "Entry",
    "EntryKind",
    "EntryNotFound",
    "GoalStateEntry",
    "Header",
    "History",
    "HistoryEntry",
    "HistoryLine",
    "Home",
    "InvalidArgument",
    "InvalidName",
    "LLMCallEntry",
    "LeafMoved",
    "LeaseLost",
    "ModelChange",
    "NewEntry",
    "Plan",
    "PlanChanged",
    "PlanFile",
    "PlanStateEntry",
    "PlanStore",
    "ReasoningEffortChange",
    "Roster",
    "RosterMember",
    "RosterStore",
    "SessionCorrupt",
    "SessionInfo",
    "SessionList",
    "SessionManager",
    "SessionNotFound",
    "SessionStore",
    "Skipped",
    "StorageError",
    "StorageFailed",
    "StoreClosed",
    "Task",
    "TaskNotFound",
    "TaskNotifyFn",
    "TaskSnapshot",
    "TaskStatus",
    "TaskStore",
    "TaskUpdate",
    "TooLarge",
    "TranscriptStore",
    "UnsupportedVersion",
    "WouldBlock",
    "check_name",
    "compare_task_ids",
    "generate_name",
    "project_id",
    "resolve_home",
    "sort_tasks_by_id",
]
