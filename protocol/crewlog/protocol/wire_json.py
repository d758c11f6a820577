"""Values to JSON as it goes on the wire: UTF-8, with raw parts put in as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, Raw

from crewlog.storage import rawjson


def encode_json(value: object) -> bytes:
    """Stray bytes in raw parts become U+FFFD, as in Go; lone surrogates become escapes. Not-a-number and the infinities become null.

    Raises `TypeError` for what is no JSON value.
    """
    try:
        return rawjson.to_utf8(_encoder.encode(value))
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return rawjson.to_utf8(_encode_slowly(value))


def _plain(value: object) -> object:
    """Lists and objects of other makes."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def _encode_slowly(value: object) -> bytes:
    """For what msgspec refuses: lone surrogates, integers of more than 64 bits."""
    if isinstance(value, msgspec.Struct):
        value = _members(value)
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, str):
        return rawjson.encode_string(value)
    if isinstance(value, int):
        return json.dumps(value).encode()
    if isinstance(value, Mapping):
        return rawjson.join_members({str(key): _encode_slowly(item) for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return rawjson.join_elements([_encode_slowly(item) for item in value])
    return _encoder.encode(value)


def _members(value: msgspec.Struct) -> dict[str, object]:
    """As msgspec: without what is unset, and without what is left out where it is the default."""
    fields = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
    omits = value.__struct_config__.omit_defaults
    return {field.encode_name: found for field, found in fields if found is not UNSET and not (omits and found == _default_of(field))}


def _default_of(field: msgspec.structs.FieldInfo) -> object:
    """A new object where there is none: nothing is equal to it."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default if field.default is not msgspec.NODEFAULT else object()
