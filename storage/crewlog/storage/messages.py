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

_NULL_MESSAGE = b'{"role":"","content":null,"timestamp":"0001-01-01T00:00:00Z"}'
_ABSENT = msgspec.Raw(b"null")


class _ToolCall(msgspec.Struct, gc=False):
    id: str | None = ""
    name: str | None = ""
    args_invalid: bool | None = False
    args_raw_text: msgspec.Raw = _ABSENT
    args_parse_error: msgspec.Raw = _ABSENT
    thought_signature: msgspec.Raw = _ABSENT


class _Image(msgspec.Struct, gc=False):
    data: msgspec.Raw = _ABSENT
    url: msgspec.Raw = _ABSENT
    mime_type: msgspec.Raw = _ABSENT


class _Block(msgspec.Struct, gc=False):
    type: str | None = ""
    text: msgspec.Raw = _ABSENT
    thinking: msgspec.Raw = _ABSENT
    tool_call: _ToolCall | None = None
    image: _Image | None = None
    tool_name: str | None = ""


class _Cost(msgspec.Struct, gc=False):
    input: int | float | None = 0
    output: int | float | None = 0
    cache_read: int | float | None = 0
    cache_write: int | float | None = 0
    total: int | float | None = 0


class _Usage(msgspec.Struct, gc=False):
    provider: str | None = ""
    model: str | None = ""
    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    total_tokens: int | None = 0
    cost: _Cost | None = None


class _Metadata(msgspec.Struct, gc=False):
    tool_call_id: msgspec.Raw = _ABSENT


class _Message(msgspec.Struct, gc=False):
    """As strict as Go's `agentcore.Message`: what it would refuse is no message here either. Long texts are told to be texts by their
    first byte, and not decoded.
    """

    role: str | None = ""
    content: list[_Block | None] | None = None
    stop_reason: str | None = ""
    usage: _Usage | None = None
    metadata: _Metadata | None = None
    timestamp: str | None = None


class MessageShape(msgspec.Struct, frozen=True, gc=False):
    """What the repair looks at.

    `calls`: ids of the tool calls in the message; `answers`: the call that a tool message answers, if it says which; `thinks`: whether
    there may be thinking in it.
    """

    role: str
    calls: tuple[str, ...]
    answers: str | None
    thinks: bool = False


