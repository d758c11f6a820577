"""Task records as bytes: read as strictly as Go reads them, written as Go writes them, with the fields unknown to this version kept."""

from __future__ import annotations

import json

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.names import check_name
from crewlog.storage.records import Claim, Task

SUFFIX = ".json"

_KNOWN = ("id", "subject", "description", "activeForm", "status", "owner", "blocks", "blockedBy", "metadata", "completedAt")


class _TaskDocument(msgspec.Struct, rename="camel", gc=False):
    id: str | None = ""
    subject: str | None = ""
    description: str | None = ""
    active_form: str | None = ""
    status: str | None = ""
    owner: str | None = ""
    blocks: list[str | None] | None = None
    blocked_by: list[str | None] | None = None
    metadata: dict[str, msgspec.Raw] | None = None
    completed_at: str | None = None


class _KnownFields(_TaskDocument, forbid_unknown_fields=True, gc=False):
    """A record without fields unknown to this version, as nearly all are."""


class _Record(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A record as it is written: in Go's order, without what is empty."""

    id: str
    subject: str
    description: str = ""
    active_form: str = ""
    status: str
    owner: str = ""
    blocks: list[str]
    blocked_by: list[str]
    metadata: dict[str, msgspec.Raw] = {}
    completed_at: str = ""


_known_decoder = msgspec.json.Decoder(_KnownFields)
_decoder = msgspec.json.Decoder(_TaskDocument)
_encode = msgspec.json.Encoder().encode


class NotATask(ValueError):
    """The content of a file that is no task record."""


def decode_task(content: bytes) -> Task:
    """Raises `NotATask` where Go would not read it."""
    found, extra = _decode(content)
    if found.completed_at is not None and times.parse_ns(found.completed_at) is None:
        raise NotATask(f"completedAt is no RFC 3339 time: {found.completed_at!r}")
    return Task(
        id=found.id or "",
        subject=found.subject or "",
        description=found.description or "",
        active_form=found.active_form or "",
        status=found.status or "",
        owner=found.owner or "",
        blocks=_texts(found.blocks),
        blocked_by=_texts(found.blocked_by),
        metadata=found.metadata or {},
        completed_at=found.completed_at or "",
        extra=extra,
        source=content.strip(),
    )


def _texts(items: list[str | None] | None) -> list[str]:
    return [item or "" for item in items] if items else []


def _decode(content: bytes) -> tuple[_TaskDocument, dict[str, msgspec.Raw]]:
    """The known fields, and the others."""
    try:
        return _known_decoder.decode(content), {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        found = _decoder.decode(content)
        return found, {name: msgspec.Raw(value) for name, value in rawjson.members(content).items() if name not in _KNOWN}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, rawjson.Invalid):
        return _decode_slowly(content)


def _decode_slowly(content: bytes) -> tuple[_TaskDocument, dict[str, msgspec.Raw]]:
    """For records with lone surrogates, which are kept, or with deep nesting in fields that no rule looks at."""
    if content.strip() == b"null":
        return _TaskDocument(), {}
    try:
        parts = rawjson.members(content)
        extra = {name: msgspec.Raw(parts.pop(name)) for name in list(parts) if name not in _KNOWN}
        metadata = parts.pop("metadata", b"null")
        document = msgspec.convert(json.loads(rawjson.decode_utf8(rawjson.join_members(parts))), _TaskDocument)
        document.metadata = None if metadata == b"null" else {k: msgspec.Raw(v) for k, v in rawjson.members(metadata).items()}
    except (rawjson.Invalid, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotATask(str(error)) from None
    return document, extra


def encode_task(task: Task, claim: Claim | None = None) -> bytes:
    """The record as compact JSON: known fields in Go's order, then those that are unknown here, then `claim`."""
    if task.extra:
        return _encode_slowly(task, claim)
    metadata = task.metadata
    record = _Record(
        id=task.id,
        subject=task.subject,
        description=task.description,
        active_form=task.active_form,
        status=task.status,
        owner=task.owner,
        blocks=task.blocks,
        blocked_by=task.blocked_by,
        metadata={key: metadata[key] for key in sorted(metadata)} if len(metadata) > 1 else metadata,
        completed_at=task.completed_at,
    )
    try:
        document = _encode(record)
        return document if claim is None else b'%b,"claim":%b}' % (document[:-1], _encode(claim))
    except UnicodeEncodeError:
        return _encode_slowly(task, claim)


def shown_record(task: Task) -> bytes:
    """The record as it is on disk, on one line, and `claim` with it where the task is claimed. A field of that name in somebody's file
    is not taken for one.
    """
    if "claim" in task.extra:
        task = msgspec.structs.replace(task, extra={name: value for name, value in task.extra.items() if name != "claim"})
    return encode_task(task, task.claim)


def _encode_slowly(task: Task, claim: Claim | None) -> bytes:
    parts = {"id": rawjson.encode_string(task.id), "subject": rawjson.encode_string(task.subject)}
    for name, value in (("description", task.description), ("activeForm", task.active_form)):
        if value:
            parts[name] = rawjson.encode_string(value)
    parts["status"] = rawjson.encode_string(task.status)
    if task.owner:
        parts["owner"] = rawjson.encode_string(task.owner)
    parts["blocks"] = rawjson.join_elements([rawjson.encode_string(item) for item in task.blocks])
    parts["blockedBy"] = rawjson.join_elements([rawjson.encode_string(item) for item in task.blocked_by])
    if task.metadata:
        parts["metadata"] = rawjson.join_members({key: bytes(task.metadata[key]) for key in sorted(task.metadata)})
    if task.completed_at:
        parts["completedAt"] = rawjson.encode_string(task.completed_at)
    parts.update((name, bytes(value)) for name, value in task.extra.items())
    if claim is not None:
        parts["claim"] = msgspec.json.encode(claim)
    return rawjson.join_members(parts)


def encode_file(document: bytes) -> bytes:
    """A record as Go writes it to a file: indented by two spaces, with `<`, `>`, `&`, U+2028 and U+2029 as escapes."""
    indented = rawjson.indent(document)
    for plain, escaped in _GO_ESCAPES:
        if plain in indented:
            indented = indented.replace(plain, escaped)
    return indented


_GO_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def file_name(task_id: str) -> str:
    """The file that a task is written to. Raises `InvalidName` for an id, found in some file, that must not become a name."""
    if task_id == "":
        return SUFFIX  # what Go makes of a record without id
    return check_name(task_id, "id") + SUFFIX
