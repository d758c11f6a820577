"""Full text over session logs."""

from __future__ import annotations

import bisect
import heapq
import math
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

import msgspec

from crewlog.storage import times
from crewlog.storage.entries import NotAnEntry, read_entry
from crewlog.storage.query import WORD, Query, Term, parse_query, term_pattern
from crewlog.storage.records import Entry, SessionInfo
from crewlog.storage.search_text import model_of, search_text

SNIPPET = 120
"""Characters of text that a snippet shows around the first word found."""
RANKED = 500
"""Entries that match, the newest, which are ranked."""
RANKED_OF_SESSION = 50
"""Those of one session among them, as long as others have any: a long session does not hide what is better elsewhere."""
BLOCK = 64 << 10
_HALF_LIFE_DAYS = 30
_MANY = 60
"""Words of a query; a snippet has not the room to show more."""


class Hit(msgspec.Struct):
    """An entry in which all was found. `snippet` marks what was found with « and »; `score`: higher is better."""

    session: SessionInfo
    entry_id: str
    kind: str
    timestamp: str
    snippet: str
    score: float


class Place(NamedTuple):
    """A range of bytes of a log, of whole lines. `plain`: whether it is known that none is spelled oddly (`is_spelled_oddly`)."""

    start: int
    stop: int
    plain: bool = False


class Places(Protocol):
    """Where in a session's log the query may match, in rising order; None for all of it."""

    def __call__(self, path: str) -> list[Place] | None: ...


def search(
    sessions: Iterable[SessionInfo],
    query: str,
    limit: int = 50,
    *,
    keep_going: Callable[[], bool] = lambda: True,
    places: Places = lambda path: None,
    looked_at: Callable[[str], None] = lambda path: None,
) -> list[Hit]:
    """The best hits, best first. Entries that cannot be read are passed over, and so are sessions that went away meanwhile.

    Ranked are the newest `RANKED` entries that match, with no more than `RANKED_OF_SESSION` of one session while others have any; the
    limit does not change which. Where it is higher, the next newest follow. What is older than those is not looked at: a session's
    entries are taken to be in the order of their times, and its `updated` to be the newest of them. It is quickest with the sessions
    newest first.

    `keep_going` is asked now and then; when it says False the search ends with what it has. `looked_at` is told each session that is
    done.
    """
    wanted = parse_query(query)
    if wanted.empty:
        return []
    matcher = _Matcher(wanted, keep_going)
    newest = _Newest(max(RANKED, limit), times.parse_ns(times.now()) or 0)
    unfinished: list[tuple[SessionInfo, Hit]] = []
    for info in sessions:
        if newest.has_room_for(info.updated, is_one_of_few=True):
            for found, hit in enumerate(matcher.hits(info, places(info.path)), 1):
                if not newest.keep(hit, is_one_of_few=True):
                    break
                if found == RANKED_OF_SESSION:
                    unfinished.append((info, hit))
                    break
        looked_at(info.path)
        if not keep_going():
            break
    for info, last in unfinished:
        if newest.has_room_for(last.timestamp, is_one_of_few=False):
            hits = matcher.hits(info, places(info.path))
            if last in hits:  # they go on from where they were left
                for hit in hits:
                    if not newest.keep(hit, is_one_of_few=False):
                        break
    kept = newest.hits()
    return [*sorted(kept[:RANKED], key=lambda hit: -hit.score), *kept[RANKED:]][:limit]


class _Newest:
    """Up to `most` hits: those that are some of few in their session first, of them the newest. Times to come count as `now`."""

    def __init__(self, most: int, now: int) -> None:
        self._most = most
        self._now = now
        self._kept: list[tuple[bool, int, int, Hit]] = []
        self._seen = 0

    def has_room_for(self, timestamp: str, *, is_one_of_few: bool) -> bool:
        """Whether a hit of this time may be kept."""
        return len(self._kept) < self._most or (is_one_of_few, self._moment(timestamp), -self._seen) > self._kept[0][:3]

    def keep(self, hit: Hit, *, is_one_of_few: bool) -> bool:
        """Whether there was room for it."""
        item = (is_one_of_few, self._moment(hit.timestamp), -self._seen, hit)
        self._seen += 1
        if len(self._kept) < self._most:
            heapq.heappush(self._kept, item)
            return True
        return heapq.heappushpop(self._kept, item) is not item

    def hits(self) -> list[Hit]:
        return [hit for *_, hit in sorted(self._kept, reverse=True)]

    def _moment(self, timestamp: str) -> int:
        moment = times.parse_ns(timestamp)
        return _NEVER if moment is None else min(moment, self._now)


