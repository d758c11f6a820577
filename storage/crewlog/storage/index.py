"""The derived index of a home's sessions: their summaries, what they cost, and where in their logs words stand.

It spares reading what was read before; it is never believed. Each answer is given after a look at the log itself: where the log is not the
file that was read, or has grown, what is not known of it is read. What is found by words is compared with the log's own lines. So the
answers are those of a search without index, whatever stands in it, however old it is, and whether there is one.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from crewlog.storage import stopping
from crewlog.storage.digest import EARLIEST, LATEST, PART, Part, SessionDigest, make_parts
from crewlog.storage.errors import Busy, StorageError, StorageFailed
from crewlog.storage.files import SIDE_FOLDER, require_inside
from crewlog.storage.home import Home
from crewlog.storage.index_file import FAILURES, NoIndex, connect, create, current_path, missing_feature, told
from crewlog.storage.listing import SummaryState
from crewlog.storage.locks import ResourceLock, may_wait
from crewlog.storage.query import Query, parse_query
from crewlog.storage.records import SessionInfo
from crewlog.storage.resuming import LogState, is_settled
from crewlog.storage.search import Places
from crewlog.storage.stats import SessionUsage, UsageOf
from crewlog.storage.terms import Wanted, wanted

SUFFIX = ".jsonl"
SMALL_HOME = 1 << 20
"""Bytes of logs up to which no index is made: they are read as fast."""
_BATCH = 16 << 20
_BATCH_SECONDS = 1.0
_SEQUENCE_BITS = 24
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1
_FEW = 8
"""Small parts at a log's end that are made one."""
_T = TypeVar("_T")
_Key = tuple[bytes, bytes]


class IndexedPart(msgspec.Struct, array_like=True, gc=False):
    """A part of a log as the index knows it, under the number `sequence`; the rest as of `Part`."""

    sequence: int
    start: int
    stop: int
    first: int
    last: int


class IndexedParts(msgspec.Struct, array_like=True, gc=False):
    """The parts of a log in their order. Numbers are never given again."""

    next_sequence: int = 0
    parts: list[IndexedPart] = []


class Updated(msgspec.Struct):
    """What an update did. `unsettled`: logs that were written to a moment ago, and are to be looked at again; `busy`: another process
    is at it.
    """

    read_bytes: int = 0
    logs: int = 0
    unsettled: int = 0
    busy: bool = False


class IndexStatus(msgspec.Struct):
    """`state`: "ready", "none" (there was no need for one yet) or "off" (there can be none: `reason`). `bytes`: its size."""

    state: str
    reason: str
    path: str
    bytes: int
    sessions: int


Progress = Callable[[int, int], None]
"""(bytes read, bytes to be read)."""

