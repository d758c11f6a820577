"""The results of every method. Stored records are raw JSON; the comment beside a `Raw` names its record."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Raw

from crewlog.protocol import records
from crewlog.protocol.records import Wire, stored

RawEntry = Annotated[Raw, stored("EntryRecord")]
RawTask = Annotated[Raw, stored("TaskRecord")]
RawRoster = Annotated[Raw, stored("RosterRecord")]
RawMessage = Annotated[Raw, stored("Message")]
RawHistory = Annotated[Raw, stored("HistoryRecord")]
RawGoal = Annotated[Raw, stored("GoalState")]


class Status(Wire):
    version: str
    protocol_version: int
    home: str
    project_id: str
    pid: int
    uptime_ms: int
    watcher: records.WatcherState
    subscriptions: list[Raw]
    counters: dict[str, int]
    durability: str


class SessionAndLeaf(Wire):
    session: records.SessionInfo
    leaf_id: str


class SessionListResult(Wire):
    sessions: list[records.SessionInfo]
    next_cursor: str = ""
    skipped: list[records.Skipped] = msgspec.field(default_factory=list)


class OneSession(Wire):
    session: records.SessionInfo


class SessionOpenResult(Wire):
    header: records.HeaderRecord
    session: records.SessionInfo
    leaf_id: str
    recovered: records.Recovered | None


class AppendResult(Wire):
    entries: list[records.EntryRef]
    leaf_id: str


class SnapshotResult(Wire):
    messages: list[RawMessage]
    provider: str
    model: str
    reasoning_effort: str
    plan_slug: str
    plan_phase: str
    plan_pre_mode: str
    goal: RawGoal
    name: str
    leaf_id: str


class EntriesResult(Wire):
    """`total`: entries on the chain. An entry over `maxBytes` has `data: null` and `omittedBytes`. `broken`: where the chain ends early."""

    entries: list[RawEntry]
    has_more: bool
    leaf_id: str
    total: int
    broken: records.Break | None = None


class BranchesResult(Wire):
    branches: list[records.Branch]


class Deleted(Wire):
    """Whether it existed."""

    deleted: bool


class SearchResult(Wire):
    hits: list[records.SearchHit]


class ExportResult(Wire):
    text: str


class StatsResult(Wire):
    total: records.Usage
    by_model: dict[str, records.Usage]
    by_day: dict[str, records.Usage]
    by_session: dict[str, records.Usage]
    cache_breaks: list[records.CacheBreak]
    sessions: int


class HistoryLength(Wire):
    length: int


class HistoryListResult(Wire):
    items: list[RawHistory]
    total: int


class HistoryPlace(Wire):
    index: int
    item: RawHistory


class PlanListResult(Wire):
    plans: list[records.PlanInfo]


class PlanContent(Wire):
    content: str
    etag: str


class PlanSaved(Wire):
    etag: str
    path: str


class PlanPath(Wire):
    path: str


class PlanName(Wire):
    name: str


class TaskListResult(Wire):
    items: list[RawTask]
    counts: records.Counts
    revision: int
    skipped: list[records.Skipped] = msgspec.field(default_factory=list)


class TaskListsResult(Wire):
    lists: list[records.TaskListInfo]


class TranscriptCount(Wire):
    count: int


class TranscriptPage(Wire):
    messages: list[RawMessage]
    total: int


class TranscriptListResult(Wire):
    agents: list[records.TranscriptInfo]


class TaskListState(Wire):
    list_id: str
    items: list[RawTask]
    counts: records.Counts
    revision: int


class RosterState(Wire):
    list_id: str
    roster: RawRoster


class Subscribed(Wire):
    subscription_id: str
    tasks: list[TaskListState] = msgspec.field(default_factory=list)
    rosters: list[RosterState] = msgspec.field(default_factory=list)


# --- notifications ---


class TaskDidChange(Wire):
    list_id: str
    revision: int
    changed: list[RawTask]
    removed: list[str]
    counts: records.Counts


class RosterDidChange(Wire):
    list_id: str
    roster: RawRoster


class PlanDidChange(Wire):
    """`change`: created, changed or deleted; `etag` is "" for a plan that is gone."""

    name: str
    change: str
    etag: str


class SessionDidChange(Wire):
    """`entries`: how many were added; `change`: created, appended, replaced or deleted. Of a deleted one only `session.id` counts."""

    session: records.SessionInfo
    leaf_id: str
    entries: int
    change: str


# --- the reply to `initialize` ---


class Capabilities(Wire):
    """`capabilities.experimental.crewlog` of the reply to `initialize`."""

    protocol_version: int
    home: str
    project_id: str
    methods: list[str]
    notifications: list[str]
