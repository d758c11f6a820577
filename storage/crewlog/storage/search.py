"""Full text over session logs."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import NotAnEntry, read_entry
from crewlog.storage.errors import StorageFailed
from crewlog.storage.log import AppendLog, Line
from crewlog.storage.messages import message_shape
from crewlog.storage.query import Query, parse_query, term_pattern
from crewlog.storage.records import Entry, EntryKind, SessionInfo
from crewlog.storage.snapshot import read_compaction

SNIPPET = 120
"""Characters of text that a snippet shows around the first word found."""
_HALF_LIFE_DAYS = 30


class Hit(msgspec.Struct):
    """An entry in which all was found. `snippet` marks what was found with « and »; `score`: higher is better."""

    session: SessionInfo
    entry_id: str
    kind: str
    timestamp: str
    snippet: str
    score: float


class _Block(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""
    thinking: str | None = ""
    tool_call: msgspec.Raw = msgspec.Raw(b"null")


class _Message(msgspec.Struct):
    role: str | None = ""
    content: list[_Block | None] | None = None
    metadata: dict[str, msgspec.Raw] | None = None


class _Call(msgspec.Struct):
    name: str | None = ""
    args: msgspec.Raw = msgspec.Raw(b"null")


_message_decoder = msgspec.json.Decoder(_Message)
_call_decoder = msgspec.json.Decoder(_Call)


class SearchText(msgspec.Struct):
    """What can be searched of an entry."""

    role: str
    tools: list[str]
    text: str


def search(sessions: Iterable[SessionInfo], query: str, limit: int = 50, *, keep_going: Callable[[], bool] = lambda: True) -> list[Hit]:
    """The best hits, best first. Entries that cannot be read are passed over, and so are sessions that went away meanwhile.

    `keep_going` is asked now and then; when it says False the search ends with what it has.
    """
    wanted = parse_query(query)
    if wanted.empty:
        return []
    patterns = [term_pattern(term) for term in wanted.terms]
    newest = times.parse_ns(times.now()) or 0
    best: list[tuple[float, int, Hit]] = []
    for number, (info, entry) in enumerate(_entries(sessions, keep_going)):
        hit = _match(info, entry, wanted, patterns, newest)
        if hit is None:
            continue
        item = (hit.score, -number, hit)
        if len(best) < limit:
            heapq.heappush(best, item)
        elif item > best[0]:
            heapq.heapreplace(best, item)
    return [hit for _, _, hit in sorted(best, key=lambda item: (-item[0], -item[1]))]


def _entries(sessions: Iterable[SessionInfo], keep_going: Callable[[], bool]) -> Iterator[tuple[SessionInfo, Entry]]:
    for info in sessions:
        if not keep_going():
            return
        lines: list[bytes] = []

        def keep(line: Line, kept: list[bytes] = lines) -> None:
            kept.append(line.content)

        try:
            AppendLog(info.path).read_added(keep, lambda line: False)
        except StorageFailed:
            continue  # it went away since it was listed
        for line in lines:
            try:
                yield info, read_entry(line)
            except NotAnEntry:
                continue  # doctor names it


def _match(info: SessionInfo, entry: Entry, query: Query, patterns: list[re.Pattern[str]], newest: int) -> Hit | None:
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
    if query.models and not any(model in _model_of(entry).casefold() for model in query.models):
        return None
    folded = found.text.casefold()
    counts = [len(pattern.findall(folded)) for pattern in patterns]
    if not all(counts):
        return None
    age_days = max(0, newest - (moment or 0)) / 86_400e9
    relevance = sum(math.log1p(count) for count in counts) + 1 / (1 + len(found.text) / 1000)
    score = relevance * (0.5 + 0.5 * 0.5 ** (age_days / _HALF_LIFE_DAYS))
    return Hit(info, entry.id, entry.kind, entry.timestamp, snippet(found.text, patterns), round(score, 6))


def search_text(entry: Entry) -> SearchText | None:
    """None for kinds in which nothing is said."""
    data = bytes(entry.data)
    if entry.kind == EntryKind.MESSAGE:
        return _message_text(data)
    if entry.kind == EntryKind.COMPACTION:
        compaction = read_compaction(data)
        return None if compaction is None else SearchText("", [], compaction.summary)
    if entry.kind in _TOLD_AS_JSON:
        return SearchText("", [], rawjson.decode_utf8(data))
    return None


_TOLD_AS_JSON = frozenset({EntryKind.SESSION_INFO, EntryKind.PLAN_STATE, EntryKind.GOAL_STATE, EntryKind.LLM_CALL, EntryKind.MODEL_CHANGE})


def _message_text(data: bytes) -> SearchText | None:
    try:
        message = rawjson.decode_lenient(data, _message_decoder, _Message)
    except msgspec.MsgspecError:
        return None if message_shape(data) is None else SearchText("", [], rawjson.decode_utf8(data))
    texts: list[str] = []
    tools: list[str] = []
    for block in message.content or []:
        if block is None:
            continue
        texts.extend(text for text in (block.text, block.thinking) if text)
        if bytes(block.tool_call) != b"null":
            name, told = _call_text(bytes(block.tool_call))
            tools.append(name)
            texts.append(told)
    return SearchText(message.role or "", tools, "\n".join(texts))


def _call_text(raw: bytes) -> tuple[str, str]:
    try:
        call = rawjson.decode_lenient(raw, _call_decoder, _Call)
    except msgspec.MsgspecError:
        return "", rawjson.decode_utf8(raw)
    arguments = rawjson.decode_utf8(bytes(call.args))
    return call.name or "", f"{call.name or ''} {arguments}"


class _Model(msgspec.Struct):
    model: str | None = ""
    usage: msgspec.Raw = msgspec.Raw(b"null")


_model_decoder = msgspec.json.Decoder(_Model)


def _model_of(entry: Entry) -> str:
    try:
        found = _model_decoder.decode(entry.data)
        if found.model:
            return found.model
        return _model_decoder.decode(found.usage).model or "" if bytes(found.usage) != b"null" else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def snippet(text: str, patterns: list[re.Pattern[str]]) -> str:
    """The text around the first word found, on one line, every word found between « and »."""
    folded = text.casefold()
    if len(folded) != len(text):  # casefold changed the length (ß): offsets are only good in the folded text
        text = folded
    first = min((match.start() for pattern in patterns if (match := pattern.search(folded))), default=0)
    start = max(0, first - SNIPPET // 3)
    end = min(len(text), start + SNIPPET)
    spans = sorted({match.span() for pattern in patterns for match in pattern.finditer(folded, start, end)})
    out, at = ["…" if start else ""], start
    for left, right in spans:
        if left >= at:
            out += [text[at:left], "«", text[left:right], "»"]
            at = right
    out += [text[at:end], "…" if end < len(text) else ""]
    return re.sub(r"\s+", " ", "".join(out)).strip()
