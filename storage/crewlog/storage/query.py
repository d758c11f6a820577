"""What a user types to search: words, "phrases", prefix*, and filters such as `role:user` or `after:2026-01-01`.

Nothing typed is an error: what looks like a filter but names none is searched for as text.
"""

from __future__ import annotations

import re

import msgspec

from crewlog.storage import times
from crewlog.storage.ansi import without_escapes

_TOKEN = re.compile(r'(?:(?P<key>role|kind|tool|model|after|before):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+))', re.IGNORECASE)

WORD = re.compile("[0-9a-z_]+")
"""In a casefolded text."""


class Term(msgspec.Struct, frozen=True):
    """A text to be found, case ignored. `prefix`: it may go on; otherwise a word must end where it ends."""

    text: str
    prefix: bool = False


class Query(msgspec.Struct):
    """All terms must be found in an entry, and all filters hold. `after` and `before` are nanoseconds since 1970."""

    terms: list[Term]
    roles: set[str]
    kinds: set[str]
    tools: set[str]
    models: set[str]
    after: int | None = None
    before: int | None = None

    @property
    def empty(self) -> bool:
        timeless = self.after is None and self.before is None
        return timeless and not (self.terms or self.roles or self.kinds or self.tools or self.models)


def parse_query(text: str) -> Query:
    """Never fails."""
    query = Query([], set(), set(), set(), set())
    terms: dict[Term, None] = {}
    for match in _TOKEN.finditer(without_escapes(text)):
        key, value = (match["key"] or "").lower(), match["phrase"] if match["phrase"] is not None else match["word"]
        if not value:
            continue
        if not _set_filter(query, key, value):
            whole = f"{match['key']}:{value}" if key else value
            prefix = match["phrase"] is None and whole.endswith("*") and len(whole) > 1
            terms[Term((whole[:-1] if prefix else whole).casefold(), prefix)] = None
    query.terms = list(terms)
    return query


def _set_filter(query: Query, key: str, value: str) -> bool:
    named = {"role": query.roles, "kind": query.kinds, "tool": query.tools, "model": query.models}
    if key in named:
        named[key].add(value.casefold())
        return True
    if key in ("after", "before"):
        moment = _moment(value)
        if moment is None:
            return False
        setattr(query, key, moment)
        return True
    return False


def _moment(text: str) -> int | None:
    """A date (midnight in UTC) or an RFC 3339 time."""
    return times.parse_ns(text) if "T" in text else times.parse_ns(f"{text}T00:00:00Z")


def term_pattern(term: Term) -> re.Pattern[str]:
    """Finds the term as a word: bounded where its own ends are letters of an alphabet, anywhere for others (CJK, punctuation)."""
    text = re.escape(term.text)
    before = rf"(?<![a-z0-9_]{text})" if _is_latin(term.text[0]) else ""  # behind the text, which is so looked for as plain text is: fast
    after = r"(?![a-z0-9_])" if _is_latin(term.text[-1]) and not term.prefix else ""
    return re.compile(text + before + after)


def _is_latin(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
