"""JSON that is checked and cut into pieces, but not decoded.

Payloads pass through Crewlog as the bytes their writer chose. msgspec checks and skips them at some 3 GB/s, but refuses two
things that RFC 8259 allows and that the Go encoder writes: escapes of lone surrogates, and nesting beyond a thousand levels.
For those lines the scanner below is the second way: slower, iterative, and as lenient as Go's `encoding/json` (bytes that are not
UTF-8 are let through inside strings, nesting may reach 10,000 levels).
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TypeVar

import msgspec

MAX_DEPTH = 10_000
"""The nesting at which Go's decoder gives up (encoding/json, `maxNestingDepth`)."""

_T = TypeVar("_T")
_LINE_BREAKS_TO_SPACES = bytes.maketrans(b"\r\n", b"  ")
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(
    rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
    rb"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9.eE+-])"
    rb"|true|false|null"
)
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_text_decoder = msgspec.json.Decoder(str)
_raw_decoder = msgspec.json.Decoder(msgspec.Raw)
_members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class Invalid(ValueError):
    """Not JSON. `offset` counts bytes from the start of what was given."""

    def __init__(self, reason: str, offset: int) -> None:
        self.reason = reason
        self.offset = offset
        super().__init__(f"invalid JSON at byte {offset}: {reason}")


def one_line(raw: bytes | msgspec.Raw) -> bytes:
    """The same JSON without line breaks. A raw line break can only stand between tokens, never inside a JSON string."""
    data = bytes(raw)
    return data.translate(_LINE_BREAKS_TO_SPACES) if b"\n" in data or b"\r" in data else data


