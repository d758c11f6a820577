"""Walks the table: every method of the protocol is there, and each refuses wrong params by the path of the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw, inspect

from crewlog.protocol.envelope import decode_params
from crewlog.protocol.errors import BY_KIND, InvalidParams
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, Method

Json = Any
ALL = list(METHODS.values())
WITH_PARAMS = [method for method in ALL if msgspec.structs.fields(method.params)]


def bare(type_: inspect.Type) -> inspect.Type:
    if isinstance(type_, inspect.Metadata):
        return bare(type_.type)
    if isinstance(type_, inspect.UnionType):
        return next(bare(item) for item in type_.types if not isinstance(item, inspect.NoneType))
    return type_


def sample(type_: inspect.Type) -> Json:
    """A value that is allowed."""
    type_ = bare(type_)
    if isinstance(type_, inspect.StrType):
        return "x"
    if isinstance(type_, inspect.IntType):
        return type_.ge or 0
    if isinstance(type_, inspect.BoolType):
        return True
    if isinstance(type_, inspect.LiteralType):
        return type_.values[0]
    if isinstance(type_, inspect.ListType):
        return [sample(type_.item_type)]
    if isinstance(type_, inspect.DictType):
        return {"k": sample(type_.value_type)}
    if isinstance(type_, inspect.StructType):
        return {field.encode_name: sample(field.type) for field in type_.fields}
    assert isinstance(type_, inspect.RawType), type_
    return {"any": ["json", None]}


def wrong(type_: inspect.Type, path: str) -> Iterator[tuple[Json, str]]:
    """Values that are not allowed, each with the path that must be named."""
    also = {str for item in getattr(type_, "types", ()) if isinstance(item, inspect.StrType)}  # of `int | str`
    type_ = bare(type_)
    if isinstance(type_, inspect.RawType):
        return
    yield from ((value, path) for value in _other_kinds(type_) if type(value) not in also or isinstance(type_, inspect.StrType))
    if isinstance(type_, inspect.ListType):
        yield from (([sample(type_.item_type), value], where) for value, where in wrong(type_.item_type, f"{path}[1]"))
    elif isinstance(type_, inspect.DictType):
        yield from (({"k": value}, where) for value, where in wrong(type_.value_type, f"{path}[...]"))
    elif isinstance(type_, inspect.StructType):
        for field in type_.fields:
            whole = sample(type_)
            yield from (({**whole, field.encode_name: value}, where) for value, where in wrong(field.type, f"{path}.{field.encode_name}"))
            if field.required:
                yield {key: value for key, value in whole.items() if key != field.encode_name}, f"{path}.{field.encode_name}"


def _other_kinds(type_: inspect.Type) -> Iterator[Json]:
    kinds: dict[type, Json] = {str: "x", int: 7, float: 1.5, list: [], dict: {}, bool: True}
    own = {
        inspect.StrType: str,
        inspect.LiteralType: None,
        inspect.IntType: int,
        inspect.BoolType: bool,
        inspect.ListType: list,
        inspect.DictType: dict,
        inspect.StructType: None,
    }[type(type_)]
    for kind, value in kinds.items():
        if kind is not own and not (isinstance(type_, inspect.StructType) and kind is dict):
            yield value
    if isinstance(type_, inspect.IntType):
        yield from ([type_.ge - 1] if type_.ge is not None else []) + ([type_.le + 1] if type_.le is not None else [])
    if isinstance(type_, inspect.StrType) and type_.min_length:
        yield ""


def decode(method: Method, value: Json) -> msgspec.Struct:
    return decode_params(Raw(json.dumps(value).encode()), msgspec.json.Decoder(method.params), method.params)


def struct(method: Method) -> inspect.StructType:
    info = inspect.type_info(method.params)
    assert isinstance(info, inspect.StructType)
    return info


def test_the_table_has_every_method_of_the_design_and_no_other(shared: Path) -> None:
    text = (shared / "design" / "protocol.md").read_text(encoding="utf-8")
    methods = text[text.index("## Methods") : text.index("**Leases.**")]
    named = {name for row in methods.splitlines() if row.startswith("| `") for name in re.findall(r"`([a-zA-Z/]+)`", row.split("|")[1])}
    assert set(METHODS) - {"session/restore"} == named
    told = text[text.index("## Notifications") : text.index("They tell of changes")]
    assert set(NOTIFICATIONS) == set(re.findall(r"`([a-z]+/didChange)`", told))


def test_the_table_has_every_error_of_the_design_with_its_facts(shared: Path) -> None:
    text = (shared / "design" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (1\d{3}) \| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    assert [(int(code), kind) for code, kind, _ in rows] == [(row.code, kind) for kind, row in BY_KIND.items()]
    for _, kind, facts in rows:
        names = {field.encode_name for field in msgspec.structs.fields(BY_KIND[kind].facts)}
        said = [part.split()[0] for part in re.sub(r"\(.*?\)|:.*", "", facts).split(", ")]
        assert set(said) <= names, kind


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_every_method_is_told_whole(method: Method) -> None:
    assert method.doc.endswith(".")
    assert set(method.errors) <= set(BY_KIND)
    assert len(set(method.errors)) == len(method.errors)
    assert method.resource is None or method.resource(decode(method, sample(struct(method))))
    if method.mutates:
        assert {"storageFailed", "busy"} <= set(method.errors)
        assert method.resource is not None or method.name == "session/create"


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_whole_params_are_taken_and_unknown_ones_ignored(method: Method) -> None:
    whole = sample(struct(method))
    decoded = decode(method, {**whole, "aFieldOfTomorrow": {"jsonrpc": 1}})
    assert json.loads(msgspec.json.encode(decoded)) == whole


@pytest.mark.parametrize("method", WITH_PARAMS, ids=lambda method: method.name)
def test_a_missing_or_ill_typed_field_is_named(method: Method) -> None:
    seen = 0
    for value, path in wrong(struct(method), "$"):
        if not isinstance(value, dict):
            continue
        seen += 1
        with pytest.raises(InvalidParams) as error:
            decode(method, value)
        assert error.value.field == path, (value, str(error.value))
        assert error.value.code == -32602
    assert seen


@pytest.mark.parametrize("method", WITH_PARAMS, ids=lambda method: method.name)
def test_it_is_named_just_so_when_a_lone_surrogate_stands_elsewhere(method: Method) -> None:
    for value, path in wrong(struct(method), "$"):
        if isinstance(value, dict):
            with pytest.raises(InvalidParams) as error:
                decode(method, {**value, "zzz": "\ud800"})
            assert error.value.field == path


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_a_list_and_a_scalar_are_no_params(method: Method) -> None:
    values: list[Json] = [[], [{}], "x", 5, True]
    for value in values:
        with pytest.raises(InvalidParams) as error:
            decode(method, value)
        assert error.value.field == "$"


def test_what_must_keep_its_order_is_told_by_its_resource() -> None:
    def resource(called: str, **params: Json) -> object:
        method = METHODS[called]
        assert method.resource is not None
        return method.resource(decode(method, params))

    append = {"sessionId": "s", "entries": []}
    assert resource("session/append", **append) == resource("session/snapshot", sessionId="s") == ("session", "s")
    assert resource("task/claimNext", listId="l", owner="o") == resource("task/get", listId="l", id="1") == ("tasks", "l")
    assert resource("roster/get", listId="l") == ("roster", "l")
    assert resource("transcript/load", listId="l", agent="a") == ("transcript", "l", "a")
    assert resource("plan/save", name="p", content="") == ("plan", "p")
    assert resource("history/add", text="") == ("history",)
