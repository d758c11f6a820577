"""What becomes of messages that are odd, damaged, huge, or come in odd pieces (cases, D)?"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from server.rawclient import COMMAND, TIMEOUT, RawClient, RpcError, frame, serving


def request(id: Any, method: str = "task/list", params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {"listId": "x"} if params is None else params}


def errors_without_id(client: RawClient) -> list[dict[str, Any]]:
    return [message["error"] for message in _null_replies(client)]


def _null_replies(client: RawClient) -> list[dict[str, Any]]:
    return client._replies.get(None, [])


def test_bytes_may_come_one_by_one(client: RawClient) -> None:
    for byte in frame(request(1)):
        client.send_raw(bytes([byte]))
    assert client.wait(1)["items"] == []


def test_many_messages_may_come_at_once(client: RawClient) -> None:
    client.send_raw(b"".join(frame(request(number)) for number in range(1, 501)))
    for number in range(1, 501):
        assert client.wait(number)["items"] == []


def test_headers_may_stand_in_any_order_and_case(client: RawClient) -> None:
    body = json.dumps(request(1)).encode()
    client.send_raw(b"content-type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:%d\r\n\r\n%b" % (len(body), body))
    assert client.wait(1)["items"] == []
    body = json.dumps(request(2)).encode()
    client.send_raw(b"Content-Length: %d\r\nX-Unknown: of no meaning\r\n\r\n%b" % (len(body), body))
    assert client.wait(2)["items"] == []


@pytest.mark.parametrize("body", [b"", b"not json", b'{"jsonrpc":"2.0","id":1,', b"\xff\xfe", b"{'jsonrpc':'2.0'}", b"\x00" * 100])
def test_a_body_that_is_not_json_is_told_and_the_connection_goes_on(client: RawClient, body: bytes) -> None:
    client.send_raw(frame(body))
    client.send(request(1))
    assert client.wait(1)["items"] == []
    error = client.wait_reply(None)
    assert error["id"] is None
    assert error["error"]["code"] == -32700
    assert error["error"]["data"]["kind"] == "parseError"


@pytest.mark.parametrize(
    "message",
    [
        {"id": 7, "method": "task/list"},
        {"jsonrpc": "1.0", "id": 7, "method": "task/list"},
        {"jsonrpc": "2.0", "id": 7, "method": 5},
        {"jsonrpc": "2.0", "id": 7, "method": ""},
        {"jsonrpc": "2.0", "id": 7},
        {"jsonrpc": 2.0, "id": 7, "method": "task/list"},
    ],
)
def test_a_message_that_is_no_request_is_refused_under_its_id(client: RawClient, message: dict[str, Any]) -> None:
    client.send(message)
    reply = client.wait_reply(7)
    assert reply["error"]["code"] == -32600
    assert reply["error"]["data"]["kind"] == "invalidRequest"


@pytest.mark.parametrize("message", [[], [request(1)], "text", 5, None, True, {}, {"jsonrpc": "2.0", "id": None, "method": "task/list"}])
def test_what_is_no_message_is_refused_without_id(client: RawClient, message: object) -> None:
    client.send(message)
    assert client.wait_reply(None)["error"]["code"] == -32600
    assert client.request("task/list", {"listId": "x"})["items"] == []


@pytest.mark.parametrize("id", [0, -1, "", "0", "ein é", 2**53, -(2**31), 'a\nb"c\\', "\u2028"])
def test_any_whole_number_or_string_is_an_id(client: RawClient, id: Any) -> None:
    client.send(request(id))
    assert client.wait(id)["items"] == []


@pytest.mark.parametrize("id", [1.5, True, [1], {"a": 1}, 1e400 if False else 0.5])
def test_other_ids_are_refused_and_never_confused(client: RawClient, id: Any) -> None:
    client.send(request(1))
    client.send(request(id))
    assert client.wait(1)["items"] == []
    assert client.wait_reply(None)["error"]["code"] == -32600
    assert not client.has_reply(1)


def test_two_requests_with_one_id_get_two_replies(client: RawClient, home: Path) -> None:
    """The second is refused while the first is on its way; afterwards the id is free again."""
    waiting = client.start("task/claimNext", {"listId": "x", "owner": "a", "waitMs": 60_000}, id=5)
    client.send(request(5, "task/create", {"listId": "x", "subject": "never made"}))
    refused = client.wait_reply(5)
    assert refused["error"]["code"] == -32600
    assert client.request("task/list", {"listId": "x"})["items"] == []
    client.cancel(waiting)
    assert client.wait_reply(5)["error"]["code"] == -32800
    client.send(request(5))
    assert client.wait(5)["items"] == []


@pytest.mark.parametrize("params", [[], ["x"], 5, "x", True])
def test_params_must_be_an_object(client: RawClient, params: Any) -> None:
    client.send({"jsonrpc": "2.0", "id": 1, "method": "task/list", "params": params})
    error = client.wait_reply(1)["error"]
    assert (error["code"], error["data"]["kind"], error["data"]["field"]) == (-32602, "invalidParams", "$")


def test_no_params_and_null_are_no_fields(client: RawClient) -> None:
    for message in ({"jsonrpc": "2.0", "id": 1, "method": "task/list"}, {"jsonrpc": "2.0", "id": 1, "method": "task/list", "params": None}):
        client.send(message)
        error = client.wait_reply(1)["error"]
        assert (error["code"], error["data"]["field"]) == (-32602, "$.listId")
    client.send({"jsonrpc": "2.0", "id": 1, "method": "session/list"})
    assert client.wait(1)["sessions"] == []


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("session/append", {"sessionId": "a", "entries": [{"data": {}}]}, "$.entries[0].kind"),
        ("session/append", {"sessionId": "a", "entries": [{"kind": "message", "data": {}}, {"kind": 7}]}, "$.entries[1].kind"),
        ("session/append", {"sessionId": "a", "entries": {}}, "$.entries"),
        ("session/append", {"entries": []}, "$.sessionId"),
        ("session/list", {"limit": 0}, "$.limit"),
        ("session/list", {"limit": "5"}, "$.limit"),
        ("session/list", {"cursor": "nonsense"}, "$.cursor"),
        ("session/list", {"cursor": "W1tb" * 10_000}, "$.cursor"),  # 30,000 brackets
        ("session/list", {"cwd": "relative"}, "$.cwd"),
        ("session/list", {"cwd": ""}, "$.cwd"),
        ("session/create", {"cwd": "/a\0b"}, "$.cwd"),
        ("session/create", {"cwd": ["/"]}, "$.cwd"),
        ("session/open", {}, "$.sessionId"),
        ("session/open", {"sessionId": "a", "path": "/b"}, "$.sessionId"),
        ("session/open", {"path": "relative.jsonl"}, "$.path"),
        ("session/entries", {"sessionId": "a", "maxBytes": -1}, "$.maxBytes"),
        ("session/export", {"sessionId": "a", "format": "pdf"}, "$.format"),
        ("session/stats", {"since": "yesterday"}, "$.since"),
        ("history/navigate", {"direction": "up"}, "$.direction"),
        ("history/list", {"offset": -1}, "$.offset"),
        ("history/add", {"text": "t", "pastedContents": {"one": "body"}}, "$.pastedContents"),
        ("task/create", {"listId": "x"}, "$.subject"),
        ("task/create", {"listId": "x", "subject": "s", "metadata": []}, "$.metadata"),
        ("task/create", {"listId": "x", "subject": "s", "blocks": ["1", 2]}, "$.blocks[1]"),
        ("task/update", {"listId": "x", "id": "1", "status": "done"}, "$.status"),
        ("task/update", {"listId": "x", "id": "1", "subject": None}, "$.subject"),
        ("task/list", {"listId": "x", "status": "open"}, "$.status"),
        ("task/claim", {"listId": "x", "id": "1", "owner": ""}, "$.owner"),
        ("task/claim", {"listId": "x", "id": "1"}, "$.owner"),
        ("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 0}, "$.leaseMs"),
        ("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": -5}, "$.leaseMs"),
        ("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 2**53}, "$.leaseMs"),
        ("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": "60000"}, "$.leaseMs"),
        ("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 1.5}, "$.leaseMs"),
        ("task/claimNext", {"listId": "x", "owner": "a", "waitMs": -1}, "$.waitMs"),
        ("task/claimNext", {"listId": "x", "owner": "a", "match": "tag"}, "$.match"),
        ("task/renew", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 0}, "$.leaseMs"),
        ("roster/upsertMember", {"listId": "x", "member": []}, "$.member"),
        ("roster/upsertMember", {"listId": "x", "member": {"name": 5}}, "$.member.name"),
        ("transcript/append", {"listId": "x", "agent": "a", "messages": [5]}, "$.messages[0]"),
        ("transcript/append", {"listId": "x", "agent": "a", "messages": {}}, "$.messages"),
        ("plan/save", {"name": "p"}, "$.content"),
        ("subscribe", {"topics": ["task", "weather"]}, "$.topics[1]"),
        ("subscribe", {"listIds": "x"}, "$.listIds"),
    ],
)
def test_a_wrong_param_is_named_by_its_path(client: RawClient, home: Path, method: str, params: Any, field: str) -> None:
    with pytest.raises(RpcError) as caught:
        client.request(method, params)
    assert (caught.value.code, caught.value.kind) == (-32602, "invalidParams")
    assert caught.value.data["field"] == field
    assert len(caught.value.message) > len(field)
    assert not home.exists()


def test_unknown_params_are_ignored(client: RawClient) -> None:
    task = client.request("task/create", {"listId": "x", "subject": "s", "colour": "red", "jsonrpc": {"jsonrpc": "2.0"}})
    assert task["subject"] == "s"
    assert "colour" not in task


def test_unknown_methods_are_refused_and_unknown_notifications_ignored(client: RawClient) -> None:
    for method in ("no/such", "textDocument/hover", "$/nothing", "workspace/symbol", "task", "task/", "Task/List"):
        with pytest.raises(RpcError) as caught:
            client.request(method, {})
        assert (caught.value.code, caught.value.kind) == (-32601, "methodNotFound")
    client.notify("no/such", {"a": 1})
    client.notify("$/nothing")
    client.notify("textDocument/didOpen", {"textDocument": {"uri": "file:///a", "languageId": "x", "version": 1, "text": "hi"}})
    client.notify("textDocument/didChange", {"nonsense": True})
    client.notify("notebookDocument/didClose", 5)
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.notify("workspace/didChangeConfiguration", [1])
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}})
    client.notify("$/setTrace", {"value": "off"})
    client.notify("$/setTrace", {"value": 17})
    client.notify("window/workDoneProgress/cancel", {"token": 5})
    client.notify("$/cancelRequest", {"id": 999})
    client.notify("$/cancelRequest", {})
    client.notify("$/cancelRequest", [])
    client.notify("$/progress", {"token": 1, "value": 2})
    client.ping()
    assert client.messages == []


def test_a_method_sent_as_notification_is_done_without_an_answer(client: RawClient) -> None:
    client.notify("task/create", {"listId": "x", "subject": "s"})
    client.notify("task/create", {"listId": "x"})
    client.notify("task/create", {"listId": "..", "subject": "s"})
    assert [task["subject"] for task in client.request("task/list", {"listId": "x"})["items"]] == ["s"]
    assert not any(client.has_reply(id) for id in (None, 1))


def test_a_response_nobody_asked_for_is_ignored(client: RawClient) -> None:
    client.send({"jsonrpc": "2.0", "id": 1, "result": None})
    client.send({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}})
    client.send({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "no"}})
    client.send({"jsonrpc": "2.0", "result": 5})
    client.ping()


def test_a_client_that_counts_characters_is_understood_again(client: RawClient) -> None:
    """`Content-Length` in characters, body with é: an error, and at the latest the message after the next is read (cases, 19)."""
    body = json.dumps(request("short", params={"listId": "é" * 40}), ensure_ascii=False)
    client.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body.encode()))
    for number in range(3):
        client.send(request(number))
    assert client.wait(2)["items"] == []
    assert client.wait_reply(None)["error"]["code"] in (-32700, -32600)


def test_a_length_that_is_too_long_swallows_one_message_at_the_most(client: RawClient) -> None:
    body = json.dumps(request("long")).encode()
    client.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body) + 10, body))
    for number in range(4):
        client.send(request(number))
    assert client.wait(3)["items"] == []


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"{}",
        b"{}\n",
        os.urandom(2000).replace(b"C", b"c"),
        b"a" * 100_000,
        b"\x00" * 5000 + b"\n",
        b"Content-Length: 99999999999999999999999999\r\n\r\n",
    ],
)
def test_noise_between_messages_is_passed_over(client: RawClient, noise: bytes) -> None:
    client.send(request("before"))
    client.send_raw(noise)
    client.send_raw(b"\r\n\r\n")
    for number in range(3):
        client.send(request(number))
    assert client.wait("before")["items"] == []
    assert client.wait(2)["items"] == []


def test_a_message_over_the_limit_is_refused_without_being_held(home: Path) -> None:
    with serving(home, arguments=("--max-message-bytes", "100000")) as client:
        before = _memory(client)
        client.send_raw(b"Content-Length: 300000000\r\n\r\n")
        error = client.wait_reply(None)["error"]
        assert (error["code"], error["data"]["kind"], error["data"]["limit"]) == (1303, "tooLarge", 100_000)
        chunk = b"x" * 1_000_000
        for _ in range(300):
            client.send_raw(chunk)
        client.ping()
        assert _memory(client) - before < 20_000_000
        client.send(request("again"))
        assert client.wait("again")["items"] == []


def test_the_limit_is_256_mebibytes_unless_set(client: RawClient) -> None:
    client.send_raw(b"Content-Length: %d\r\n\r\n" % ((256 << 20) + 1))
    assert client.wait_reply(None)["error"]["data"]["limit"] == 256 << 20
    for _ in range(257):
        client.send_raw(b" " * (1 << 20))
    client.ping()


def test_a_message_of_100_megabytes_goes_in_and_out(client: RawClient) -> None:
    session = client.request("session/create")["session"]["id"]
    text = "é0123456789" * 8_700_000
    client.request(
        "session/append",
        {"sessionId": session, "entries": [{"kind": "message", "data": {"role": "user", "content": [{"type": "text", "text": text}]}}]},
        timeout=120,
    )
    snapshot = client.request("session/snapshot", {"sessionId": session}, timeout=120)
    assert snapshot["messages"][0]["content"][0]["text"] == text
    page = client.request("session/entries", {"sessionId": session, "maxBytes": 100_000})
    assert len(json.dumps(page)) < 200_000


def test_payloads_come_back_as_they_were_sent(client: RawClient) -> None:
    """Numbers beyond 2^53, odd keys, a key `jsonrpc`, lone surrogates, deep nesting: to the byte."""
    session = client.request("session/create")["session"]["id"]
    deep = b"[" * 3000 + b"]" * 3000
    sent = (
        b'{"role":"user","content":[],"timestamp":"2026-03-01T09:30:00.123456789+08:00","big":123456789012345678901234567890,'
        b'"exp":1e400,"jsonrpc":"1.0","nested":{"jsonrpc":"2.0","method":"x","id":5,"file-path":1,"class":2,"type_name":"y"},'
        b'"lone":"\\ud800","sep":"\\u2028\xe2\x80\xa8\\u0085\\f\\u0000","slash":"a\\/b","deep":%b}' % deep
    )
    body = b'{"jsonrpc":"2.0","id":"raw","method":"session/append","params":{"sessionId":"%b","entries":[{"kind":"message","data":%b}]}}'
    client.send_raw(frame(body % (session.encode(), sent)))
    assert client.wait("raw")["leafId"]
    path = Path(client.request("session/open", {"sessionId": session})["session"]["path"])
    assert sent in path.read_bytes()
    raw = subprocess_request(client, session)
    assert sent in raw


def subprocess_request(client: RawClient, session: str) -> bytes:
    """The bytes of a snapshot's reply, from a server of its own."""
    home = client.request("crewlog/status")["home"]
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "initializationOptions": {"home": home}}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/snapshot", "params": {"sessionId": session}},
    ]
    return subprocess.run(COMMAND, input=b"".join(map(frame, asked)), capture_output=True, timeout=TIMEOUT).stdout


