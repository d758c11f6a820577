"""A server that does what a test asks of it. Run as a script; it uses nothing of Crewlog, so that it can be wrong on purpose.

Methods: x/echo gives the params back; x/never answers when it is cancelled; x/late answers its params when it is cancelled; x/deaf
never answers; x/error fails with the params; x/write writes hex bytes to the stream as they are; x/tell sends the messages given and
then answers; x/ask sends a request and answers with the client's reply; x/log gives all messages so far; x/die ends the process;
x/doze reads nothing for some seconds. `--stubborn` answers no shutdown, and ignores exit, the end of its input and SIGTERM.
"""

import json
import os
import signal
import sys
import time
from typing import Any

Json = dict[str, Any]
TASK = {
    "id": "1",
    "subject": "s",
    "status": "in_progress",
    "owner": "me",
    "blocks": [],
    "blockedBy": [],
    "claim": {"owner": "me", "generation": 41},
}
STUBBORN = "--stubborn" in sys.argv
MUTE = "--mute" in sys.argv
source, sink = sys.stdin.buffer, sys.stdout.buffer
log: list[Json] = []
waiting: dict[object, Json] = {}


def send(message: Json) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sink.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sink.flush()


def answer(id: object, result: object) -> None:
    send({"id": id, "result": result})


def receive() -> Json:
    length = 0
    while (line := source.readline()) != b"\r\n":
        if not line:
            end()
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    message: Json = json.loads(source.read(length))
    return message


def end() -> None:
    while STUBBORN:
        time.sleep(1)
    os._exit(0)


def cancel(id: object) -> None:
    request = waiting.pop(id, None)
    if request is None or request["method"] == "x/deaf":
        return
    if request["method"] == "x/late":
        answer(id, request["params"])
    elif request["method"] == "task/claimNext":
        answer(id, TASK)
    else:
        send({"id": id, "error": {"code": -32800, "message": "cancelled", "data": {"kind": "requestCancelled"}}})


def initialize(id: object, params: Json) -> None:
    about = {"protocolVersion": 1, "home": "/home", "projectId": "-p", "methods": [], "notifications": []}
    about["given"] = params
    answer(id, {"capabilities": {"experimental": {"crewlog": about}}, "serverInfo": {"name": "fake", "version": "1"}})


def handle(message: Json) -> None:
    id, method, params = message.get("id"), message.get("method", ""), message.get("params") or {}
    log.append(message)
    if method == "initialize":
        if not MUTE:
            initialize(id, params)
    elif method == "exit":
        end()
    elif method == "shutdown":
        if not STUBBORN:
            answer(id, None)
    elif method == "$/cancelRequest":
        cancel(params["id"])
    elif method in ("x/never", "x/late", "x/deaf", "task/claimNext"):
        waiting[id] = message
    elif method == "x/echo":
        answer(id, params)
    elif method == "x/error":
        send({"id": id, "error": params})
    elif method == "x/write":
        sink.write(bytes.fromhex(params["hex"]))
        sink.flush()
        answer(id, None)
    elif method == "x/tell":
        for told in params["messages"]:
            send(told)
        answer(id, None)
    elif method == "x/ask":
        send({"id": "ask", "method": params["asks"], "params": {}})
        reply = receive()
        answer(id, reply)
    elif method == "x/log":
        answer(id, log)
    elif method == "x/die":
        os._exit(params["code"])
    elif method == "x/doze":
        answer(id, None)
        time.sleep(params["seconds"])
    elif method == "task/release":
        answer(id, TASK)


if STUBBORN:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    handle(receive())
