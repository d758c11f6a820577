"""The sessions of one project: making, finding, opening and listing them."""

from __future__ import annotations

import functools
import os

import msgspec

from crewlog.storage import rawjson, stopping, times
from crewlog.storage.entries import HEADER_ID, VERSION, new_id, write_entry
from crewlog.storage.errors import SessionCorrupt, SessionNotFound, StorageError, StorageFailed, WouldBlock
from crewlog.storage.files import POWER, Durability, unlink_quietly
from crewlog.storage.listing import SessionSummary, Skipped
from crewlog.storage.locks import Mutex
from crewlog.storage.log import AppendLog
from crewlog.storage.names import check_name
from crewlog.storage.records import Entry, EntryKind, SessionInfo
from crewlog.storage.sessions import SessionStore

SUFFIX = ".jsonl"
_Names = list[str]
_Infos = list[SessionInfo]
_SkippedFiles = list[Skipped]


class SessionList(msgspec.Struct):
    """`sessions`: newest `updated` first. `skipped`: the files that are no session, with their reasons."""

    sessions: list[SessionInfo]
    skipped: list[Skipped]


class SessionManager:
    """The session logs in the folder `dir`. Thread-safe. Go: Manager.

    `root`: the folder that symbolic links must not lead a write out of (default: `dir`).
    """

    def __init__(self, dir: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.dir = dir
        self.durability = durability
        self.root = root or dir
        self._mutex = Mutex()
        self._summaries: dict[str, SessionSummary] = {}

    def create(self, cwd: str, *, name: str = "") -> SessionStore:
        """A new session for the working directory `cwd`. Raises `StorageFailed`."""
        session_id, path = self._new_session()
        return self.write_new(path, session_id, cwd, name, b"")

    def write_new(self, path: str, session_id: str, cwd: str, name: str, more: bytes) -> SessionStore:
        """A new log at `path`: a header, then the lines of `more`, written together. Raises `StorageFailed`."""
        created = times.now()
        parts = {"version": b"%d" % VERSION, "session_id": rawjson.encode_string(session_id), "name": rawjson.encode_string(name)}
        if not name:
            del parts["name"]
        parts.update(cwd=rawjson.encode_string(cwd), created=rawjson.encode_string(created))
        line = write_entry(Entry(EntryKind.HEADER, HEADER_ID, "", created, msgspec.Raw(rawjson.join_members(parts))))
        log = AppendLog(path, durability=self.durability, root=self.root)
        log.create(line + more)
        log.close()
        try:
            return self.open_path(path)
        except StorageError:
            unlink_quietly(path)
            raise

    def fork(self, source: SessionStore, cwd: str, entry_id: str | None = None) -> SessionStore:
        """A new session that holds `source`'s chain up to `entry_id` (default: its leaf), entries as they are.

        Raises `EntryNotFound`, `SessionCorrupt` where the chain does not reach the header, `StorageFailed`.
        """
        chain, broken = source.chain(entry_id)
        if broken is not None:
            raise SessionCorrupt(source.path, 0, broken.reason)
        session_id, path = self._new_session()
        more = b"".join(line + b"\n" for line in source.read_lines(chain[1:]))
        return self.write_new(path, session_id, cwd, source.header.name, more)

    def open(self, session_id: str) -> SessionStore:
        """Raises `InvalidName`, `SessionNotFound`, `SessionCorrupt`, `UnsupportedVersion`. Never changes the file."""
        return self.open_path(self.find(session_id))

    def open_path(self, path: str) -> SessionStore:
        """As `open`, by the path of the log."""
        store = SessionStore(path, durability=self.durability, root=self.root)
        try:
            store.refresh()
        except BaseException:
            store.close()
            raise
        return store

    def find(self, session_id: str) -> str:
        """The path of a session's log: of several, the first in name order. Raises `InvalidName`, `SessionNotFound`."""
        check_name(session_id, "sessionId")
        path = self._find(session_id)
        if path is None:
            raise SessionNotFound(session_id)
        return path

    def list(self) -> SessionList:
        """All sessions, newest first. A file that cannot be shown is reported and hides no other. Raises `StorageFailed`.

        What was read once is read again only where the file changed.
        """
        sessions: _Infos = []
        skipped: _SkippedFiles = []
        names = self._names()
        with self._mutex:
            for gone in self._summaries.keys() - set(names):
                del self._summaries[gone]
        for name in names:
            stopping.check()
            self._summarize(name, sessions, skipped)
        sessions.sort(key=newest_first)
        return SessionList(sessions, skipped)

    def most_recent(self) -> SessionInfo | None:
        """The session that was updated last, None where there is none."""
        return next(iter(self.list().sessions), None)

    def info(self, path: str) -> SessionInfo:
        """The summary of one log. Raises as `open` does."""
        return self._refreshed(os.path.basename(path)).info()

    def summary(self, path: str) -> SessionSummary:
        """The summary of one log with its leaf and the count of its entries, brought up to date. Raises as `open` does."""
        return self._refreshed(os.path.basename(path))

    def _refreshed(self, name: str) -> SessionSummary:
        """One summary is held while it is read, not all of them: a long list must not hold up a look at one session."""
        with self._mutex:
            summary = self._summaries.get(name)
            if summary is None:
                summary = self._summaries[name] = SessionSummary(os.path.join(self.dir, name))
        try:
            with summary.mutex:
                summary.refresh()
        except WouldBlock:
            raise
        except StorageError:
            with self._mutex:
                self._summaries.pop(name, None)
            raise
        return summary

    def _new_session(self) -> tuple[str, str]:
        """An id that no session of the project has, and the path of its log."""
        while True:
            session_id = new_id(())
            if self._find(session_id) is None:
                return session_id, os.path.join(self.dir, f"{times.local_date()}_{session_id}{SUFFIX}")

    def _summarize(self, name: str, sessions: _Infos, skipped: _SkippedFiles) -> None:
        try:
            sessions.append(self._refreshed(name).info())
        except WouldBlock:
            raise
        except StorageError as error:
            reason = error.reason if isinstance(error, (SessionCorrupt, StorageFailed)) else str(error)
            skipped.append(Skipped(os.path.join(self.dir, name), reason))

    def _find(self, session_id: str) -> str | None:
        wanted = f"_{session_id}{SUFFIX}"
        name = next((name for name in self._names() if name.endswith(wanted)), None)
        return None if name is None else os.path.join(self.dir, name)

    def _names(self) -> _Names:
        try:
            return sorted(name for name in os.listdir(self.dir) if name.endswith(SUFFIX))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed.from_os(error, self.dir) from error


def newest_first(info: SessionInfo) -> tuple[int, str]:
    """The sort key of a list: by the time of the last entry, falling; then by id."""
    return -_moment(info.updated), info.id


@functools.lru_cache(maxsize=1 << 16)
def _moment(text: str) -> int:
    """Nanoseconds since 1970; a list is sorted anew each time it is asked for."""
    return times.parse_ns(text) or 0
