"""What a session is at one entry: the chain of entries reduced to state and messages (formats.md, "Snapshot").

Pure: entries go in, a `ContextSnapshot` comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.messages import MessageSequence, add_message
from crewlog.storage.records import (
    Compaction,
    ContextSnapshot,
    Entry,
    EntryKind,
    GoalStateEntry,
    ModelChange,
    PlanStateEntry,
)

THINKING_CHANGE = "thinking_change"
"""The former name of `reasoning_effort_change` in older logs."""

_Read = TypeVar("_Read")


class Reduction:
    """The state that a chain of entries leads to, entry by entry. `feed` each entry from the header on, then ask for the snapshot.

    Messages before the last compaction need not be fed. A compaction that cannot be read brings nothing itself, but ends what was
    said before it all the same, as in Go; what the compaction before it kept then stays.
    """

    def __init__(self) -> None:
        self.model = ModelChange()
        self.reasoning_effort = ""
        self.plan = PlanStateEntry()
        self.goal = msgspec.Raw(_goal_off())
        self.name = ""
        self.messages = MessageSequence()
        self._compaction: tuple[Compaction, str] | None = None

    @property
    def size(self) -> int:
        """Bytes of the messages that it holds."""
        return self.messages.size

    def feed(self, entry: Entry) -> None:
        handler = _HANDLERS.get(entry.kind)
        if handler is not None and (len(memoryview(entry.data)) or entry.kind == EntryKind.COMPACTION):
            handler(self, entry)

    def feed_message(self, data: msgspec.Raw) -> None:
        """The same for the data of a message, where nothing else of the entry is known."""
        add_message(self.messages, data)

    def snapshot(self, leaf_id: str) -> ContextSnapshot:
        messages = self.messages.result()
        if self._compaction is not None and self._compaction[0].summary:
            messages.insert(0, _summary_message(self._compaction[0].summary, self._compaction[1]))
        return ContextSnapshot(
            messages,
            leaf_id,
            self.model.provider,
            self.model.model,
            self.reasoning_effort,
            self.plan.slug,
            self.plan.phase,
            self.plan.pre_mode,
            self.goal,
            self.name,
        )

    def _message(self, entry: Entry) -> None:
        add_message(self.messages, entry.data)

    def _compact(self, entry: Entry) -> None:
        found = read_compaction(entry.data)
        if found is not None:
            self._compaction = found, entry.timestamp
        self.messages = MessageSequence()
        for raw in self._compaction[0].messages if self._compaction is not None else []:
            add_message(self.messages, raw)

    def _model(self, entry: Entry) -> None:
        found = _read(entry.data, _model_decoder, _ModelChange)
        if found is not None:
            self.model = ModelChange(found.provider or "", found.model or "")

    def _reasoning_effort(self, entry: Entry) -> None:
        found = _read(entry.data, _effort_decoder, _EffortChange)
        if found is not None:
            self.reasoning_effort = found.level or ""

    def _plan_state(self, entry: Entry) -> None:
        found = _read(entry.data, _plan_decoder, _PlanState)
        if found is not None:
            self.plan = PlanStateEntry(found.phase or "", found.slug or "", found.pre_mode or "")

    def _goal_state(self, entry: Entry) -> None:
        found = _read_goal(entry.data)
        if found is not None:
            self.goal = found

    def _session_info(self, entry: Entry) -> None:
        name = session_name(entry.data)
        if name is not None:
            self.name = name


class _ModelChange(msgspec.Struct):
    provider: str | None = ""
    model: str | None = ""


class _EffortChange(msgspec.Struct):
    level: str | None = ""


class _PlanState(msgspec.Struct):
    phase: str | None = ""
    slug: str | None = ""
    pre_mode: str | None = ""


class _CompactionData(msgspec.Struct):
    summary: str | None = ""
    messages: list[msgspec.Raw] | None = None


_model_decoder = msgspec.json.Decoder(_ModelChange)
_effort_decoder = msgspec.json.Decoder(_EffortChange)
_plan_decoder = msgspec.json.Decoder(_PlanState)
_compaction_decoder = msgspec.json.Decoder(_CompactionData)
_goal_decoder = msgspec.json.Decoder(GoalStateEntry)
_info_decoder = msgspec.json.Decoder(dict[str, str | None])

_HANDLERS: dict[str, Callable[[Reduction, Entry], None]] = {
    EntryKind.MESSAGE.value: Reduction._message,
    EntryKind.COMPACTION.value: Reduction._compact,
    EntryKind.MODEL_CHANGE.value: Reduction._model,
    EntryKind.REASONING_EFFORT_CHANGE.value: Reduction._reasoning_effort,
    THINKING_CHANGE: Reduction._reasoning_effort,
    EntryKind.PLAN_STATE.value: Reduction._plan_state,
    EntryKind.GOAL_STATE.value: Reduction._goal_state,
    EntryKind.SESSION_INFO.value: Reduction._session_info,
}


def read_compaction(data: bytes | msgspec.Raw) -> Compaction | None:
    """None where the data is not a compaction's."""
    try:
        found = _compaction_decoder.decode(data)
    except msgspec.ValidationError:
        return Compaction() if bytes(data) == b"null" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_deep_compaction(bytes(data))
    return Compaction(found.summary or "", found.messages or [])


