"""A hundred thousand damaged inputs: the server never dies, never hangs, and never answers with an id that nobody sent.

CREWLOG_FUZZ_SEED and CREWLOG_FUZZ_COUNT choose another run; a failure names its seed and the number of its batch.
"""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from crewlog.protocol.envelope import decode_message, decode_params
from crewlog.protocol.errors import ResponseError
from crewlog.protocol.framing import Frame, FrameReader, encode_frame
from crewlog.protocol.methods import METHODS
from crewlog.storage import rawjson

SEED = int(os.environ.get("CREWLOG_FUZZ_SEED", "20260801"))
COUNT = int(os.environ.get("CREWLOG_FUZZ_COUNT", "100000"))
BATCH = 100
PATIENCE = 60.0
LONGEST = 4_000
"""The greatest length that damage announces, but for absurd ones: the server rightly waits for so many bytes."""

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**53, 2**64, 10**40, 1e308, "", "x", "..", "../x", "con", "\x00", "\ud800", "é\u2028", "x" * 300,
    [], {}, [[]], [None], {"": {}}, {"jsonrpc": "2.0", "id": 1, "method": "exit"}, "2026-01-01T00:00:00Z", "h0", "1", "deleted",
]  # fmt: skip
SPLICES = [
    b"\r\n", b"\r\n\r\n", b"\n\n", b"Content-Length: 5\r\n\r\n", b"Content-Length: 0\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"{", b"}",
    b'"', b"\\", b"\\ud800", b"\xff", b"\x00", b"\xc3", b"[" * 1_200, b"1e999", b",", b":", b"null", b"\xef\xbb\xbf", b"NaN",
    b"Content-Length: 99999999999999999999\r\n\r\n", b"content-length: x\r\n", b"X: y\r\n", b'"id":null,', b'"id":1.5,', b'"jsonrpc":"1",',
]  # fmt: skip


