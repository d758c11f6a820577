"""Params and results that msgspec's decoder refuses though they are JSON: lone surrogates in some string, or deep nesting in a payload.

Fields declared as raw JSON are cut out as bytes and put back afterwards, so that payloads stay what they are; other strings keep half of a
surrogate pair too, so that what is stored comes back equal, and what becomes a name is refused.
"""

from __future__ import annotations

import json
import types
import typing
from typing import TypeVar

import msgspec
from msgspec import Raw

from crewlog.storage import rawjson

_T = TypeVar("_T")


def convert(raw: bytes, type_: type[_T]) -> _T:
    """Raises `msgspec.ValidationError`, `rawjson.Invalid`."""
    value = _value(raw, type_)
    try:
        return msgspec.convert(value, type_)
    except UnicodeEncodeError:  # msgspec looks into a string to check or to name it, and half of a pair is in the way
        return msgspec.convert(_whole(value), type_)


def _whole(value: object) -> object:
    """The value with U+FFFD for each half of a pair."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def _value(raw: bytes, wanted: object) -> object:
    """The value with `Raw` wherever the type says so, and plain values elsewhere."""
    wanted = _without_optional(wanted)
    if wanted is Raw:
        return Raw(raw)
    first = raw.lstrip()[:1]
    if _is_struct(wanted) and first == b"{":
        hints = {field.encode_name: field.type for field in msgspec.structs.fields(typing.cast("type[msgspec.Struct]", wanted))}
        return {name: _value(value, hints[name]) for name, value in rawjson.members(raw).items() if name in hints}
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is list and first == b"[":
        return [_value(item, arguments[0]) for item in rawjson.elements(raw)]
    if origin is dict and first == b"{":
        return {key: _value(item, arguments[1]) for key, item in rawjson.members(raw).items()}
    if first == b'"':
        return rawjson.decode_string(raw)
    try:
        return json.loads(rawjson.decode_utf8(raw))
    except RecursionError:
        raise msgspec.ValidationError("nested too deeply for this field") from None


def _without_optional(wanted: object) -> object:
    """The one type of `X | None`, and what an `Annotated` annotates."""
    while typing.get_origin(wanted) is typing.Annotated:
        wanted = typing.get_args(wanted)[0]
    if typing.get_origin(wanted) not in (typing.Union, types.UnionType):
        return wanted
    choices = [_without_optional(item) for item in typing.get_args(wanted) if item not in (type(None), msgspec.UnsetType)]
    structured = [item for item in choices if item is Raw or typing.get_origin(item) in (list, dict) or _is_struct(item)]
    return structured[0] if len(structured) == 1 else wanted


def _is_struct(wanted: object) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)
