"""The base framing of the Language Server Protocol: headers, a blank line, a body of `Content-Length` bytes.

The reader takes bytes in any pieces, never trusts a length before the limit is checked, and after damage looks for the next header:
a client that counts characters instead of bytes gets an error for that message and is understood again at the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

DEFAULT_LIMIT = 256 << 20
MAX_HEADER = 8 << 10
"""Bytes of one header block; a longer one is no header."""

_LENGTH_LINE = re.compile(rb"content-length[ \t]*:[ \t]*", re.IGNORECASE)
_TYPE_LINE = re.compile(rb"content-type[ \t]*:", re.IGNORECASE)
_KEEP = len(b"Content-Length")


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
        self._body_size = -1
        self._to_skip = 0
        self._lost = False
        self._pieces: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> list[Event]:
        """Events in the order of their bytes."""
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
        buffer = self._buffer
        at = 0
        try:
            while at < len(buffer):
                if self._lost:
                    found = _LENGTH_LINE.search(buffer, at)
                    if found is None:
                        at = max(at, len(buffer) - _KEEP)
                        return
                    at = found.start()
                    self._lost = False
                end, after = _header_end(buffer, at)
                if end < 0:
                    if len(buffer) - at > MAX_HEADER or _cannot_be_header(buffer, at):
                        yield Damage("no header of a message was found here")
                        self._lost = True
                        at += 1
                        continue
                    return
                length = _content_length(bytes(buffer[at:end])) if end - at <= MAX_HEADER else "the header is too long"
                if isinstance(length, str):
                    yield Damage(length)
                    next_header = _LENGTH_LINE.search(buffer, at + 1)
                    self._lost = True
                    at = next_header.start() if next_header is not None and next_header.start() < after else after
                    continue
                at = after
                if length > self.limit:
                    yield Oversized(length)
                    self._to_skip = length - (len(buffer) - at)
                    at = len(buffer) if self._to_skip >= 0 else at + length
                    self._to_skip = max(self._to_skip, 0)
                    continue
                if len(buffer) - at >= length:
                    yield Frame(bytes(buffer[at : at + length]))
                    at += length
                    continue
                self._pieces = [bytes(buffer[at:])]
                self._missing = length - (len(buffer) - at)
                at = len(buffer)
        finally:
            del buffer[:at]


def _header_end(buffer: bytearray, start: int) -> tuple[int, int]:
    """Where the header block ends and the body begins; (-1, -1) while it is not complete. A bare \\n\\n is taken for a line end too."""
    end = buffer.find(b"\r\n\r\n", start)
    loose = buffer.find(b"\n\n", start, end if end >= 0 else len(buffer))
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
    """The announced length, or what is wrong with the header."""
    found: int | None = None
    for line in header.split(b"\n"):
        line = line.strip()
        if not line:
            continue
        match = _LENGTH_LINE.match(line)
        if match is None:
            if _TYPE_LINE.match(line) or b":" in line:
                continue  # a header that this protocol may know one day
            return "a header line has no colon"
        value = line[match.end() :]
        if not value.isdigit() or len(value) > 18:
            return "Content-Length is not a number of bytes"
        if found is not None and found != int(value):
            return "two different Content-Length headers"
        found = int(value)
    return "Content-Length is missing" if found is None else found


def encode_frame(body: bytes) -> bytes:
    """A message ready to be written."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
