"""What a list shows of a session, found without building its tree: one pass over the lines, continued where the log grew."""

from __future__ import annotations

import os
import stat
from functools import cached_property

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import HEADER_ID, Head, decode_block, read_head, read_header, usual_heads
from crewlog.storage.errors import SessionCorrupt, StorageError, StorageFailed, WouldBlock
from crewlog.storage.locks import Mutex
from crewlog.storage.log import Block, Line, Look
from crewlog.storage.records import EntryKind, Header, SessionInfo
from crewlog.storage.resuming import LogState, ResumableLog
from crewlog.storage.snapshot import session_name

FIRST_MESSAGE = 80
"""Characters of the first message that a list shows; of a longer one the last three are dots."""


class Skipped(msgspec.Struct):
    """A file that cannot be shown, and why."""

    path: str
    reason: str


class _ListLine(msgspec.Struct):
    kind: str | None = ""
    id: str | None = ""
    parent_id: str | None = ""
    timestamp: msgspec.Raw = msgspec.Raw(b"null")
    data: msgspec.Raw = msgspec.Raw(b"")


class _TextBlock(msgspec.Struct):
    text: str | None = ""


class _Metadata(msgspec.Struct):
    injected: msgspec.Raw = msgspec.Raw(b"null")


class _Message(msgspec.Struct):
    role: str | None = ""
    content: list[_TextBlock | None] | None = None
    metadata: _Metadata | None = None


_NEVER = times.parse_ns(times.ZERO)
_line_decoder = msgspec.json.Decoder(_ListLine)
_message_decoder = msgspec.json.Decoder(_Message)


