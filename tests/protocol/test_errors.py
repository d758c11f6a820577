"""Every storage error crosses the wire and is itself again."""

from __future__ import annotations

import json

import msgspec
import pytest

from crewlog.protocol.envelope import encode_error
from crewlog.protocol.errors import BY_KIND, TABLE, InvalidParams, ResponseError, from_wire, to_wire
from crewlog.storage import errors as storage

SAMPLES: list[storage.StorageError] = [
    storage.SessionNotFound("ab\ud800"),
    storage.SessionCorrupt("/h/s.jsonl", 7, "not JSON"),
    storage.UnsupportedVersion("/h/s.jsonl", 9, 3),
    storage.LeafMoved("aabbccdd"),
    storage.EntryNotFound("aabbccdd", "/h/s.jsonl"),
    storage.TaskNotFound("7"),
    storage.AlreadyClaimed("7", "ann"),
    storage.AlreadyResolved("7"),
    storage.Blocked("7", ["1", "2"]),
    storage.DependencyCycle(["1", "2", "1"]),
    storage.LeaseLost("7", "ann"),
    storage.InvalidName("../x", "it holds a slash", "listId"),
    storage.PlanChanged("plan", "etag"),
    storage.StorageFailed("/h/x", "ENOSPC", "No space left on device"),
    storage.Busy("/h/x", {"pid": 5, "client": "nvim", "host": "h", "since": "2026-01-01T00:00:00Z"}),
    storage.Busy("/h/x", {}),
    storage.TooLarge(256),
]


def over_the_wire(error: Exception) -> Exception:
    wire = to_wire(error)
    assert wire is not None
    received = json.loads(encode_error(5, wire))["error"]
    return from_wire(received["code"], received["message"], received["data"])


def test_there_is_a_sample_of_every_kind() -> None:
    assert {type(error) for error in SAMPLES} == {row.exception for row in TABLE}
    ours = {item for item in vars(storage).values() if isinstance(item, type) and issubclass(item, storage.StorageError)}
    inside = {storage.StorageError, storage.InvalidArgument, storage.StoreClosed, storage.WouldBlock}
    assert ours - inside == {row.exception for row in TABLE}


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error: storage.StorageError) -> None:
    again = over_the_wire(error)
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_a_server_that_says_less_is_understood_as_far_as_it_goes(error: storage.StorageError) -> None:
    wire = to_wire(error)
    assert wire is not None
    row = BY_KIND[wire.kind]
    least = {field.encode_name: wire.data[field.encode_name] for field in msgspec.structs.fields(row.facts) if field.required}
    assert type(from_wire(row.code, "…", {"kind": row.kind, **least})) is type(error)
    if least:
        general = from_wire(row.code, "what it said", {"kind": row.kind})
        assert isinstance(general, ResponseError)
        assert (general.code, general.kind, general.message) == (row.code, row.kind, "what it said")


def test_a_wrong_argument_is_invalid_params_there_and_back() -> None:
    wire = to_wire(storage.InvalidArgument("owner", "it is empty"))
    assert isinstance(wire, InvalidParams)
    assert (wire.code, wire.data) == (-32602, {"kind": "invalidParams", "field": "$.owner"})
    again = over_the_wire(wire)
    assert isinstance(again, storage.InvalidArgument)
    assert (again.field, again.reason) == ("$.owner", "it is empty")


def test_a_fault_of_the_program_is_none_of_ours() -> None:
    assert to_wire(KeyError("x")) is None
    assert to_wire(OSError(5, "x")) is None


def test_codes_and_kinds_are_unique() -> None:
    assert len({row.code for row in TABLE}) == len({row.kind for row in TABLE}) == len(TABLE)
