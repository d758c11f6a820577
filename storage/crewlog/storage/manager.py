"""The sessions of one project: making, finding, opening and listing them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping

import msgspec

from crewlog.storage import collector, rawjson, stopping, times
from crewlog.storage.entries import HEADER_ID, VERSION, new_id, write_entry
from crewlog.storage.errors import SessionCorrupt, SessionNotFound, StorageError, StorageFailed, WouldBlock
from crewlog.storage.files import POWER, Durability, unlink_quietly
from crewlog.storage.listing import SessionSummary, Skipped, SummaryState, peek
from crewlog.storage.locks import Mutex
from crewlog.storage.log import AppendLog
from crewlog.storage.names import check_name
from crewlog.storage.records import Entry, EntryKind, SessionInfo
from crewlog.storage.sessions import SessionStore

SUFFIX = ".jsonl"
MUCH = 8 << 20
"""Bytes to be read for a list beyond which its first page does not wait for all of them."""
_LITTLE = 64 << 10
_Names = list[str]
_Infos = list[SessionInfo]
_SkippedFiles = list[Skipped]
_Guesses = list[tuple[int, str]]


class SessionList(msgspec.Struct):
    """`sessions`: newest `updated` first. `skipped`: the files that are no session, with their reasons."""

    sessions: list[SessionInfo]
    skipped: list[Skipped]


class FirstPage(msgspec.Struct):
    """The beginning of a list. `more`: whether there is more than that."""

    sessions: list[SessionInfo]
    skipped: list[Skipped]
    more: bool


KnownSummaries = Callable[[str], Mapping[str, SummaryState]]
"""What is known of the logs in a folder, by name: see `SessionIndex.summaries`."""


class SessionManager:
    """The session logs in the folder `dir`. Thread-safe. Go: Manager.

    `root`: the folder that symbolic links must not lead a write out of (default: `dir`). `known`: what need not be read.
    """

    def __init__(self, dir: str, *, durability: Durability = POWER, root: str | None = None, known: KnownSummaries | None = None) -> None:
        self.dir = dir
        self.durability = durability
        self.root = root or dir
        self._known = known
        self._mutex = Mutex()
        self._asked_about: set[str] = set()
        self._summaries: dict[str, SessionSummary] = {}

    def create(self, cwd: str, *, name: str = "") -> SessionStore:
        """A new session for the working directory `cwd`. Raises `StorageFailed`."""
        session_id, path = self._new_session()
        return self.write_new(path, session_id, cwd, name, b"")

    def write_new(self, path: str, session_id: str, cwd: str, name: str, more: bytes, created: str = "") -> SessionStore:
        """A new log at `path`: a header, then the lines of `more`, written together. `created`: RFC 3339 (default: now). Raises
        `StorageFailed`.
        """
        created = created or times.now()
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

    def list(self, *, progress: Callable[[int, int], None] = lambda done, total: None) -> SessionList:
        """All sessions, newest first. A file that cannot be shown is reported and hides no other. Raises `StorageFailed`.

        What was read once is read again only where the file changed. `progress` is told how many of how many files are looked at.
        """
        sessions: _Infos = []
        skipped: _SkippedFiles = []
        names = self._prepare()
        for number, name in enumerate(names):
            stopping.check()
            self._summarize(name, sessions, skipped)
            progress(number + 1, len(names))
        sessions.sort(key=newest_first)
        return SessionList(sessions, skipped)

    def first_page(self, limit: int) -> FirstPage:
        """The newest sessions, at most `limit`, as `list` gives them.

        Where much is to be read, only those logs are that seem to be the newest by their last lines, which is where the newest entry
        stands but for odd logs.
        """
        names = self._prepare()
        guesses: _Guesses = []
        to_read = 0
        skipped: _SkippedFiles = []
        sessions: _Infos = []
        for name in names:
            stopping.check()
            path = self._path(name)
            summary = self._summaries.get(name)
            try:
                size = os.stat(path).st_size - (summary.read_bytes if summary is not None else 0)
            except OSError:
                size = 0
            if summary is not None and size <= _LITTLE:
                self._summarize(name, sessions, skipped)
                continue
            to_read += size
            guess = peek(path)
            if guess is None:
                self._summarize(name, sessions, skipped)
            else:
                guesses.append((-guess, name))
        guesses.sort()
        sessions.sort(key=newest_first)
        newest_known = [newest_first(info)[0] for info in sessions[:limit]]
        for number, (guess, name) in enumerate(guesses):
            stopping.check()
            if to_read <= MUCH or (number < limit and (len(newest_known) < limit or guess <= newest_known[-1])):
                self._summarize(name, sessions, skipped)
        sessions.sort(key=newest_first)
        return FirstPage(sessions[:limit], skipped, len(names) - len(skipped) > limit)

    def _prepare(self) -> _Names:
        """The names of the logs there are; summaries of others are forgotten."""
        names = self._names()
        with self._mutex:
            for gone in self._summaries.keys() - set(names):
                del self._summaries[gone]
        self._ask_what_is_known(names)
        return names

    def most_recent(self) -> SessionInfo | None:
        """The session that was updated last, None where there is none."""
        return next(iter(self.list().sessions), None)

    def info(self, path: str) -> SessionInfo:
        """The summary of one log. Raises as `open` does."""
        return self._refreshed(os.path.basename(path)).info()

    def summary(self, path: str) -> SessionSummary:
        """The summary of one log with its leaf and the count of its entries, brought up to date. Raises as `open` does."""
        return self._refreshed(os.path.basename(path))

    def _ask_what_is_known(self, names: _Names) -> None:
        """Brings in what another process, or another time, knew of logs that were not looked at yet."""
        if self._known is None or self._asked_about.issuperset(names):
            return
        with collector.resting():
            known = self._known(self.dir)
            with self._mutex:
                self._asked_about = set(names)
                for name in names:
                    state = known.get(name)
                    if state is not None and name not in self._summaries:
                        self._summaries[name] = SessionSummary(self._path(name), state)

    def _path(self, name: str) -> str:
        return f"{self.dir}{os.sep}{name}"

    def _refreshed(self, name: str) -> SessionSummary:
        """One summary is held while it is read, not all of them: a long list must not hold up a look at one session."""
        summary = self._summaries.get(name)
        if summary is None:
            with self._mutex:
                summary = self._summaries.setdefault(name, SessionSummary(self._path(name)))
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


def newest_first(info: SessionInfo) -> tuple[int, str, str]:
    """The sort key of a list: by the time of the last entry, falling; then by id, and by path, as a log may have been copied."""
    return -_moment(info.updated), info.id, info.path


@functools.lru_cache(maxsize=1 << 16)
def _moment(text: str) -> int:
    """Nanoseconds since 1970; a list is sorted anew each time it is asked for."""
    return times.parse_ns(text) or 0