class SummaryState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A summary as it is remembered outside of the process that made it; `newest` as in `NewestTime`."""

    log: LogState
    header: Header
    name: str | None
    messages: int
    first_message: str
    has_first: bool
    newest: dict[bytes, bytes]
    leaf_id: str
    entries: int


class SessionSummary:
    """The summary of one log, brought up to date by `refresh`. Reading never changes the file.

    `state`: what another summary of this log knew; it need not hold any more.
    """

    def __init__(self, path: str, state: SummaryState | None = None) -> None:
        self.path = path
        self.epoch = 0
        """Rises whenever the log had to be read anew from its beginning."""
        self.mutex = Mutex()
        """Held by whoever refreshes it."""
        self._state = state
        self._info: SessionInfo | None = None
        if state is None:
            self._clear()
        else:
            self._resume(state)

    def _clear(self) -> None:
        self._header: Header | None = None
        self._name: str | None = None
        self._messages = 0
        self._first_message = ""
        self._has_first = False
        self._newest = NewestTime({})
        self._leaf_id = HEADER_ID
        self._entries = 0
        self.epoch += 1

    @cached_property
    def _log(self) -> ResumableLog:
        return ResumableLog(self.path, None if self._state is None else self._state.log)

    def refresh(self) -> None:
        """Raises `SessionCorrupt`, `UnsupportedVersion` or `StorageFailed` for a file that is no session."""
        if self._state is not None and self._is_as_remembered(self._state.log):
            return
        look = self._log.look()
        if look is Look.SAME:
            return
        if look is Look.MISSING:
            raise StorageFailed(self.path, "ENOENT", "the file is gone")
        self._info = None
        if look is not Look.GREW:
            self._log.forget()
            self._clear()
        try:
            self._log.read_added(self._accept, self._accept_tail, self._accept_block)
            if self._header is None:
                raise SessionCorrupt(self.path, 0, "empty file")
        except WouldBlock:
            raise  # nothing was read yet
        except BaseException:
            self._log.forget()
            self._clear()
            raise

    def _is_as_remembered(self, log: LogState) -> bool:
        """Most logs do not change any more: of them no more is needed than what was remembered."""
        if "_log" in self.__dict__:
            return False  # it did change
        try:
            return log.fits(os.stat(self.path))
        except OSError:
            return False

    @property
    def read_bytes(self) -> int:
        """How much of the log was read."""
        return self._log.end if self._state is None or "_log" in self.__dict__ else self._state.log.end

    @property
    def leaf_id(self) -> str:
        """The id on the last line that has one."""
        return self._leaf_id

    @property
    def entry_count(self) -> int:
        """Lines with an id, the header not counted."""
        return self._entries

    def state(self) -> SummaryState | None:
        """What can be remembered, as of the last refresh; None where nothing lasting can be said."""
        if self._state is not None and "_log" not in self.__dict__:
            return self._state
        log = self._log.state()
        if log is None or self._header is None:
            return None
        return SummaryState(
            log,
            self._header,
            self._name,
            self._messages,
            self._first_message,
            self._has_first,
            dict(self._newest.by_offset),
            self._leaf_id,
            self._entries,
        )

    def info(self) -> SessionInfo:
        """As of the last refresh."""
        if self._info is None:
            header = self._header or Header()
            self._info = SessionInfo(
                header.session_id,
                header.name if self._name is None else self._name,
                self.path,
                header.cwd,
                header.created,
                self._newest.text or header.created,
                self._messages,
                self._first_message,
            )
        return self._info

    def _resume(self, state: SummaryState) -> None:
        self.epoch = 1
        self._header, self._name = state.header, state.name
        self._messages, self._first_message, self._has_first = state.messages, state.first_message, state.has_first
        self._newest, self._leaf_id, self._entries = NewestTime(state.newest), state.leaf_id, state.entries

    def _accept(self, line: Line) -> None:
        head = read_head(line.content)
        if head is not None and head.id != HEADER_ID:
            if self._header is None:
                raise SessionCorrupt(self.path, line.number, "not a session file")
            self._newest.see(head.timestamp)
            self._count(head.kind, head.id, line.content, head.data_at)
            self._accepted(line, head)
            return
        found = _read_line(line.content)
        if self._header is None:
            self._accept_header(found, line)
        if found is not None:
            self._newest.see(_text_of(found.timestamp).encode("utf-8", "replace"))
            self._count(found.kind or "", found.id or "", bytes(found.data))
        self._accepted(line, None)

    def _accept_block(self, block: Block) -> bool:
        found = decode_block(block, usual_heads)
        if found is None:
            return False
        begin = 0
        while begin < len(found) and (self._header is None or not self._has_first):
            self._accept(block.line(begin))
            begin += 1
        if begin:
            del found[:begin]
        kinds = [entry.kind for entry in found]
        if EntryKind.SESSION_INFO.value in kinds:
            for index in range(begin, len(block.ends)):
                self._accept(block.line(index))
        elif found:
            self._messages += kinds.count(EntryKind.MESSAGE.value)
            self._newest.see_all([entry.timestamp for entry in found])
            ids = [entry.id for entry in found]
            without = ids.count("") + ids.count(None) + ids.count(HEADER_ID)
            self._entries += len(ids) - without
            self._leaf_id = next((entry_id for entry_id in reversed(ids) if entry_id and entry_id != HEADER_ID), self._leaf_id)
        return True

    def _accepted(self, line: Line, head: Head | None) -> None:
        """For those who want to know more of a line; `head` where it is written in the usual way, and not the header."""

    def _count(self, kind: str, entry_id: str, content: bytes, data_at: int = 0) -> None:
        """`content`: the data, or with `data_at` the line that ends in it."""
        if entry_id and entry_id != HEADER_ID:
            self._leaf_id = entry_id
            self._entries += 1
        if kind == EntryKind.MESSAGE:
            self._messages += 1
            if not self._has_first:
                self._see_message(content[data_at:-1] if data_at else content)
        elif kind == EntryKind.SESSION_INFO:
            name = session_name(content[data_at:-1] if data_at else content)
            if name is not None:
                self._name = name

    def _accept_tail(self, line: Line) -> bool:
        if _read_line(line.content) is None:
            if self._header is None:
                raise SessionCorrupt(self.path, line.number, "not a session file")
            return False
        self._accept(line)
        return True

    def _accept_header(self, found: _ListLine | None, line: Line) -> None:
        if found is None or found.kind != EntryKind.HEADER:
            raise SessionCorrupt(self.path, line.number, "not a session file")
        self._header = read_header(found.data, self.path, line.number)
        self._newest.see(_time_of_header(found, self._header).encode("utf-8", "replace"))

    def _see_message(self, data: bytes) -> None:
        try:
            message = rawjson.decode_lenient(data, _message_decoder, _Message)
        except msgspec.MsgspecError:
            return
        if message.role != "user":
            return
        if message.metadata is not None and bytes(message.metadata.injected) == b"true":
            return
        text = next((block.text for block in message.content or [] if block is not None and block.text), "")
        if text:
            self._has_first = True
            self._first_message = text if len(text) <= FIRST_MESSAGE else text[: FIRST_MESSAGE - 3] + "..."


def _read_line(content: bytes) -> _ListLine | None:
    try:
        return _line_decoder.decode(content)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        parts = rawjson.members(content)
    except rawjson.Invalid:
        return None
    kind = rawjson.decode_string(parts.get("kind", b'""'))
    return _ListLine(
        kind,
        rawjson.decode_string(parts.get("id", b'""')),
        "",
        msgspec.Raw(parts.get("timestamp", b"null")),
        msgspec.Raw(parts.get("data", b"")),
    )


def _time_of_header(line: _ListLine, header: Header) -> str:
    """When it was written, or where its line does not say so, as in Go, when the session was created."""
    written = _text_of(line.timestamp)
    return header.created if times.parse_ns(written) in (None, _NEVER) else written


def _text_of(timestamp: msgspec.Raw) -> str:
    """Empty where it is none."""
    return rawjson.decode_string(timestamp) or ""


_PEEK = 4096
_LONGEST_PEEK = 1 << 20


def peek(path: str) -> int | None:
    """About when a session was updated, in nanoseconds since 1970, told by the ends of its log alone. None where it may be no session."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None  # who reads it tells why
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        start = os.pread(descriptor, _PEEK, 0)
        first, end, _ = start.lstrip().partition(b"\n")
        found = _read_line(first) if end else None
        if found is None or found.kind != EntryKind.HEADER:
            return None
        begun = times.parse_ns(_time_of_header(found, read_header(found.data, path, 1))) or 0
        return max(begun, _last_time(descriptor, status.st_size) or status.st_mtime_ns)  # a fork begins after all that it has copied
    except (OSError, StorageError):
        return None  # as above
    finally:
        os.close(descriptor)


