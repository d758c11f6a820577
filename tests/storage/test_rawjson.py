"""JSON that passes through undecoded is cut, compacted and read as Go's encoding/json would: also where msgspec refuses it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlog.storage import rawjson

SURROGATE_ESCAPES = st.sampled_from([rb"\ud800", rb"\udc00", rb"\udfff\ud83d", rb"\ud83d\ude00"])
STRAY_BYTES = st.sampled_from([b"\x80", b"\xff\xfe", b"\xe2\x82", b"\xc0\xaf", b"\xed\xa0\x80"])
PLAIN = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6).map(
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode()
)
STRINGS = st.lists(st.one_of(PLAIN, SURROGATE_ESCAPES, STRAY_BYTES), max_size=5).map(lambda parts: b'"' + b"".join(parts) + b'"')
SPACE = st.sampled_from([b"", b" ", b"\n", b"\t\r\n "])
NUMBERS = st.sampled_from([b"0", b"-1", b"1.50", b"1E+2", b"9007199254740993", b"-0.0e-5"])
SCALARS = st.one_of(STRINGS, NUMBERS, st.sampled_from([b"null", b"true", b"false"]))


def containers(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    spaced = st.tuples(SPACE, inner, SPACE).map(b"".join)
    pairs = st.tuples(SPACE, STRINGS, SPACE, st.just(b":"), spaced).map(b"".join)
    return st.one_of(
        st.lists(spaced, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]"),
        st.lists(pairs, max_size=3).map(lambda items: b"{" + b",".join(items) + b"}"),
    )


VALUES = st.recursive(SCALARS, containers, max_leaves=8)


def meaning(raw: bytes) -> Any:
    """What Python reads where each stray byte is a U+FFFD, object members as pairs."""
    return json.loads(rawjson.decode_utf8(raw), object_pairs_hook=lambda pairs: ("object", pairs))


@given(VALUES)
def test_what_is_valid_stays_what_it_means(raw: bytes) -> None:
    rawjson.validate(raw)
    for changed in (rawjson.compact(raw), rawjson.one_line(raw), rawjson.indent(raw)):
        assert meaning(changed) == meaning(raw)
    assert b"\n" not in rawjson.compact(raw) + rawjson.one_line(raw)
    rawjson.to_utf8(raw).decode()
    assert meaning(rawjson.to_utf8(raw)) == meaning(raw)


@given(VALUES)
def test_an_object_and_an_array_come_apart_and_together(raw: bytes) -> None:
    value = meaning(raw)
    if isinstance(value, list):
        parts = rawjson.elements(raw)
        assert [meaning(part) for part in parts] == value
        assert meaning(rawjson.join_elements(parts)) == value
    elif isinstance(value, tuple):
        members = rawjson.members(raw)
        last = dict(value[1])  # of members of one name the last counts
        assert {key: meaning(part) for key, part in members.items()} == last
        assert dict(meaning(rawjson.join_members(members))[1]) == last
    else:
        for cut in (rawjson.members, rawjson.elements):
            with pytest.raises(ValueError):
                cut(raw)


@given(VALUES, st.integers(0, 60), st.sampled_from([b"", b",", b"}", b"]", b'"', b"\\", b"x", b"0", b":", b"\x00"]))
def test_what_is_damaged_is_refused_where_python_refuses_it(raw: bytes, at: int, instead: bytes) -> None:
    damaged = raw[:at] + instead + raw[at + 1 :]
    try:
        expected = meaning(damaged)
    except ValueError:
        expected = ValueError
    if expected is ValueError:
        assert not rawjson.is_valid(damaged)
        with pytest.raises(rawjson.Invalid) as caught:
            rawjson.validate(damaged)
        assert 0 <= caught.value.offset <= len(damaged)
        for cut in (rawjson.compact, rawjson.members, rawjson.elements):
            with pytest.raises(ValueError):
                cut(damaged)
    else:
        assert rawjson.is_valid(damaged)


@given(VALUES)
def test_only_a_string_has_a_text(raw: bytes) -> None:
    value = meaning(raw)
    assert rawjson.decode_string(raw) == (value if isinstance(value, str) else None)


@given(st.text())
def test_a_text_comes_back(text: str) -> None:
    """Lone surrogates too."""
    assert rawjson.decode_string(rawjson.encode_string(text)) == text


class Shape(msgspec.Struct):
    name: str = ""
    inner: dict[str, Any] = {}


SHAPES = msgspec.json.Decoder(Shape)


@pytest.mark.parametrize(
    ("raw", "lenient", "exact"),
    [
        (b'{"name": "a\\ud800b"}', Shape("a\ufffdb"), Shape("a\ud800b")),
        (b'{"name": "\\ud83d\\ude00"}', Shape("\U0001f600"), Shape("\U0001f600")),
        (b'{"name": "\xff\xfe"}', Shape("\ufffd\ufffd"), Shape("\ufffd\ufffd")),
        (b'{"inner": {"\\udc00": ["\\udc00"]}}', Shape("", {"\ufffd": ["\ufffd"]}), Shape("", {"\ufffd": ["\udc00"]})),
    ],
)
def test_a_record_is_read_where_msgspec_is_too_strict(raw: bytes, lenient: Shape, exact: Shape) -> None:
    assert rawjson.decode_lenient(raw, SHAPES, Shape) == lenient
    assert rawjson.decode_exact(raw, SHAPES, Shape) == exact


@pytest.mark.parametrize("decode", [rawjson.decode_lenient, rawjson.decode_exact])
def test_a_record_of_another_shape_or_none_is_refused_by_kind(decode: Any) -> None:
    for raw in (b'{"name": 1}', b'{"name": 1, "inner": "\xff"}'):
        with pytest.raises(msgspec.ValidationError):
            decode(raw, SHAPES, Shape)
    for raw in (b'{"name": "\xff"', b"", b"{"):
        with pytest.raises(msgspec.DecodeError):
            decode(raw, SHAPES, Shape)
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"inner": ' + b"[" * 5000 + b"]" * 5000 + b"}", SHAPES, Shape)


@pytest.mark.parametrize(("depth", "valid"), [(1_500, True), (rawjson.MAX_DEPTH, True), (rawjson.MAX_DEPTH + 1, False)])
def test_nesting_is_bounded_as_in_go(depth: int, valid: bool) -> None:
    raw = b"[" * depth + b"]" * depth
    assert rawjson.is_valid(raw) is valid
    if valid:
        assert rawjson.compact(raw) == raw
        assert rawjson.elements(raw) == [raw[1:-1]]