def compact(raw: bytes) -> bytes:
    """The same JSON without blanks between its tokens. Raises `Invalid`."""
    try:
        return msgspec.json.format(raw, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        validate(raw)
        return one_line(raw)


def indent(raw: bytes) -> bytes:
    """Valid JSON laid out as Go's `json.Indent` does with two spaces: a line for each member and element, `{}` and `[]` on one."""
    try:
        return msgspec.json.format(raw, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return _indent_slowly(raw)


def _indent_slowly(raw: bytes) -> bytes:
    out: list[bytes] = []
    depth, opened = 0, False
    for token in _TOKEN.findall(raw):
        if token in b"}]":
            depth -= 1
            if not opened:
                out.append(_new_line(depth))
        elif opened:
            out.append(_new_line(depth))
        opened = token in b"{["
        out.append(b": " if token == b":" else token)
        if opened:
            depth += 1
        elif token == b",":
            out.append(_new_line(depth))
    return b"".join(out)


def _new_line(depth: int) -> bytes:
    return b"\n" + b"  " * depth


def validate(raw: bytes) -> None:
    """Raises `Invalid` unless `raw` is one JSON value, blanks around it allowed."""
    try:
        _raw_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        _scan_value(raw, _SPACE.match(raw, 0).end())  # type: ignore[union-attr]  # the pattern matches the empty string


def is_valid(raw: bytes) -> bool:
    try:
        validate(raw)
    except Invalid:
        return False
    return True


def members(raw: bytes | msgspec.Raw) -> dict[str, bytes]:
    """The members of a JSON object in their order, values as raw bytes; of equal keys the last one counts, as in Go.

    Raises `Invalid` when `raw` is not a JSON object. Keys may hold lone surrogates.
    """
    data = bytes(raw)
    try:
        return {key: bytes(value) for key, value in _members_decoder.decode(data).items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return dict(_scan_members(data))


def elements(raw: bytes | msgspec.Raw) -> list[bytes]:
    """The elements of a JSON array as raw bytes. Raises `Invalid` when `raw` is not a JSON array."""
    data = bytes(raw)
    try:
        return [bytes(value) for value in _elements_decoder.decode(data)]
    except (msgspec.DecodeError, RecursionError):
        return _scan_elements(data)


def join_members(pairs: dict[str, bytes]) -> bytes:
    """The reverse of `members`, without blanks."""
    return b"{" + b",".join(encode_string(key) + b":" + value for key, value in pairs.items()) + b"}"


def join_elements(values: list[bytes]) -> bytes:
    return b"[" + b",".join(values) + b"]"


def encode_string(text: str) -> bytes:
    """A JSON string; lone surrogates become escapes, which UTF-8 could not carry."""
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode("ascii")


def decode_string(raw: bytes | msgspec.Raw) -> str | None:
    """The text of a JSON string, None when `raw` is of another type. Bytes that are not UTF-8 read as U+FFFD, as in Go."""
    try:
        return _text_decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    data = bytes(raw).strip(b" \t\r\n")
    if data[:1] != b'"':
        return None
    try:
        text = json.loads(decode_utf8(data))
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def decode_lenient(raw: bytes, decoder: msgspec.json.Decoder[_T], type_: type[_T]) -> _T:
    """`decoder.decode`, for valid JSON also where msgspec's reading is too strict (lone surrogates, bytes that are not UTF-8).

    Lone surrogates and stray bytes read as U+FFFD, as they do in Go. Raises `msgspec.ValidationError` for another shape and
    `msgspec.DecodeError` for what is no JSON.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.convert(_without_surrogates(_loads(raw)), type_)


def decode_exact(raw: bytes, decoder: msgspec.json.Decoder[_T], type_: type[_T]) -> _T:
    """As `decode_lenient`, but lone surrogates in texts stay what they are. In keys, which name no field then, they do not."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.convert(_with_plain_keys(_loads(raw)), type_)


def _loads(raw: bytes) -> object:
    try:
        return json.loads(decode_utf8(raw))
    except RecursionError:
        raise msgspec.ValidationError("nested too deeply") from None
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None


def to_utf8(raw: bytes) -> bytes:
    """The same bytes where they are UTF-8; else with each stray byte replaced by U+FFFD, as Go does on reading."""
    if raw.isascii():
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return decode_utf8(raw).encode("utf-8")
    return raw


def decode_utf8(raw: bytes) -> str:
    """The text with each stray byte read as U+FFFD: one a byte, as in Go, where Python's own "replace" may take two for one."""
    return raw.decode("utf-8", "crewlog-each-byte")


def _each_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("crewlog-each-byte", _each_byte)


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _plain(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _with_plain_keys(value: object) -> object:
    if isinstance(value, list):
        return [_with_plain_keys(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _with_plain_keys(item) for key, item in value.items()}
    return value


def _plain(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _skip_space(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
    return match.end() if match else at


def _scan_value(data: bytes, start: int, *, whole: bool = True) -> int:
    """The offset after the value that starts at `start`. With `whole`, nothing but blanks may follow it."""
    at = start
    closers: list[int] = []  # the closing brackets that are due
    expects_value = True
    while True:
        at = _skip_space(data, at)
        char = data[at : at + 1]
        if expects_value:
            if char in (b"{", b"["):
                if len(closers) >= MAX_DEPTH:
                    raise Invalid("nested more than 10,000 levels deep", at)
                closers.append(0x7D if char == b"{" else 0x5D)
                at = _skip_space(data, at + 1)
                if data[at : at + 1] == bytes((closers[-1],)):
                    expects_value = False
                elif closers[-1] == 0x7D:
                    at = _scan_key(data, at)
                continue
            scalar = _SCALAR.match(data, at)
            if scalar is None:
                raise Invalid("a value was expected" if char else "it ends too early", at)
            at = scalar.end()
            expects_value = False
        elif closers and char == b",":
            at = _skip_space(data, at + 1)
            if closers[-1] == 0x7D:
                at = _scan_key(data, at)
            expects_value = True
        elif closers and char == bytes((closers[-1],)):
            closers.pop()
            at += 1
        elif closers:
            raise Invalid("',' or a closing bracket was expected" if char else "it ends too early", at)
        if not closers and not expects_value:
            if whole and _skip_space(data, at) != len(data):
                raise Invalid("something follows the value", at)
            return at


def _scan_key(data: bytes, at: int) -> int:
    match = _SCALAR.match(data, at)
    if match is None or data[at] != 0x22:
        raise Invalid("a key in quotes was expected", at)
    at = _skip_space(data, match.end())
    if data[at : at + 1] != b":":
        raise Invalid("':' was expected", at)
    return at + 1


def _scan_members(data: bytes) -> list[tuple[str, bytes]]:
    validate(data)
    at = _skip_space(data, 0)
    if data[at : at + 1] != b"{":
        raise Invalid("an object was expected", at)
    found: list[tuple[str, bytes]] = []
    at = _skip_space(data, at + 1)
    while data[at : at + 1] != b"}":
        after_key = _scan_key(data, at)
        key = decode_string(data[at:after_key].rstrip()[:-1])
        start = _skip_space(data, after_key)
        end = _scan_value(data, start, whole=False)
        found.append((key or "", data[start:end]))
        at = _skip_space(data, end)
        if data[at : at + 1] == b",":
            at = _skip_space(data, at + 1)
    return found


def _scan_elements(data: bytes) -> list[bytes]:
    validate(data)
    at = _skip_space(data, 0)
    if data[at : at + 1] != b"[":
        raise Invalid("an array was expected", at)
    found: list[bytes] = []
    at = _skip_space(data, at + 1)
    while data[at : at + 1] != b"]":
        end = _scan_value(data, at, whole=False)
        found.append(data[at:end])
        at = _skip_space(data, end)
        if data[at : at + 1] == b",":
            at = _skip_space(data, at + 1)
    return found