def _read_deep_compaction(data: bytes) -> Compaction | None:
    """For kept messages with lone surrogates or deep nesting, whose bytes must not be decoded on the way."""
    try:
        parts = rawjson.members(data)
        kept = parts.get("messages", b"null")
        messages = [] if kept == b"null" else [msgspec.Raw(raw) for raw in rawjson.elements(kept)]
    except rawjson.Invalid:
        return None
    summary = parts.get("summary", b'""')
    text = "" if summary == b"null" else rawjson.decode_string(summary)
    return None if text is None else Compaction(text, messages)


def session_name(data: bytes | msgspec.Raw) -> str | None:
    """The name that a session_info sets, None where it sets none or is not an object of strings."""
    try:
        found = _info_decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            found = rawjson.decode_lenient(bytes(data), _info_decoder, dict[str, str | None])
        except msgspec.MsgspecError:
            return None
    return (found["name"] or "") if "name" in found else None


def is_readable(kind: str, data: bytes) -> bool:
    """Whether an entry of this kind would change the state, or at least could; data of other kinds may be anything."""
    reader = _READERS.get(kind)
    return reader is None or reader(data) is not None


_READERS: dict[str, Callable[[bytes], object]] = {
    EntryKind.COMPACTION.value: lambda data: read_compaction(data),
    EntryKind.MODEL_CHANGE.value: lambda data: _read(data, _model_decoder, _ModelChange),
    EntryKind.REASONING_EFFORT_CHANGE.value: lambda data: _read(data, _effort_decoder, _EffortChange),
    THINKING_CHANGE: lambda data: _read(data, _effort_decoder, _EffortChange),
    EntryKind.PLAN_STATE.value: lambda data: _read(data, _plan_decoder, _PlanState),
    EntryKind.GOAL_STATE.value: lambda data: _read_goal(data),
    EntryKind.SESSION_INFO.value: lambda data: _read(data, _info_decoder, dict[str, str | None]),
}


def _read(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[_Read], type_: type[_Read]) -> _Read | None:
    """None where the data has another shape; a JSON null reads as the empty record, as in Go."""
    raw = bytes(data)
    if raw == b"null":
        return type_()
    try:
        return rawjson.decode_lenient(raw, decoder, type_)
    except msgspec.MsgspecError:
        return None


def _read_goal(data: bytes | msgspec.Raw) -> msgspec.Raw | None:
    raw = bytes(data)
    if raw == b"null":
        return msgspec.Raw(b'{"status":""}')
    try:
        parts = rawjson.members(raw)
    except rawjson.Invalid:
        return None
    parts = {name: value for name, value in parts.items() if value != b"null" or name not in GoalStateEntry.__struct_fields__}
    parts.setdefault("status", b'""')
    try:
        goal = rawjson.decode_lenient(rawjson.join_members(parts), _goal_decoder, GoalStateEntry)
    except msgspec.MsgspecError:
        return None
    for name in _GOAL_TIMES:
        if times.parse_ns(getattr(goal, name)) is None:
            return None
        parts.setdefault(name, b'"' + times.ZERO.encode() + b'"')
    return msgspec.Raw(rawjson.join_members(parts))


_GOAL_TIMES = ("created_at", "updated_at", "completed_at", "blocked_at", "budget_limited_at", "usage_limited_at")


def _goal_off() -> bytes:
    return msgspec.json.encode(GoalStateEntry("off"))


def _summary_message(summary: str, timestamp: str) -> msgspec.Raw:
    return msgspec.Raw(
        b'{"role":"user","content":[{"type":"text","text":%b}],"metadata":{"type":"context_summary"},"timestamp":%b}'
        % (rawjson.encode_string(summary), rawjson.encode_string(timestamp))
    )