_summary_decoder = msgspec.msgpack.Decoder(SummaryState)
_usage_decoder = msgspec.msgpack.Decoder(SessionUsage)
_parts_decoder = msgspec.msgpack.Decoder(IndexedParts)
_encode = msgspec.msgpack.encode


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
                key = _folder_key(folder)
                for id, name, state in connection.execute("SELECT id, name, state FROM files WHERE folder = ?", (key,)):
                    found[os.fsdecode(name)] = _load(state, (key, name), id, _summary_decoder)
        return found

    def usage_of(self, folders: set[str]) -> UsageOf:
        """What the logs in these folders cost, as far as it is known of them as they are now."""
        known: dict[str, tuple[LogState, bytes, _Key, int]] = {}
        with self._reading() as connection:
            if connection is not None:
                for folder in folders:
                    folder_key = _folder_key(folder)
                    rows = connection.execute(
                        "SELECT id, name, state, data FROM files JOIN usage ON file = id WHERE folder = ?", (folder_key,)
                    )
                    for id, name, state, data in rows:
                        key = (folder_key, name)
                        log = _load(state, key, id, _summary_decoder).log
                        known[f"{folder}{os.sep}{os.fsdecode(name)}"] = log, data, key, id

        def usage(info: SessionInfo) -> SessionUsage | None:
            found = known.get(info.path)
            if found is None:
                return None
            log, data, key, id = found
            try:
                if log.fits(os.stat(info.path)):
                    return _load(data, key, id, _usage_decoder)
            except OSError:
                pass  # it went away: reading it tells the same
            except NoIndex as error:
                self._note(error)
            return None

        return usage

    def places(self, query: str, folders: set[str]) -> Places:
        """Where in the logs in these folders a query may match, as they are now."""
        parsed = parse_query(query)
        found: _Found | None = None
        with self._reading() as connection:
            if connection is not None:
                found = _find(connection, parsed, folders)

        def places(path: str) -> list[tuple[int, int]] | None:
            row = None if found is None else found.logs.get(path)
            if found is None or row is None:
                return None
            id, key, state, data = row
            try:
                log = _load(state, key, id, _summary_decoder).log
                status = os.stat(path)
                ranges = found.ranges(id, key, data)
                if log.fits(status):
                    return ranges
                added = log.unread(path, status)
                if added is None:
                    return None
                # a last record that lacked its line end is read again: what follows it may have made it another
                return [*((start, min(stop, added[0])) for start, stop in ranges if start < added[0]), added]
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
                connection.set_progress_handler(_is_stopped, 20_000)
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
        """A damaged index is not looked at again; the next update makes a new one."""
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
        work = _list_logs(self._home)
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
            if any(word in error.reason for word in ("locked", "busy")):
                return Updated(busy=True)
            self._off, self._reason = True, error.reason
            return Updated()
        self._off, self._reason = False, ""
        return done

    def _update(self, work: list[_Log], progress: Progress) -> Updated:
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
                writer = _Writer(connection, progress)
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


class Difference(msgspec.Struct):
    """What an index does not know, or knows no longer. `unknown`: the paths of logs; logs that were written to just now are left out."""

    unknown: list[str]
    changed: int
    gone: int


def difference(connection: sqlite3.Connection, home: Home) -> Difference:
    """Raises `NoIndex`, and what SQLite raises where the database is damaged (`FAILURES`)."""
    known = {
        (folder, name): _load(state, (folder, name), id, _summary_decoder).log
        for id, folder, name, state in connection.execute("SELECT id, folder, name, state FROM files")
    }
    logs = _list_logs(home)
    now = time.time_ns()
    settled = [log for log in logs if is_settled(log.status.st_mtime_ns, now)]
    changed = [log for log in settled if log.key in known and not known[log.key].fits(log.status)]
    return Difference([log.path for log in settled if log.key not in known], len(changed), len(known.keys() - {log.key for log in logs}))


class _Log(msgspec.Struct):
    """A log that was found in the home."""

    path: str
    key: _Key
    status: os.stat_result

    @property
    def size(self) -> int:
        return self.status.st_size


class _Known(msgspec.Struct):
    id: int
    state: SummaryState


