"""The stored records, as the page of the Go package lists them; field names on disk are those of formats.md.

Structs here are views for reading and for building: what is written back is spliced from the bytes that were read, so that
fields unknown to this version survive. Timestamps are RFC 3339 text, kept to the last digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from crewlog.storage.times import ZERO


class EntryKind(str, Enum):
    """The kinds of session entries that have a meaning. A log may hold others; they are kept and skipped."""

    HEADER = "header"
    MESSAGE = "message"
    MODEL_CHANGE = "model_change"
    COMPACTION = "compaction"
    REASONING_EFFORT_CHANGE = "reasoning_effort_change"
    SESSION_INFO = "session_info"
    PLAN_STATE = "plan_state"
    GOAL_STATE = "goal_state"
    LLM_CALL = "llm_call"


class Header(msgspec.Struct):
    """The data of a session's first entry."""

    version: int = 0
    session_id: str = ""
    name: str = ""
    cwd: str = ""
    created: str = ZERO


class Entry(msgspec.Struct, omit_defaults=True, gc=False):
    """One line of a session log. `data` is raw JSON."""

    kind: str
    id: str
    parent_id: str = ""
    timestamp: str = ZERO
    data: msgspec.Raw = msgspec.Raw(b"null")


class ModelChange(msgspec.Struct):
    provider: str = ""
    model: str = ""


class ReasoningEffortChange(msgspec.Struct):
    level: str = ""


class Compaction(msgspec.Struct, omit_defaults=True):
    summary: str = ""
    messages: list[msgspec.Raw] = []


class PlanStateEntry(msgspec.Struct, omit_defaults=True):
    phase: str = ""
    slug: str = ""
    pre_mode: str = ""


def _never() -> str:
    """A factory, so that `omit_defaults` keeps the field: Go writes a time that was never set."""
    return ZERO


class GoalStateEntry(msgspec.Struct, omit_defaults=True):
    status: str
    id: str = ""
    objective: str = ""
    created_at: str = msgspec.field(default_factory=_never)
    updated_at: str = msgspec.field(default_factory=_never)
    completed_at: str = msgspec.field(default_factory=_never)
    blocked_at: str = msgspec.field(default_factory=_never)
    budget_limited_at: str = msgspec.field(default_factory=_never)
    usage_limited_at: str = msgspec.field(default_factory=_never)
    reason: str = ""
    blocked_reason: str = ""
    blocked_count: int = 0
    blocked_attempt_token_total: int = 0
    budget_limit_reported: bool = False
    token_budget: int = 0
    tokens_used: int = 0
    token_total_at_last_account: int = 0


class CacheBreakInfo(msgspec.Struct, omit_defaults=True):
    """Why the prompt cache was hit less than in the turn before. `drop_fraction` is 0 to 1, the counts are tokens."""

    prev_cache_read_tokens: int = 0
    curr_cache_read_tokens: int = 0
    drop_absolute: int = 0
    drop_fraction: float = 0.0
    system_changed: bool = False
    frozen_system_changed: bool = False
    dynamic_system_changed: bool = False
    tools_changed: bool = False
    note: str = ""


class LLMCallEntry(msgspec.Struct, omit_defaults=True):
    """What one call of a model took. Counts are tokens, `latency_ms` is milliseconds."""

    provider: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    total_tokens: int = 0
    latency_ms: int = 0
    stop_reason: str = ""
    reasoning_effort: str = ""
    cache_break: CacheBreakInfo | None = None


class ContextSnapshot(msgspec.Struct):
    """The state of a session at one entry. `messages` are raw JSON objects, repaired as formats.md says."""

    messages: list[msgspec.Raw]
    leaf_id: str
    provider: str = ""
    model: str = ""
    reasoning_effort: str = ""
    plan_slug: str = ""
    plan_phase: str = ""
    plan_pre_mode: str = ""
    goal: msgspec.Raw = msgspec.Raw(b"")
    name: str = ""


class SessionInfo(msgspec.Struct):
    """A session as a list shows it. `created` and `updated` are RFC 3339, `first_message` has at most 80 characters."""

    id: str
    name: str
    path: str
    cwd: str
    created: str
    updated: str
    message_count: int
    first_message: str


class TaskStatus(str, Enum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class Claim(msgspec.Struct, rename="camel", omit_defaults=True):
    """Who holds a task. `generation` rises with every taking; `expires_at` (RFC 3339) only where the claim is a lease.

    `lapsed`: the lease was not renewed in time, so that the task counts as unowned.
    """

    owner: str
    generation: int
    expires_at: str = ""
    lapsed: bool = False


class Task(msgspec.Struct, kw_only=True, gc=False):
    """One task. `metadata` values are raw JSON, as are those of `extra`, the fields unknown to this version, which are kept.

    `source` is the record as it was read or written.
    """

    id: str
    subject: str = ""
    description: str = ""
    active_form: str = ""
    status: str = TaskStatus.PENDING.value
    owner: str = ""
    blocks: list[str] = []
    blocked_by: list[str] = []
    metadata: dict[str, msgspec.Raw] = {}
    completed_at: str = ""
    extra: dict[str, msgspec.Raw] = {}
    source: bytes = b"{}"
    claim: Claim | None = None


class TaskSnapshot(msgspec.Struct):
    items: list[Task]
    pending: int
    in_progress: int
    completed: int
    total: int


class TaskUpdate(msgspec.Struct, kw_only=True):
    """What to change in a task (Go: TaskUpdateOpts).

    None leaves a field as it is; metadata is merged, a null value deletes its key.
    """

    status: str | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    metadata: Mapping[str, object] | None = None
    add_blocks: list[str] = []
    add_blocked_by: list[str] = []
    remove_blocks: list[str] = []
    remove_blocked_by: list[str] = []


class RosterMember(msgspec.Struct, omit_defaults=True):
    name: str
    agent_type: str = msgspec.field(default_factory=str)
    color: str = ""
    initial_prompt: str = ""
    description: str = ""
    depth: int = 0
    kind: str = ""


class HistoryEntry(msgspec.Struct, rename="camel"):
    """One line of the input history. `timestamp` is milliseconds since 1970; `pasted_contents` is a raw JSON object."""

    display: str
    pasted_contents: msgspec.Raw = msgspec.Raw(b"{}")
    timestamp: int = 0
    project: str = ""
    session_id: str = ""


class PlanFile(msgspec.Struct):
    """A plan in a list. `mod_time` is whole seconds since 1970, as in Go; `modified` the same to the nanosecond; `size` in bytes."""

    name: str
    mod_time: int
    modified: str
    size: int
