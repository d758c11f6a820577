"""What was added to a home's logs is read, and written to the index's database."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable

import msgspec

from crewlog.storage import stopping
from crewlog.storage.digest import PART, Part, SessionDigest, make_parts
from crewlog.storage.errors import StorageError
from crewlog.storage.home import Home
from crewlog.storage.index_file import FAILURES, NoIndex
from crewlog.storage.index_rows import (
    SEQUENCE_BITS,
    IndexedPart,
    IndexedParts,
    Key,
    encode,
    folder_key,
    load,
    parts_decoder,
    save,
    summary_decoder,
    usage_decoder,
)
from crewlog.storage.listing import SummaryState
from crewlog.storage.resuming import is_settled
from crewlog.storage.stats import SessionUsage

SUFFIX = ".jsonl"
_BATCH = 16 << 20
_BATCH_SECONDS = 1.0
"""Bytes of logs, and seconds, after which what was written is committed."""
_FEW = 8
"""Small parts at a log's end that are made one."""


class Updated(msgspec.Struct):
    """What an update did. `unsettled`: logs that were written to a moment ago, and are to be looked at again; `busy`: another process
    is at it.
    """

    read_bytes: int = 0
    logs: int = 0
    unsettled: int = 0
    busy: bool = False


Progress = Callable[[int, int], None]
"""(bytes read, bytes to be read)."""


class Log(msgspec.Struct):
    """A log that was found in the home."""

    path: str
    key: Key
    status: os.stat_result

    @property
    def size(self) -> int:
        return self.status.st_size


class _Known(msgspec.Struct):
    id: int
    state: SummaryState


class Writer:
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

    def update(self, logs: list[Log]) -> Updated:
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
        connection.set_progress_handler(is_stopped, 20_000)
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

    def _update(self, logs: list[Log]) -> None:
        known = {
            (folder, name): _Known(id, load(state, (folder, name), id, summary_decoder))
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

    def _read(self, log: Log, known: _Known | None) -> None:
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
            (file, *log.key, save(encode(remembered), log.key, file)),
        )
        connection.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (file, save(encode(parts), log.key, file)))
        try:
            spent = encode(digest.usage())
        except OverflowError:  # a number beyond 64 bits, of tokens or of nanoseconds: it is counted from the log each time
            connection.execute("DELETE FROM usage WHERE file = ?", (file,))
        else:
            connection.execute("INSERT OR REPLACE INTO usage VALUES (?, ?)", (file, save(spent, log.key, file)))

    def _insert(self, file: int, parts: IndexedParts, part: Part) -> None:
        sequence = parts.next_sequence
        parts.next_sequence += 1
        parts.parts.append(IndexedPart(sequence, part.start, part.stop, part.first, part.last, part.plain))
        row = file << SEQUENCE_BITS | sequence
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
            gone = len(load(row[0], (row[1], row[2]), file, parts_decoder).parts)
            self._count(live=-gone, dead=gone)
        for table, column in (("files", "id"), ("usage", "file"), ("parts", "file")):
            self._connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (file,))  # noqa: S608  # names of our own

    def _usage(self, file: int, key: Key) -> SessionUsage | None:
        row = self._connection.execute("SELECT data FROM usage WHERE file = ?", (file,)).fetchone()
        return None if row is None else load(row[0], key, file, usage_decoder)

    def _parts(self, file: int, key: Key) -> IndexedParts | None:
        row = self._connection.execute("SELECT data FROM parts WHERE file = ?", (file,)).fetchone()
        return None if row is None else load(row[0], key, file, parts_decoder)

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


class Difference(msgspec.Struct):
    """What an index does not know, or knows no longer. `unknown`: the paths of logs; logs that were written to just now are left out."""

    unknown: list[str]
    changed: int
    gone: int


def difference(connection: sqlite3.Connection, home: Home) -> Difference:
    """Raises `NoIndex`, and what SQLite raises where the database is damaged (`FAILURES`)."""
    known = {
        (folder, name): load(state, (folder, name), id, summary_decoder).log
        for id, folder, name, state in connection.execute("SELECT id, folder, name, state FROM files")
    }
    logs = list_logs(home)
    now = time.time_ns()
    settled = [log for log in logs if is_settled(log.status.st_mtime_ns, now)]
    changed = [log for log in settled if log.key in known and not known[log.key].fits(log.status)]
    return Difference([log.path for log in settled if log.key not in known], len(changed), len(known.keys() - {log.key for log in logs}))


def list_logs(home: Home) -> list[Log]:
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
            found.append(Log(entry.path, (folder_key(folder.path), os.fsencode(entry.name)), status))
    return found


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def is_stopped() -> int:
    return 0 if stopping.keep_going() else 1
