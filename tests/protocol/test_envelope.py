"""What a message is, and what is answered to a body that is none."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from crewlog.protocol import records
from crewlog.protocol.envelope import (
    Malformed,
    Message,
    decode_message,
    decode_params,
    encode_error,
    encode_notification,
    encode_reply,
    encode_request,
)
from crewlog.protocol.errors import InvalidParams, ResponseError
from crewlog.protocol.params import SessionAppend, TaskClaim, TaskUpdateParams
from crewlog.protocol.results import SessionListResult
from crewlog.protocol.wire_json import encode_json
from crewlog.storage import rawjson

DEEP = b"[" * 3_000 + b"]" * 3_000

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
with_surrogates = st.recursive(
    st.none() | st.text(st.characters(codec=None)) | st.integers(-(10**25), 10**25),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4),
    max_leaves=10,
)


def raw(value: Raw | object) -> bytes:
    assert isinstance(value, Raw)
    return bytes(value)


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


@pytest.mark.parametrize("id", [0, 1, -1, 2**31, 2**53 + 1, 2**63, "", "a", "1", "é\u2028", "\ud800"])
def test_any_whole_number_and_any_string_is_an_id(id: int | str) -> None:
    request = decode_message(message(id=id, method="m"))
    assert request.id == id
    assert not request.is_notification
    assert not request.is_response
    assert json.loads(encode_reply(id, b"1"))["id"] == id


@pytest.mark.parametrize("id", ["1.0", "1e2", "1.5", "true", "[]", "{}", "9" * 5_000])
def test_anything_else_is_no_id(id: str) -> None:
    body = b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % id.encode()
    if id.isdigit():
        with pytest.raises(Malformed):
            decode_message(body[:-1] + b',"params":"\\ud800"}')
        return
    with pytest.raises(Malformed) as error:
        decode_message(body)
    assert (error.value.code, error.value.id) == (-32600, None)


def test_null_is_no_id_of_a_request_but_one_of_a_response() -> None:
    with pytest.raises(Malformed, match="leave it out for a notification") as error:
        decode_message(message(id=None, method="m"))
    assert error.value.code == -32600
    assert decode_message(message(id=None, error={"code": 1})).id is None


def test_a_request_a_notification_and_responses_are_told_apart() -> None:
    assert decode_message(message(method="m")).is_notification
    assert decode_message(message(id=1, result=None)).is_response
    assert decode_message(message(id="a", error={})).is_response
    assert decode_message(message(id=1, method="m", params={"a": 1})) == Message(1, "m", Raw(b'{"a": 1}'), jsonrpc="2.0")


@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"{", b"nul", b"{'a':1}", b'{"a":1}x', b"\xff\xfe{}", b"\x00", b'{"jsonrpc":"2.0","id":1,"method":"m"', b"\xef\xbb\xbf{}"],
)
def test_what_is_not_json_is_a_parse_error_without_id(body: bytes) -> None:
    with pytest.raises(Malformed) as error:
        decode_message(body)
    assert (error.value.code, error.value.kind, error.value.id) == (-32700, "parseError", None)


@pytest.mark.parametrize(
    ("body", "id"),
    [
        (b"[]", None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', None),
        (b"1", None),
        (b'"text"', None),
        (b"null", None),
        (b"{}", None),
        (b'{"jsonrpc":"2.0"}', None),
        (b'{"id":7,"method":"m"}', 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"m"}', 7),
        (b'{"jsonrpc":2.0,"id":7,"method":"m"}', 7),
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":""}', 7),
        (b'{"jsonrpc":"2.0","id":"x","method":5}', "x"),
        (b'{"jsonrpc":"2.0","id":"x","method":null,"params":{}}', "x"),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(body: bytes, id: object) -> None:
    with pytest.raises(Malformed) as error:
        decode_message(body)
    assert (error.value.code, error.value.kind, error.value.id) == (-32600, "invalidRequest", id)


@pytest.mark.parametrize("params", [b'{"a":"\\ud800"}', b'{"\\udfff":{"jsonrpc":"2.0"}}', b'{"a":' + DEEP + b"}"])
def test_what_msgspec_refuses_is_read_all_the_same(params: bytes) -> None:
    request = decode_message(b'{"jsonrpc":"2.0","id":5,"method":"m","params":' + params + b"}")
    assert (request.id, request.method, raw(request.params)) == (5, "m", params)


def test_nesting_beyond_all_measure_is_an_error_and_no_crash() -> None:
    body = b'{"jsonrpc":"2.0","id":5,"method":"m","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with pytest.raises(Malformed):
        decode_message(body)


def refusal(body: bytes) -> Malformed | None:
    try:
        decode_message(body)
    except Malformed as error:
        return error
    return None


@given(st.binary(max_size=60))
def test_no_bytes_make_it_fail_otherwise(body: bytes) -> None:
    error = refusal(body)
    assert error is None or error.code in (-32700, -32600)


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), json_values | st.just("2.0")))
def test_no_object_makes_it_fail_otherwise(members: dict[str, object]) -> None:
    error = refusal(json.dumps(members).encode())
    if error is not None:
        assert error.code == -32600
        assert error.id is None or error.id == members["id"]


@given(json_values)
def test_params_stay_the_bytes_that_were_sent(value: object) -> None:
    text = json.dumps(value, indent=1).encode()
    assert raw(decode_message(b'{"jsonrpc":"2.0","method":"m","params":' + text + b"}").params) == text


# --- params ---


def decoded(text: bytes, type_: type[msgspec.Struct] = SessionAppend) -> msgspec.Struct:
    return decode_params(Raw(text), msgspec.json.Decoder(type_), type_)


def field(text: bytes, type_: type[msgspec.Struct] = SessionAppend) -> str:
    with pytest.raises(InvalidParams) as error:
        decoded(text, type_)
    assert error.value.data == {"kind": "invalidParams", "field": error.value.field}
    assert error.value.field in str(error.value)
    return error.value.field


@pytest.mark.parametrize("surrogate", [b"", b',"unknown":"\\ud800"'])
@pytest.mark.parametrize(
    ("members", "path"),
    [
        (b'"sessionId":"s"', "$.entries"),
        (b'"entries":[]', "$.sessionId"),
        (b'"sessionId":5,"entries":[]', "$.sessionId"),
        (b'"sessionId":"s","entries":{}', "$.entries"),
        (b'"sessionId":"s","entries":[{"kind":"a"},{"kind":1}]', "$.entries[1].kind"),
        (b'"sessionId":"s","entries":[{"data":{}}]', "$.entries[0].kind"),
        (b'"sessionId":"s","entries":[7]', "$.entries[0]"),
        (b'"sessionId":"s","entries":[],"expectedLeafId":[]', "$.expectedLeafId"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(members: bytes, path: str, surrogate: bytes) -> None:
    """Also when something elsewhere makes the fast decoder give up."""
    assert field(b"{" + members + surrogate + b"}") == path


def test_params_that_are_no_object_are_refused_in_words() -> None:
    for text, word in (
        (b"[]", "a list"),
        (b' ["s"]', "a list"),
        (b"5", "a single value"),
        (b'"x"', "a single value"),
        (b"true", "a single"),
    ):
        with pytest.raises(InvalidParams, match=word) as error:
            decoded(text)
        assert error.value.field == "$"


def test_absent_params_and_null_are_an_empty_object() -> None:
    for absent in (UNSET, Raw(b"null")):
        with pytest.raises(InvalidParams) as error:
            decode_params(absent, msgspec.json.Decoder(SessionAppend), SessionAppend)
        assert error.value.field == "$.sessionId"


@pytest.mark.parametrize(
    "data", [b'{"text":"\\ud800"}', DEEP, b'{"a":1e400,"b":123456789012345678901234567890}', b'{ "k" : [ ] }', b"null"]
)
def test_payloads_pass_through_as_they_are(data: bytes) -> None:
    params = decoded(b'{"sessionId":"s","entries":[{"kind":"message","data":' + data + b"}]}")
    assert isinstance(params, SessionAppend)
    assert bytes(params.entries[0].data) == data


def test_a_lone_surrogate_in_a_plain_field_is_kept() -> None:
    params = decoded(b'{"sessionId":"a\\ud800b","entries":[]}')
    assert isinstance(params, SessionAppend)
    assert params.session_id == "a\ud800b"


@pytest.mark.parametrize(
    ("members", "path"),
    [
        (b'"entries":["\\ud800"]', "$.entries[0]"),
        (b'"entries":{"\\ud800":1}', "$.entries"),
        (b'"entries":"\\ud800"', "$.entries"),
        (b'"entries":[{"kind":{"\\ud800":"\\udfff"}}]', "$.entries[0].kind"),
    ],
)
def test_a_lone_surrogate_where_no_text_belongs_is_a_wrong_field_like_any_other(members: bytes, path: str) -> None:
    assert field(b'{"sessionId":"s",' + members + b"}") == path


@pytest.mark.parametrize("lease", [b"0", b"-1", b"9007199254740992", b'"5000"', b"1.5", b"true", b"[]", b"86400001", b"1e400"])
def test_a_lease_that_is_none_is_refused_by_name(lease: bytes) -> None:
    claim = b'{"listId":"l","id":"1","owner":"me","leaseMs":' + lease + b"}"
    assert field(claim, TaskClaim) == "$.leaseMs"
    assert field(claim[:-1] + b',"x":"\\ud800"}', TaskClaim) == "$.leaseMs"


def test_a_null_where_only_absence_has_a_meaning_is_refused() -> None:
    assert field(b'{"listId":"l","id":"1","subject":null}', TaskUpdateParams) == "$.subject"
    params = decoded(b'{"listId":"l","id":"1","metadata":{"k":null}}', TaskUpdateParams)
    assert isinstance(params, TaskUpdateParams)
    assert params.metadata is not UNSET
    assert bytes(params.metadata["k"]) == b"null"
    assert params.subject is UNSET


# --- what is sent ---


@given(with_surrogates)
def test_any_value_can_be_sent(value: object) -> None:
    assert json.loads(encode_json(value)) == value
    encode_json(value).decode("utf-8")


@given(with_surrogates)
def test_any_value_can_be_sent_beside_raw_parts(value: object) -> None:
    text = json.dumps(value).encode()
    assert json.loads(encode_json({"a": Raw(text), "b": [value], "\ud800": value})) == {"a": value, "b": [value], "\ud800": value}


@pytest.mark.parametrize("more", [{}, {"next_cursor": "x"}, {"skipped": [records.Skipped(path="p", reason="r")]}])
def test_what_is_left_out_is_left_out_beside_half_a_surrogate_pair_too(more: dict[str, Any]) -> None:
    """As the path of a file has that is no UTF-8: a cursor that is there and empty would have a client begin anew, for ever."""

    def sent(path: str) -> Any:
        info = records.SessionInfo(id="a", name="", path=path, cwd="/x", created="", updated="", message_count=1, first_message="")
        return json.loads(encode_json(SessionListResult(sessions=[info], **more)))

    plain, odd = sent("p"), sent("p\udcff")
    assert odd["sessions"][0].pop("path") == "p\udcff"
    del plain["sessions"][0]["path"]
    assert odd == plain


def test_stray_bytes_in_raw_parts_become_replacement_characters() -> None:
    assert encode_json([Raw(b'"a\xffb\xc3"')]) == '["a\ufffdb\ufffd"]'.encode()


def test_what_is_no_json_is_a_type_error() -> None:
    for value in (object(), {"a": object()}, ["\ud800", object()]):
        with pytest.raises(TypeError):
            encode_json(value)


def test_messages_read_back_as_what_they_are() -> None:
    request = decode_message(encode_request("é", "task/get", b'{"a":1}'))
    assert (request.id, request.method, raw(request.params)) == ("é", "task/get", b'{"a":1}')
    assert decode_message(encode_notification("task/didChange", b"{}")).is_notification
    assert raw(decode_message(encode_reply(5, b"[1]")).result) == b"[1]"
    error = decode_message(encode_error(None, ResponseError(1101, "taskNotFound", 'task "\ud800" not found', id="\ud800")))
    assert error.id is None
    assert json.loads(raw(error.error)) == {
        "code": 1101,
        "message": 'task "\ud800" not found',
        "data": {"kind": "taskNotFound", "id": "\ud800"},
    }


def test_rawjson_and_msgspec_agree_on_which_messages_are_json() -> None:
    for text in (b"01", b"1.", b".5", b"-", b'"\t"', b'"\\x"', b"[1,]", b'{"a"}', b"NaN", b"Infinity", b"tru", b'"\\u12"'):
        assert not rawjson.is_valid(text)
        with pytest.raises(Malformed) as error:
            decode_message(b'{"jsonrpc":"2.0","method":"m","x":"\\ud800","params":' + text + b"}")
        assert error.value.code == -32700


@pytest.mark.parametrize("stray", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf"])
def test_a_body_that_is_not_utf8_is_refused_wherever_the_stray_byte_stands(stray: bytes) -> None:
    for body in (
        b'{"jsonrpc":"2.0","id":"%b","method":"m"}' % stray,
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"data":["%b"]}}' % stray,
        b'{"jsonrpc":"2.0","id":1,"method":"m"}%b' % stray,
    ):
        with pytest.raises(Malformed, match="UTF-8") as error:
            decode_message(body)
        assert (error.value.code, error.value.id) == (-32700, None)
