"""The rows of the index's database: how they are written, with checksums, and read."""

from __future__ import annotations

import os
import zlib
from typing import TypeVar

import msgspec

from crewlog.storage.index_file import NoIndex
from crewlog.storage.listing import SummaryState
from crewlog.storage.stats import SessionUsage

SEQUENCE_BITS = 24
SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
"""A row of words has the number (log << 24 | part)."""
Key = tuple[bytes, bytes]
"""(folder, name) of a log below `projects/`."""
_T = TypeVar("_T")


class IndexedPart(msgspec.Struct, array_like=True, gc=False):
    """A part of a log as the index knows it, under the number `sequence`; the rest as of `Part`."""

    sequence: int
    start: int
    stop: int
    first: int
    last: int
    plain: bool


class IndexedParts(msgspec.Struct, array_like=True, gc=False):
    """The parts of a log in their order. Numbers are never given again."""

    next_sequence: int = 0
    parts: list[IndexedPart] = []


summary_decoder = msgspec.msgpack.Decoder(SummaryState)
usage_decoder = msgspec.msgpack.Decoder(SessionUsage)
parts_decoder = msgspec.msgpack.Decoder(IndexedParts)
encode = msgspec.msgpack.encode


def folder_key(folder: str) -> bytes:
    return os.fsencode(os.path.basename(folder))


def save(content: bytes, key: Key, id: int) -> bytes:
    """With a checksum, over the log's name and number too: SQLite has none."""
    return zlib.crc32(content, _seed(key, id)).to_bytes(4, "big") + content


def load(saved: object, key: Key, id: int, decoder: msgspec.msgpack.Decoder[_T]) -> _T:
    """Raises `NoIndex` where it is not what was saved."""
    if not isinstance(saved, bytes) or len(saved) < 4:
        raise NoIndex("a row is damaged", damaged=True)
    content = saved[4:]
    if zlib.crc32(content, _seed(key, id)).to_bytes(4, "big") != saved[:4]:
        raise NoIndex("a row is damaged", damaged=True)
    try:
        return decoder.decode(content)
    except msgspec.MsgspecError:
        raise NoIndex("a row is damaged", damaged=True) from None


def _seed(key: Key, id: int) -> int:
    return zlib.crc32(b"%b/%b/%d" % (*key, id))
