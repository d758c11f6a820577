"""`file:` URIs, as editors write them."""

from __future__ import annotations

import os
import re

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_DRIVE = re.compile(r"/[A-Za-z]:(?:/|$)")


def path_of(uri: str) -> str | None:
    """The path that a `file:` URI names on this system; None for other schemes, and for what is no URI.

    Percent escapes are bytes of the file system's encoding. On Windows `file:///c%3A/x` is `c:\\x` and `file://host/share` is
    `\\\\host\\share`; elsewhere a host other than `localhost` names no file here.
    """
    if uri[:5].lower() != "file:":
        return None
    rest = uri[5:].partition("#")[0].partition("?")[0]
    host = ""
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    path = _unescape(rest)
    if not path.startswith("/") or "\0" in path:
        return None
    if os.name == "nt":
        if host and host.lower() != "localhost":
            return "\\\\" + host + path.replace("/", "\\")
        return (path[1:] if _DRIVE.match(path) else path).replace("/", "\\")
    return path if host.lower() in ("", "localhost") else None


def _unescape(text: str) -> str:
    raw = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), text.encode("utf-8", "surrogatepass"))
    return os.fsdecode(raw)
