"""Task records as bytes: read as strictly as Go reads them, written as Go writes them, with the fields unknown to this version kept."""

from __future__ import annotations

import json
import os

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.names import check_name
from crewlog.storage.records import Claim, Task

SUFFIX = ".json"
HIGH_WATER_MARK = ".highwatermark"
MAX_HIGH_WATER_MARK = (1 << 53) - 1
"""A mark beyond the whole numbers that every JSON reader keeps is absurd, and is recovered from the files."""

_KNOWN = ("id", "subject", "description", "activeForm", "status", "owner", "blocks", "blockedBy", "metadata", "completedAt")


class _TaskDocument(msgspec.Struct, rename="camel"):
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


_decoder = msgspec.json.Decoder(_TaskDocument)


class NotATask(ValueError):
    """The content of a file that is no task record."""


def decode_task(content: bytes) -> Task:
    """Raises `NotATask` where Go would not read it."""
    try:
        found = _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _decode_slowly(content)
    if found.completed_at is not None and times.parse_ns(found.completed_at) is None:
        raise NotATask(f"completedAt is no RFC 3339 time: {found.completed_at!r}")
    return Task(
        id=found.id or "",
        subject=found.subject or "",
        description=found.description or "",
        active_form=found.active_form or "",
        status=found.status or "",
        owner=found.owner or "",
        blocks=[item or "" for item in found.blocks or ()],
        blocked_by=[item or "" for item in found.blocked_by or ()],
        metadata=found.metadata or {},
        completed_at=found.completed_at or "",
        source=content.strip(),
    )


def _decode_slowly(content: bytes) -> _TaskDocument:
    """For records with lone surrogates, which are kept, or with deep nesting in fields that no rule looks at."""
    if content.strip() == b"null":
        return _TaskDocument()
    try:
        parts = {name: value for name, value in rawjson.members(content).items() if name in _KNOWN}
        metadata = parts.pop("metadata", b"null")
        document = msgspec.convert(json.loads(rawjson.decode_utf8(rawjson.join_members(parts))), _TaskDocument)
        document.metadata = None if metadata == b"null" else {k: msgspec.Raw(v) for k, v in rawjson.members(metadata).items()}
    except (rawjson.Invalid, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotATask(str(error)) from None
    return document


def encode_task(task: Task, claim: Claim | None = None) -> bytes:
    """The record as compact JSON: known fields in Go's order, then those of `task.source` that are unknown, then `claim`."""
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
    if task.source[:1] == b"{" and len(task.source) > 2:
        parts.update((name, value) for name, value in rawjson.members(task.source).items() if name not in _KNOWN)
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


def read_high_water_mark(folder: str) -> int:
    """0 where there is none, or none that can be believed."""
    try:
        with open(os.path.join(folder, HIGH_WATER_MARK), "rb") as file:
            text = file.read(64).strip()
    except OSError:
        return 0
    if not text.isdigit() or int(text) > MAX_HIGH_WATER_MARK:
        return 0
    return int(text)
