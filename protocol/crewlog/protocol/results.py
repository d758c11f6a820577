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
    """`counters`: since the server began, for example `requests`; `subscriptions`: as they were asked for, with their ids."""

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
    index: records.IndexState


class SessionAndLeaf(Wire):
    """A new session, and the entry that the next one will follow."""

    session: records.SessionInfo
    leaf_id: str


class SessionListResult(Wire):
    """`nextCursor`: for the next page, left out on the last one; `skipped`: files that cannot be listed, and why."""

    sessions: list[records.SessionInfo]
    next_cursor: str = ""
    skipped: list[records.Skipped] = msgspec.field(default_factory=list)


class OneSession(Wire):
    """A session."""

    session: records.SessionInfo


class SessionOpenResult(Wire):
    """`recovered`: what a torn tail would lose at the next append, or null."""

    header: records.HeaderRecord
    session: records.SessionInfo
    leaf_id: str
    recovered: records.Recovered | None


class AppendResult(Wire):
    """The entries as they were written, without their data, in order; `leafId` is the last one's id."""

    entries: list[records.EntryRef]
    leaf_id: str


class SnapshotResult(Wire):
    """The state that an agent resumes from; texts are "" and `goal.status` is "off" where nothing was recorded."""

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
    """The leaves of the tree, the present one among them."""

    branches: list[records.Branch]


class Deleted(Wire):
    """Whether it existed."""

    deleted: bool


class SearchResult(Wire):
    """The best hits first, of the 500 newest that match (no more than 50 of a session while others have any); then the next newest."""

    hits: list[records.SearchHit]


class ExportResult(Wire):
    """The whole text."""

    text: str


class StatsResult(Wire):
    """Sums over all `sessions`, and over parts of them; `byDay` under dates such as `2026-03-01`.

    What several of the sessions hold, as a fork holds copies of entries, was paid for once: in `total`, `byModel`, `byDay` and
    `cacheBreaks` an entry of the same id and time counts in the oldest of them, in `bySession` in each.
    """

    total: records.Usage
    by_model: dict[str, records.Usage]
    by_day: dict[str, records.Usage]
    by_session: dict[str, records.Usage]
    cache_breaks: list[records.CacheBreak]
    sessions: int


class HistoryLength(Wire):
    """`length`: how many prompts this project's history has now."""

    length: int


class HistoryListResult(Wire):
    """`total`: how many there are in all pages."""

    items: list[RawHistory]
    total: int


class HistoryPlace(Wire):
    """`index`: where the prompt stands now, 0 for the newest."""

    index: int
    item: RawHistory


class PlanListResult(Wire):
    """The plans, the last changed first."""

    plans: list[records.PlanInfo]


class PlanContent(Wire):
    """`etag`: to be given as `ifMatch` when it is saved; "" for a plan that is not there."""

    content: str
    etag: str


class PlanSaved(Wire):
    """`etag`: of what was saved; `path`: of its file."""

    etag: str
    path: str


class PlanPath(Wire):
    """`path`: of the plan's file."""

    path: str


class PlanName(Wire):
    """`name`: adjective-gerund-noun."""

    name: str


class TaskListResult(Wire):
    """`revision`: of the last `task/didChange` about this list; `skipped`: files in its folder that are no tasks, and why."""

    items: list[RawTask]
    counts: records.Counts
    revision: int
    skipped: list[records.Skipped] = msgspec.field(default_factory=list)


class TaskListsResult(Wire):
    """Every list of the home, or of one project."""

    lists: list[records.TaskListInfo]


class TranscriptCount(Wire):
    """`count`: how many messages the transcript has now."""

    count: int


class TranscriptPage(Wire):
    """`total`: how many messages there are in all."""

    messages: list[RawMessage]
    total: int


class TranscriptListResult(Wire):
    """The agents that have a transcript."""

    agents: list[records.TranscriptInfo]


class TaskListState(Wire):
    """A list as it was when the subscription began; the next `task/didChange` has the next `revision`."""

    list_id: str
    items: list[RawTask]
    counts: records.Counts
    revision: int


class RosterState(Wire):
    """A team as it was when the subscription began."""

    list_id: str
    roster: RawRoster


class Subscribed(Wire):
    """`tasks` and `rosters`: of the lists that were named."""

    subscription_id: str
    tasks: list[TaskListState] = msgspec.field(default_factory=list)
    rosters: list[RosterState] = msgspec.field(default_factory=list)


# --- notifications ---


class TaskDidChange(Wire):
    """`changed`: the tasks as they are now; `removed`: ids of those that are gone."""

    list_id: str
    revision: int
    changed: list[RawTask]
    removed: list[str]
    counts: records.Counts


class RosterDidChange(Wire):
    """`roster`: the team as it is now, without a team `{"team": ""}`."""

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
