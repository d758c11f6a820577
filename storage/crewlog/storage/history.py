"""The input history of all projects, in one append-only log; each project sees its own lines, newest first, each text once.

What is shown is read from the end of the file, so that its length does not matter.
"""

from __future__ import annotations

import builtins
import os
import stat
import time
from collections.abc import Iterator, Mapping

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.errors import InvalidArgument, StorageError, StorageFailed
from crewlog.storage.files import POWER, Durability
from crewlog.storage.locks import Mutex, require_waiting
from crewlog.storage.log import AppendLog
from crewlog.storage.records import HistoryEntry
from crewlog.storage.task_rules import parse_task_number

MAX_SHOWN = 500
MAX_PASTED = 1 << 20
"""Bytes of pasted bodies in one line; beyond that they are stored as empty strings."""
_BLOCK = 64 << 10
_PRINT = 4096
"""Bytes before the known end that are compared when the log grew: somebody may have edited it in place."""


class _Line(msgspec.Struct, rename="camel"):
    display: str
    project: str = ""
    timestamp: int | None = 0
    session_id: str | None = ""
    pasted_contents: dict[str, str] | None = None


_decoder = msgspec.json.Decoder(_Line)


class HistoryLine(msgspec.Struct):
    """A line as it is on disk (`raw`), and its text."""

    display: str
    raw: bytes


