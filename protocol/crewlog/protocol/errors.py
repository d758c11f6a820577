"""Errors on the wire: one table from the storage exceptions to codes and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from crewlog.storage import errors as storage

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800

Data = dict[str, Any]


class ResponseError(Exception):
    """An error as it crosses the wire. `data` always has `kind`."""

    def __init__(self, code: int, kind: str, message: str, **data: object) -> None:
        self.code = code
        self.kind = kind
        self.message = message
        self.data: Data = {"kind": kind, **data}
        Exception.__init__(self, message)


class InvalidParams(ResponseError, storage.InvalidArgument):
    """`field`: the path of the field, `$.entries[0].kind`; "$" for the params as a whole."""

    def __init__(self, field: str, reason: str) -> None:
        ResponseError.__init__(self, INVALID_PARAMS, "invalidParams", f"{field}: {reason}", field=field)
        self.field = field
        self.reason = reason


class Facts(msgspec.Struct, rename="camel", kw_only=True):
    """What an error carries, under the names of its exception's fields. Fields with a default are for humans."""


class SessionFact(Facts, kw_only=True):
    session_id: str


class LineFacts(Facts, kw_only=True):
    path: str
    line: int
    reason: str


class VersionFacts(Facts, kw_only=True):
    found: int
    expected: int
    path: str = ""


class LeafFact(Facts, kw_only=True):
    leaf_id: str


class EntryFacts(Facts, kw_only=True):
    entry_id: str
    path: str = ""


class TaskFact(Facts, kw_only=True):
    id: str


class OwnerFacts(Facts, kw_only=True):
    id: str
    owner: str


class BlockerFacts(Facts, kw_only=True):
    id: str
    blocked_by: list[str]


class CycleFact(Facts, kw_only=True):
    path: list[str]


class NameFacts(Facts, kw_only=True):
    name: str
    reason: str
    field: str = "name"


class PlanFacts(Facts, kw_only=True):
    etag: str
    name: str = ""


class SystemFacts(Facts, kw_only=True):
    path: str
    errno_name: str = msgspec.field(name="errno")
    reason: str


class HolderFacts(Facts, kw_only=True):
    """`holder`: pid, client, host and since (RFC 3339), as far as known."""

    path: str
    holder: dict[str, str | int]


class LimitFact(Facts, kw_only=True):
    limit: int


class Row(msgspec.Struct, frozen=True):
    """One kind of error: its code, its exception, and what it carries."""

    code: int
    kind: str
    exception: type[storage.StorageError]
    facts: type[Facts]
    doc: str

    def data(self, error: storage.StorageError) -> Data:
        return {field.encode_name: getattr(error, field.name) for field in msgspec.structs.fields(self.facts)}

    def build(self, data: Mapping[str, object]) -> storage.StorageError:
        """The exception again. Raises `msgspec.ValidationError` when facts are missing."""
        return self.exception(**msgspec.structs.asdict(msgspec.convert(data, self.facts)))


TABLE: tuple[Row, ...] = (
    Row(1001, "sessionNotFound", storage.SessionNotFound, SessionFact, "There is no such session."),
    Row(
        1002,
        "sessionCorrupt",
        storage.SessionCorrupt,
        LineFacts,
        "A line of a session or transcript cannot be used. The file is left as it is.",
    ),
    Row(
        1003,
        "unsupportedVersion",
        storage.UnsupportedVersion,
        VersionFacts,
        "The session was written in a version of the format that this server does not know.",
    ),
    Row(1004, "leafMoved", storage.LeafMoved, LeafFact, "Somebody appended since `expectedLeafId` was the leaf."),
    Row(1005, "entryNotFound", storage.EntryNotFound, EntryFacts, "The session has no such entry."),
    Row(1101, "taskNotFound", storage.TaskNotFound, TaskFact, "The list has no such task."),
    Row(1102, "alreadyClaimed", storage.AlreadyClaimed, OwnerFacts, "Somebody else holds the task."),
    Row(1103, "alreadyResolved", storage.AlreadyResolved, TaskFact, "The task is completed."),
    Row(1104, "blocked", storage.Blocked, BlockerFacts, "The task waits for others; `blockedBy` names the open ones."),
    Row(
        1105,
        "dependencyCycle",
        storage.DependencyCycle,
        CycleFact,
        "Tasks would wait for each other; `path` is the cycle, its first id again at the end.",
    ),
    Row(1106, "leaseLost", storage.LeaseLost, OwnerFacts, "`owner` no longer holds the task."),
    Row(1201, "invalidName", storage.InvalidName, NameFacts, "A name from outside must not become a file name."),
    Row(
        1202,
        "planChanged",
        storage.PlanChanged,
        PlanFacts,
        "The plan is not the one that was read; `etag` is its present one, empty when it is gone.",
    ),
    Row(1301, "storageFailed", storage.StorageFailed, SystemFacts, "The system refused; nothing was changed."),
    Row(1302, "busy", storage.Busy, HolderFacts, "A lock was not to be had within 10 s; `holder` tells who has it."),
    Row(1303, "tooLarge", storage.TooLarge, LimitFact, "A message is over the limit, in bytes."),
)

BY_KIND = {row.kind: row for row in TABLE}
_BY_EXCEPTION = {row.exception: row for row in TABLE}

PROTOCOL_ERRORS = {
    PARSE_ERROR: "parseError",
    INVALID_REQUEST: "invalidRequest",
    METHOD_NOT_FOUND: "methodNotFound",
    INVALID_PARAMS: "invalidParams",
    INTERNAL_ERROR: "internalError",
    NOT_INITIALIZED: "serverNotInitialized",
    CANCELLED: "requestCancelled",
}


def to_wire(error: Exception) -> ResponseError | None:
    """The error as it crosses the wire; None for one that is none of ours, and a fault of the program."""
    if isinstance(error, ResponseError):
        return error
    row = _BY_EXCEPTION.get(type(error)) if isinstance(error, storage.StorageError) else None
    if row is not None and isinstance(error, storage.StorageError):
        return ResponseError(row.code, row.kind, str(error), **row.data(error))
    if isinstance(error, storage.InvalidArgument):
        return InvalidParams(f"$.{error.field}", error.reason)
    if isinstance(error, storage.StoreClosed):
        return ResponseError(INTERNAL_ERROR, "internalError", str(error))
    return None


def from_wire(code: int, message: str, data: Mapping[str, Any] | None) -> Exception:
    """The exception that the server met, or a `ResponseError` where there is no other for it."""
    facts = dict(data or {})
    kind = str(facts.get("kind") or PROTOCOL_ERRORS.get(code, "unknown"))
    row = BY_KIND.get(kind)
    if row is not None:
        try:
            return row.build(facts)
        except msgspec.ValidationError:
            pass  # a server of another version; the general form says all that it said
    if code == INVALID_PARAMS:
        field = str(facts.get("field", "$"))
        return InvalidParams(field, message.removeprefix(f"{field}: "))
    facts.pop("kind", None)
    return ResponseError(code, kind, message, **facts)
