"""What sessions cost: tokens, cache, latency, money, from the `llm_call` entries and the `usage` of messages."""

from __future__ import annotations

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Set
from fractions import Fraction

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import HEADER_ID, NotAnEntry, read_entry
from crewlog.storage.errors import StorageFailed
from crewlog.storage.log import AppendLog, Line
from crewlog.storage.records import Entry, EntryKind, SessionInfo


class Usage(msgspec.Struct, array_like=True, gc=False):
    """Sums over calls. `latencies` are milliseconds, in no order; `costs`, in the currency of the messages, add up to the cost: exactly,
    so that it does not matter in which order they came.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    costs: list[float] = []
    latencies: list[int] = []

    @property
    def cost(self) -> float:
        return _sum(self.costs)

    @property
    def cache_hit_rate(self) -> float:
        """Of the tokens that went in, the share that came from the cache, 0 to 1."""
        went_in = self.input_tokens + self.cache_read_tokens + self.cache_creation_tokens
        return self.cache_read_tokens / went_in if went_in else 0.0

    def percentile(self, share: float) -> float:
        """The latency that `share` (0 to 1) of the calls do not exceed: nearest rank, and for 0.5 the median, which between two of
        them is their mean.
        """
        if not self.latencies:
            return 0.0
        self.latencies.sort()  # which costs little where it was done before
        if share == 0.5:
            middle = len(self.latencies) // 2
            return float(self.latencies[middle]) if len(self.latencies) % 2 else (self.latencies[middle - 1] + self.latencies[middle]) / 2
        return float(self.latencies[max(0, math.ceil(share * len(self.latencies)) - 1)])

    def add(self, other: Usage) -> None:
        """Adds what another sum holds."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cache_read_tokens += other.cache_read_tokens
        self.cache_creation_tokens += other.cache_creation_tokens
        self.costs += other.costs
        self.latencies += other.latencies


class CacheBreak(msgspec.Struct, array_like=True):
    """`session_id` is empty in what is told of one session alone."""

    session_id: str
    entry_id: str
    timestamp: str
    dropped_tokens: int
    reasons: list[str]
    note: str


class Stats(msgspec.Struct):
    """`total`, `by_model` and `by_day` count an entry once that several sessions hold, `by_session` in each of them."""

    total: Usage
    by_model: dict[str, Usage]
    by_day: dict[str, Usage]
    by_session: dict[str, Usage]
    cache_breaks: list[CacheBreak]
    sessions: int


_Number = int | float | None
"""Other programs write whole numbers as fractions, and null, which Go reads as "not set", for what they do not know."""


class _CacheBreakData(msgspec.Struct, gc=False):
    drop_absolute: _Number = 0
    system_changed: bool | None = False
    frozen_system_changed: bool | None = False
    dynamic_system_changed: bool | None = False
    tools_changed: bool | None = False
    note: str | None = ""


class _Call(msgspec.Struct, gc=False):
    """Of an `LLMCallEntry` what is counted: nothing else in it can keep a call from being counted."""

    model: str | None = ""
    input_tokens: _Number = 0
    output_tokens: _Number = 0
    cache_read_tokens: _Number = 0
    cache_creation_tokens: _Number = 0
    latency_ms: _Number = 0
    cache_break: _CacheBreakData | None = None


class _Cost(msgspec.Struct, gc=False):
    total: _Number = 0


class _MessageUsage(msgspec.Struct, gc=False):
    model: str | None = ""
    cost: _Cost | None = None


class _Message(msgspec.Struct, gc=False):
    usage: _MessageUsage | None = None


_call_decoder = msgspec.json.Decoder(_Call)
_message_decoder = msgspec.json.Decoder(_Message)
_REASONS = (
    ("frozen_system_changed", "frozenSystem"),
    ("dynamic_system_changed", "dynamicSystem"),
    ("system_changed", "system"),
    ("tools_changed", "tools"),
)


class Portion(msgspec.Struct, array_like=True, gc=False):
    """What was spent in one session on one model and day; `first` and `last`: when, in nanoseconds since 1970, 0 where it is unknown."""

    model: str
    day: str
    first: int
    last: int
    usage: Usage


class SessionUsage(msgspec.Struct, array_like=True, gc=False):
    """What one session took. `break_moments`: when each of `breaks` was, as in `Portion`. `roots`: which entries follow the header: a fork
    begins with one that the session it was made from holds too.
    """

    portions: list[Portion] = []
    breaks: list[CacheBreak] = []
    break_moments: list[int] = []
    roots: list[str] = []