_NEVER = -(2**63)


def _read_backwards(path: str, places: list[Place] | None) -> Iterator[tuple[bytes, bool]]:
    """Whole lines, in blocks, and whether they are known to be spelled plainly; the last line of all may lack its line end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return
        if places is not None:
            for place in reversed(places):
                yield os.pread(descriptor, place.stop - place.start, place.start), place.plain
            return
        stop, size = status.st_size, BLOCK
        while stop:
            start = max(0, stop - size)
            data = os.pread(descriptor, stop - start, start)
            at = data.find(b"\n") + 1 if start else 0
            if start and (at == 0 or at == len(data)):
                size *= 2  # a line longer than the block
                continue
            yield data[at:], False
            stop, size = start + at, BLOCK
    finally:
        os.close(descriptor)


class _Matcher:
    """Compares entries with a query."""

    def __init__(self, query: Query, keep_going: Callable[[], bool]) -> None:
        self._keep_going = keep_going
        self._query = query
        self._patterns: dict[Term, re.Pattern[str]] = {}
        self._newest = times.parse_ns(times.now()) or 0
        self._plain = sorted((term.text.encode() for term in query.terms if is_plain(term.text)), key=len, reverse=True)[:_MANY]
        self._with_slash = any(b"/" in text for text in self._plain)
        self._caseless = all(text.lower() == text.upper() for text in self._plain)

    def hits(self, info: SessionInfo, places: list[Place] | None) -> Iterator[Hit]:
        """In a session, from the last on."""
        if places == []:
            return
        try:
            for data, plain in _read_backwards(info.path, places):
                if not self._keep_going():
                    return
                for line in self._lines(data, plain=plain):
                    try:
                        hit = self._match(info, read_entry(line))
                    except NotAnEntry:
                        continue  # doctor names it
                    if hit is not None:
                        yield hit
        except OSError:
            return  # it went away since it was listed

    def _pattern(self, term: Term) -> re.Pattern[str]:
        if term not in self._patterns:
            self._patterns[term] = term_pattern(term)
        return self._patterns[term]

    def _counts(self, folded: str) -> list[int] | None:
        """How often each term is in a text; None where one is not. Pages may be pasted as a query: their words are counted together,
        and between the others it is asked whether to go on.
        """
        terms = self._query.terms
        words = Counter(WORD.findall(folded)) if len(terms) > _MANY else None
        counts = []
        for term in terms:
            if words is not None and not term.prefix and WORD.fullmatch(term.text):
                count = words[term.text]
            elif not self._keep_going():
                return None
            else:
                count = len(self._pattern(term).findall(folded)) if term.text in folded else 0
            if not count:
                return None
            counts.append(count)
        return counts

    def _lines(self, data: bytes, *, plain: bool) -> Iterator[bytes]:
        """Those of some lines, as they are in the file, that may match, from the last on: they hold the terms, in any spelling that JSON
        allows. Of many terms the longest tell enough. `plain`: whether it is known that they are not spelled oddly.
        """
        if not self._plain or (not plain and is_spelled_oddly(data)) or (self._with_slash and b"\\/" in data):
            yield from (line for line in reversed(data.split(b"\n")) if line)
            return
        lowered = data if self._caseless else data.lower()
        at = lowered.rfind(self._plain[0])
        while at >= 0:
            start, end = lowered.rfind(b"\n", 0, at) + 1, lowered.find(b"\n", at)
            line = lowered[start : end if end >= 0 else None]
            if all(text in line for text in self._plain):
                yield data[start : end if end >= 0 else None]
            at = lowered.rfind(self._plain[0], 0, start)

    def _match(self, info: SessionInfo, entry: Entry) -> Hit | None:
        query = self._query
        if query.kinds and entry.kind.casefold() not in query.kinds:
            return None
        moment = times.parse_ns(entry.timestamp)
        if query.after is not None and (moment is None or moment < query.after):
            return None
        if query.before is not None and (moment is None or moment >= query.before):
            return None
        found = search_text(entry)
        if found is None:
            return None
        if query.roles and found.role.casefold() not in query.roles:
            return None
        if query.tools and not query.tools.intersection(tool.casefold() for tool in found.tools):
            return None
        if query.models and not any(model in model_of(entry).casefold() for model in query.models):
            return None
        counts = self._counts(found.text.casefold())
        if counts is None:
            return None
        age_days = max(0, self._newest - (moment or 0)) / 86_400e9
        relevance = sum(math.log1p(count) for count in counts) + 1 / (1 + len(found.text) / 1000)
        score = relevance * (0.5 + 0.5 * 0.5 ** (age_days / _HALF_LIFE_DAYS))
        return Hit(
            info,
            entry.id,
            entry.kind,
            entry.timestamp,
            snippet(found.text, [self._pattern(term) for term in query.terms[:_MANY]]),
            round(score, 6),
        )


def is_spelled_oddly(data: bytes) -> bool:
    """Whether lines, as they are in the file, may hold letters, digits or `_` in another way than by themselves."""
    escapes = data.count(b"\\u")
    if escapes and escapes != data.count(b"\\u003c") + data.count(b"\\u003e") + data.count(b"\\u0026"):
        return True
    return not data.isascii() and any(start[0] in data and start in data for start in FOLDED_TO_ASCII)  # one byte is found faster


def is_plain(text: str) -> bool:
    """Whether a text that holds this one holds it in the file too, but for the case of ASCII letters and for odd spellings: its characters
    have one spelling in JSON, and no other character is casefolded to them.
    """
    return bool(text) and all(
        unicodedata.category(char) == "Lo" if ord(char) > 0x7E else char >= " " and char not in '"\\<>&' for char in text
    )


FOLDED_TO_ASCII = (b"\xc3\x9f", b"\xc5\x89", b"\xc5\xbf", b"\xc4\xb0", b"\xc7\xb0", b"\xe1\xba", b"\xe2\x84\xaa", b"\xef\xac")
"""What the characters whose casefolding holds an ASCII letter begin with in UTF-8: ß ŉ ſ İ ǰ ẖ ẗ ẘ ẙ ẚ ẞ K ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ."""


def snippet(text: str, patterns: list[re.Pattern[str]]) -> str:
    """The text around the first word found, on one line, every word found between « and »."""
    folded = text.casefold()
    found = (match.start() for pattern in patterns if (match := pattern.search(folded)))
    first = _unfolded(text, folded, min(found, default=0))
    start = max(0, first - SNIPPET // 3)
    shown = text[start : start + SNIPPET]
    ends = _ends(text, folded, start, shown)
    out, at = ["…" if start else ""], 0
    for left, right in sorted(_spans(folded, patterns, ends[0], ends[-1])):
        first_shown, last_shown = bisect.bisect_right(ends, left) - 1, min(bisect.bisect_left(ends, right), len(shown))
        if first_shown >= at:
            out += [shown[at:first_shown], "«", shown[first_shown:last_shown], "»"]
            at = last_shown
    out += [shown[at:], "…" if start + SNIPPET < len(text) else ""]
    return re.sub(r"\s+", " ", "".join(out)).strip()


def _ends(text: str, folded: str, start: int, shown: str) -> Sequence[int]:
    """Where in the folded text the characters that are shown begin, and where the last one ends."""
    if len(folded) == len(text):
        return range(start, start + len(shown) + 1)
    return list(accumulate((len(char.casefold()) for char in shown), initial=len(text[:start].casefold())))


def _spans(folded: str, patterns: list[re.Pattern[str]], start: int, end: int) -> set[tuple[int, int]]:
    """What is found from `start` on and begins before `end`: it may go on behind it."""
    found: set[tuple[int, int]] = set()
    for pattern in patterns:
        for match in pattern.finditer(folded, start):
            if match.start() >= end:
                break
            found.add(match.span())
    return found


def _unfolded(text: str, folded: str, at: int) -> int:
    """Where the character stands in a text of which casefolding made the one at `at`: it makes two or three of some (ß)."""
    if len(folded) == len(text):
        return at
    return bisect.bisect_right(range(len(text)), at, key=lambda stop: len(text[:stop].casefold())) - 1
