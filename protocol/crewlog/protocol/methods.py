"""The one table of methods. Dispatch, the OpenRPC document, the Python client, the TypeScript types and the reference page come from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from crewlog.protocol import params as p
from crewlog.protocol import results as r
from crewlog.protocol.records import SessionInfo

PROTOCOL_VERSION = 1
Resource = tuple[str, ...]


class Method(msgspec.Struct, frozen=True):
    """One method. `errors`: the kinds it may give beside those any may give; `resource`: what its effects are ordered by."""

    name: str
    params: type[p.Params]
    result: Any
    doc: str
    errors: tuple[str, ...] = ()
    resource: Callable[[Any], Resource] | None = None
    mutates: bool = False
    slow: bool = False
    """Whether it may take long by its nature, so that it is never tried on the event loop."""


class Notification(msgspec.Struct, frozen=True):
    """One notification to the client."""

    name: str
    params: type[msgspec.Struct]
    doc: str


def _session(params: Any) -> Resource:
    return ("session", params.session_id)


def _opened(params: Any) -> Resource:
    return ("session", params.session_id or params.path or "")


def _tasks(params: Any) -> Resource:
    return ("tasks", params.list_id)


def _roster(params: Any) -> Resource:
    return ("roster", params.list_id)


def _transcript(params: Any) -> Resource:
    return ("transcript", params.list_id, params.agent)


def _plan(params: Any) -> Resource:
    return ("plan", params.name)


def _history(_: Any) -> Resource:
    return ("history",)


_OPENING = ("sessionNotFound", "sessionCorrupt", "unsupportedVersion", "invalidName", "storageFailed")
_WRITING = ("storageFailed", "busy")
_APPENDING = (*_OPENING, "busy")
_CLAIMING = ("taskNotFound", "alreadyClaimed", "alreadyResolved", "blocked", "invalidName", *_WRITING)
_LISTED = ("invalidName", "storageFailed")

_TABLE = (
    Method("crewlog/status", p.NoParams, r.Status, "How the server is: version, home, watcher, counters."),
    Method("subscribe", p.Subscribe, r.Subscribed, "Asks for notifications; gives the present state of what was named.", _LISTED),
    Method("unsubscribe", p.Unsubscribe, None, "Ends a subscription."),
    # sessions
    Method("session/create", p.SessionCreate, r.SessionAndLeaf, "Makes a new session.", _WRITING, None, True),
    Method("session/list", p.SessionListParams, r.SessionListResult, "Sessions, newest first, by pages.", ("storageFailed",), slow=True),
    Method("session/mostRecent", p.OfProject, r.OneSession | None, "The session that was updated last.", ("storageFailed",), slow=True),
    Method("session/open", p.SessionOpen, r.SessionOpenResult, "Opens a session; changes nothing.", _OPENING, _opened),
    Method(
        "session/append",
        p.SessionAppend,
        r.AppendResult,
        "Appends entries, all or none. The same payload sent twice is kept twice; a client that retries passes `expectedLeafId`.",
        (*_APPENDING, "leafMoved"),
        _session,
        True,
    ),
    Method(
        "session/snapshot",
        p.SessionSnapshot,
        r.SnapshotResult,
        "The state at the leaf or at an entry: messages in order and repaired, model, plan, goal.",
        (*_OPENING, "entryNotFound"),
        _session,
    ),
    Method(
        "session/entries",
        p.SessionEntries,
        r.EntriesResult,
        "A page of the chain, oldest first; the end of it when neither `after` nor `before` is given.",
        (*_OPENING, "entryNotFound"),
        _session,
    ),
    Method("session/setName", p.SessionSetName, r.AppendResult, "Names a session.", (*_APPENDING, "leafMoved"), _session, True),
    Method(
        "session/rewind",
        p.SessionRewind,
        r.AppendResult,
        "Makes an earlier entry the one to go on from.",
        (*_APPENDING, "entryNotFound", "leafMoved"),
        _session,
        True,
    ),
    Method(
        "session/fork",
        p.SessionFork,
        r.SessionAndLeaf,
        "A new session that holds the chain up to an entry.",
        (*_APPENDING, "entryNotFound"),
        _session,
        True,
    ),
    Method("session/branches", p.OfSession, r.BranchesResult, "The leaves of the session's tree.", _OPENING, _session),
    Method(
        "session/delete",
        p.OfSession,
        r.Deleted,
        "Moves the log, its tasks and its team to the trash.",
        ("sessionNotFound", "invalidName", *_WRITING),
        _session,
        True,
    ),
    Method(
        "session/restore",
        p.OfSession,
        r.OneSession,
        "Brings a deleted session back.",
        ("sessionNotFound", "invalidName", *_WRITING),
        _session,
        True,
    ),
    Method("session/search", p.SessionSearch, r.SearchResult, "Full text over all that was said.", ("storageFailed",), slow=True),
    Method("session/export", p.SessionExport, r.ExportResult, "A session as Markdown, as one HTML page, or as JSON.", _OPENING, slow=True),
    Method("session/stats", p.SessionStats, r.StatsResult, "Tokens, cache, cost and latency.", _OPENING, slow=True),
    # history
    Method("history/add", p.HistoryAdd, r.HistoryLength, "Adds a prompt.", _WRITING, _history, True),
    Method("history/get", p.HistoryGet, r.RawHistory | None, "The line at an index, 0 for the newest.", ("storageFailed",), _history),
    Method("history/list", p.HistoryListParams, r.HistoryListResult, "This project's prompts, newest first.", ("storageFailed",), _history),
    Method(
        "history/navigate",
        p.HistoryNavigate,
        r.HistoryPlace | None,
        "The next older or newer prompt that begins with a prefix.",
        ("storageFailed",),
        _history,
    ),
    # plans
    Method("plan/list", p.NoParams, r.PlanListResult, "All plans, the last changed first.", ("storageFailed",)),
    Method(
        "plan/load", p.OfPlan, r.PlanContent, 'A plan; a missing one is empty and has the etag "".', ("invalidName", "storageFailed"), _plan
    ),
    Method(
        "plan/save",
        p.PlanSave,
        r.PlanSaved,
        "Saves a plan, with `ifMatch` only over the content that was read.",
        ("invalidName", "planChanged", *_WRITING),
        _plan,
        True,
    ),
    Method("plan/delete", p.PlanDelete, r.Deleted, "Deletes a plan.", ("invalidName", "planChanged", *_WRITING), _plan, True),
    Method("plan/path", p.OfPlan, r.PlanPath, "The file of a plan, whether it exists or not.", ("invalidName",)),
    Method("plan/generateName", p.NoParams, r.PlanName, "A name that no plan has.", ("storageFailed",)),
    # tasks
    Method(
        "task/create", p.TaskCreate, r.RawTask, "Adds a task.", ("taskNotFound", "dependencyCycle", "invalidName", *_WRITING), _tasks, True
    ),
    Method("task/get", p.OfTask, r.RawTask | None, "A task, or null.", _LISTED, _tasks),
    Method("task/delete", p.OfTask, bool, "Deletes a task; whether it existed.", ("leaseLost", "invalidName", *_WRITING), _tasks, True),
    Method("task/list", p.TaskListParams, r.TaskListResult, "The tasks by id, with counts and the list's revision.", _LISTED, _tasks),
    Method("task/lists", p.OfProject, r.TaskListsResult, "Every list with its counts.", ("storageFailed",), slow=True),
    Method(
        "task/update",
        p.TaskUpdateParams,
        r.RawTask | None,
        "Changes the given fields; null for a task that was thereby deleted.",
        ("taskNotFound", "dependencyCycle", "leaseLost", "invalidName", *_WRITING),
        _tasks,
        True,
    ),
    Method("task/claim", p.TaskClaim, r.RawTask, "Takes a task, if it can be had.", _CLAIMING, _tasks, True),
    Method("task/findClaimable", p.OfList, r.RawTask | None, "The claimable task of the lowest number.", _LISTED, _tasks),
    Method(
        "task/claimNext",
        p.TaskClaimNext,
        r.RawTask | None,
        "Finds and takes in one step; with `waitMs` waits for work.",
        ("invalidName", *_WRITING),
        _tasks,
        True,
    ),
    Method(
        "task/renew",
        p.TaskRenew,
        r.RawTask,
        "Lets a lease begin anew.",
        ("taskNotFound", "leaseLost", "invalidName", *_WRITING),
        _tasks,
        True,
    ),
    Method(
        "task/release",
        p.TaskRelease,
        r.RawTask,
        "Gives a task back.",
        ("taskNotFound", "leaseLost", "invalidName", *_WRITING),
        _tasks,
        True,
    ),
    Method("task/reset", p.OfList, None, "Removes all tasks; their numbers never come again.", ("invalidName", *_WRITING), _tasks, True),
    # roster
    Method("roster/get", p.OfList, r.RawRoster, "The team of a list.", ("invalidName", "storageFailed"), _roster),
    Method("roster/setTeam", p.RosterSetTeam, r.RawRoster, "Names the team; members stay.", ("invalidName", *_WRITING), _roster, True),
    Method(
        "roster/upsertMember",
        p.RosterUpsertMember,
        r.RawRoster,
        "Adds a member, or replaces the one of that name in its place.",
        ("invalidName", *_WRITING),
        _roster,
        True,
    ),
    Method("roster/removeMember", p.RosterRemoveMember, r.RawRoster, "Removes a member.", ("invalidName", *_WRITING), _roster, True),
    Method("roster/clear", p.OfList, r.RawRoster, "Drops the team.", ("invalidName", *_WRITING), _roster, True),
    # transcripts
    Method(
        "transcript/append",
        p.TranscriptAppend,
        r.TranscriptCount,
        "Appends messages to an agent's transcript, all or none.",
        ("invalidName", "sessionCorrupt", *_WRITING),
        _transcript,
        True,
    ),
    Method(
        "transcript/load",
        p.TranscriptLoad,
        r.TranscriptPage,
        "An agent's transcript.",
        ("invalidName", "sessionCorrupt", "storageFailed"),
        _transcript,
    ),
    Method("transcript/list", p.OfList, r.TranscriptListResult, "The agents that have a transcript.", ("invalidName", "storageFailed")),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}

NOTIFICATIONS: dict[str, Notification] = {
    notification.name: notification
    for notification in (
        Notification("task/didChange", r.TaskDidChange, "Tasks of a list changed. `revision` rises by one with each."),
        Notification("roster/didChange", r.RosterDidChange, "A team changed."),
        Notification("plan/didChange", r.PlanDidChange, "A plan changed."),
        Notification("session/didChange", r.SessionDidChange, "A session changed."),
    )
}

__all__ = ["METHODS", "NOTIFICATIONS", "PROTOCOL_VERSION", "Method", "Notification", "Resource", "SessionInfo"]
