"""What the index knows a text by: its words, its runs of other letters than ASCII, and marks for role, kind, tool and model.

It only tells where to look: what is found there is compared with the query as the search without an index does it. So nothing that
matches may be missed here, while finding too much costs time only.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from crewlog.storage.query import WORD, Query

_SHORT = 3
"""Characters below which a run cannot be found by trigrams."""

_MOST_TERMS = 60
"""Conditions that FTS5 is given at a time; without the others it finds more."""

_LONGEST_WORD = 200
"""Characters of a word that FTS5 is given."""

_WORD_BYTES = frozenset(b"0123456789_abcdefghijklmnopqrstuvwxyz")
_WORDS_ONLY = bytes(code | 32 if 65 <= code <= 90 else code if code in _WORD_BYTES else 32 for code in range(256))
_RUNS_ONLY = bytes(code if code >= 0x80 else 32 for code in range(256))
_ESCAPE = re.compile(rb"\\.")
_LETTERED_ESCAPES = (b"\\\\", b"\\n", b"\\t", b"\\r", b"\\u003c", b"\\u003e", b"\\u0026", b"\\b", b"\\f")
"""In this order: what is behind an escaped backslash begins no escape with it."""
_ESCAPED_TWICE = re.compile(rb"\\\\(?:[bfnrt]|u003[ce]|u0026)([0-9A-Za-z_]+)")
"""A word behind an escape of JSON in a string of JSON, which a tool's result may be: it is a word without the escape's letter too."""
_RUN = re.compile("[^\x00-\x7f\ud800-\udfff]+")
"""Surrogates are no text that SQLite knows; they end a run in what is indexed too."""


_AS_INDEXED = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""What FTS5 reads these two characters as (`READ_UTF8` in fts5_tokenize.c), where a run is compared with what it wrote."""


def words_of(folded: str) -> str:
    """The words of a casefolded text."""
    return folded.encode("utf-8", "replace").translate(_WORDS_ONLY).decode("ascii")


def words_of_json(raw: bytes) -> str:
    """The words in the strings of JSON (and in its keys), which spells none of their letters by escapes."""
    there = set(_ESCAPE.findall(raw))
    escaped_twice = _ESCAPED_TWICE.findall(raw) if b"\\\\" in there else []
    for escape in _LETTERED_ESCAPES:
        if escape[:2] in there:
            raw = raw.replace(escape, b" ")
    return b" ".join([raw, *escaped_twice]).translate(_WORDS_ONLY).decode("ascii")


def runs_of(text: bytes) -> str:
    """The runs of letters and signs beyond ASCII, casefolded. Each is followed by two spaces, so that trigrams begin at each of its
    letters. Raises `UnicodeDecodeError`.
    """
    if text.isascii():
        return ""
    runs = set(text.translate(_RUNS_ONLY).split())
    return b"".join(run + b"  " for run in runs).decode().casefold()


def mark(field: str, value: str) -> str:
    """A word for a role, kind, tool or model that no text holds; `value` is casefolded."""
    return _mark(field, value) if len(value) < _LONG_NAME else _mark.__wrapped__(field, value)


@lru_cache(maxsize=1024)
def _mark(field: str, value: str) -> str:
    return f"·{field[0]}{zlib.crc32(value.encode('utf-8', 'replace')):08x}"


_LONG_NAME = 200
"""Characters beyond which a name is no longer one that comes again and again, and is not kept in memory."""


class Wanted(msgspec.Struct):
    """What must be in a part of a log for the query to match there: all of `words` and all of `runs`, each a query of FTS5 or "" for no
    condition, and for each of `short_runs` a run that holds it.
    """

    words: str
    runs: str
    short_runs: list[str]


def wanted(query: Query, models: Iterable[str]) -> Wanted:
    """`models`: all that the index knows of."""
    words: dict[str, None] = {}
    runs: dict[str, None] = {}
    short: dict[str, None] = {}
    for term in query.terms:
        for match in WORD.finditer(term.text):
            word = match[0][:_LONGEST_WORD]
            prefix = len(word) < len(match[0]) or (term.prefix and match.end() == len(term.text))
            words[f'"{word}"' + ("*" if prefix else "")] = None
        for match in _RUN.finditer(term.text):
            if len(match[0]) < _SHORT:
                short[match[0].translate(_AS_INDEXED)] = None
            runs.update((f'"{match[0][at : at + _SHORT]}"', None) for at in range(len(match[0]) - _SHORT + 1))
    matching = {name for name in models if any(model in name for model in query.models)}
    for field, values in (("role", query.roles), ("kind", query.kinds), ("tool", query.tools), ("model", matching)):
        if getattr(query, f"{field}s"):
            marks = [f'"{mark(field, value)}"' for value in sorted(values)] or ['"·none"']
            if len(marks) <= _MOST_TERMS:
                words["(" + " OR ".join(marks) + ")"] = None
    return Wanted(" AND ".join(list(words)[-_MOST_TERMS:]), " AND ".join(list(runs)[:_MOST_TERMS]), list(short)[:_MOST_TERMS])
