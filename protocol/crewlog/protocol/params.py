"""The params of every method. A field without a default must be given; unknown fields are ignored."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

DAY_MS = 86_400_000
MAX_SAFE = (1 << 53) - 1

Limit = Annotated[int, Meta(ge=1, le=100_000)]
Offset = Annotated[int, Meta(ge=0, le=MAX_SAFE)]
LeaseMs = Annotated[int, Meta(ge=1, le=DAY_MS)]
WaitMs = Annotated[int, Meta(ge=0, le=DAY_MS)]
Owner = Annotated[str, Meta(min_length=1)]
Topic = Literal["session", "task", "roster", "plan"]


class Params(msgspec.Struct, rename="camel", kw_only=True):
    """Base of all params."""


class NoParams(Params):
    pass


class InitializationOptions(Params):
    """`home`, `cwd` (an absolute folder), `durability`, `subscribe` (as the method's params; false for no notifications)."""

    home: str | None = None
    cwd: str | None = None
    durability: Literal["power", "process"] | None = None
    subscribe: Subscribe | bool | None = None


class Subscribe(Params):
    topics: list[Topic] | None = None
    list_ids: list[str] | None = None
    session_ids: list[str] | None = None
    all_projects: bool = False


class Unsubscribe(Params):
    subscription_id: str


class SessionCreate(Params):
    cwd: str | None = None
    name: str = ""


class SessionListParams(Params):
    """`query`: words that name or first message must hold; `cursor`: from the page before."""

    cwd: str | None = None
    all_projects: bool = False
    query: str = ""
    limit: Limit | None = None
    cursor: str | None = None


class OfProject(Params):
    cwd: str | None = None


class SessionOpen(Params):
    """`sessionId` or `path`."""

    session_id: str | None = None
    path: str | None = None


class OfSession(Params):
    session_id: str


def _empty() -> Raw:
    """A factory, since a raw default cannot be told in a schema."""
    return Raw(b"{}")


class NewEntry(Params):
    """`data` is kept as it is; `{}` when it is left out."""

    kind: str
    data: Raw = msgspec.field(default_factory=_empty)


class SessionAppend(Params):
    session_id: str
    entries: list[NewEntry]
    expected_leaf_id: str | None = None


class SessionSnapshot(Params):
    session_id: str
    at_entry_id: str | None = None


class SessionEntries(Params):
    """At most one of `after` and `before`. `maxBytes` bounds the page; an entry that is larger alone comes without its data."""

    session_id: str
    after: str | None = None
    before: str | None = None
    limit: Limit | None = None
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_SAFE)] | None = None
    kinds: list[str] | None = None
    leaf_id: str | None = None


class SessionSetName(Params):
    session_id: str
    name: str
    expected_leaf_id: str | None = None


class SessionRewind(Params):
    session_id: str
    entry_id: str
    expected_leaf_id: str | None = None


class SessionFork(Params):
    session_id: str
    entry_id: str | None = None
    cwd: str | None = None


class SessionSearch(Params):
    query: str
    cwd: str | None = None
    all_projects: bool = False
    limit: Limit | None = None


class SessionExport(Params):
    session_id: str
    format: Literal["markdown", "html", "json"]


class SessionStats(Params):
    """`since`: RFC 3339."""

    session_id: str | None = None
    cwd: str | None = None
    all_projects: bool = False
    since: str | None = None


class HistoryAdd(Params):
    text: str
    pasted_contents: dict[str, str] | None = None
    session_id: str | None = None
    cwd: str | None = None


class HistoryGet(Params):
    index: int
    cwd: str | None = None


class HistoryListParams(Params):
    cwd: str | None = None
    offset: Offset = 0
    limit: Limit | None = None
    query: str = ""


class HistoryNavigate(Params):
    """`index`: where one is; left out for the prompt that is being typed."""

    direction: Literal["older", "newer"]
    index: Offset | None = None
    prefix: str = ""
    cwd: str | None = None


class OfPlan(Params):
    name: str


class PlanSave(Params):
    """`ifMatch`: the etag that was read, "" for a plan that must not exist yet."""

    name: str
    content: str
    if_match: str | None = None


class PlanDelete(Params):
    name: str
    if_match: str | None = None


class OfList(Params):
    list_id: str


class OfTask(Params):
    list_id: str
    id: str


class TaskCreate(Params):
    list_id: str
    subject: str
    description: str = ""
    active_form: str = ""
    metadata: dict[str, Raw] | None = None
    blocks: list[str] = []
    blocked_by: list[str] = []


class TaskListParams(Params):
    list_id: str
    status: Literal["pending", "in_progress", "completed"] | None = None
    owner: str | None = None
    claimable: bool = False


class TaskUpdateParams(Params):
    """What is left out stays as it is. `metadata` is merged, null deletes a key; status `deleted` deletes the task.

    `generation`: the claim under which the caller writes; the server adds that of its own client's claims.
    """

    list_id: str
    id: str
    status: Literal["pending", "in_progress", "completed", "deleted"] | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    active_form: str | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    metadata: dict[str, Raw] | UnsetType = UNSET
    add_blocks: list[str] = []
    add_blocked_by: list[str] = []
    remove_blocks: list[str] = []
    remove_blocked_by: list[str] = []
    generation: int | None = None


class TaskClaim(Params):
    list_id: str
    id: str
    owner: Owner
    lease_ms: LeaseMs | None = None
    auto_renew: bool = True


class TaskClaimNext(Params):
    """`waitMs`: how long to wait for work; `match`: metadata keys and values that the task must have."""

    list_id: str
    owner: Owner
    lease_ms: LeaseMs | None = None
    auto_renew: bool = True
    wait_ms: WaitMs = 0
    match: dict[str, Raw] | None = None


class TaskRenew(Params):
    list_id: str
    id: str
    owner: Owner
    lease_ms: LeaseMs | None = None
    generation: int | None = None


class TaskRelease(Params):
    list_id: str
    id: str
    owner: Owner
    generation: int | None = None


class RosterSetTeam(Params):
    list_id: str
    team: str
    description: str = ""


class RosterUpsertMember(Params):
    list_id: str
    member: Raw


class RosterRemoveMember(Params):
    list_id: str
    name: str


class TranscriptAppend(Params):
    list_id: str
    agent: str
    messages: list[Raw]


class TranscriptLoad(Params):
    """Without offset and limit the whole, repaired conversation; with one of them a page of it as it is on disk."""

    list_id: str
    agent: str
    offset: Offset | None = None
    limit: Limit | None = None