class History:
    """The history of one project in the log at `path`. Thread-safe. Go: History. Raises `StorageFailed`; `add` also `Busy`."""

    def __init__(self, path: str, project: str, session_id: str = "", *, durability: Durability = POWER, root: str | None = None) -> None:
        self._log = AppendLog(path, durability=durability, root=root)
        self._project = project
        self._session_id = session_id
        self._mutex = Mutex()
        self._shown: builtins.list[HistoryLine] | None = None
        self._identity: tuple[int, int] = (0, 0)
        self._end = 0
        self._time = 0
        self._print = b""

    def set_session_id(self, session_id: str) -> None:
        """For the lines added from now on."""
        self._session_id = session_id

    def add(self, text: str, pasted_contents: Mapping[str, str] | None = None, *, session_id: str | None = None) -> int:
        """Adds a text, which thereby becomes the newest; one of blanks only is not added. The number of texts afterwards.

        Raises `InvalidArgument` for half of a surrogate pair, and for a pasted body whose key is no whole number: no reader would see it.
        """
        pasted = dict(pasted_contents or {})
        for key in pasted:
            if parse_task_number(key) is None:
                raise InvalidArgument("pastedContents", f"the key of a body is a whole number, which {key[:80]!r} is not")
        if not text.strip():
            return len(self)
        if sum(len(body.encode("utf-8", "surrogatepass")) for body in pasted.values()) > MAX_PASTED:
            pasted = dict.fromkeys(pasted, "")
        entry = HistoryEntry(
            text,
            msgspec.Raw(rawjson.join_members({key: rawjson.encode_string(body) for key, body in pasted.items()})),
            time.time_ns() // 1_000_000,
            self._project,
            self._session_id if session_id is None else session_id,
        )
        try:
            line = msgspec.json.encode(entry)
        except UnicodeEncodeError:
            raise InvalidArgument("text", "it holds half of a surrogate pair") from None
        if not entry.session_id:
            line = line.replace(b',"sessionId":""}', b"}")
        self._log.begin_append()
        with self._mutex:
            shown = self._lines()  # before the effect: the read may be long, and refused
            self._append(line)
        self._log.sync()
        return min(MAX_SHOWN, len(shown) + all(known.display != text for known in shown))

    def _append(self, line: bytes) -> None:
        """Where the last line lacks its line end it is completed, never cut off: a line that nobody can read harms nobody."""
        made = self._log.create_empty()
        try:
            with self._log.lock:
                self._log.begin_at_end()
                self._log.append(line + b"\n")
        except StorageError:
            if made:
                self._log.remove_empty()
            raise

    def get(self, index: int) -> HistoryLine | None:
        """The text at `index`, 0 for the newest; None beyond either end."""
        lines = self._lines()
        return lines[index] if 0 <= index < len(lines) else None

    def __len__(self) -> int:
        return len(self._lines())

    def list(self, offset: int = 0, limit: int | None = None, query: str = "") -> tuple[builtins.list[HistoryLine], int]:
        """A page of the texts that contain `query` (in any case), newest first, and how many there are in all."""
        wanted = query.casefold()
        lines = [line for line in self._lines() if wanted in line.display.casefold()]
        return lines[offset : None if limit is None else offset + limit], len(lines)

    def navigate(self, direction: str, index: int | None = None, prefix: str = "") -> tuple[int, HistoryLine] | None:
        """The next text older or newer than the one at `index` (None: the prompt that is being typed) that begins with `prefix`."""
        if direction not in ("older", "newer"):
            raise InvalidArgument("direction", f"it is older or newer, not {direction!r}")
        lines = self._lines()
        start = -1 if index is None else min(index, len(lines))
        places = range(start + 1, len(lines)) if direction == "older" else range(start - 1, -1, -1)
        return next(((at, lines[at]) for at in places if lines[at].display.startswith(prefix)), None)

    def close(self) -> None:
        with self._mutex:
            self._log.close()

    def _lines(self) -> builtins.list[HistoryLine]:
        with self._mutex:
            try:
                status = os.stat(self._log.path)
            except FileNotFoundError:
                self._shown, self._end = None, 0
                return []
            except OSError as error:
                raise StorageFailed.from_os(error, self._log.path) from error
            if not stat.S_ISREG(status.st_mode):
                raise StorageFailed(self._log.path, "EINVAL", "it is no regular file")  # to open a pipe would wait for its other end
            identity = (status.st_dev, status.st_ino)
            stands = (status.st_size, self._time) == (self._end, status.st_mtime_ns) or status.st_size > self._end
            if self._shown is None or identity != self._identity or not stands:
                self._shown = self._read_from_end(status.st_size)
            elif status.st_size > self._end:
                self._shown = self._with_added(self._shown, status.st_size)
            self._identity, self._end, self._time = identity, status.st_size, status.st_mtime_ns
            return self._shown

    def _with_added(self, shown: builtins.list[HistoryLine], size: int) -> builtins.list[HistoryLine]:
        known = len(self._print)
        try:
            with open(self._log.path, "rb", buffering=0) as file:
                content = os.pread(file.fileno(), size - self._end + known, self._end - known)
        except OSError as error:
            raise StorageFailed.from_os(error, self._log.path) from error
        added = content[known:]
        if not content.startswith(self._print) or (self._print[-1:] not in (b"", b"\n") and not added.startswith(b"\n")):
            return self._read_from_end(size)  # it was edited in place, or something was glued to its last line
        self._print = content[-_PRINT:]
        found = [line for raw in added.split(b"\n") if (line := self._read_line(raw)) is not None]
        merged: dict[str, HistoryLine] = {line.display: line for line in reversed(found)}
        for line in shown:
            merged.setdefault(line.display, line)
        return builtins.list(merged.values())[:MAX_SHOWN]

    def _read_from_end(self, size: int) -> builtins.list[HistoryLine]:
        if size > (1 << 20):
            require_waiting()
        found: dict[str, HistoryLine] = {}
        try:
            with open(self._log.path, "rb", buffering=0) as file:
                self._print = os.pread(file.fileno(), min(_PRINT, size), max(0, size - _PRINT))
            for raw in lines_from_end(self._log.path, size):
                line = self._read_line(raw)
                if line is not None:
                    found.setdefault(line.display, line)
                    if len(found) == MAX_SHOWN:
                        break
        except OSError as error:
            raise StorageFailed.from_os(error, self._log.path) from error
        return builtins.list(found.values())

    def _read_line(self, raw: bytes) -> HistoryLine | None:
        """None for another project's line, an empty text, and a line that cannot be read."""
        if not raw.strip():
            return None
        try:
            line = rawjson.decode_lenient(raw, _decoder, _Line)
        except msgspec.MsgspecError:
            return None
        if line.project != self._project or not line.display:
            return None
        if not all(parse_task_number(key) is not None for key in line.pasted_contents or ()):
            return None  # as in Go, where the keys are whole numbers
        return HistoryLine(line.display, raw.strip())


def lines_from_end(path: str, size: int) -> Iterator[bytes]:
    """The lines of a file from the last to the first, read a block at a time. Raises `OSError`."""
    with open(path, "rb", buffering=0) as file:
        rest: builtins.list[bytes] = []
        at = size
        while at > 0:
            length = min(_BLOCK, at)
            at -= length
            first, *others = os.pread(file.fileno(), length, at).split(b"\n")
            if others:
                rest.append(others.pop())
                yield b"".join(reversed(rest))
                yield from reversed(others)
                rest = [first]
            else:
                rest.append(first)
        yield b"".join(reversed(rest))