class UsageCounter:
    """Counts what the entries of one session took, those since a moment (nanoseconds since 1970), or all. Goes on from `usage`.

    `elsewhere`: entries that were counted in other sessions, so that they are passed over; `counted`: those that were not.
    """

    def __init__(self, usage: SessionUsage | None = None, since: int | None = None, elsewhere: Set[str] = frozenset()) -> None:
        self.usage = usage or SessionUsage()
        self.counted: set[str] = set()
        self._since = since
        self._elsewhere = elsewhere
        self._portions = {(portion.model, portion.day): portion for portion in self.usage.portions}

    def see_line(self, line: bytes) -> None:
        if not may_count(line):
            return
        try:
            entry = read_entry(line)
        except NotAnEntry:
            return
        self.see(entry)

    def see(self, entry: Entry) -> None:
        identity = f"{entry.id} {entry.timestamp}"
        if entry.parent_id == HEADER_ID:
            self.usage.roots.append(identity)
        if identity in self._elsewhere:
            return
        self.counted.add(identity)
        if entry.kind == EntryKind.LLM_CALL:
            self._see_call(entry)
        elif entry.kind == EntryKind.MESSAGE:
            self._see_message(entry)

    def compact(self) -> SessionUsage:
        """The same in less room: of costs, few that have the same sum."""
        for portion in self.usage.portions:
            portion.usage.costs = _fewer(portion.usage.costs)
            portion.usage.latencies.sort()
        return self.usage

    def _see_call(self, entry: Entry) -> None:
        try:
            call = rawjson.decode_lenient(bytes(entry.data), _call_decoder, _Call)
        except msgspec.MsgspecError:
            return
        moment = times.parse_ns(entry.timestamp) or 0
        usage = self._usage_at(entry, moment, call.model or "")
        if usage is None:
            return
        usage.calls += 1
        usage.input_tokens += _whole(call.input_tokens)
        usage.output_tokens += _whole(call.output_tokens)
        usage.cache_read_tokens += _whole(call.cache_read_tokens)
        usage.cache_creation_tokens += _whole(call.cache_creation_tokens)
        latency = _whole(call.latency_ms)
        if latency:
            usage.latencies.append(latency)
        if call.cache_break is not None:
            reasons = [told for field, told in _REASONS if getattr(call.cache_break, field)]
            dropped, note = _whole(call.cache_break.drop_absolute), call.cache_break.note or ""
            self.usage.breaks.append(CacheBreak("", entry.id, entry.timestamp, dropped, reasons, note))
            self.usage.break_moments.append(moment)

    def _see_message(self, entry: Entry) -> None:
        try:
            usage = rawjson.decode_lenient(bytes(entry.data), _message_decoder, _Message).usage
        except msgspec.MsgspecError:
            return
        if usage is None or usage.cost is None or not usage.cost.total:
            return
        found = self._usage_at(entry, times.parse_ns(entry.timestamp) or 0, usage.model or "")
        if found is not None:
            found.costs.append(_float(usage.cost.total))

    def _usage_at(self, entry: Entry, moment: int, model: str) -> Usage | None:
        """None where the entry is too old to count."""
        if self._since is not None and moment < self._since:
            return None
        day = entry.timestamp[:10]
        portion = self._portions.get((model, day))
        if portion is None:
            portion = self._portions[model, day] = Portion(model, day, moment, moment, Usage())
            self.usage.portions.append(portion)
        portion.first, portion.last = min(portion.first, moment), max(portion.last, moment)
        return portion.usage


def may_count(line: bytes) -> bool:
    """False for lines of which it is plain that they tell of no cost, and do not follow the header."""
    return b'"llm_call"' in line or b'"cost"' in line or b'"h0"' in line


UsageOf = Callable[[SessionInfo], "SessionUsage | None"]


def gather_stats(
    sessions: Iterable[SessionInfo],
    *,
    since: int | None = None,
    keep_going: Callable[[], bool] = lambda: True,
    usage_of: UsageOf = lambda info: None,
) -> Stats:
    """Sums over whole logs, branches that were left included: they were paid for. What several logs hold was paid for once: an entry of the
    same id and time counts in the oldest session. `since`: nanoseconds since 1970.

    `usage_of`: what is known of a session's usage, as its log is now, so that the log need not be read.
    """
    found: list[tuple[SessionInfo, SessionUsage]] = []
    for info in sessions:
        if not keep_going():
            break
        usage = _since(usage_of(info), since)
        if usage is None:
            usage = _read_usage(info.path, UsageCounter(since=since), keep_going)
        found.append((info, usage))
    firsts = _first_usage(_akin(found), since, keep_going)
    stats = Stats(Usage(), {}, {}, {}, [], len(found))
    for info, usage in found:
        _add(stats, info, usage, firsts.get(info.path, usage))
    for part in stats.by_model.values():
        stats.total.add(part)
    return stats