def _last_time(descriptor: int, size: int) -> int | None:
    """The time on the last line that has one."""
    length = _PEEK
    while True:
        begin = max(0, size - length)
        data = os.pread(descriptor, size - begin, begin)
        end = len(data)
        while (at := data.rfind(b"\n", 0, end)) >= 0 or not begin:
            moment = _time_on(data[at + 1 : end])
            if moment > 0:
                return moment
            if at < 0:
                return None
            end = at
        if length >= _LONGEST_PEEK:
            return None
        length *= 4


def _time_on(line: bytes) -> int:
    """Not above 0 where there is none."""
    head = read_head(line)
    if head is not None:
        return times.parse_ns(head.timestamp.decode()) or 0
    found = _read_line(line)  # other programs may write it with spaces, or in another order
    return 0 if found is None else times.parse_ns(_text_of(found.timestamp)) or 0


class NewestTime:
    """The newest of many RFC 3339 times. Those of one offset are compared as text, so that few need to be computed with."""

    def __init__(self, by_offset: dict[bytes, bytes]) -> None:
        self.by_offset = by_offset
        """For each offset from UTC the newest time, without the offset: of such texts the greater is the later."""

    def see(self, text: bytes) -> None:
        """What is no time is passed over."""
        length = 1 if text.endswith(b"Z") else 6
        moment, offset = text[:-length].replace(b",", b"."), text[-length:]
        if moment > self.by_offset.get(offset, b"") and times.is_time(text.decode("ascii", "replace")):
            self.by_offset[offset] = moment

    def see_all(self, texts: list[str]) -> None:
        """As `see` for each: where all are of one offset, only the greatest needs to be looked at."""
        offset = texts[-1][-1:] if texts[-1].endswith("Z") else texts[-1][-6:]
        lines = "\n".join(texts)
        moments = lines.removesuffix(offset).split(f"{offset}\n")
        if len(moments) == len(texts) == lines.count("\n") + 1 and "," not in lines:
            latest = max(moments) + offset
            if times.is_time(latest):
                self.see(latest.encode())
                return
        for text in texts:
            self.see(text.encode("utf-8", "replace"))

    @property
    def text(self) -> str:
        """Empty where there was none."""
        if len(self.by_offset) == 1:
            ((offset, moment),) = self.by_offset.items()
            return (moment + offset).decode()
        found = ((moment + offset).decode() for offset, moment in self.by_offset.items())
        return max(found, key=lambda text: times.parse_ns(text) or 0, default="")
