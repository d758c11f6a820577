"""What goes in comes out equal: any JSON, in messages, kept messages, metadata and unknown fields."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crewlog.storage import PROCESS, InvalidArgument, NewEntry, SessionManager, TaskStore, TaskUpdate, rawjson

LIMITS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

numbers = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(["1e400", "-1E+400", "1e-400", "-0", "0.1", "9007199254740993", "18446744073709551616", "1.10"]),
)
pieces = st.one_of(
    st.text(max_size=8).map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1]),
    st.text(max_size=8).map(lambda text: json.dumps(text)[1:-1]),
    st.sampled_from(
        ["\u2028", "\u2029", "\u0085", "\\u2028", "\\u0000", "\\ud800", "\\udc00x", "\\u000b", "\\f", "\\u0085", "\x7f", "\\/"]
    ),
)
strings = (
    st.lists(pieces, max_size=4)
    .map(lambda parts: '"' + "".join(parts) + '"')
    .filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
)
keys = st.one_of(strings, st.sampled_from(['"jsonrpc"', '"file-path"', '"class"', '"id"', '"method"', '"params"', '"__proto__"', '""']))
blanks = st.sampled_from(["", " ", "\n", "\r\n", "\t "])


def containers(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    array = st.tuples(blanks, st.lists(values, max_size=4)).map(lambda t: "[" + t[0] + ("," + t[0]).join(t[1]) + "]")
    members = st.lists(st.tuples(keys, values), max_size=4, unique_by=lambda pair: json.loads(pair[0]))
    item = st.tuples(blanks, members).map(lambda t: "{" + t[0] + ("," + t[0]).join(f"{k}{t[0]}:{v}" for k, v in t[1]) + "}")
    return st.one_of(array, item)


documents = st.recursive(st.one_of(numbers, strings, st.sampled_from(["true", "false", "null"])), containers, max_leaves=12)


def exactly(raw: bytes) -> Any:
    """Decoded so that two spellings compare equal only if they mean the same: numbers as decimals, members in their order."""
    return json.loads(raw, parse_float=Decimal, parse_int=Decimal, object_pairs_hook=lambda pairs: pairs)


@LIMITS
@given(documents)
def test_messages_and_kept_messages(tmp_path: Path, document: str) -> None:
    message = f'{{"role":"user","content":[],"metadata":{{"any":{document}}},"unknown":{document}}}'.encode()
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    store = manager.create("/x")
    store.append_message(message)
    store.append([NewEntry("future_kind", document.encode()), NewEntry("message", message)])
    for found in (store.snapshot(), manager.open_path(store.path).snapshot()):
        assert [exactly(bytes(raw)) for raw in found.messages] == [exactly(message)] * 2
    store.append_compaction("sum", [message])
    (_, kept) = manager.open_path(store.path).snapshot().messages
    assert exactly(bytes(kept)) == exactly(message)
    assert Path(store.path).read_bytes().count(b"\n") == 5  # whatever stands in it, a record is one line


@LIMITS
@given(documents, documents)
def test_metadata_and_unknown_fields_of_tasks(tmp_path: Path, value: str, unknown: str) -> None:
    folder = tmp_path / "list"
    folder.mkdir(exist_ok=True)
    (folder / "1.json").write_bytes(f'{{"id":"1","subject":"s","status":"pending","later":{unknown},"metadata":{{"k":{value}}}}}'.encode())
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    store.update("1", TaskUpdate(subject="renamed", metadata={"other": value.encode()}))
    written = (folder / "1.json").read_bytes()
    found = dict(exactly(written))
    assert found["later"] == exactly(unknown.encode())
    assert dict(found["metadata"])["k"] == exactly(value.encode())
    assert dict(found["metadata"]).get("other", None) == (exactly(value.encode()))
    again = TaskStore()
    again.set_dir(str(folder))
    task = again.get("1")
    assert task is not None
    assert task.subject == "renamed"
    store.close()


@LIMITS
@given(documents)
def test_the_scanner_agrees_with_json(document: str) -> None:
    raw = document.encode()
    rawjson.validate(raw)
    wrapped = b"[" + raw + b',"\\ud800"]'  # what msgspec refuses, so that the scanner does it
    first, second = rawjson.elements(wrapped)
    assert exactly(first) == exactly(raw)
    assert second == b'"\\ud800"'
    assert rawjson.members(b'{"\\ud800":1,"a":' + raw + b"}")["a"].strip() == raw.strip()


@LIMITS
@given(documents)
def test_what_msgspec_cannot_lay_out_is_laid_out_alike(document: str) -> None:
    raw = document.encode()
    try:
        expected = msgspec.json.format(b'{"a":' + raw + b',"b":[[],{},"x"]}', indent=2)
    except (msgspec.DecodeError, RecursionError):
        return
    before, _, after = expected.rpartition(b'"x"')
    assert rawjson.indent(b'{"a":' + raw + b',"b":[[],{},"\\ud800"]}') == before + b'"\\ud800"' + after


@LIMITS
@given(documents, st.data())
def test_damaged_json_is_refused_as_json_refuses_it(document: str, data: st.DataObject) -> None:
    raw = document.encode()
    at = data.draw(st.integers(0, len(raw)))
    junk = data.draw(st.sampled_from([b"", b",", b"]", b"}", b'"', b"\\", b"\x01", b"1", b"e", b":"]))
    damaged = raw[:at] + junk + raw[at + data.draw(st.integers(0, 2)) :]
    wrapped = b'["\\ud800",' + damaged + b"]"
    try:
        json.loads(damaged, parse_constant=refuse)
        fine = True
    except (ValueError, UnicodeDecodeError):
        fine = False
    if damaged.isascii() and b"," not in damaged.strip(b" \n\r\t")[:1]:
        assert rawjson.is_valid(damaged) is fine
        if not fine and b"," not in damaged:
            assert rawjson.is_valid(wrapped) is False


def refuse(constant: str) -> None:
    raise ValueError(constant)


@pytest.mark.parametrize("bad", [b"{", b"", b"[1]", b"null", b'"x"', b'{"content":[]}', b'{"role":5}', b'{"role":""}', b"{'role':'user'}"])
def test_what_is_no_message_is_refused_by_its_field(tmp_path: Path, bad: bytes) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    before = Path(store.path).read_bytes()
    good = NewEntry("message", b'{"role":"user"}')
    with pytest.raises(InvalidArgument, match=r"entries\[1\]\.data"):
        store.append([good, NewEntry("message", bad), good])
    assert Path(store.path).read_bytes() == before


@pytest.mark.parametrize("kind", ["", "header", "\ud800"])
def test_kinds_that_cannot_be(tmp_path: Path, kind: str) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    with pytest.raises(InvalidArgument, match=r"entries\[0\]\.kind"):
        store.append([NewEntry(kind, b"{}")])


def test_thinking_is_cut_in_the_file_only(tmp_path: Path) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    for length in (199, 200, 201, 1000):
        message = json.dumps(
            {"role": "assistant", "z": 1e3, "content": [{"type": "thinking", "thinking": "思" * length, "later": [1]}]}
        ).encode()
        store.append_message(message)
        stored = json.loads(bytes(store.snapshot().messages[-1]))
        text = stored["content"][0]["thinking"]
        assert text == ("思" * length if length <= 200 else "思" * 199 + "…")
        assert list(stored) == ["role", "z", "content"]
        assert stored["content"][0]["later"] == [1]


def test_deep_nesting_and_lone_surrogates_together(tmp_path: Path) -> None:
    deep = b"[" * 9000 + b'"\\ud800"' + b"]" * 9000
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    store = manager.create("/x")
    message = b'{"role":"user","content":[],"metadata":{"deep":' + deep + b"}}"
    store.append_message(message)
    assert bytes(manager.open_path(store.path).snapshot().messages[0]) == message
    with pytest.raises(InvalidArgument, match="10,000"):
        store.append_message(b'{"role":"user","metadata":' + b"[" * 10_001 + b"]" * 10_001 + b"}")