def _akin(found: list[tuple[SessionInfo, SessionUsage]]) -> list[SessionInfo]:
    """The sessions that may hold calls of each other: forks, and what they were made from."""
    spent = [(info, usage.roots) for info, usage in found if usage.portions]
    holders = Counter(root for _, roots in spent for root in set(roots))
    return [info for info, roots in spent if any(holders[root] > 1 for root in roots)]


def _first_usage(sessions: list[SessionInfo], since: int | None, keep_going: Callable[[], bool]) -> dict[str, SessionUsage]:
    """By path, what each session took that no older one took: a fork holds copies of entries that were paid for once.

    Only the logs can tell. Sums are all that the index knows.
    """
    usages: dict[str, SessionUsage] = {}
    elsewhere: set[str] = set()
    for info in sorted(sessions, key=lambda info: (times.parse_ns(info.created) or 0, info.path)):
        counter = UsageCounter(since=since, elsewhere=elsewhere)
        usages[info.path] = _read_usage(info.path, counter, keep_going)
        elsewhere |= counter.counted
    return usages


def _since(usage: SessionUsage | None, since: int | None) -> SessionUsage | None:
    """None where a part of what was summed up is too old."""
    if usage is None or since is None:
        return usage
    if any(portion.first < since <= portion.last for portion in usage.portions):
        return None
    return SessionUsage(
        [portion for portion in usage.portions if portion.first >= since],
        [item for item, moment in zip(usage.breaks, usage.break_moments) if moment >= since],
        roots=usage.roots,
    )


def _read_usage(path: str, counter: UsageCounter, keep_going: Callable[[], bool]) -> SessionUsage:
    """Of a log that went away since it was listed, what was read of it."""

    def see(line: Line) -> None:
        if not line.number % 1000 and not keep_going():
            raise _Enough
        counter.see_line(line.content)

    def see_tail(line: Line) -> bool:
        counter.see_line(line.content)  # a whole record that lacks its line end counts
        return False

    with contextlib.suppress(StorageFailed, _Enough):
        AppendLog(path).read_added(see, see_tail)
    return counter.usage


class _Enough(Exception):
    """Nobody waits for the rest."""


def _add(stats: Stats, info: SessionInfo, usage: SessionUsage, first: SessionUsage) -> None:
    """`first`: of the session's usage what no other session told of before."""
    for portion in usage.portions:
        stats.by_session.setdefault(info.id, Usage()).add(portion.usage)
    for portion in first.portions:
        stats.by_model.setdefault(portion.model, Usage()).add(portion.usage)
        stats.by_day.setdefault(portion.day, Usage()).add(portion.usage)
    for found in first.breaks:
        stats.cache_breaks.append(CacheBreak(info.id, found.entry_id, found.timestamp, found.dropped_tokens, found.reasons, found.note))


def _whole(value: _Number) -> int:
    """Within what Go's `int64` holds, so that there is a mean and a share of any such numbers."""
    return round(max(-_MOST, min(value or 0, _MOST)))


_MOST = 2**63 - 1


def _sum(values: list[float]) -> float:
    """Where it is beyond what a float can hold, the largest: JSON has no infinity."""
    try:
        return math.fsum(values)
    except OverflowError:  # if only on the way
        pass
    exact = sum(map(Fraction, values))
    return float(max(-_MOST_COST, min(exact, _MOST_COST)))


def _float(value: int | float) -> float:
    return float(max(-_MOST_COST, min(value, _MOST_COST)))


_MOST_COST = sys.float_info.max


def _fewer(values: list[float]) -> list[float]:
    """Few numbers with exactly the same sum: the rounded sum, and what rounding took from it, as often as it did.

    Where a sum is beyond what a float can hold, all of them.
    """
    rest, found = list(values), []
    try:
        while len(rest) > 1 and (whole := math.fsum(rest)):
            found.append(whole)
            rest.append(-whole)
            if len(found) > _MOST_PARTS:
                return values
    except OverflowError:
        return values
    return found if len(values) > 1 else values


_MOST_PARTS = 60