class NotAMessage(ValueError):
    """JSON that Go would not read as a message. `path` leads to what is wrong (`.content[0].text`, "" for the whole)."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}" if path else reason)


_message_decoder = msgspec.json.Decoder(_Message)
_NO_CALLS: tuple[str, ...] = ()


def message_shape(raw: bytes | msgspec.Raw) -> MessageShape | None:
    """None where Go would not read the message (a wrong type somewhere), so that it is no part of a snapshot."""
    try:
        return read_shape(raw)
    except (NotAMessage, rawjson.Invalid):
        return None


def read_shape(raw: bytes | msgspec.Raw) -> MessageShape:
    """Raises `NotAMessage` where Go would not read the message, `rawjson.Invalid` where it is no JSON."""
    try:
        message = _message_decoder.decode(raw)
    except msgspec.ValidationError as error:
        rawjson.validate(bytes(raw))
        raise _told(error, "") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_slowly(bytes(raw))
    if message.timestamp is not None and not times.is_time(message.timestamp):
        raise NotAMessage(".timestamp", _NO_TIME)
    calls, thinks = _look_at(message.content) if message.content else (_NO_CALLS, False)
    return MessageShape(message.role or "", calls, _answers(message), thinks)


_NO_TIME = "an RFC 3339 time was expected, such as 2026-03-01T09:30:00Z"


def _look_at(content: list[_Block | None]) -> tuple[tuple[str, ...], bool]:
    """The calls, and whether there is thinking."""
    calls: tuple[str, ...] = _NO_CALLS
    thinks = False
    for block in content:
        if block is None:
            continue
        if block.text is not _ABSENT and not _is_text(block.text):
            raise NotAMessage(f"{_path_of(content, block)}.text", "a string was expected")
        if block.thinking is not _ABSENT:
            if not _is_text(block.thinking):
                raise NotAMessage(f"{_path_of(content, block)}.thinking", "a string was expected")
            thinks = True
        call = block.tool_call
        if call is not None:
            if not (call.args_raw_text is call.args_parse_error is call.thought_signature is _ABSENT):
                _check_call(call, f"{_path_of(content, block)}.tool_call")
            calls = (*calls, call.id or "")
        if block.image is not None:
            _check_image(block.image, f"{_path_of(content, block)}.image")
    return calls, thinks


def _path_of(content: list[_Block | None], block: _Block) -> str:
    return f".content[{next(index for index, other in enumerate(content) if other is block)}]"


def _check_call(call: _ToolCall, path: str) -> None:
    for name in ("args_raw_text", "args_parse_error", "thought_signature"):
        if not _is_text(getattr(call, name)):
            raise NotAMessage(f"{path}.{name}", "a string was expected")


def _check_image(image: _Image, path: str) -> None:
    for name in ("data", "url", "mime_type"):
        if not _is_text(getattr(image, name)):
            raise NotAMessage(f"{path}.{name}", "a string was expected")


def _is_text(raw: msgspec.Raw) -> bool:
    """Whether it is a string or null; it is JSON of some kind."""
    return memoryview(raw)[0] in _FIRST_BYTES


_FIRST_BYTES = b'"n'


def _answers(message: _Message) -> str | None:
    if message.role != "tool" or message.metadata is None:
        return None
    raw = message.metadata.tool_call_id
    return None if raw is _ABSENT else rawjson.decode_string(raw)


def _told(error: msgspec.ValidationError, path: str) -> NotAMessage:
    """msgspec names the place at the end of its sentence: "Expected `str`, got `int` - at `$.role`"."""
    reason, _, place = str(error).partition(" - at `$")
    return NotAMessage(path + place.rstrip("`"), reason)


_usage_decoder = msgspec.json.Decoder(_Usage | None)


def _read_slowly(raw: bytes) -> MessageShape:
    """For messages with escapes of lone surrogates, stray bytes, or deep nesting: they are cut up, and only the pieces are decoded."""
    parts = _members(raw, "")
    role = _text(parts, "role", "") or ""
    _text(parts, "stop_reason", "")
    try:
        _usage_decoder.decode(rawjson.to_utf8(parts.get("usage", b"null")))
    except msgspec.ValidationError as error:
        raise _told(error, ".usage") from None
    except msgspec.DecodeError:
        pass  # half of a surrogate pair in the name of a model
    timestamp = _text(parts, "timestamp", "")
    if timestamp is not None and not times.is_time(timestamp):
        raise NotAMessage(".timestamp", _NO_TIME)
    content = parts.get("content", b"null")
    if content[:1] not in (b"[", b"n"):
        raise NotAMessage(".content", "an array was expected")
    calls: list[str] = []
    for index, block in enumerate(rawjson.elements(content) if content[:1] == b"[" else []):
        if block != b"null":
            _read_block(_members(block, f".content[{index}]"), f".content[{index}]", calls)
    metadata = parts.get("metadata", b"null")
    answers = None
    if metadata != b"null":
        found = _members(metadata, ".metadata").get("tool_call_id", b"null")
        answers = rawjson.decode_string(found) if role == "tool" else None
    return MessageShape(role, tuple(calls), answers, thinks=True)


def _read_block(block: dict[str, bytes], path: str, calls: list[str]) -> None:
    for name in ("type", "text", "thinking", "tool_name"):
        _text(block, name, path)
    if block.get("image", b"null") != b"null":
        image = _members(block["image"], f"{path}.image")
        for name in ("data", "url", "mime_type"):
            _text(image, name, f"{path}.image")
    if block.get("tool_call", b"null") != b"null":
        call = _members(block["tool_call"], f"{path}.tool_call")
        for name in ("name", "args_raw_text", "args_parse_error", "thought_signature"):
            _text(call, name, f"{path}.tool_call")
        if call.get("args_invalid", b"null") not in (b"true", b"false", b"null"):
            raise NotAMessage(f"{path}.tool_call.args_invalid", "true or false was expected")
        calls.append(_text(call, "id", f"{path}.tool_call") or "")


def _members(raw: bytes, path: str) -> dict[str, bytes]:
    try:
        return rawjson.members(raw)
    except rawjson.Invalid:
        rawjson.validate(raw)
        raise NotAMessage(path, "an object was expected") from None


def _text(parts: dict[str, bytes], name: str, path: str) -> str | None:
    raw = parts.get(name, b"null")
    text = rawjson.decode_string(raw)
    if text is None and raw != b"null":
        raise NotAMessage(f"{path}.{name}", "a string was expected")
    return text


class MessageSequence:
    """Messages in order, repaired as they come: every call of an assistant has an answer, every answer a call.

    `result()` may be asked for again after more messages were added and costs no more than copying a list.
    """

    def __init__(self) -> None:
        self._begin()
        self._messages: list[msgspec.Raw] = []
        self._calls: set[str] = set()
        self.size = 0
        """Bytes of the messages that it holds."""

    def _begin(self) -> None:
        self._out: list[msgspec.Raw] = []
        self._dropped: set[str] = set()
        self._told_interrupted: set[str] = set()
        self._open_calls: tuple[str, ...] = ()
        self._open_answers: set[str] = set()
        self._open_at = 0

    def add(self, raw: msgspec.Raw, shape: MessageShape) -> None:
        self._messages.append(raw)
        self.size += len(memoryview(raw))
        if self._dropped and not self._dropped.isdisjoint(shape.calls):  # an answer came before its call: it belongs here after all
            self._rebuild()
        else:
            self._place(raw, shape)

    def result(self) -> list[msgspec.Raw]:
        missing = self._missing(self._open_calls, self._open_answers, self._told_interrupted.copy())
        if not missing:
            return self._out.copy()
        return [*self._out[: self._open_at], *missing, *self._out[self._open_at :]]

    def _rebuild(self) -> None:
        """Begins anew, with every call known beforehand."""
        shapes = [message_shape(raw) or _NO_SHAPE for raw in self._messages]
        for shape in shapes:
            self._calls.update(shape.calls)
        self._begin()
        for raw, shape in zip(self._messages, shapes):
            self._place(raw, shape)

    def _place(self, raw: msgspec.Raw, shape: MessageShape) -> None:
        if shape.role == "tool":
            self._calls.update(shape.calls)
            answers = shape.answers
            if answers is not None:
                if answers not in self._calls:
                    self._dropped.add(answers)
                    return
                self._open_answers.add(answers)
            self._out.append(raw)
            return
        if self._open_calls:
            self._settle()
        self._out.append(raw)
        if shape.calls:
            self._calls.update(shape.calls)
            if shape.role == "assistant":
                self._open_calls = shape.calls
                self._open_answers = set()
                self._open_at = len(self._out)

    def _settle(self) -> None:
        missing = self._missing(self._open_calls, self._open_answers, self._told_interrupted)
        self._out[self._open_at : self._open_at] = missing
        self._open_calls = _NO_CALLS

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
    try:
        shape = read_shape(raw)
    except (NotAMessage, rawjson.Invalid):
        if bytes(raw).strip() == b"null":
            sequence.add(msgspec.Raw(_NULL_MESSAGE), _NO_SHAPE)
    else:
        sequence.add(raw if isinstance(raw, msgspec.Raw) else msgspec.Raw(raw), shape)


_NO_SHAPE = MessageShape("", _NO_CALLS, None)


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
