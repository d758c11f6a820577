"""One line of a session log: read strictly as formats.md says, written as Go writes it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container
from typing import TypeVar

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.errors import SessionCorrupt, UnsupportedVersion
from crewlog.storage.log import Block
from crewlog.storage.records import Entry, EntryKind, Header

HEADER_ID = "h0"
VERSION = 3

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


class _Line(msgspec.Struct, gc=False):
    kind: str | None = ""
    id: str | None = ""
    parent_id: str | None = ""
    timestamp: msgspec.Raw = _NULL
    data: msgspec.Raw = msgspec.Raw(b"")


class UsualHead(msgspec.Struct, gc=False):
    """As `_Line` without its data; only odd ones have a timestamp that is no text."""

    kind: str | None = ""
    id: str | None = ""
    parent_id: str | None = ""
    timestamp: str = ""


class UsualLine(UsualHead, gc=False):
    """With its data."""

    data: msgspec.Raw = msgspec.Raw(b"")


_line_decoder = msgspec.json.Decoder(_Line)
usual_heads = msgspec.json.Decoder(UsualHead)
usual_lines = msgspec.json.Decoder(UsualLine)
_Usual = TypeVar("_Usual", bound=UsualHead)


class Head(msgspec.Struct, gc=False):
    """What stands before an entry's data. `timestamp` is the text between the quotes; the data is `line[data_at:-1]`."""

    kind: str
    id: str
    parent_id: str
    timestamp: bytes
    data_at: int


_AS_WRITTEN = re.compile(
    rb'\{"kind":"([a-z_]+)","id":"([ !#-\[\]-~]+)"(?:,"parent_id":"([ !#-\[\]-~]*)")?,"timestamp":"([ !#-\[\]-~]*)","data":(?=[^ ])'
)
_value_decoder = msgspec.json.Decoder(msgspec.Raw)


def read_head(line: bytes) -> Head | None:
    """For a valid entry exactly as codebot and Crewlog write it; None for all else, which `read_entry` can tell apart.

    One value behind the known start, and then a brace: if so, nothing else can stand in the line.
    """
    match = _AS_WRITTEN.match(line)
    if match is None or not line.endswith(b"}"):
        return None
    data_at = match.end()
    try:
        _value_decoder.decode(memoryview(line)[data_at:-1])
    except (msgspec.DecodeError, RecursionError):
        return None  # there is more in it, or something odd
    kind, entry_id, parent_id, timestamp = match.groups(b"")
    return Head(sys.intern(kind.decode()), entry_id.decode(), parent_id.decode(), timestamp, data_at)


def decode_block(block: Block, decoder: msgspec.json.Decoder[_Usual]) -> list[_Usual] | None:
    """The entries on the lines of a block, decoded together by `usual_lines` or `usual_heads`, which takes a third of what it takes one
    by one. None where one of the lines is odd, so that each must be looked at by itself.
    """
    try:
        found = decoder.decode_lines(block.whole())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if len(found) != len(block.ends) or not block.looks_like_objects():
        return None  # blank lines among them, a value on several lines, or several on one
    return found


def usual_head(kind: str, entry_id: str, parent_id: str, timestamp: str) -> bytes:
    """What codebot and Crewlog write before an entry's data, for texts that need no escapes."""
    parent = f',"parent_id":"{parent_id}"' if parent_id else ""
    return f'{{"kind":"{kind}","id":"{entry_id}"{parent},"timestamp":"{timestamp}","data":'.encode()


def timestamp_in(start: bytes) -> str:
    """The timestamp of an entry of which only the start of its line is there; the zero time where it does not stand before the data."""
    match = _AS_WRITTEN.match(start)
    return match[4].decode() if match is not None else times.ZERO


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
    text = rawjson.decode_string(raw)
    return times.ZERO if text is None else text


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


def as_json(line: bytes) -> bytes:
    """The line of an entry as a value of JSON, which does not know all blanks around it."""
    return line if line[:1] == b"{" and line[-1:] == b"}" else trim_blanks(line)


def write_entry(entry: Entry) -> bytes:
    """The entry as one line with its line end, fields in Go's order."""
    head = b'{"kind":%b,"id":%b%b,"timestamp":"%b","data":' % (
        _KINDS.get(entry.kind) or rawjson.encode_string(entry.kind),
        rawjson.encode_string(entry.id),
        b',"parent_id":' + rawjson.encode_string(entry.parent_id) if entry.parent_id else b"",
        entry.timestamp.encode(),
    )
    return b"".join((head, entry.data, b"}\n"))


_KINDS = {kind.value: rawjson.encode_string(kind.value) for kind in EntryKind}


def new_id(taken: Container[str], also: Container[str] = ()) -> str:
    """Eight lower-case hex digits that neither `taken` nor `also` holds."""
    while True:
        candidate = os.urandom(4).hex()
        if candidate not in taken and candidate not in also:
            return candidate


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
