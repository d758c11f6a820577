"""Records as they cross the wire: stored ones with their names on disk (for types and documents only; they travel as raw JSON),
and those made for the wire, in camelCase.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw, field


def stored(record: str) -> Meta:
    """Marks a raw value with the record that it holds, for all that is derived from the table."""
    return Meta(extra_json_schema={"$ref": f"#/components/schemas/{record}"})


def _null() -> Raw:
    """A factory, since a raw default cannot be told in a schema."""
    return Raw(b"null")


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of what is made for the wire. Fields with a default may be left out."""


# --- stored records: raw on the wire, declared for readers ---


class EntryRecord(msgspec.Struct, kw_only=True):
    """One line of a session log."""

    kind: str
    id: str
    parent_id: str = ""
    timestamp: str
    data: Raw


class ClaimRecord(Wire):
    """Who holds a task. `generation` rises with every taking; `expiresAt` only with a lease; `lapsed` once it was not renewed in time."""

    owner: str
    generation: int
    expires_at: str = ""
    lapsed: bool = False


class TaskRecord(msgspec.Struct, kw_only=True):
    """One task as on disk, and `claim` where it is claimed. Unknown fields are passed on."""

    id: str
    subject: str
    description: str = ""
    activeForm: str = ""
    status: str
    owner: str = ""
    blocks: list[str]
    blockedBy: list[str]
    metadata: dict[str, Raw] = {}
    completedAt: str = ""
    claim: ClaimRecord | None = None


class RosterMemberRecord(msgspec.Struct, kw_only=True):
    """One member of a team."""

    name: str
    agent_type: str
    color: str = ""
    initial_prompt: str = ""
    description: str = ""
    depth: int = 0
    kind: str = ""


RawMember = Annotated[Raw, stored("RosterMemberRecord")]


class RosterRecord(msgspec.Struct, kw_only=True):
    """A team as on disk."""

    team: str
    description: str = ""
    members: list[RawMember] = []


class HistoryRecord(msgspec.Struct, kw_only=True):
    """One line of the input history; `timestamp` in milliseconds since 1970."""

    display: str
    pastedContents: dict[str, Raw] = {}
    timestamp: int = 0
    project: str
    sessionId: str = ""


class ContentBlock(msgspec.Struct, kw_only=True):
    """One block of a message: text, thinking, toolCall, image or tool_reference."""

    type: str
    text: str = ""
    thinking: str = ""
    tool_call: Raw = field(default_factory=_null)
    image: Raw = field(default_factory=_null)
    tool_name: str = ""


class Message(msgspec.Struct, kw_only=True):
    """A message as the agent stored it; `metadata.tool_call_id` and `metadata.is_error` on a tool's result."""

    role: str
    content: list[ContentBlock] | None = None
    stop_reason: str = ""
    usage: Raw = field(default_factory=_null)
    metadata: dict[str, Raw] = {}
    timestamp: str = ""


class GoalState(msgspec.Struct, kw_only=True):
    """The goal of a session; times never set are 0001-01-01T00:00:00Z."""

    status: str
    id: str = ""
    objective: str = ""
    created_at: str = ""
    updated_at: str = ""
    completed_at: str = ""
    blocked_at: str = ""
    budget_limited_at: str = ""
    usage_limited_at: str = ""
    reason: str = ""
    blocked_reason: str = ""
    blocked_count: int = 0
    blocked_attempt_token_total: int = 0
    budget_limit_reported: bool = False
    token_budget: int = 0
    tokens_used: int = 0
    token_total_at_last_account: int = 0


# --- made for the wire ---


class SessionInfo(Wire):
    """A session as a list shows it; `firstMessage` has at most 80 characters."""

    id: str
    name: str
    path: str
    cwd: str
    created: str
    updated: str
    message_count: int
    first_message: str


class HeaderRecord(msgspec.Struct, kw_only=True):
    """The data of a session's header entry."""

    version: int
    session_id: str
    name: str = ""
    cwd: str
    created: str


class Skipped(Wire):
    """A file that cannot be shown, and why."""

    path: str
    reason: str


class EntryRef(msgspec.Struct, kw_only=True):
    """An entry that was appended."""

    id: str
    parent_id: str
    timestamp: str


class Recovered(Wire):
    """A torn tail: `size` bytes on line `line`, which the next append cuts off."""

    line: int
    size: int


class Break(Wire):
    """Where a chain ends before its header: `entryId` names `missingParentId`, which is not there, or closes a cycle."""

    entry_id: str
    reason: str
    missing_parent_id: str = ""


class Branch(Wire):
    """One leaf of a session's tree. `length`: entries on its chain; `lastText`: the last text said on it, at most 80 characters."""

    leaf_id: str
    length: int
    timestamp: str
    last_text: str
    current: bool
    broken: Break | None = None


class Counts(Wire):
    """Tasks by status; `total` counts those of unknown status too."""

    pending: int
    in_progress: int
    completed: int
    total: int


class TaskListInfo(Wire):
    """One task list."""

    list_id: str
    counts: Counts
    modified: str
    session: SessionInfo | None = None


class PlanInfo(Wire):
    """A plan in a list; `size` in bytes."""

    name: str
    modified: str
    size: int
    path: str


class TranscriptInfo(Wire):
    """An agent, and how many messages its transcript has."""

    agent: str
    count: int


class SearchHit(Wire):
    """`snippet`: text around the hit, found words between « and »; `score`: higher is better."""

    session: SessionInfo
    entry_id: str
    kind: str
    timestamp: str
    snippet: str
    score: float


class Latency(Wire):
    """Milliseconds."""

    median: float
    p95: float


class CacheBreak(Wire):
    """A drop of the prompt cache, and what had changed (`system`, `tools` …)."""

    session_id: str
    entry_id: str
    timestamp: str
    dropped_tokens: int
    reasons: list[str]
    note: str = ""


class Usage(Wire):
    """Token counts; `cacheHitRate` from 0 to 1; `cost` as the messages state it, in their currency."""

    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    cache_hit_rate: float
    cost: float
    latency: Latency | None = None


class WatcherState(Wire):
    """`kind`: "inotify", "fsevents", "polling" or "none"; `reason` why it is not the system's own; `state`: "off", "ready"."""

    kind: str
    state: str
    reason: str = ""


class IndexState(Wire):
    """What spares reading all sessions anew. `state`: "none" (there was no need for one yet), "reading" (it is brought up to date:
    `readBytes` of `totalBytes` are read), "ready", or "off" (there can be none, for `reason`; logs are read instead). `sessions`: how many
    it knows; `size`: of it, in bytes.
    """

    state: str
    reason: str = ""
    sessions: int = 0
    size: int = 0
    read_bytes: int = 0
    total_bytes: int = 0
