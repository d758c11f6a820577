"""Stored records as a client gets them: the JSON to the last byte, and the fields that this version knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Raw

from crewlog.protocol.lenient import convert
from crewlog.storage import rawjson

Json = Any
"""Any JSON value: None, bool, int, float, str, list, dict, or `msgspec.Raw`. Typing has no name for it that could be used easily."""

T = TypeVar("T")
V = TypeVar("V", bound=msgspec.Struct)


class NewEntry(msgspec.Struct):
    """An entry to be appended; `data` is any JSON value."""

    kind: str
    data: Json = msgspec.field(default_factory=dict)


class Reader(Generic[T]):
    """Reads a raw JSON value as one type, also where it holds what msgspec alone refuses (see `protocol.lenient`).

    Raises `msgspec.ValidationError`.
    """

    __slots__ = ("_decoder", "_type")

    def __init__(self, type_: type[T]) -> None:
        self._type = type_
        self._decoder: msgspec.json.Decoder[T] | None = None

    def __call__(self, raw: Raw | bytes) -> T:
        if self._decoder is None:
            self._decoder = msgspec.json.Decoder(self._type)
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return convert(bytes(raw), self._type)


def optional(read: Callable[[Raw], T]) -> Callable[[Raw], T | None]:
    """Reads null as None, and all else with `read`."""
    return lambda raw: None if bytes(raw) == b"null" else read(raw)


def nothing(_: Raw) -> None:
    """Reads the result of a method that has none."""


def json_value(raw: Raw | bytes) -> Json:
    """The JSON value, whole numbers of any size exact, lone surrogates as they are. Nesting is limited by Python's own recursion."""
    return json.loads(rawjson.decode_utf8(bytes(raw)))


class Stored(Generic[V]):
    """A record that is stored by its writer. `raw` is its JSON; fields of newer versions stand there, and in `value()`.

    The properties read the fields known today, and raise `msgspec.ValidationError` where somebody wrote another type there.
    """

    __slots__ = ("_view", "raw")
    _read: ClassVar[Reader[Any]]

    def __init__(self, raw: Raw | bytes) -> None:
        self.raw = bytes(raw)
        self._view: V | None = None

    @property
    def view(self) -> V:
        """The fields known today, under their names on disk."""
        if self._view is None:
            self._view = self._read(self.raw)
        return self._view

    def value(self) -> Json:
        """The whole record as Python values."""
        return json_value(self.raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.raw == self.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw[:200]!r})"
