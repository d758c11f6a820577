"""Messages of a conversation: what a rule needs to know of one, and the repair of a sequence (formats.md, "Snapshot").

Messages stay the bytes they are; decoded is only what a rule looks at (role, tool call ids), in `MessageShape`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from crewlog.storage import rawjson, times

INTERRUPTED = (
    "Tool execution was interrupted by a previous process termination. Its outcome and side effects are unknown; "
    "inspect the workspace or external state before retrying."
)
MISSING = "Tool result missing (conversation was truncated or interrupted)."
"""codebot's text for a second call of an id that already got the text above."""

_Number = int | float
_NULL_MESSAGE = b'{"role":"","content":null,"timestamp":"0001-01-01T00:00:00Z"}'


class _ToolCall(msgspec.Struct):
    id: str | None = ""
    name: str | None = ""
    args_invalid: bool | None = False
    args_raw_text: str | None = ""
    args_parse_error: str | None = ""
    thought_signature: str | None = ""


class _Image(msgspec.Struct):
    data: str | None = ""
    url: str | None = ""
    mime_type: str | None = ""


class _Block(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""
    thinking: str | None = ""
    tool_call: _ToolCall | None = None
    image: _Image | None = None
    tool_name: str | None = ""


class _Cost(msgspec.Struct):
    input: _Number | None = 0
    output: _Number | None = 0
    cache_read: _Number | None = 0
    cache_write: _Number | None = 0
    total: _Number | None = 0


class _Usage(msgspec.Struct):
    provider: str | None = ""
    model: str | None = ""
    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    total_tokens: int | None = 0
    cost: _Cost | None = None


class _Message(msgspec.Struct):
    """As strict as Go's `agentcore.Message`: what it would refuse is no message here either."""

    role: str | None = ""
    content: list[_Block | None] | None = None
    stop_reason: str | None = ""
    usage: _Usage | None = None
    metadata: dict[str, msgspec.Raw] | None = None
    timestamp: str | None = None


class MessageShape(msgspec.Struct, frozen=True):
    """What the repair looks at.

    `calls`: ids of the tool calls in the message; `answers`: the call that a tool message answers, if it says which.
    """

    role: str
    calls: tuple[str, ...]
    answers: str | None


_message_decoder = msgspec.json.Decoder(_Message)
_NO_CALLS: tuple[str, ...] = ()


def message_shape(raw: bytes | msgspec.Raw) -> MessageShape | None:
    """None where Go would not read the message (a wrong type somewhere), so that it is no part of a snapshot."""
    try:
        message = _message_decoder.decode(raw)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            message = rawjson.decode_lenient(bytes(raw), _message_decoder, _Message)
        except msgspec.ValidationError:
            return _deep_shape(bytes(raw))
        except msgspec.DecodeError:
            return None
    if message.timestamp is not None and not times.is_time(message.timestamp):
        return None
    calls = _NO_CALLS
    if message.content:
        calls = tuple((block.tool_call.id or "") for block in message.content if block is not None and block.tool_call is not None)
    return MessageShape(message.role or "", calls, _answers(message))


def _answers(message: _Message) -> str | None:
    if message.role != "tool" or not message.metadata:
        return None
    raw = message.metadata.get("tool_call_id")
    return None if raw is None else rawjson.decode_string(raw)


def _deep_shape(raw: bytes) -> MessageShape | None:
    """For a message nested deeper than any decoder here goes: its parts are cut out, only the shallow ones are read."""
    try:
        parts = rawjson.members(raw)
    except rawjson.Invalid:
        return None
    role = rawjson.decode_string(parts.get("role", b'""'))
    if role is None:
        return None
    calls: list[str] = []
    content = parts.get("content", b"null")
    for block in rawjson.elements(content) if content[:1] == b"[" else []:
        call = rawjson.members(block).get("tool_call", b"") if block[:1] == b"{" else b""
        if call[:1] == b"{":
            calls.append(rawjson.decode_string(rawjson.members(call).get("id", b'""')) or "")
    answers = None
    metadata = parts.get("metadata", b"null")
    if role == "tool" and metadata[:1] == b"{":
        answers = rawjson.decode_string(rawjson.members(metadata).get("tool_call_id", b"null"))
    return MessageShape(role, tuple(calls), answers)


class MessageSequence:
    """Messages in order, repaired as they come: every call of an assistant has an answer, every answer a call.

    `result()` may be asked for again after more messages were added and costs no more than copying a list.
    """

    def __init__(self) -> None:
        self._messages: list[tuple[bytes | msgspec.Raw, MessageShape]] = []
        self._out: list[msgspec.Raw] = []
        self._calls: set[str] = set()
        self._dropped: set[str] = set()
        self._told_interrupted: set[str] = set()
        self._open_calls: tuple[str, ...] = ()
        self._open_answers: set[str] = set()
        self._open_at = 0

    def add(self, raw: bytes | msgspec.Raw, shape: MessageShape) -> None:
        self._messages.append((raw, shape))
        late = self._dropped.intersection(shape.calls)
        if late:  # an answer that came before its call belongs to the sequence after all
            self._rebuild()
        else:
            self._place(raw, shape)

    def result(self) -> list[msgspec.Raw]:
        missing = self._missing(self._open_calls, self._open_answers, self._told_interrupted.copy())
        if not missing:
            return self._out.copy()
        return [*self._out[: self._open_at], *missing, *self._out[self._open_at :]]

    def _rebuild(self) -> None:
        messages = self._messages
        calls = self._calls.union(*(shape.calls for _, shape in messages))
        self.__init__()  # type: ignore[misc]  # begins anew, with every call known beforehand
        self._calls = calls
        self._messages = messages
        for raw, shape in messages:
            self._place(raw, shape)

    def _place(self, raw: bytes | msgspec.Raw, shape: MessageShape) -> None:
        self._calls.update(shape.calls)
        if shape.role == "tool":
            if shape.answers is not None and shape.answers not in self._calls:
                self._dropped.add(shape.answers)
                return
            if shape.answers is not None:
                self._open_answers.add(shape.answers)
            self._out.append(_as_raw(raw))
            return
        self._settle()
        self._out.append(_as_raw(raw))
        if shape.role == "assistant" and shape.calls:
            self._open_calls = shape.calls
            self._open_at = len(self._out)

    def _settle(self) -> None:
        missing = self._missing(self._open_calls, self._open_answers, self._told_interrupted)
        self._out[self._open_at : self._open_at] = missing
        self._open_calls = _NO_CALLS
        self._open_answers = set()
        self._open_at = len(self._out)

    @staticmethod
    def _missing(calls: Iterable[str], answers: set[str], told: set[str]) -> list[msgspec.Raw]:
        made: list[msgspec.Raw] = []
        for call in calls:
            if call not in answers:
                made.append(_interrupted(call) if call not in told else _result_missing(call))
                told.add(call)
        return made


def repair(messages: Iterable[bytes | msgspec.Raw]) -> list[msgspec.Raw]:
    """The messages as a model may be given them; what is no message is left out."""
    sequence = MessageSequence()
    for raw in messages:
        add_message(sequence, raw)
    return sequence.result()


def add_message(sequence: MessageSequence, raw: bytes | msgspec.Raw) -> None:
    """Adds a message if it is one; a JSON null counts as an empty message, as in Go."""
    shape = message_shape(raw)
    if shape is not None:
        sequence.add(raw, shape)
    elif bytes(raw).strip() == b"null":
        sequence.add(_NULL_MESSAGE, MessageShape("", _NO_CALLS, None))


def _interrupted(call: str) -> msgspec.Raw:
    return _tool_result(call, INTERRUPTED, b',"interrupted":true,"result_unknown":true')


def _result_missing(call: str) -> msgspec.Raw:
    return _tool_result(call, MISSING, b"")


def _tool_result(call: str, text: str, more: bytes) -> msgspec.Raw:
    told = rawjson.encode_string(msgspec.json.encode(text).decode())
    return msgspec.Raw(
        b'{"role":"tool","content":[{"type":"text","text":%b}],"metadata":{"tool_call_id":%b,"is_error":true%b},"timestamp":"%b"}'
        % (told, rawjson.encode_string(call), more, times.now().encode())
    )


def _as_raw(raw: bytes | msgspec.Raw) -> msgspec.Raw:
    return raw if isinstance(raw, msgspec.Raw) else msgspec.Raw(raw)