class Fuzz:
    """Requests, valid and damaged, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = list(METHODS)

    def value(self, type_: inspect.Type) -> Any:
        """Mostly what is allowed."""
        if self.random.random() < 0.08:
            return self.random.choice(ODD)
        if isinstance(type_, inspect.Metadata):
            return self.value(type_.type)
        if isinstance(type_, inspect.UnionType):
            return self.value(self.random.choice(type_.types))
        if isinstance(type_, inspect.LiteralType):
            return self.random.choice(type_.values)
        if isinstance(type_, inspect.ListType):
            return [self.value(type_.item_type) for _ in range(self.random.randrange(3))]
        if isinstance(type_, inspect.DictType):
            return {self.random.choice("abc"): self.value(type_.value_type) for _ in range(self.random.randrange(3))}
        if isinstance(type_, inspect.StructType):
            return {field.encode_name: self.value(field.type) for field in type_.fields if field.required or self.random.random() < 0.4}
        simple: dict[type, list[Any]] = {
            inspect.StrType: ["a", "b", "1", "2", "message", "h0", "text"],
            inspect.IntType: [0, 1, 2, 50, 1_000],
            inspect.BoolType: [True, False],
            inspect.NoneType: [None],
        }
        return self.random.choice(simple.get(type(type_), [{"role": "user", "content": []}, 5, "x"]))

    def body(self, id: str) -> bytes:
        name = self.random.choice(self.names)
        params = self.value(inspect.type_info(METHODS[name].params))
        if isinstance(params, dict):
            params.pop("waitMs", None)
        message = {"jsonrpc": "2.0", "id": id, "method": name, "params": params}
        if self.random.random() < 0.05:
            message[self.random.choice(list(message))] = self.random.choice(ODD)
        return json.dumps(message, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")

    def damaged(self, data: bytes) -> bytes:
        """Bytes changed, taken out, put in, doubled or cut off, a few times."""
        mutable = bytearray(data)
        for _ in range(self.random.choice((1, 1, 2, 5))):
            if not mutable:
                break
            at = self.random.randrange(len(mutable))
            end = min(len(mutable), at + self.random.choice((1, 2, 8, 40)))
            kind = self.random.randrange(6)
            if kind == 0:
                mutable[at] ^= 1 << self.random.randrange(8)
            elif kind == 1:
                del mutable[at:end]
            elif kind == 2:
                mutable[at:at] = self.random.choice(SPLICES)
            elif kind == 3:
                mutable[at:at] = mutable[at:end]
            elif kind == 4:
                mutable[at:end] = self.random.randbytes(end - at)
            else:
                del mutable[at:]
        return bytes(mutable)

    def message(self, id: str) -> bytes:
        """A frame that is damaged in its body, in its header, in both or in neither."""
        body = self.body(id)
        kind = self.random.random()
        if kind < 0.1:
            return encode_frame(body)
        if kind < 0.6:
            return encode_frame(self.damaged(body))
        if kind < 0.8:
            length = self.random.choice([len(body) + self.random.randrange(-20, 20), self.random.randrange(LONGEST), 10**15, -5])
            return b"Content-Length: %d\r\n\r\n%b" % (length, body)
        header = self.damaged(b"Content-Length: %d\r\nContent-Type: x\r\n\r\n" % len(body))
        return header + body


def is_patient(data: bytes, limit: int = LONGEST) -> bool:
    """Whether no header in it announces so much that the server would have to wait for more than we send."""
    for piece in data.lower().split(b"content-length")[1:]:
        digits = piece.lstrip(b" \t:").split(b"\r")[0].split(b"\n")[0].strip()
        if digits.isdigit() and limit < int(digits) < 1 << 40:
            return False
    return True


def test_reading_and_decoding_raise_nothing_but_errors_for_the_client() -> None:
    fuzz = Fuzz(SEED)
    decoders = {name: msgspec.json.Decoder(method.params) for name, method in METHODS.items()}
    taken = refused = 0
    codes: set[int] = set()
    for number in range(COUNT):
        if number % BATCH == 0:
            reader = FrameReader(limit=LONGEST)  # one that may be skipping a large message would skip all that follows
        for event in reader.feed(fuzz.message(f"f{number}")):
            if not isinstance(event, Frame):
                continue
            try:
                message = decode_message(event.body)
                if message.method in METHODS:
                    method = METHODS[message.method]
                    params = decode_params(message.params, decoders[message.method], method.params)
                    if method.resource is not None:
                        hash(method.resource(params))
                taken += 1
            except ResponseError as error:
                codes.add(error.code)
                refused += 1
    assert codes == {-32700, -32600, -32602}
    assert taken > COUNT / 20
    assert refused > COUNT / 20


class Served:
    """The real process; every reply that comes is put into `replies`."""

    def __init__(self, home: Path, log: Path) -> None:
        self.log = log
        self.sent: deque[bytes] = deque(maxlen=50)
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "crewlog.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=home.parent
            )
        self.replies: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        reader = FrameReader()
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            for event in reader.feed(data):
                assert isinstance(event, Frame), event
                self.replies.put(event.body)
        self.replies.put(None)

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def reply(self, timeout: float = PATIENCE) -> dict[str, bytes] | None:
        """The next reply's members; None when none comes. Fails when the server is gone."""
        try:
            body = self.replies.get(timeout=timeout)
        except queue.Empty:
            return None
        assert body is not None, f"the server is gone: {self.process.wait()}: {self.log.read_text()[-2000:]}"
        return rawjson.members(body)

    def find_the_feet_again(self, sent: bytes, place: str, check: str) -> int:
        """Sends undamaged requests until one is answered, reading all before it; how many replies had an id that was sent.

        An announced length may swallow some of them, but no more than it announced.
        """
        ours = 0
        for number in range(30):
            id = f"{check}-{number}"
            request = {"jsonrpc": "2.0", "id": id, "method": "plan/path", "params": {"name": f"plan-{id}"}}
            frame = encode_frame(json.dumps(request).encode())
            self.send(b"\n" * LONGEST + frame)
            sent += frame
            self.sent.append(sent)
            while (reply := self.reply(timeout=PATIENCE if number > 20 else 1.0)) is not None:
                if "method" in reply:
                    continue
                assert ("result" in reply) != ("error" in reply), place
                assert b'"code":-32603' not in reply.get("error", b""), f"{place}: {self.log.read_text()[-3000:]}"
                if reply["id"] == b"null":
                    continue
                ours += 1
                assert any(was_sent(reply["id"], sent) for sent in self.sent), f"{place}: nobody sent the id {reply['id']!r}"
                if rawjson.decode_string(reply["id"]) == id:
                    assert f"plan-{id}".encode() in reply["result"], place
                    return ours
        raise AssertionError(f"no answer to an undamaged request after {place}")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "home", tmp_path / "log")
    options = {"home": str(tmp_path / "home"), "cwd": str(tmp_path), "durability": "process", "subscribe": False}
    params = {"processId": os.getpid(), "rootUri": None, "capabilities": {}, "initializationOptions": options}
    served.send(encode_frame(json.dumps({"jsonrpc": "2.0", "id": "start", "method": "initialize", "params": params}).encode()))
    reply = served.reply()
    assert reply is not None
    assert "result" in reply
    yield served
    served.process.kill()
    served.process.wait()


def test_the_server_never_dies_hangs_or_answers_with_an_id_that_nobody_sent(served: Served) -> None:
    fuzz = Fuzz(SEED + 1)
    answered = 0
    for batch in range(COUNT // BATCH):
        messages = [fuzz.message(f"f{batch}-{number}") for number in range(BATCH)]
        sent = b"".join(message for message in messages if is_patient(message) and b'"exit"' not in message and b"shutdown" not in message)
        served.send(sent if is_patient(sent) else encode_frame(b"{}"))
        answered += served.find_the_feet_again(sent, f"seed {SEED}, batch {batch}", f"check{batch}")
    assert answered > COUNT / 20
    assert served.find_the_feet_again(b"", f"seed {SEED}, all", "last")


def was_sent(id: bytes, sent: bytes) -> bool:
    """Whether a message could have had that id: in plain text, or with escapes."""
    text = rawjson.decode_string(id)
    spellings = [id] if text is None else [id, text.encode("utf-8", "surrogatepass"), json.dumps(text).encode()]
    return any(spelling in sent for spelling in spellings)
