"""Each teammate's conversation: an append-only log of messages, one a line."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.errors import InvalidArgument, SessionCorrupt, StorageError, StorageFailed
from crewlog.storage.files import POWER, Durability
from crewlog.storage.locks import Mutex, require_waiting
from crewlog.storage.log import LONG_READ, AppendLog, BlockReader, Line, Look
from crewlog.storage.messages import message_shape, repair
from crewlog.storage.names import check_name

SUFFIX = ".jsonl"
OPEN_LOGS = 16
"""Logs of one list that stay open after they were written to: each takes two descriptors, and a team may have had hundreds of members."""


class _Transcript:
    """One agent's log: where its lines are."""

    def __init__(self, path: str, durability: Durability, root: str) -> None:
        self.log = AppendLog(path, durability=durability, root=root)
        self.lines: list[tuple[int, int]] = []

    def refresh(self) -> None:
        look = self.log.look()
        if look is Look.SAME:
            return
        if look is not Look.GREW:
            self.log.forget()
            self.lines = []
        if look is not Look.MISSING:
            self.log.read_added(self._accept, self._accept_tail)

    def append(self, lines: Sequence[bytes]) -> int:
        """Under the lock. The count of messages afterwards."""
        self.refresh()
        offset = self.log.append(b"".join(line + b"\n" for line in lines))
        for line in lines:
            self.log.line_count += 1
            self.lines.append((offset, len(line)))
            offset += len(line) + 1
        return len(self.lines)

    def _accept(self, line: Line) -> None:
        if message_shape(line.content) is None and line.content.strip() != b"null":
            reason = "it is no message" if rawjson.is_valid(line.content) else "it is no JSON"
            raise SessionCorrupt(self.log.path, line.number, reason)
        self.lines.append((line.offset, len(line.content)))

    def _accept_tail(self, line: Line) -> bool:
        if not rawjson.is_valid(line.content):
            return False
        self._accept(line)
        return True


class TranscriptStore:
    """The transcripts in the folder `dir`; with "" nothing is kept. Thread-safe. Go: TranscriptStore.

    Agent names are checked (`InvalidName`). Raises `StorageFailed`, `Busy`.
    """

    def __init__(self, dir: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self._dir = dir
        self._durability = durability
        self._root = root or dir
        self._mutex = Mutex()
        self._transcripts: dict[str, _Transcript] = {}
        self._open: OrderedDict[str, None] = OrderedDict()

    def append(self, agent: str, messages: Sequence[bytes | msgspec.Raw]) -> int:
        """Appends all messages or none, each as it is (long thinking too: a resumed agent gets all of it). The count afterwards.

        Raises `InvalidArgument` naming the message, `SessionCorrupt` where the log cannot be read.
        """
        check_name(agent, "agent")
        lines = [_check(raw, f"messages[{index}]") for index, raw in enumerate(messages)]
        if not self._dir:
            return 0
        if not lines:
            return self.count(agent)
        with self._mutex:
            transcript = self._transcript(agent)
            transcript.log.begin_append()
            transcript.refresh()
            self._keep_open(agent)
            made = transcript.log.create_empty()
            try:
                with transcript.log.lock:
                    count = transcript.append(lines)
            except StorageError:
                if made:
                    transcript.log.remove_empty()
                raise
        transcript.log.sync()
        return count

    def load(self, agent: str) -> list[msgspec.Raw]:
        """The whole conversation, repaired as a snapshot is; a torn last line is left out. Raises `SessionCorrupt` for a bad line."""
        return repair(self.page(agent))

    def page(self, agent: str, offset: int = 0, limit: int | None = None) -> list[bytes]:
        """Messages as they are on disk, `limit` of them from number `offset` (from 0) on; not repaired."""
        check_name(agent, "agent")
        if not self._dir:
            return []
        with self._mutex:
            transcript = self._looked_at(agent)
            wanted = transcript.lines[offset : None if limit is None else offset + limit]
            return self._read(transcript, wanted)

    def count(self, agent: str) -> int:
        check_name(agent, "agent")
        if not self._dir:
            return 0
        with self._mutex:
            return len(self._looked_at(agent).lines)

    def agents(self) -> list[tuple[str, int]]:
        """(agent, count of messages) by name; of a log with a bad line the messages before it are counted."""
        if not self._dir:
            return []
        try:
            names = sorted(name for name in os.listdir(self._dir) if name.endswith(SUFFIX) and not name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed.from_os(error, self._dir) from error
        found = []
        with self._mutex:
            for name in names:
                transcript = self._transcript(name[: -len(SUFFIX)])
                try:
                    transcript.refresh()
                except SessionCorrupt:
                    pass  # told when it is loaded; here it must not hide the others
                found.append((name[: -len(SUFFIX)], len(transcript.lines)))
        return found

    def close(self) -> None:
        with self._mutex:
            for transcript in self._transcripts.values():
                transcript.log.close()
            self._transcripts.clear()
            self._open.clear()

    def _transcript(self, agent: str) -> _Transcript:
        found = self._transcripts.get(agent)
        if found is None:
            path = os.path.join(self._dir, agent + SUFFIX)
            found = self._transcripts[agent] = _Transcript(path, self._durability, self._root)
        return found

    def _looked_at(self, agent: str) -> _Transcript:
        """What is there now; of a name that has no transcript nothing is kept."""
        transcript = self._transcript(agent)
        transcript.refresh()
        if not transcript.log.found:
            self._transcripts.pop(agent)
            self._open.pop(agent, None)
            transcript.log.close()
        return transcript

    def _keep_open(self, agent: str) -> None:
        """This log, and of the others those that were written to last."""
        self._open[agent] = None
        self._open.move_to_end(agent)
        while len(self._open) > OPEN_LOGS:
            self._transcripts[self._open.popitem(last=False)[0]].log.close()

    def _read(self, transcript: _Transcript, wanted: list[tuple[int, int]]) -> list[bytes]:
        if not wanted:
            return []
        if sum(length for _, length in wanted) > LONG_READ:
            require_waiting()
        reader = BlockReader(transcript.log.path)
        try:
            return [reader.read(offset, length) for offset, length in wanted]
        finally:
            reader.close()


def _check(raw: bytes | msgspec.Raw, field: str) -> bytes:
    """One line; an object, though not always with a role: codebot writes context summaries that have none."""
    line = rawjson.one_line(raw).strip()
    try:
        rawjson.validate(line)
    except rawjson.Invalid as error:
        raise InvalidArgument(field, str(error)) from None
    if line[:1] != b"{":
        raise InvalidArgument(field, "a message is a JSON object with role and content")
    return line
