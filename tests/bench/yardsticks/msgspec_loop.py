"""The limit: twenty lines that read a message, decode it with msgspec and write a reply."""

import sys

import msgspec


class Request(msgspec.Struct):
    method: str
    id: int = 0
    params: msgspec.Raw = msgspec.Raw(b"null")


decode = msgspec.json.Decoder(Request).decode
encode = msgspec.json.Encoder().encode
source, sink = sys.stdin.buffer, sys.stdout.buffer
while header := source.readline():
    source.readline()
    request = decode(source.read(int(header[16:])))
    body = encode({"jsonrpc": "2.0", "id": request.id, "result": {"id": "1", "subject": "one", "status": "pending"}})
    sink.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sink.flush()
