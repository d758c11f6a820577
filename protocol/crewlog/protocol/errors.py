"""Errors on the wire: one table from the storage exceptions to codes and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class Row(msgspec.Struct, frozen=True):
    """One kind of error: its code, its exception, the facts it carries, and the exception made of them again."""

    code: int
    kind: str
    exception: type[storage.StorageError]
    data: Callable[[Any], Data]
    build: Callable[[Mapping[str, Any]], storage.StorageError]
    doc: str


TABLE: tuple[Row, ...] = (
    Row(
        1001,
        "sessionNotFound",
        storage.SessionNotFound,
        lambda e: {"sessionId": e.session_id},
        lambda d: storage.SessionNotFound(d["sessionId"]),
        "There is no such session.",
    ),
    Row(
        1002,
        "sessionCorrupt",
        storage.SessionCorrupt,
        lambda e: {"path": e.path, "line": e.line, "reason": e.reason},
        lambda d: storage.SessionCorrupt(d["path"], d["line"], d["reason"]),
        "A line of a session or transcript cannot be used. The file is left as it is.",
    ),
    Row(
        1003,
        "unsupportedVersion",
        storage.UnsupportedVersion,
        lambda e: {"found": e.found, "expected": e.expected, "path": e.path},
        lambda d: storage.UnsupportedVersion(d.get("path", ""), d["found"], d["expected"]),
        "The session was written in a version of the format that this server does not know.",
    ),
    Row(
        1004,
        "leafMoved",
        storage.LeafMoved,
        lambda e: {"leafId": e.leaf_id},
        lambda d: storage.LeafMoved(d["leafId"]),
        "Somebody appended since `expectedLeafId` was the leaf.",
    ),
    Row(
        1005,
        "entryNotFound",
        storage.EntryNotFound,
        lambda e: {"entryId": e.entry_id, "path": e.path},
        lambda d: storage.EntryNotFound(d["entryId"], d.get("path", "")),
        "The session has no such entry.",
    ),
    Row(
        1101,
        "taskNotFound",
        storage.TaskNotFound,
        lambda e: {"id": e.id},
        lambda d: storage.TaskNotFound(d["id"]),
        "The list has no such task.",
    ),
    Row(
        1102,
        "alreadyClaimed",
        storage.AlreadyClaimed,
        lambda e: {"id": e.id, "owner": e.owner},
        lambda d: storage.AlreadyClaimed(d["id"], d["owner"]),
        "Somebody else holds the task.",
    ),
    Row(
        1103,
        "alreadyResolved",
        storage.AlreadyResolved,
        lambda e: {"id": e.id},
        lambda d: storage.AlreadyResolved(d["id"]),
        "The task is completed.",
    ),
    Row(
        1104,
        "blocked",
        storage.Blocked,
        lambda e: {"id": e.id, "blockedBy": e.blocked_by},
        lambda d: storage.Blocked(d["id"], list(d["blockedBy"])),
        "The task waits for others; `blockedBy` names the open ones.",
    ),
    Row(
        1105,
        "dependencyCycle",
        storage.DependencyCycle,
        lambda e: {"path": e.path},
        lambda d: storage.DependencyCycle(list(d["path"])),
        "Tasks would wait for each other; `path` is the cycle, its first id again at the end.",
    ),
    Row(
        1106,
        "leaseLost",
        storage.LeaseLost,
        lambda e: {"id": e.id, "owner": e.owner},
        lambda d: storage.LeaseLost(d["id"], d["owner"]),
        "`owner` no longer holds the task.",
    ),
    Row(
        1201,
        "invalidName",
        storage.InvalidName,
        lambda e: {"name": e.name, "reason": e.reason, "field": e.field},
        lambda d: storage.InvalidName(d["name"], d["reason"], d.get("field", "name")),
        "A name from outside must not become a file name.",
    ),
    Row(
        1202,
        "planChanged",
        storage.PlanChanged,
        lambda e: {"etag": e.etag, "name": e.name},
        lambda d: storage.PlanChanged(d.get("name", ""), d["etag"]),
        "The plan is not the one that was read; `etag` is its present one, empty when it is gone.",
    ),
    Row(
        1301,
        "storageFailed",
        storage.StorageFailed,
        lambda e: {"path": e.path, "errno": e.errno_name, "reason": e.reason},
        lambda d: storage.StorageFailed(d["path"], d["errno"], d["reason"]),
        "The system refused; nothing was changed.",
    ),
    Row(
        1302,
        "busy",
        storage.Busy,
        lambda e: {"path": e.path, "holder": e.holder},
        lambda d: storage.Busy(d["path"], dict(d["holder"])),
        "A lock was not to be had within 10 s; `holder` tells who has it.",
    ),
    Row(
        1303,
        "tooLarge",
        storage.TooLarge,
        lambda e: {"limit": e.limit},
        lambda d: storage.TooLarge(d["limit"]),
        "A message is over the limit, in bytes.",
    ),
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
    row = _BY_EXCEPTION.get(type(error))  # type: ignore[arg-type]  # a look-up by any exception's class may well find nothing
    if row is not None:
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
        except (KeyError, TypeError, ValueError):
            pass  # a server of another version; the general form says all that it said
    if code == INVALID_PARAMS:
        field = str(facts.get("field", "$"))
        return InvalidParams(field, message.removeprefix(f"{field}: "))
    facts.pop("kind", None)
    return ResponseError(code, kind, message, **facts)