def test_a_raw_line_break_between_tokens_makes_no_second_line(client: RawClient) -> None:
    session = client.request("session/create")["session"]["id"]
    body = (
        '{"jsonrpc":"2.0","id":"nl","method":"session/append","params":{"sessionId":"%s","entries":[{"kind":"x",\n"data":{\r\n"a":\n1}}]}}'
    )
    client.send_raw(frame((body % session).encode()))
    client.wait("nl")
    path = Path(client.request("session/open", {"sessionId": session})["session"]["path"])
    assert len(path.read_bytes().splitlines()) == 2
    assert client.request("session/entries", {"sessionId": session})["entries"][-1]["data"] == {"a": 1}


def test_nothing_but_frames_reaches_the_client(home: Path, tmp_path: Path) -> None:
    """A print, a C library writing to descriptor 1, a child process, a warning at import (cases, 21)."""
    script = tmp_path / "noisy.py"
    script.write_text(
        "import ctypes, os, subprocess, sys, threading, time, warnings\n"
        "import crewlog.server.__main__ as entry\n"
        "streams = os.fstat(1).st_ino\n"
        "def shout():\n"
        "    libc = ctypes.CDLL(None)\n"
        "    while os.fstat(1).st_ino == streams:  # what is said before the server has begun is not the server's\n"
        "        time.sleep(0.001)\n"
        "    while True:\n"
        "        time.sleep(0.002)\n"
        "        print('printed', flush=True)\n"
        "        sys.stdout.write('written\\n'); sys.stdout.flush()\n"
        "        os.write(1, b'descriptor 1\\n')\n"
        "        libc.puts(b'from C'); libc.fflush(None)\n"
        "        warnings.warn('a warning')\n"
        "        subprocess.run(['echo', 'from a child'])\n"
        "threading.Thread(target=shout, daemon=True).start()\n"
        "sys.argv = ['crewlog']\n"
        "sys.exit(entry.main([]))\n"
    )
    with serving(home, command=[sys.executable, "-P", str(script)]) as client:
        for number in range(100):
            client.request("task/create", {"listId": "x", "subject": f"{number}"})
            time.sleep(0.002)
    assert b"from a child" in client.stderr
    assert b"descriptor 1" in client.stderr
    assert b"from C" in client.stderr


