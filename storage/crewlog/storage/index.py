"""The derived index of a home's sessions: their summaries, what they cost, and where in their logs words stand.

It spares reading what was read before; it is never believed. Each answer is given after a look at the log itself: where the log is not the
file that was read, or has grown, what is not known of it is read. What is found by words is compared with the log's own lines. So the
answers are those of a search without index, whatever stands in it, however old it is, and whether there is one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator

import msgspec

from crewlog.storage import stopping
from crewlog.storage.errors import Busy, StorageFailed
from crewlog.storage.files import SIDE_FOLDER, require_inside
from crewlog.storage.home import Home
from crewlog.storage.index_file import FAILURES, NoIndex, connect, create, current_path, missing_feature, told
from crewlog.storage.index_lookup import Found, find
from crewlog.storage.index_rows import Key, folder_key, load, summary_decoder, usage_decoder
from crewlog.storage.index_writer import Log, Progress, Updated, Writer, is_stopped, list_logs
from crewlog.storage.listing import SummaryState
from crewlog.storage.locks import ResourceLock, may_wait
from crewlog.storage.query import parse_query
from crewlog.storage.records import SessionInfo
from crewlog.storage.resuming import LogState
from crewlog.storage.search import Place, Places
from crewlog.storage.stats import SessionUsage, UsageOf

SMALL_HOME = 1 << 20
"""Bytes of logs up to which no index is made: they are read as fast."""


class IndexStatus(msgspec.Struct):
    """`state`: "ready", "none" (there was no need for one yet) or "off" (there can be none: `reason`). `bytes`: its size."""

    state: str
    reason: str
    path: str
    bytes: int
    sessions: int


class SessionIndex:
    """The index of one home. Thread-safe. Reading makes nothing; `update` makes and fills it.

    No method raises for the sake of the index: without one, what it tells is that nothing is known.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._mutex = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._path = ""
        self._identity = (0, 0)
        self._damaged = ""
        self._reason = missing_feature()
        self._off = bool(self._reason)

    # --- reading ---

    def summaries(self, folder: str) -> dict[str, SummaryState]:
        """What is known of the logs in a folder, by name."""
        found: dict[str, SummaryState] = {}
        with self._reading() as connection:
            if connection is not None:
                key = folder_key(folder)
                for id, name, state in connection.execute("SELECT id, name, state FROM files WHERE folder = ?", (key,)):
                    found[os.fsdecode(name)] = load(state, (key, name), id, summary_decoder)
        return found

    def usage_of(self, folders: set[str]) -> UsageOf:
        """What the logs in these folders cost, as far as it is known of them as they are now."""
        known: dict[str, tuple[LogState, bytes, Key, int]] = {}
        with self._reading() as connection:
            if connection is not None:
                for folder in folders:
                    folder_name = folder_key(folder)
                    rows = connection.execute(
                        "SELECT id, name, state, data FROM files JOIN usage ON file = id WHERE folder = ?", (folder_name,)
                    )
                    for id, name, state, data in rows:
                        key = (folder_name, name)
                        log = load(state, key, id, summary_decoder).log
                        known[f"{folder}{os.sep}{os.fsdecode(name)}"] = log, data, key, id

        def usage(info: SessionInfo) -> SessionUsage | None:
            found = known.get(info.path)
            if found is None:
                return None
            log, data, key, id = found
            try:
                if log.fits(os.stat(info.path)):
                    return load(data, key, id, usage_decoder)
            except OSError:
                pass  # it went away: reading it tells the same
            except NoIndex as error:
                self._note(error)
            return None

        return usage

    def places(self, query: str, folders: set[str]) -> Places:
        """Where in the logs in these folders a query may match, as they are now."""
        parsed = parse_query(query)
        found: Found | None = None
        with self._reading() as connection:
            if connection is not None:
                found = find(connection, parsed, folders)

        def places(path: str) -> list[Place] | None:
            row = None if found is None else found.logs.get(path)
            if found is None or row is None:
                return None
            id, key, state, data = row
            try:
                log = load(state, key, id, summary_decoder).log
                status = os.stat(path)
                known = found.places(id, key, data)
                if log.fits(status):
                    return known
                added = log.unread(path, status)
                if added is None:
                    return None
                # a last record that lacked its line end is read again: what follows it may have made it another
                read = [place._replace(stop=min(place.stop, added[0])) for place in known if place.start < added[0]]
                return [*read, Place(*added)]
            except NoIndex as error:
                self._note(error)
                return None
            except OSError:
                return []  # it went away

        return places

    def status(self) -> IndexStatus:
        with self._reading() as connection:
            sessions = 0 if connection is None else int(connection.execute("SELECT count(*) FROM files").fetchone()[0])
        path = current_path(self._home.path) or ""
        size = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                size += os.stat(path + suffix).st_size if path else 0
        state = "off" if self._off else "ready" if path else "none"
        return IndexStatus(state, self._reason, path, size, sessions)

    def close(self) -> None:
        with self._mutex:
            self._disconnect()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection in a transaction, or None. What goes wrong with it ends the block, and is noted."""
        with self._mutex:
            try:
                connection = self._connected()
            except NoIndex as error:
                self._note(error)
                connection = None
            if connection is None:
                yield None
                return
            try:
                connection.execute("BEGIN")
                connection.set_progress_handler(is_stopped, 20_000)
                yield connection
            except FAILURES as error:
                stopping.check()
                self._note(told(error))
            except NoIndex as error:
                self._note(error)
            finally:
                self._end_reading(connection)

    def _end_reading(self, connection: sqlite3.Connection) -> None:
        if connection is not self._connection:
            return  # it was closed
        try:
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except FAILURES as error:
            self._note(told(error))
            self._disconnect()

    def _connected(self) -> sqlite3.Connection | None:
        """None where there is no index, or where it takes too long to look."""
        if self._off or not may_wait():
            return None
        if self._connection is not None:
            with contextlib.suppress(OSError):
                status = os.stat(self._path)
                if (status.st_dev, status.st_ino) == self._identity:
                    return self._connection
            self._disconnect()
        path = current_path(self._home.path)
        if path is None or path == self._damaged:
            return None
        try:
            status = os.stat(path)
        except OSError:
            return None
        self._path = path
        self._connection = connect(path, self._home.path)
        self._identity = (status.st_dev, status.st_ino)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(*FAILURES):
                self._connection.close()
            self._connection = None

    def _note(self, error: NoIndex) -> None:
        """A damaged index is not looked at again; the next update makes a new one. What else is wrong may be wrong with the connection
        alone: as long as one is open, SQLite keeps files that were removed beside the database, and no other gets on.
        """
        if error.damaged and self._path:
            self._damaged = self._path
        self._disconnect()

    # --- writing ---

    def update(self, *, progress: Progress = lambda done, total: None, small: int = SMALL_HOME) -> Updated:
        """Reads what was added to the home's logs since the last update. One process does it at a time.

        `small`: bytes of logs up to which no index is made. Raises `Stopped` where `stopping` asks for it; what was read by then is kept.
        """
        if missing_feature():
            return Updated()
        work = list_logs(self._home)
        path = current_path(self._home.path)
        if path is None and sum(log.size for log in work) <= small:
            return Updated()
        try:
            require_inside(os.path.join(self._home.path, SIDE_FOLDER), self._home.path)
            with ResourceLock(os.path.join(self._home.path, "index"), root=self._home.path, timeout=0):
                done = self._update(work, progress)
        except Busy:
            return Updated(busy=True)
        except StorageFailed as error:
            self._off, self._reason = True, str(error)
            return Updated()
        except NoIndex as error:
            self.close()  # see `_note`
            if any(word in error.reason for word in ("locked", "busy")):
                return Updated(busy=True)
            self._off, self._reason = True, error.reason
            return Updated()
        self._off, self._reason = False, ""
        return done

    def _update(self, work: list[Log], progress: Progress) -> Updated:
        """Damage is met by a new index, once."""
        for attempt in (1, 2):
            path = current_path(self._home.path)
            try:
                if path is None or path == self._damaged:
                    path = create(self._home.path)
                connection = connect(path, self._home.path, timeout=10)
            except NoIndex as error:
                if not error.damaged or attempt == 2 or path is None:
                    raise
                self._damaged = path
                continue
            try:
                writer = Writer(connection, progress)
                done = writer.update(work)
                writer.check_now_and_then()
                if not writer.is_mostly_dead():
                    return done
                self._damaged = path
            except FAILURES as error:
                stopping.check()
                problem = told(error)
                if not problem.damaged or attempt == 2:
                    raise problem from None
                self._damaged = path
            except NoIndex:
                if attempt == 2:
                    raise
                self._damaged = path
            finally:
                _close(connection)
        return done


def _close(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(*FAILURES):
        connection.close()


__all__ = ["SMALL_HOME", "IndexStatus", "SessionIndex", "Updated"]
