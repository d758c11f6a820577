"""What can be searched of an entry, and of which model it tells."""

from __future__ import annotations

import contextlib
import re

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.ansi import without_escapes
from crewlog.storage.messages import message_shape
from crewlog.storage.records import Entry, EntryKind
from crewlog.storage.snapshot import THINKING_CHANGE, read_compaction


class _Block(msgspec.Struct, gc=False):
    type: str | None = ""
    text: str | None = ""
    thinking: str | None = ""
    tool_call: msgspec.Raw = msgspec.Raw(b"null")
    tool_name: str | None = ""


class _Message(msgspec.Struct, gc=False):
    role: str | None = ""
    content: list[_Block | None] | None = None
    metadata: dict[str, msgspec.Raw] | None = None


class _Call(msgspec.Struct, gc=False):
    name: str | None = ""
    args: msgspec.Raw = msgspec.Raw(b"null")
    args_raw_text: msgspec.Raw = msgspec.Raw(b"null")


class _Header(msgspec.Struct, gc=False):
    name: str | None = ""


_message_decoder = msgspec.json.Decoder(_Message)
_call_decoder = msgspec.json.Decoder(_Call)
_header_decoder = msgspec.json.Decoder(_Header)


class SearchText(msgspec.Struct):
    """What can be searched of an entry."""

    role: str
    tools: list[str]
    text: str


def search_text(entry: Entry) -> SearchText | None:
    """None for kinds in which nothing is said. The text is as a terminal shows it (`without_escapes`)."""
    found = _text_of(entry.kind, bytes(entry.data))
    if found is not None:
        found.text = without_escapes(found.text)
    return found


def _text_of(kind: str, data: bytes) -> SearchText | None:
    if kind == EntryKind.MESSAGE:
        return _message_text(data)
    if kind == EntryKind.COMPACTION:
        return _compaction_text(data)
    if kind == EntryKind.HEADER:
        return _header_text(data)
    if kind in TOLD_AS_JSON:
        return SearchText("", [], _told(rawjson.decode_utf8(data)))
    return None


def _header_text(data: bytes) -> SearchText | None:
    """The name that the session was created with, if any."""
    with contextlib.suppress(msgspec.MsgspecError):
        name = rawjson.decode_lenient(data, _header_decoder, _Header).name
        return SearchText("", [], name) if name else None
    return None


def _compaction_text(data: bytes) -> SearchText | None:
    """What it kept too: it need not stand anywhere else in the log."""
    compaction = read_compaction(data)
    if compaction is None:
        return None
    kept = (_message_text(bytes(message)) for message in compaction.messages)
    return SearchText("", [], "\n".join([compaction.summary, *(message.text for message in kept if message is not None)]))


def _told(text: str) -> str:
    """JSON as text, with the characters that its escapes stand for."""
    if "\\" not in text:
        return text
    if "\\u" in text:
        return _ESCAPES.sub(_characters, text)
    pieces = text.split("\\\\")  # what is behind an escaped backslash begins no escape with it
    for escape, character in _SHORT_ESCAPES:
        if escape in text:
            pieces = [piece.replace(escape, character) for piece in pieces]
    return "\\".join(pieces)


_SHORT_ESCAPES = (("\\n", "\n"), ('\\"', '"'), ("\\t", "\t"), ("\\/", "/"), ("\\r", "\r"), ("\\b", "\b"), ("\\f", "\f"))
_ESCAPES = re.compile(r'(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+')


def _characters(match: re.Match[str]) -> str:
    return rawjson.decode_string(f'"{match[0]}"'.encode()) or ""


TOLD_AS_JSON = frozenset(
    {
        EntryKind.SESSION_INFO,
        EntryKind.PLAN_STATE,
        EntryKind.GOAL_STATE,
        EntryKind.LLM_CALL,
        EntryKind.MODEL_CHANGE,
        EntryKind.REASONING_EFFORT_CHANGE,
        THINKING_CHANGE,
    }
)
SEARCHED = TOLD_AS_JSON | {EntryKind.MESSAGE, EntryKind.COMPACTION, EntryKind.HEADER}
"""The kinds in which something is said."""


def _message_text(data: bytes) -> SearchText | None:
    try:
        message = rawjson.decode_lenient(data, _message_decoder, _Message)
    except msgspec.MsgspecError:
        return None if message_shape(data) is None else SearchText("", [], _told(rawjson.decode_utf8(data)))
    texts: list[str] = []
    tools: list[str] = []
    for block in message.content or []:
        if block is None:
            continue
        texts.extend(_result_text(text) if message.role == "tool" else text for text in (block.text, block.thinking) if text)
        if block.tool_name:
            texts.append(block.tool_name)
        if bytes(block.tool_call) != b"null":
            name, told = _call_text(bytes(block.tool_call))
            tools.append(name)
            texts.append(told)
    return SearchText(message.role or "", tools, "\n".join(texts))


def _result_text(text: str) -> str:
    """codebot writes what a tool gave as JSON: its lines end in an escape, and its colours begin with one."""
    is_json = "\\" in text and text[0] in '"{[' and rawjson.is_valid(text.encode())
    return _told(text) if is_json else text


def _call_text(raw: bytes) -> tuple[str, str]:
    try:
        call = rawjson.decode_lenient(raw, _call_decoder, _Call)
    except msgspec.MsgspecError:
        return "", _told(rawjson.decode_utf8(raw))
    name, unparsed = call.name or "", rawjson.decode_string(call.args_raw_text) or ""
    return name, f"{name} {_told(rawjson.decode_utf8(bytes(call.args)))} {unparsed}".rstrip()


class _Model(msgspec.Struct, gc=False):
    model: str | None = ""
    usage: msgspec.Raw = msgspec.Raw(b"null")


_model_decoder = msgspec.json.Decoder(_Model)


def model_of(entry: Entry) -> str:
    try:
        found = _model_decoder.decode(entry.data)
        if found.model:
            return found.model
        return _model_decoder.decode(found.usage).model or "" if bytes(found.usage) != b"null" else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
