"""What the index holds of one log, made in one pass over its lines: the summary, what it cost, and what stands where."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec

from crewlog.storage import stopping, times
from crewlog.storage.entries import Head, NotAnEntry, read_entry
from crewlog.storage.listing import SessionSummary, SummaryState
from crewlog.storage.log import Block, Line
from crewlog.storage.records import Entry, EntryKind
from crewlog.storage.search import is_spelled_oddly
from crewlog.storage.search_text import SEARCHED, model_of, search_text
from crewlog.storage.stats import SessionUsage, UsageCounter, may_count
from crewlog.storage.terms import mark, runs_of, words_of, words_of_json

PART = 32 << 10
"""Bytes of a log that are indexed together: fewer make a larger index, more make more to be read for each hit."""


EARLIEST, LATEST = -(2**63), 2**63 - 1
"""Stand for all that is before or after them."""


class Part(msgspec.Struct):
    """Lines of a log, from byte `start` to `stop`, and what they are found by. `first`, `last`: the earliest and the latest time in them,
    in nanoseconds since 1970; `first` is after `last` where there is none. `plain`: whether nothing in them is spelled oddly.
    """

    start: int
    stop: int
    first: int
    last: int
    words: str
    runs: str
    models: set[str]
    plain: bool


class PartMaker:
    """Cuts a log into parts, which it hands to `sink`."""

    def __init__(self, sink: Callable[[Part], None]) -> None:
        self._sink = sink
        self.begin(0)

    def begin(self, start: int) -> None:
        """Begins a new part; what was seen and not handed over is forgotten."""
        self._start = self._stop = start
        self._entries: list[Entry] = []
        self._marks: set[str] = set()
        self._models: set[str] = set()
        self._moments: set[str] = set()

    def pass_line(self, offset: int, line: bytes) -> None:
        """A line that holds no entry."""
        if self._stop == self._start:
            self._start = offset
        self._stop = offset + len(line) + 1
        if self._stop - self._start >= PART:
            self.finish()

    def see(self, entry: Entry, offset: int, line: bytes) -> None:
        """An entry, and the line that it is on."""
        if entry.kind in SEARCHED:
            self._entries.append(entry)
            self._moments.add(entry.timestamp)
            self._mark(entry)
            if b'"model"' in line or b"\\u" in line:
                model = model_of(entry).casefold()
                self._marks.add(mark("model", model))
                self._models.add(model)
        self.pass_line(offset, line)

    def finish(self) -> None:
        """Hands over what was seen."""
        if self._entries:
            words, runs, plain = _words_and_runs(self._entries)
            first, last = _span(self._moments)
            marks = " ".join(self._marks)
            self._sink(Part(self._start, self._stop, first, last, f"{words} {marks}", runs, self._models, plain))
        self.begin(self._stop)

    def _mark(self, entry: Entry) -> None:
        marks = self._marks
        marks.add(mark("kind", entry.kind.casefold()))
        if entry.kind != EntryKind.MESSAGE:
            return
        try:
            message = _who_decoder.decode(entry.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            found = search_text(entry)
            if found is not None:
                marks.add(mark("role", found.role.casefold()))
                marks.update(mark("tool", tool.casefold()) for tool in found.tools)
            return
        if message.role:
            marks.add(mark("role", message.role.casefold()))
        for block in message.content or ():
            if block is not None and block.tool_call is not None:
                marks.add(mark("tool", (block.tool_call.name or "").casefold()))


class _Call(msgspec.Struct, gc=False):
    name: str | None = ""


class _Block(msgspec.Struct, gc=False):
    tool_call: _Call | None = None


class _Who(msgspec.Struct, gc=False):
    """Who says a message and what it calls, without what is said."""

    role: str | None = ""
    content: list[_Block | None] | None = None


_who_decoder = msgspec.json.Decoder(_Who)


def _words_and_runs(entries: list[Entry]) -> tuple[str, str, bool]:
    """All that stands in the entries' texts, and maybe more, and whether it is spelled plainly: mostly it is, and the entries need not be
    decoded.
    """
    raw = b"\n".join(entry.data for entry in entries)
    if not is_spelled_oddly(raw):
        with contextlib.suppress(UnicodeDecodeError):
            return words_of_json(raw), runs_of(raw), True
    texts = [found.text for found in map(search_text, entries) if found is not None]
    folded = "\n".join(texts).casefold()
    return words_of(folded), runs_of(folded.encode("utf-8", "replace")), False


class SessionDigest(SessionSummary):
    """A summary that also counts usage, and hands the parts of the log to `sink` as they are read."""

    def __init__(
        self, path: str, sink: Callable[[Part], None], state: SummaryState | None = None, usage: SessionUsage | None = None
    ) -> None:
        self._parts = PartMaker(sink)
        self._counter = UsageCounter(usage)
        super().__init__(path, state)

    def refresh(self) -> None:
        """As of `SessionSummary`. Where `epoch` rises, the parts that were told of before do not hold any more."""
        super().refresh()
        self._parts.finish()

    def usage(self) -> SessionUsage:
        return self._counter.compact()

    def _clear(self) -> None:
        super()._clear()
        self._counter = UsageCounter()
        self._parts.begin(0)

    def _accept_block(self, block: Block) -> bool:
        return False  # it wants to know of each line

    def _accepted(self, line: Line, head: Head | None) -> None:
        if not line.number % 1000:
            stopping.check()
        content = line.content
        if head is not None:
            entry = Entry(head.kind, head.id, head.parent_id, head.timestamp.decode(), msgspec.Raw(content[head.data_at : -1]))
        else:
            try:
                entry = read_entry(content)
            except NotAnEntry:
                self._parts.pass_line(line.offset, content)
                return
        if may_count(content):
            self._counter.see(entry)
        self._parts.see(entry, line.offset, content)


def make_parts(data: bytes, offset: int) -> list[Part]:
    """The parts of lines that stand at `offset` in a log."""
    parts: list[Part] = []
    maker = PartMaker(parts.append)
    maker.begin(offset)
    for line in data.removesuffix(b"\n").split(b"\n"):
        try:
            maker.see(read_entry(line), offset, line)
        except NotAnEntry:
            maker.pass_line(offset, line)
        offset += len(line) + 1
    maker.finish()
    return parts


def _span(moments: set[str]) -> tuple[int, int]:
    """The earliest and the latest of RFC 3339 times. Those of one offset are compared as text, so that few need to be computed with."""
    earliest: dict[str, tuple[str, str]] = {}
    latest: dict[str, tuple[str, str]] = {}
    for text in moments:
        if not times.is_time(text):
            continue
        length = 1 if text.endswith("Z") else 6
        key = text[:-length].replace(",", "."), text
        offset = text[-length:]
        earliest[offset] = min(earliest.get(offset, key), key)
        latest[offset] = max(latest.get(offset, key), key)
    found = [times.parse_ns(text) or 0 for ends in (earliest, latest) for _, text in ends.values()]
    if not found:
        return 1, 0
    first, last = (min(max(moment, EARLIEST), LATEST) for moment in (min(found), max(found)))
    return first, last
