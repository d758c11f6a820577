"""What sessions cost: tokens, cache, latency, money, from the `llm_call` entries and the `usage` of messages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import NotAnEntry, read_entry
from crewlog.storage.errors import StorageFailed
from crewlog.storage.log import AppendLog, Line
from crewlog.storage.records import Entry, EntryKind, LLMCallEntry, SessionInfo


class Usage(msgspec.Struct):
    """Sums over calls. `latencies` are milliseconds, `cost` is in the currency of the messages."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    cost: float = 0.0
    latencies: list[int] = []

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
        if share == 0.5:
            return float(statistics.median(self.latencies))
        return float(sorted(self.latencies)[max(0, math.ceil(share * len(self.latencies)) - 1)])


class CacheBreak(msgspec.Struct):
    session_id: str
    entry_id: str
    timestamp: str
    dropped_tokens: int
    reasons: list[str]
    note: str


class Stats(msgspec.Struct):
    total: Usage
    by_model: dict[str, Usage]
    by_day: dict[str, Usage]
    by_session: dict[str, Usage]
    cache_breaks: list[CacheBreak]
    sessions: int


class _Cost(msgspec.Struct):
    total: int | float | None = 0


class _MessageUsage(msgspec.Struct):
    model: str | None = ""
    cost: _Cost | None = None


class _Message(msgspec.Struct):
    usage: _MessageUsage | None = None


_call_decoder = msgspec.json.Decoder(LLMCallEntry)
_message_decoder = msgspec.json.Decoder(_Message)
_REASONS = (
    ("frozen_system_changed", "frozenSystem"),
    ("dynamic_system_changed", "dynamicSystem"),
    ("system_changed", "system"),
    ("tools_changed", "tools"),
)


def gather_stats(sessions: Iterable[SessionInfo], *, since: int | None = None, keep_going: Callable[[], bool] = lambda: True) -> Stats:
    """Sums over whole logs, branches that were left included: they were paid for. `since`: nanoseconds since 1970."""
    stats = Stats(Usage(), {}, {}, {}, [], 0)
    for info in sessions:
        if not keep_going():
            break
        stats.sessions += 1
        try:
            AppendLog(info.path).read_added(lambda line, info=info: _count(stats, info, line, since), lambda line: False)  # type: ignore[misc]
        except StorageFailed:
            continue  # it went away since it was listed
    return stats


def _count(stats: Stats, info: SessionInfo, line: Line, since: int | None) -> None:
    if b'"llm_call"' not in line.content and b'"cost"' not in line.content:
        return
    try:
        entry = read_entry(line.content)
    except NotAnEntry:
        return
    if since is not None and (times.parse_ns(entry.timestamp) or 0) < since:
        return
    if entry.kind == EntryKind.LLM_CALL:
        _count_call(stats, info, entry)
    elif entry.kind == EntryKind.MESSAGE:
        _count_cost(stats, info, entry)


def _count_call(stats: Stats, info: SessionInfo, entry: Entry) -> None:
    try:
        call = rawjson.decode_lenient(bytes(entry.data), _call_decoder, LLMCallEntry)
    except msgspec.MsgspecError:
        return
    for usage in _places(stats, info, entry, call.model):
        usage.calls += 1
        usage.input_tokens += call.input_tokens
        usage.output_tokens += call.output_tokens
        usage.cache_read_tokens += call.cache_read_tokens
        usage.cache_creation_tokens += call.cache_creation_tokens
        if call.latency_ms:
            usage.latencies.append(call.latency_ms)
    if call.cache_break is not None:
        reasons = [told for field, told in _REASONS if getattr(call.cache_break, field)]
        dropped = call.cache_break.drop_absolute
        stats.cache_breaks.append(CacheBreak(info.id, entry.id, entry.timestamp, dropped, reasons, call.cache_break.note))


def _count_cost(stats: Stats, info: SessionInfo, entry: Entry) -> None:
    try:
        usage = rawjson.decode_lenient(bytes(entry.data), _message_decoder, _Message).usage
    except msgspec.MsgspecError:
        return
    if usage is None or usage.cost is None or not usage.cost.total:
        return
    for place in _places(stats, info, entry, usage.model or ""):
        place.cost += usage.cost.total


def _places(stats: Stats, info: SessionInfo, entry: Entry, model: str) -> list[Usage]:
    return [
        stats.total,
        stats.by_model.setdefault(model, Usage()),
        stats.by_day.setdefault(entry.timestamp[:10], Usage()),
        stats.by_session.setdefault(info.id, Usage()),
    ]
