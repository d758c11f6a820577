"""What may be appended to a session: entries that a snapshot can read back, long thinking cut (formats.md, "Append")."""

from __future__ import annotations

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.entries import NewEntry
from crewlog.storage.errors import InvalidArgument
from crewlog.storage.messages import NotAMessage, read_shape
from crewlog.storage.records import EntryKind
from crewlog.storage.snapshot import THINKING_CHANGE, is_readable

MAX_THINKING = 200
"""Code points of a thinking block that a log keeps; a longer one is cut to one less and an ellipsis."""


def check_new_entry(entry: NewEntry, field: str) -> bytes:
    """The entry's data as it will be stored: one line, long thinking cut.

    Raises `InvalidArgument` naming `field` and what is below it, for JSON that is none, and for the data of a known kind that a
    snapshot would pass over in silence. Kinds without a meaning may hold anything.
    """
    _check_kind(entry.kind, f"{field}.kind")
    data = rawjson.one_line(entry.data).strip() or b"{}"
    where = f"{field}.data"
    if entry.kind == EntryKind.MESSAGE:
        return _check_message(data, where)
    try:
        rawjson.validate(data)
    except rawjson.Invalid as error:
        raise InvalidArgument(where, str(error)) from None
    if entry.kind in _SHAPES and (data[:1] != b"{" or not is_readable(entry.kind, data)):
        raise InvalidArgument(where, f"the data of a {entry.kind} is {_SHAPES[entry.kind]}")
    return data


def _check_kind(kind: str, field: str) -> None:
    if not kind:
        raise InvalidArgument(field, "it is empty; give one of message, model_change, compaction, …")
    if kind == EntryKind.HEADER:
        raise InvalidArgument(field, "a session has one header, made by session/create")
    try:
        kind.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(field, "it holds half of a surrogate pair") from None


_SHAPES = {
    EntryKind.MODEL_CHANGE.value: "an object; provider and model are strings",
    EntryKind.REASONING_EFFORT_CHANGE.value: "an object; level is a string",
    THINKING_CHANGE: "an object; level is a string",
    EntryKind.COMPACTION.value: "an object; summary is a string, messages an array",
    EntryKind.SESSION_INFO.value: "an object of strings",
    EntryKind.PLAN_STATE.value: "an object; phase, slug and pre_mode are strings",
    EntryKind.GOAL_STATE.value: "an object; status is a string, times are RFC 3339, counts are whole numbers",
    EntryKind.LLM_CALL.value: "an object",
}


def _check_message(data: bytes, field: str) -> bytes:
    if data[:1] != b"{":
        raise InvalidArgument(field, "a message is a JSON object with role and content")
    try:
        shape = read_shape(data)
    except NotAMessage as problem:
        raise InvalidArgument(field + problem.path, problem.reason) from None
    except rawjson.Invalid as error:
        raise InvalidArgument(field, str(error)) from None
    if not shape.role:
        raise InvalidArgument(f"{field}.role", "a message has a role: user, assistant, system or tool")
    return _cut_thinking(data) if shape.thinks else data


class _Block(msgspec.Struct, gc=False):
    type: str | None = ""
    thinking: str | None = ""


class _Thinking(msgspec.Struct, gc=False):
    content: list[_Block | None] | None = None


_thinking_decoder = msgspec.json.Decoder(_Thinking)


def _cut_thinking(message: bytes) -> bytes:
    """The message with each thinking block of more than 200 code points cut to 199 and `…`. All else stays to the byte."""
    if not _thinks_long(message):
        return message
    parts = rawjson.members(message)
    blocks = rawjson.elements(parts["content"])
    parts["content"] = rawjson.join_elements([_cut_block(block) for block in blocks])
    return rawjson.join_members(parts)


def _thinks_long(message: bytes) -> bool:
    try:
        content = _thinking_decoder.decode(message).content or []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return rawjson.members(message).get("content", b"")[:1] == b"["  # odd in some other way: look at each block
    return any(block is not None and len(block.thinking or "") > MAX_THINKING for block in content)


def _cut_block(block: bytes) -> bytes:
    if block[:1] != b"{":
        return block
    parts = rawjson.members(block)
    text = rawjson.decode_string(parts.get("thinking", b"null"))
    if text is None or len(text) <= MAX_THINKING or rawjson.decode_string(parts.get("type", b"null")) != "thinking":
        return block
    parts["thinking"] = rawjson.encode_string(text[: MAX_THINKING - 1] + "…")
    return rawjson.join_members(parts)
