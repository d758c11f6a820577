"""A message's envelope: what it is, its id and method; params and results stay raw."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from crewlog.protocol.errors import INVALID_REQUEST, PARSE_ERROR, InvalidParams, ResponseError
from crewlog.protocol.wire_json import encode_json
from crewlog.storage import rawjson

Id = int | str
_P = TypeVar("_P", bound=msgspec.Struct)
NULL = Raw(b"null")
EMPTY = Raw(b"{}")


class Message(msgspec.Struct):
    """Any message. `id` is UNSET on a notification; `method` is "" on a response."""

    id: Id | UnsetType | None = UNSET
    method: str = ""
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    jsonrpc: str = ""

    @property
    def is_response(self) -> bool:
        return not self.method

    @property
    def is_notification(self) -> bool:
        return bool(self.method) and self.id is UNSET


class Malformed(ResponseError):
    """A body that is no message. `id` is the request's where it could be read, else None."""

    def __init__(self, code: int, reason: str, id: Id | None = None) -> None:
        self.id = id
        kind = "parseError" if code == PARSE_ERROR else "invalidRequest"
        super().__init__(code, kind, reason)


class _Envelope(msgspec.Struct):
    jsonrpc: Raw = NULL
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_message_decoder = msgspec.json.Decoder(Message)
_decoder = msgspec.json.Decoder(_Envelope)
_MAX_ID_DIGITS = 100


def decode_message(body: bytes) -> Message:
    """Raises `Malformed`."""
    if not body.isascii():
        _check_utf8(body)
    try:
        message = _message_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(body)
    if message.jsonrpc != "2.0" or message.id is None or not (message.method or message.result is not UNSET or message.error is not UNSET):
        return _decode_slowly(body)
    return message


def _check_utf8(body: bytes) -> None:
    """Inside what is kept raw nobody else would look."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(PARSE_ERROR, f"the body is not UTF-8 at byte {error.start}") from None


def _decode_slowly(body: bytes) -> Message:
    parts = _parts(body)
    id = _id(parts.id)
    known = None if isinstance(id, UnsetType) else id
    if rawjson.decode_string(parts.jsonrpc) != "2.0":
        raise Malformed(INVALID_REQUEST, 'jsonrpc must be "2.0"', known)
    if isinstance(parts.method, UnsetType):
        if isinstance(parts.result, UnsetType) and isinstance(parts.error, UnsetType):
            raise Malformed(INVALID_REQUEST, "a message has a method, or is a response with result or error", known)
        return Message(id, "", UNSET, parts.result, parts.error, "2.0")
    method = rawjson.decode_string(parts.method)
    if not method:
        raise Malformed(INVALID_REQUEST, "method must be a string that is not empty", known)
    if id is None:
        raise Malformed(INVALID_REQUEST, "id must be a number or a string; leave it out for a notification")
    return Message(id, method, parts.params, jsonrpc="2.0")


def _parts(body: bytes) -> _Envelope:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError:
        if body.lstrip()[:1] == b"[":
            rule = "batches are not part of this protocol: send the messages one by one"
            raise Malformed(INVALID_REQUEST, rule) from None
        raise Malformed(INVALID_REQUEST, "a message is a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        found = {key: Raw(value) for key, value in rawjson.members(body).items()}
    except rawjson.Invalid as error:
        if rawjson.is_valid(body):
            raise Malformed(INVALID_REQUEST, "a message is a JSON object") from None
        raise Malformed(PARSE_ERROR, str(error)) from None
    names = ("id", "method", "params", "result", "error")
    return _Envelope(found.get("jsonrpc", NULL), *(found.get(name, UNSET) for name in names))


def _id(raw: Raw | UnsetType) -> Id | UnsetType | None:
    if isinstance(raw, UnsetType):
        return UNSET
    text = bytes(raw).strip()
    if text == b"null":
        return None
    if text[:1] == b'"':
        return rawjson.decode_string(text)
    digits = text[1:] if text[:1] == b"-" else text
    if digits.isdigit() and len(digits) <= _MAX_ID_DIGITS:
        return int(text)
    raise Malformed(INVALID_REQUEST, "id must be a whole number or a string")


def decode_params(raw: Raw | UnsetType, decoder: msgspec.json.Decoder[_P], type_: type[_P]) -> _P:
    """The params as their struct. Absent ones and null count as `{}`. Raises `InvalidParams` with the path of the field."""
    if isinstance(raw, UnsetType):
        raw = EMPTY
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        content = bytes(raw).strip()
        if content == b"null":
            return decode_params(UNSET, decoder, type_)
        if content[:1] != b"{":
            what = "a list" if content[:1] == b"[" else "a single value"
            raise InvalidParams("$", f"params must be an object with named fields, not {what}") from None
        raise _invalid(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_params_slowly(bytes(raw), type_)


def _decode_params_slowly(raw: bytes, type_: type[_P]) -> _P:
    """For params with lone surrogates or deep nesting: raw fields are cut out, the others are read leniently."""
    from crewlog.protocol.lenient import convert

    try:
        return convert(raw, type_)
    except msgspec.ValidationError as error:
        raise _invalid(error) from None
    except (msgspec.DecodeError, rawjson.Invalid, UnicodeDecodeError) as error:
        raise Malformed(PARSE_ERROR, str(error)) from None


def _invalid(error: msgspec.ValidationError) -> InvalidParams:
    reason, _, path = str(error).rpartition(" - at `")
    if not reason:
        reason, path = str(error), "$`"
    path = path.rstrip("`")
    missing = "Object missing required field `"
    if reason.startswith(missing):
        path = f"{path}.{reason[len(missing) :].rstrip('`')}"
        reason = "it is required"
    return InvalidParams(path, reason)


def encode_reply(id: Id | None, result: bytes) -> bytes:
    """`result`: the result as JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode_id(id), result)


def encode_error(id: Id | None, error: ResponseError) -> bytes:
    """An error's reply."""
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b,"data":%b}}' % (
        _encode_id(id),
        error.code,
        rawjson.encode_string(error.message),
        encode_result(error.data),
    )


def encode_notification(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)


def encode_request(id: Id, method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (_encode_id(id), method.encode(), params)


encode_result = encode_json


def _encode_id(id: Id | None) -> bytes:
    if isinstance(id, str):
        return rawjson.encode_string(id)
    return b"null" if id is None else b"%d" % id