def test_standard_error_that_is_the_clients_stream_is_closed_to_all(home: Path, tmp_path: Path) -> None:
    """`2>&1`: then nothing can be told there."""
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "initializationOptions": {"home": str(home)}}}
    ]
    command = [sys.executable, "-P", "-m", "crewlog.server", "--log-level", "debug"]
    done = subprocess.run(
        command,
        input=b"nonsense\r\n\r\n" + frame(asked[0]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT,
        cwd=tmp_path,
    )
    rest = done.stdout
    while rest:
        header, _, rest = rest.partition(b"\r\n\r\n")
        assert header.startswith(b"Content-Length: ")
        length = int(header[16:])
        json.loads(rest[:length])
        rest = rest[length:]


def test_a_client_that_does_not_read_costs_no_memory(home: Path) -> None:
    """10,000 notifications are due to a client that does not read; when it does, it has the final state (cases, 20)."""
    with serving(home, {"subscribe": {"topics": ["task"], "listIds": ["x"]}}) as writer:
        reader = RawClient(home, {"durability": "process"}, initialize=False, read=False)
        reader.send(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {"processId": os.getpid(), "initializationOptions": {"home": str(home), "durability": "process"}},
            }
        )
        reader.send({"jsonrpc": "2.0", "id": 2, "method": "subscribe", "params": {"topics": ["task"], "listIds": ["x"]}})
        time.sleep(1)
        before = _memory(reader)
        writer.request("task/create", {"listId": "x", "subject": "s"})
        ids = []
        for number in range(10_000):
            ids.append(writer.start("task/update", {"listId": "x", "id": "1", "description": f"{number} {'x' * 1000}"}))
            if len(ids) > 100:
                writer.wait(ids.pop(0))
        for id in ids:
            writer.wait(id)
        time.sleep(0.5)
        assert _memory(reader) - before < 20_000_000
        import threading

        thread = threading.Thread(target=reader._read, daemon=True)
        thread.start()
        final = reader.wait_notification(
            "task/didChange", lambda p: any(task.get("description", "").startswith("9999 ") for task in p["changed"])
        )
        assert final["counts"]["total"] == 1
        told = reader.notifications("task/didChange")
        assert len(told) < 1000
        assert [p["revision"] for p in told] == list(range(told[0]["revision"], told[0]["revision"] + len(told)))
        assert reader.close() == 0


