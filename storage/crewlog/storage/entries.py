"""One line of a session log: read strictly as formats.md says, written as Go writes it."""

from __future__ import annotations

import os
from collections.abc import Container

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.errors import InvalidArgument, SessionCorrupt, UnsupportedVersion
from crewlog.storage.records import Entry, EntryKind, Header

HEADER_ID = "h0"
VERSION = 3
MAX_THINKING = 200
"""Code points of a thinking block that a log keeps; a longer one is cut to one less and an ellipsis."""

_NULL = msgspec.Raw(b"null")


class NewEntry(msgspec.Struct):
    """What a caller wants appended. `data` is raw JSON; an empty one stands for `{}`."""

    kind: str
    data: msgspec.Raw | bytes = b"{}"
    parent_id: str | None = None


class NotAnEntry(ValueError):
    """Valid JSON that is no entry, or no JSON at all (`torn` may then be the cause). `reason` is for the error's sentence."""

    def __init__(self, reason: str, *, is_json: bool) -> None:
        self.reason = reason
        self.is_json = is_json
        super().__init__(reason)


class _Line(msgspec.Struct):
    kind: str | None = ""
    id: str | None = ""
    parent_id: str | None = ""
    timestamp: msgspec.Raw = _NULL
    data: msgspec.Raw = msgspec.Raw(b"")


class _Block(msgspec.Struct):
    type: str | None = ""
    thinking: str | None = ""


class _Thinking(msgspec.Struct):
    content: list[_Block | None] | None = None


_line_decoder = msgspec.json.Decoder(_Line)
_thinking_decoder = msgspec.json.Decoder(_Thinking)
_text_decoder = msgspec.json.Decoder(str)


def read_entry(line: bytes) -> Entry:
    """The entry on one line. Raises `NotAnEntry`. A timestamp that Go cannot parse is kept as it is; its time is unknown."""
    try:
        found = _line_decoder.decode(line)
    except msgspec.ValidationError as error:
        raise NotAnEntry(str(error), is_json=rawjson.is_valid(line)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _read_slowly(line)
    if not found.id:
        raise NotAnEntry("entry ID is empty", is_json=True)
    return Entry(found.kind or "", found.id, found.parent_id or "", _timestamp(found.timestamp), found.data)


def _timestamp(raw: msgspec.Raw) -> str:
    try:
        return _text_decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return rawjson.decode_string(raw) or times.ZERO


def _read_slowly(line: bytes) -> _Line:
    """For lines that msgspec refuses though Go reads them: lone surrogates, deep nesting, stray bytes in an id, more kinds of blanks."""
    line = trim_blanks(line)
    try:
        parts = rawjson.members(line)
    except rawjson.Invalid as error:
        raise NotAnEntry(str(error), is_json=rawjson.is_valid(line)) from None
    texts: dict[str, str] = {}
    for name in ("kind", "id", "parent_id"):
        value = parts.get(name, b'""')
        text = "" if value == b"null" else rawjson.decode_string(value)
        if text is None:
            raise NotAnEntry(f"Expected a string - at `$.{name}`", is_json=True)
        texts[name] = text
    return _Line(
        texts["kind"],
        texts["id"],
        texts["parent_id"],
        msgspec.Raw(parts.get("timestamp", b"null")),
        msgspec.Raw(parts.get("data", b"")),
    )


_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""What Go's `unicode.IsSpace` is true of."""


def trim_blanks(line: bytes) -> bytes:
    """The line without the blanks around it that Go trims: more than JSON knows."""
    return line.decode("utf-8", "surrogateescape").strip(_BLANKS).encode("utf-8", "surrogateescape")


def write_entry(entry: Entry) -> bytes:
    """The entry as one line with its line end, fields in Go's order."""
    parent = b',"parent_id":' + rawjson.encode_string(entry.parent_id) if entry.parent_id else b""
    return b'{"kind":%b,"id":%b%b,"timestamp":"%b","data":%b}\n' % (
        rawjson.encode_string(entry.kind),
        rawjson.encode_string(entry.id),
        parent,
        entry.timestamp.encode(),
        bytes(entry.data),
    )


def new_id(taken: Container[str]) -> str:
    """Eight lower-case hex digits that are not taken."""
    while True:
        candidate = os.urandom(4).hex()
        if candidate not in taken:
            return candidate


def check_new_entry(entry: NewEntry, field: str) -> bytes:
    """The entry's data as it will be stored: one line, long thinking cut. Raises `InvalidArgument` naming `field` and what is below it."""
    if not entry.kind:
        raise InvalidArgument(f"{field}.kind", "it is empty; give one of message, model_change, compaction, …")
    if entry.kind == EntryKind.HEADER:
        raise InvalidArgument(f"{field}.kind", "a session has one header, made by session/create")
    try:
        entry.kind.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field}.kind", "it holds half of a surrogate pair") from None
    data = rawjson.one_line(entry.data).strip() or b"{}"
    try:
        rawjson.validate(data)
    except rawjson.Invalid as error:
        raise InvalidArgument(f"{field}.data", str(error)) from None
    if entry.kind == EntryKind.MESSAGE:
        return check_message(data, f"{field}.data")
    if entry.kind in _OBJECT_KINDS and data[:1] != b"{":
        raise InvalidArgument(f"{field}.data", f"the data of a {entry.kind} is a JSON object")
    return data


_OBJECT_KINDS = frozenset(kind.value for kind in EntryKind) - {EntryKind.HEADER.value}


def check_message(data: bytes, field: str) -> bytes:
    """A message as it will be stored. Raises `InvalidArgument` where it is no object with a role."""
    if data[:1] != b"{":
        raise InvalidArgument(field, "a message is a JSON object with role and content")
    role = _role_of(data)
    if not role:
        raise InvalidArgument(f"{field}.role", "a message has a role: user, assistant, system or tool")
    return cut_thinking(data)


class _Role(msgspec.Struct):
    role: msgspec.Raw = _NULL


_role_decoder = msgspec.json.Decoder(_Role)


def _role_of(data: bytes) -> str | None:
    try:
        raw = bytes(_role_decoder.decode(data).role)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raw = rawjson.members(data).get("role", b"null")
    return rawjson.decode_string(raw)


def cut_thinking(message: bytes) -> bytes:
    """The message with each thinking block of more than 200 code points cut to 199 and `…`. All else stays to the byte."""
    if b'"thinking"' not in message or not _thinks_long(message):
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


class _HeaderData(msgspec.Struct):
    version: int | None = 0
    session_id: str | None = ""
    name: str | None = ""
    cwd: str | None = ""
    created: str | None = times.ZERO


_header_decoder = msgspec.json.Decoder(_HeaderData)


def read_header(data: bytes | msgspec.Raw, path: str, line: int) -> Header:
    """Raises `SessionCorrupt` and `UnsupportedVersion`."""
    raw = bytes(data)
    try:
        found = _HeaderData() if raw == b"null" else rawjson.decode_lenient(raw, _header_decoder, _HeaderData)
    except msgspec.MsgspecError as error:
        raise SessionCorrupt(path, line, f"parse header data: {error}") from None
    if found.version != VERSION:
        raise UnsupportedVersion(path, found.version or 0, VERSION)
    return Header(VERSION, found.session_id or "", found.name or "", found.cwd or "", found.created or times.ZERO)