class _Writer:
    """One update of the database."""

    def __init__(self, connection: sqlite3.Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress
        self._done = Updated()
        self._batch = 0
        self._batch_begun = time.monotonic()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -16000")
        connection.execute(f"PRAGMA journal_size_limit = {_BATCH}")

    def update(self, logs: list[_Log]) -> Updated:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._update(logs)
        except stopping.Stopped:
            connection.execute("COMMIT")
            raise
        except BaseException:
            with contextlib.suppress(*FAILURES):
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        return self._done

    def check_now_and_then(self) -> None:
        """Once a day all of the index is looked through for damage. Raises `NoIndex` and SQLite's errors."""
        today = int(time.time()) // 86_400
        if self._number("checked_on") == today:
            return
        connection = self._connection
        connection.set_progress_handler(_is_stopped, 20_000)
        try:
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise NoIndex("the database is damaged", damaged=True)
            for table in ("words", "runs"):
                connection.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")  # noqa: S608  # names of our own
        finally:
            connection.set_progress_handler(None, 0)
        connection.execute("UPDATE numbers SET value = ? WHERE name = 'checked_on'", (today,))

    def is_mostly_dead(self) -> bool:
        """Whether most of the index tells of what is gone, so that it is better made anew."""
        live, dead = (self._number(name) for name in ("live", "dead"))
        return dead > 2000 and dead > live

    def _update(self, logs: list[_Log]) -> None:
        known = {
            (folder, name): _Known(id, _load(state, (folder, name), id, _summary_decoder))
            for id, folder, name, state in self._connection.execute("SELECT id, folder, name, state FROM files")
        }
        for key in known.keys() - {log.key for log in logs}:
            self._drop(known[key].id)
        work = [(log, known.get(log.key)) for log in logs]
        work = [(log, found) for log, found in work if found is None or not found.state.log.fits(log.status)]
        work.sort(key=lambda item: (item[1] is None, -item[0].status.st_mtime_ns if item[1] is None else item[1].id))
        total = sum(log.size - (0 if found is None else min(found.state.log.end, log.size)) for log, found in work)
        for log, found in work:
            stopping.check()
            self._read(log, found)
            self._progress(self._done.read_bytes, total)
            if self._batch >= _BATCH or time.monotonic() - self._batch_begun > _BATCH_SECONDS:
                self._connection.execute("COMMIT")
                self._connection.execute("BEGIN IMMEDIATE")
                self._batch, self._batch_begun = 0, time.monotonic()

    def _read(self, log: _Log, known: _Known | None) -> None:
        if not is_settled(log.status.st_mtime_ns, time.time_ns()):
            self._done.unsettled += 1
            return
        connection = self._connection
        state, usage, parts = None, None, IndexedParts()
        if known is not None:
            state, usage, found = known.state, self._usage(known.id, log.key), self._parts(known.id, log.key)
            if usage is None or found is None:
                self._drop(known.id)
                known, state, usage = None, None, None
            else:
                parts = found
        before = len(parts.parts)
        file = 0 if known is None else known.id
        digest: SessionDigest | None = None
        epoch = 1

        def sink(part: Part) -> None:
            nonlocal file, parts, epoch, before
            if digest is not None and digest.epoch != epoch:
                epoch = digest.epoch
                if file:
                    self._drop(file)
                file, parts, before = 0, IndexedParts(), 0
            if not file:
                file = self._take_id()
            self._insert(file, parts, part)
            self._batch += part.stop - part.start

        digest = SessionDigest(log.path, sink, state, usage)
        epoch = digest.epoch
        try:
            digest.refresh()
        except StorageError:  # it is no session, it went away, or the update was stopped
            if file:
                self._drop(file)
            stopping.check()
            return
        self._done.logs += 1
        self._done.read_bytes += max(0, log.size - (0 if state is None or digest.epoch != 1 else state.log.end))
        remembered = digest.state()
        if digest.epoch != epoch and file:  # replaced by one that says nothing
            self._drop(file)
            file, parts, before = 0, IndexedParts(), 0
        if remembered is None:
            self._done.unsettled += 1
            if file:
                self._drop(file)
            return
        file = file or self._take_id()
        before -= self._unite(log.path, file, parts)
        self._count(live=len(parts.parts) - before)
        connection.execute(
            "INSERT OR REPLACE INTO files (id, folder, name, state) VALUES (?, ?, ?, ?)",
            (file, *log.key, _save(_encode(remembered), log.key, file)),
        )
        connection.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (file, _save(_encode(parts), log.key, file)))
        try:
            spent = _encode(digest.usage())
        except OverflowError:  # a number beyond 64 bits, of tokens or of nanoseconds: it is counted from the log each time
            connection.execute("DELETE FROM usage WHERE file = ?", (file,))
        else:
            connection.execute("INSERT OR REPLACE INTO usage VALUES (?, ?)", (file, _save(spent, log.key, file)))

    def _insert(self, file: int, parts: IndexedParts, part: Part) -> None:
        sequence = parts.next_sequence
        parts.next_sequence += 1
        parts.parts.append(IndexedPart(sequence, part.start, part.stop, part.first, part.last))
        row = file << _SEQUENCE_BITS | sequence
        self._connection.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (row, part.words))
        if part.runs:
            self._connection.execute("INSERT INTO runs(rowid, text) VALUES (?, ?)", (row, part.runs))
        self._connection.executemany("INSERT OR IGNORE INTO models VALUES (?)", [(name,) for name in part.models])

    def _unite(self, path: str, file: int, parts: IndexedParts) -> int:
        """Makes one of many small parts at the end; how many there are less."""
        small = 0
        while small < len(parts.parts) and parts.parts[-1 - small].stop - parts.parts[-1 - small].start < PART // 2:
            small += 1
        if small < _FEW:
            return 0
        begin, end = parts.parts[-small].start, parts.parts[-1].stop
        try:
            with open(path, "rb") as log:
                log.seek(begin)
                data = log.read(end - begin)
        except OSError:
            return 0  # it went away: the next update sees to it
        del parts.parts[-small:]
        made = make_parts(data, begin)
        for part in made:
            self._insert(file, parts, part)
        self._count(dead=small)
        return small - len(made)

    def _drop(self, file: int) -> None:
        """Forgets a log. Its parts stay among the words, under a number that is not given again, and mean nothing."""
        row = self._connection.execute("SELECT data, folder, name FROM parts JOIN files ON file = id WHERE id = ?", (file,)).fetchone()
        if row is not None:
            gone = len(_load(row[0], (row[1], row[2]), file, _parts_decoder).parts)
            self._count(live=-gone, dead=gone)
        for table, column in (("files", "id"), ("usage", "file"), ("parts", "file")):
            self._connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (file,))  # noqa: S608  # names of our own

    def _usage(self, file: int, key: _Key) -> SessionUsage | None:
        row = self._connection.execute("SELECT data FROM usage WHERE file = ?", (file,)).fetchone()
        return None if row is None else _load(row[0], key, file, _usage_decoder)

    def _parts(self, file: int, key: _Key) -> IndexedParts | None:
        row = self._connection.execute("SELECT data FROM parts WHERE file = ?", (file,)).fetchone()
        return None if row is None else _load(row[0], key, file, _parts_decoder)

    def _take_id(self) -> int:
        taken = self._number("next_id")
        self._connection.execute("UPDATE numbers SET value = ? WHERE name = 'next_id'", (taken + 1,))
        return taken

    def _number(self, name: str) -> int:
        row = self._connection.execute("SELECT value FROM numbers WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise NoIndex("a number is missing", damaged=True)
        return int(row[0])

    def _count(self, *, live: int = 0, dead: int = 0) -> None:
        for name, more in (("live", live), ("dead", dead)):
            if more:
                self._connection.execute("UPDATE numbers SET value = value + ? WHERE name = ?", (more, name))


class _Found:
    """What the index says to a query: `rows`, the parts that hold what is looked for, in rising order (None for all), and for the path of
    each log (number, key, saved state, saved parts).
    """

    def __init__(self, query: Query, rows: list[int] | None) -> None:
        self.logs: dict[str, tuple[int, _Key, bytes, bytes]] = {}
        self._query = query
        self._rows = rows

    def ranges(self, id: int, key: _Key, data: bytes) -> list[tuple[int, int]]:
        """The ranges of bytes of a log where the query may match. Raises `NoIndex`."""
        wanted: set[int] | None = None
        if self._rows is not None:
            low = bisect.bisect_left(self._rows, id << _SEQUENCE_BITS)
            high = bisect.bisect_left(self._rows, (id + 1) << _SEQUENCE_BITS, low)
            if low == high:
                return []
            wanted = {row & _SEQUENCE_MASK for row in self._rows[low:high]}
        parts = _load(data, key, id, _parts_decoder).parts
        return [(part.start, part.stop) for part in parts if (wanted is None or part.sequence in wanted) and _is_in_time(part, self._query)]


def _find(connection: sqlite3.Connection, query: Query, folders: set[str]) -> _Found:
    models = [str(name) for (name,) in connection.execute("SELECT name FROM models")] if query.models else []
    found = _Found(query, _rows(connection, wanted(query, models)))
    for folder in folders:
        folder_key = _folder_key(folder)
        rows = connection.execute("SELECT id, name, state, data FROM files JOIN parts ON file = id WHERE folder = ?", (folder_key,))
        for id, name, state, data in rows:
            found.logs[f"{folder}{os.sep}{os.fsdecode(name)}"] = (id, (folder_key, name), state, data)
    return found


def _rows(connection: sqlite3.Connection, looked_for: Wanted) -> list[int] | None:
    """The parts that hold what is looked for, in rising order; None where nothing can be told."""
    found = [
        _row_numbers(connection, f"SELECT rowid AS row FROM {table} WHERE {table} MATCH ?", (text,))  # noqa: S608  # names of our own
        for table, text in (("words", looked_for.words), ("runs", looked_for.runs))
        if text
    ]
    for run in looked_for.short_runs:
        select = "SELECT DISTINCT doc AS row FROM runs_instances WHERE term >= ? AND term < ?"
        found.append(_row_numbers(connection, select, (run, run + chr(0x10FFFF) * 4)))
    if not found:
        return None
    return sorted(set(found[0]).intersection(*found[1:])) if len(found) > 1 else sorted(found[0])


def _row_numbers(connection: sqlite3.Connection, select: str, parameters: tuple[str, ...]) -> list[int]:
    """The results of a select as one text: fetching a hundred thousand rows one by one takes long."""
    text = connection.execute(f"SELECT json_group_array(row) FROM ({select})", parameters).fetchone()[0]  # noqa: S608  # as above
    try:
        return msgspec.json.decode(text, type=list[int])
    except msgspec.MsgspecError:
        raise NoIndex("rows without a number", damaged=True) from None


def _is_in_time(part: IndexedPart, query: Query) -> bool:
    if query.after is None and query.before is None:
        return True
    if part.first > part.last:
        return False
    late_enough = query.after is None or part.last >= query.after or part.last == LATEST
    return late_enough and (query.before is None or part.first < query.before or part.first == EARLIEST)


def _list_logs(home: Home) -> list[_Log]:
    found = []
    for folder in _scan(home.projects):
        if folder.name.startswith(".") or not folder.is_dir():
            continue
        for entry in _scan(folder.path):
            if not entry.name.endswith(SUFFIX):
                continue
            try:
                status = entry.stat()
            except OSError:
                continue  # it went away
            found.append(_Log(entry.path, (_folder_key(folder.path), os.fsencode(entry.name)), status))
    return found


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _folder_key(folder: str) -> bytes:
    return os.fsencode(os.path.basename(folder))


def _save(content: bytes, key: _Key, id: int) -> bytes:
    """With a checksum, over the log's name and number too: SQLite has none."""
    return zlib.crc32(content, _seed(key, id)).to_bytes(4, "big") + content


def _load(saved: object, key: _Key, id: int, decoder: msgspec.msgpack.Decoder[_T]) -> _T:
    """Raises `NoIndex` where it is not what was saved."""
    if not isinstance(saved, bytes) or len(saved) < 4:
        raise NoIndex("a row is damaged", damaged=True)
    content = saved[4:]
    if zlib.crc32(content, _seed(key, id)).to_bytes(4, "big") != saved[:4]:
        raise NoIndex("a row is damaged", damaged=True)
    try:
        return decoder.decode(content)
    except msgspec.MsgspecError:
        raise NoIndex("a row is damaged", damaged=True) from None


def _seed(key: _Key, id: int) -> int:
    return zlib.crc32(b"%b/%b/%d" % (*key, id))


def _is_stopped() -> int:
    return 0 if stopping.keep_going() else 1


def _close(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(*FAILURES):
        connection.close()


__all__ = ["SMALL_HOME", "IndexStatus", "SessionIndex", "Updated"]