def test_a_client_that_asks_without_reading_is_made_to_wait(home: Path) -> None:
    """Replies are owed, so its requests are no longer read instead."""
    with serving(home) as client:
        session = client.request("session/create")["session"]["id"]
        data = {"role": "user", "content": [{"type": "text", "text": "x" * 1_000_000}]}
        client.request("session/append", {"sessionId": session, "entries": [{"kind": "message", "data": data}]})
    glutton = RawClient(home, initialize=False, read=False)
    glutton.send(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "initializationOptions": {"home": str(home)}}}
    )
    asked = 300
    for id in range(2, asked + 2):
        glutton.send({"jsonrpc": "2.0", "id": id, "method": "session/snapshot", "params": {"sessionId": session}})
    time.sleep(1.5)
    assert _memory(glutton) < 150_000_000
    import threading

    threading.Thread(target=glutton._read, daemon=True).start()
    for id in range(2, asked + 2):
        assert glutton.wait(id, 60)["leafId"]
    assert glutton.close() == 0


def test_replies_of_a_pipelined_burst_all_come(client: RawClient) -> None:
    ids = [client.start("task/create", {"listId": f"l{number % 7}", "subject": f"{number}"}) for number in range(2000)]
    for id in ids:
        client.wait(id)
    for number in range(7):
        items = client.request("task/list", {"listId": f"l{number}"})["items"]
        assert [item["subject"] for item in items] == [str(n) for n in range(2000) if n % 7 == number]


