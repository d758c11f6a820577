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
    """Nothing is asked for."""


class InitializationOptions(Params):
    """`home`: default `~/.codebot`, or what `--home` or `$CREWLOG_HOME` name; `cwd`: an absolute folder, by default the first workspace
    folder, else the server's own; `durability`: whether a reply means synced to the device (`power`, the default) or handed to the kernel
    (`process`); `subscribe`: as the method's params, all of the project of `cwd` when left out, false for no notifications.
    """

    home: str | None = None
    cwd: str | None = None
    durability: Literal["power", "process"] | None = None
    subscribe: Subscribe | bool | None = None


class Subscribe(Params):
    """What to be told of. `topics`: all four when left out. `listIds` narrows tasks and teams to those lists, and gives their present
    state; `sessionIds` narrows sessions; `allProjects`: not only the project of `cwd`.
    """

    topics: list[Topic] | None = None
    list_ids: list[str] | None = None
    session_ids: list[str] | None = None
    all_projects: bool = False


class Unsubscribe(Params):
    """`subscriptionId`: from `subscribe`."""

    subscription_id: str


class SessionCreate(Params):
    """`cwd`: the folder that names the project, by default that of `initialize`."""

    cwd: str | None = None
    name: str = ""


class MayTakeLong(Params, kw_only=True):
    """With a `workDoneToken` the client is told by `$/progress` how far the request is, once it takes longer than a moment."""

    work_done_token: Annotated[int, Meta(ge=-MAX_SAFE, le=MAX_SAFE)] | str | None = None


class SessionListParams(MayTakeLong):
    """`query`: words that name or first message must hold; `cursor`: from the page before."""

    cwd: str | None = None
    all_projects: bool = False
    query: str = ""
    limit: Limit | None = None
    cursor: str | None = None


class OfProject(Params):
    """`cwd`: the folder that names the project, by default that of `initialize`."""

    cwd: str | None = None


class SessionOpen(Params):
    """`sessionId` or `path`."""

    session_id: str | None = None
    path: str | None = None


class OfSession(Params):
    """`sessionId`: the eight hex digits of a session."""

    session_id: str


def _empty() -> Raw:
    """A factory, since a raw default cannot be told in a schema."""
    return Raw(b"{}")


class NewEntry(Params):
    """`data` is kept as it is; `{}` when it is left out."""

    kind: str
    data: Raw = msgspec.field(default_factory=_empty)


class SessionAppend(Params):
    """`expectedLeafId`: the leaf that the caller has read; when it is no longer the leaf, nothing is appended."""

    session_id: str
    entries: list[NewEntry]
    expected_leaf_id: str | None = None


class SessionSnapshot(Params):
    """`atEntryId`: the entry to look back from, by default the leaf."""

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
    """`name`: may be empty, which takes the name away."""

    session_id: str
    name: str
    expected_leaf_id: str | None = None


class SessionRewind(Params):
    """`entryId`: the entry that the next one shall follow."""

    session_id: str
    entry_id: str
    expected_leaf_id: str | None = None


class SessionFork(Params):
    """`entryId`: the last entry to take over, by default the leaf; `cwd`: the new session's folder, by default the old one's."""

    session_id: str
    entry_id: str | None = None
    cwd: str | None = None


class SessionSearch(MayTakeLong):
    """`query`: words that must all be there; `limit`: hits at the most: a higher one adds some behind the others."""

    query: str
    cwd: str | None = None
    all_projects: bool = False
    limit: Limit | None = None


class SessionExport(Params):
    """`format`: of the text."""

    session_id: str
    format: Literal["markdown", "html", "json"]


class SessionStats(MayTakeLong):
    """`since`: RFC 3339."""

    session_id: str | None = None
    cwd: str | None = None
    all_projects: bool = False
    since: str | None = None


class HistoryAdd(Params):
    """`pastedContents`: bodies under their numbers; those over 1 MiB in total are kept as empty strings. A text of nothing but blanks
    adds nothing.
    """

    text: str
    pasted_contents: dict[str, str] | None = None
    session_id: str | None = None
    cwd: str | None = None


class HistoryGet(Params):
    """`index`: 0 is the newest."""

    index: int
    cwd: str | None = None


class HistoryListParams(Params):
    """`query`: text that the prompt must hold, whatever its case; `offset`: how many of the newest to pass over."""

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
    """`name`: the file's name without `.md`."""

    name: str


class PlanSave(Params):
    """`ifMatch`: the etag that was read, "" for a plan that must not exist yet."""

    name: str
    content: str
    if_match: str | None = None


class PlanDelete(Params):
    """`ifMatch`: the etag that was read; a plan that was changed since is not deleted."""

    name: str
    if_match: str | None = None


class OfList(Params):
    """`listId`: usually a session's id."""

    list_id: str


class OfTask(Params):
    """`id`: the task's number as text."""

    list_id: str
    id: str


class TaskCreate(Params):
    """`blocks` and `blockedBy`: ids of tasks, entered on both sides; `metadata`: any JSON under any keys."""

    list_id: str
    subject: str
    description: str = ""
    active_form: str = ""
    metadata: dict[str, Raw] | None = None
    blocks: list[str] = []
    blocked_by: list[str] = []


class TaskListParams(Params):
    """Only the tasks of that status and owner; `claimable`: only those that a claim would get now."""

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
    """`leaseMs`: after so long without renewal the claim lapses; without it, it never does. `autoRenew`: the server renews it for as
    long as the client's connection lives; with false the client does, by `task/renew`.
    """

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
    """`leaseMs`: a new length, by default the old one; `generation`: of the claim that is meant, by default the client's own."""

    list_id: str
    id: str
    owner: Owner
    lease_ms: LeaseMs | None = None
    generation: int | None = None


class TaskRelease(Params):
    """`generation`: of the claim that is meant, by default the client's own."""

    list_id: str
    id: str
    owner: Owner
    generation: int | None = None


class RosterSetTeam(Params):
    """`team`: its name."""

    list_id: str
    team: str
    description: str = ""


class RosterUpsertMember(Params):
    """`member`: the record as it shall stand on disk, with `name` and `agent_type`; fields of newer versions are kept."""

    list_id: str
    member: Raw


class RosterRemoveMember(Params):
    """`name`: of the member; one that is not there is removed already."""

    list_id: str
    name: str


class TranscriptAppend(Params):
    """`messages`: as they shall stand on disk, in order."""

    list_id: str
    agent: str
    messages: list[Raw]


class TranscriptLoad(Params):
    """Without offset and limit the whole, repaired conversation; with one of them a page of it as it is on disk."""

    list_id: str
    agent: str
    offset: Offset | None = None
    limit: Limit | None = None
