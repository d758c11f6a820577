"""The base framing of the Language Server Protocol: headers, a blank line, a body of `Content-Length` bytes.

The reader takes bytes in any pieces, never trusts a length before the limit is checked, passes over blank lines between messages, and
after damage looks for the next header: a client that counts characters instead of bytes gets an error for that message and is
understood again at the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

DEFAULT_LIMIT = 256 << 20
MAX_HEADER = 8 << 10
"""Bytes of one header block; a longer one is no header."""

MAX_LENGTH = 1 << 40
"""A length from which on a header is nonsense rather than a message that is too large: skipping so much would never end."""

_PLAIN = re.compile(rb"Content-Length: ([0-9]{1,12})\r\n\r\n")
_BLANK = re.compile(rb"[\r\n]+")
_NAME = re.compile(rb"content-length", re.IGNORECASE)
_LENGTH_LINE = re.compile(rb"content-length[ \t]*:[ \t]*", re.IGNORECASE)
_ANY_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:")
_KEEP = len(b"content-length") - 1


class Frame(msgspec.Struct):
    """One message's body."""

    body: bytes


class Damage(msgspec.Struct):
    """Bytes that are no frame, passed over; `reason` is for the error that answers them."""

    reason: str


class Oversized(msgspec.Struct):
    """A body over the limit, which is passed over without being kept. `size` is what its header announced."""

    size: int


Event = Frame | Damage | Oversized


class FrameReader:
    """Feed bytes as they come; each call gives the events that they complete. `limit`: the largest body, in bytes."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._to_skip = 0
        self._lost = False
        self._pieces: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> list[Event]:
        """Events in the order of their bytes."""
        if self._buffer or self._missing or self._to_skip or self._lost:
            return self._feed(data)
        events, end = self._whole_frames(data)
        return events if end == len(data) else [*events, *self._feed(data[end:])]

    def _whole_frames(self, data: bytes) -> tuple[list[Event], int]:
        """What nearly all is: messages that begin and end in `data`, with the one header that nearly all have. And where they end."""
        events: list[Event] = []
        at, size = 0, len(data)
        while at < size:
            header = _PLAIN.match(data, at)
            if header is None:
                break
            start = header.end()
            end = start + int(header[1])
            if end > size or end - start > self.limit:
                break
            events.append(Frame(data[start:end]))
            at = end
        return events, at

    def _feed(self, data: bytes) -> list[Event]:
        if self._missing:
            taken = data[: self._missing]
            self._pieces.append(taken)
            self._missing -= len(taken)
            if self._missing:
                return []
            body = b"".join(self._pieces)
            self._pieces = []
            return [Frame(body), *self.feed(data[len(taken) :])] if len(data) > len(taken) else [Frame(body)]
        if self._to_skip:
            skipped = min(self._to_skip, len(data))
            self._to_skip -= skipped
            data = data[skipped:]
            if not data:
                return []
        self._buffer += data
        return list(self._events())

    @property
    def pending(self) -> bool:
        """Whether the bytes so far end inside a message."""
        return bool(self._buffer.strip()) or self._missing > 0 or self._to_skip > 0

    def _events(self) -> Iterator[Event]:
        buffer, at = self._buffer, 0
        try:
            while at < len(buffer):
                if self._lost:
                    found = _NAME.search(buffer, at)
                    if found is None:
                        at = max(at, len(buffer) - _KEEP)
                        return
                    at = found.start()
                    self._lost = False
                elif (blank := _BLANK.match(buffer, at)) is not None:
                    at = blank.end()
                    continue
                header = _header_at(buffer, at)
                if header is None:
                    return
                at = header.end
                if header.fault:
                    self._lost = True
                    yield Damage(header.fault)
                elif header.length > self.limit:
                    at = self._skip(header.length, at)
                    yield Oversized(header.length)
                elif len(buffer) - at >= header.length:
                    at += header.length
                    yield Frame(bytes(buffer[at - header.length : at]))
                else:
                    self._pieces = [bytes(buffer[at:])]
                    self._missing = header.length - len(self._pieces[0])
                    at = len(buffer)
        finally:
            del buffer[:at]

    def _skip(self, length: int, at: int) -> int:
        """Passes over a body; where the buffer goes on after it."""
        there = min(length, len(self._buffer) - at)
        self._to_skip = length - there
        return at + there


class _Header(NamedTuple):
    """A header block: the length it announces and where the body begins; or what is wrong with it, and where to go on looking."""

    length: int
    end: int
    fault: str = ""


def _header_at(buffer: bytearray, at: int) -> _Header | None:
    """The header block that begins here; None while it is not complete."""
    plain = _PLAIN.match(buffer, at)
    if plain is not None:
        length = int(plain[1])
        return _Header(length, plain.end()) if length < MAX_LENGTH else _Header(0, plain.end(), _ABSURD)
    end, after = _header_end(buffer, at)
    if end < 0:
        if len(buffer) - at > MAX_HEADER or _cannot_be_header(buffer, at):
            return _Header(0, at + 1, "no header of a message was found here")
        return None
    length_or_fault = _content_length(bytes(buffer[at:end]))
    if isinstance(length_or_fault, int):
        return _Header(length_or_fault, after)
    inside = _NAME.search(buffer, at + 1, after) if length_or_fault is not _CONFLICT else None
    return _Header(0, after if inside is None else inside.start(), length_or_fault)


def _header_end(buffer: bytearray, start: int) -> tuple[int, int]:
    """Where the header block ends and the body begins; (-1, -1) while it is not complete. A bare \\n\\n is taken for a line end too."""
    limit = start + MAX_HEADER
    end = buffer.find(b"\r\n\r\n", start, limit)
    loose = buffer.find(b"\n\n", start, end if end >= 0 else limit)
    if loose >= 0:
        return loose, loose + 2
    return (end, end + 4) if end >= 0 else (-1, -1)


def _cannot_be_header(buffer: bytearray, at: int) -> bool:
    """Whether what stands here can no longer become a header: its first line is complete and has no colon, or is JSON."""
    line_end = buffer.find(b"\n", at)
    line = bytes(buffer[at : line_end if line_end >= 0 else at + 64]).strip()
    if line[:1] in (b"{", b"["):
        return True
    return line_end >= 0 and bool(line) and b":" not in line


def _content_length(header: bytes) -> int | str:
    """The announced length, or what is wrong with the header. Headers of other names are left to later versions of the protocol."""
    found: int | None = None
    for line in header.split(b"\n"):
        line = line.strip()
        match = _LENGTH_LINE.match(line)
        if match is None:
            if line and _ANY_LINE.match(line) is None:
                return "a header line is no name with a colon"
            continue
        value = line[match.end() :]
        if not value.isdigit():
            return "Content-Length is not a number of bytes"
        if len(value) > 18 or int(value) >= MAX_LENGTH:
            return _ABSURD
        if found is not None and found != int(value):
            return _CONFLICT
        found = int(value)
    return "Content-Length is missing" if found is None else found


_CONFLICT = "two different Content-Length headers"
_ABSURD = "Content-Length is larger than any message could be"


def encode_frame(body: bytes) -> bytes:
    """A message ready to be written."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