def test_random_pieces_of_many_messages(client: RawClient) -> None:
    rng = random.Random(7)
    stream = b"".join(frame(request(number)) for number in range(300))
    at = 0
    while at < len(stream):
        size = rng.choice([1, 2, 3, 17, 80, 4096])
        client.send_raw(stream[at : at + size])
        at += size
    for number in range(300):
        assert client.wait(number)["items"] == []


def _memory(client: RawClient) -> int:
    """Resident bytes."""
    if not Path("/proc").is_dir():
        pytest.skip("the system does not tell a process's memory in /proc")
    text = Path(f"/proc/{client.process.pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def test_an_empty_id_is_an_id_that_nothing_has(client: RawClient) -> None:
    """Left out, it stands for the leaf; a client that sends "" has lost its id."""
    session = client.request("session/create")["session"]["id"]
    client.request("session/append", {"sessionId": session, "entries": [{"kind": "note", "data": {}}]})
    for method, params in [
        ("session/fork", {"entryId": ""}),
        ("session/entries", {"leafId": ""}),
        ("session/snapshot", {"atEntryId": ""}),
        ("session/rewind", {"entryId": ""}),
    ]:
        with pytest.raises(RpcError) as caught:
            client.request(method, {"sessionId": session, **params})
        assert caught.value.kind == "entryNotFound", method
    assert len(client.request("session/list")["sessions"]) == 1


def test_half_surrogate_pairs_are_kept_in_keys_and_texts(client: RawClient, home: Path) -> None:
    member = b'{"name":"a","agent_type":"t","\\ud800":{"\\udfff":["\\ud800"]}}'
    body = b'{"jsonrpc":"2.0","id":"m","method":"roster/upsertMember","params":{"listId":"x","member":' + member + b"}}"
    client.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    assert client.wait("m")["members"][0] == {"name": "a", "agent_type": "t", "\ud800": {"\udfff": ["\ud800"]}}
    assert b'"\\ud800": {' in (home / "tasks" / "x" / "team" / "roster.json").read_bytes()
    client.request("roster/upsertMember", {"listId": "x", "member": {"name": "b", "agent_type": "t"}})
    assert b'"\\udfff": [' in (home / "tasks" / "x" / "team" / "roster.json").read_bytes()
