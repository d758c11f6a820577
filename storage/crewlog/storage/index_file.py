"""The file of the derived index: an SQLite database in the home's `.crewlog`, which may be deleted at any time.

Each version of Crewlog has files of its own name, and each rebuilding makes one of the next number, so that a process that has an old one
open never meets a new one in its place. The file of the highest number counts.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import urllib.parse
from functools import cache

from crewlog.storage.errors import StorageFailed
from crewlog.storage.files import FILE_MODE, SIDE_FOLDER, require_inside, side_folder, unlink_quietly

VERSION = 4
"""Of the tables, and of what they are made from."""
APPLICATION_ID = 0x43524C58
SMALL_TIMEOUT = 2.0
"""Seconds that a reader waits for the database before it does without."""
_OURS = re.compile(r"index-(\d+)\.(\d+)\.sqlite3")
_LEFT_OVER = re.compile(r"index-(\d+)\.(\d+)\.sqlite3(?:\.tmp|-wal|-shm|-journal)*")
_SCHEMA = """
CREATE TABLE files (id INTEGER PRIMARY KEY, folder BLOB NOT NULL, name BLOB NOT NULL, state BLOB NOT NULL, UNIQUE (folder, name));
CREATE TABLE usage (file INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE parts (file INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE models (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE runs USING fts5(text, content='', detail=none, columnsize=0, tokenize="trigram case_sensitive 1");
CREATE VIRTUAL TABLE runs_instances USING fts5vocab(runs, 'instance');
INSERT INTO words(words, rank) VALUES ('hashsize', 16777216);
INSERT INTO runs(runs, rank) VALUES ('hashsize', 4194304);
INSERT INTO numbers VALUES ('next_id', 1), ('live', 0), ('dead', 0), ('checked_on', strftime('%s', 'now') / 86400);
"""
"""`folder` and `name` of a log below `projects/`; `state`, `data`: see `index`. A row of `words` and `runs` is (file << 24 | part)."""


class NoIndex(Exception):
    """There is no index to be had; the text says why. `damaged`: because what is there is none, so that it should be made anew."""

    def __init__(self, reason: str, *, damaged: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.damaged = damaged


@cache
def missing_feature() -> str:
    """Why this machine's SQLite cannot hold the index; "" where it can."""
    try:
        with_features = sqlite3.connect(":memory:")
    except sqlite3.Error as error:
        return f"SQLite does not work: {error}"
    try:
        with_features.execute("CREATE VIRTUAL TABLE t USING fts5(a, tokenize='trigram case_sensitive 1')")
        with_features.execute("SELECT json_group_array(1)")
    except sqlite3.Error as error:
        return f"SQLite {sqlite3.sqlite_version} has no FTS5 with trigrams, which 3.34 and later can have: {error}"
    finally:
        with_features.close()
    return ""


def current_path(home: str) -> str | None:
    """The file that counts; None where there is none."""
    folder = os.path.join(home, SIDE_FOLDER)
    numbers = [int(match[2]) for match in map(_OURS.fullmatch, _names(folder)) if match and int(match[1]) == VERSION]
    return _path(folder, max(numbers)) if numbers else None


def connect(path: str, home: str, *, timeout: float = SMALL_TIMEOUT, mode: str = "rw") -> sqlite3.Connection:
    """The database at `path`, checked to be an index of this version. `mode`: as in an URI of SQLite. Raises `NoIndex`."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise NoIndex("what stands in the index's place is no file", damaged=True)
        require_inside(path, home)
    except (StorageFailed, OSError) as error:
        raise NoIndex(str(error)) from None
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(_uri(path, mode), uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA trusted_schema = OFF")
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        if found != [APPLICATION_ID, VERSION]:
            raise NoIndex("it is no index of this version", damaged=True)
        connection.execute("SELECT count(*) FROM numbers").fetchone()
    except FAILURES as error:
        if connection is not None:
            connection.close()
        raise told(error) from None
    except NoIndex:
        if connection is not None:
            connection.close()
        raise
    return connection


def create(home: str) -> str:
    """A new, empty index, which counts from now on; its path. Older ones are removed. The caller holds the index's lock.

    Raises `NoIndex`.
    """
    try:
        require_inside(os.path.join(home, SIDE_FOLDER), home)
        folder = side_folder(home)
        matches = [match for match in map(_LEFT_OVER.fullmatch, _names(folder)) if match]
        path = _path(folder, max((int(match[2]) for match in matches if int(match[1]) == VERSION), default=0) + 1)
        _fill(path + ".tmp")
        os.rename(path + ".tmp", path)
    except StorageFailed as error:
        raise NoIndex(str(error)) from None
    except OSError as error:
        raise NoIndex(str(StorageFailed.from_os(error, os.path.join(home, SIDE_FOLDER)))) from None
    except FAILURES as error:
        unlink_quietly(path + ".tmp")
        raise told(error) from None
    for match in matches:
        if int(match[1]) <= VERSION:  # a newer Crewlog's is left alone
            unlink_quietly(os.path.join(folder, match[0]))
    return path


def _fill(path: str) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), FILE_MODE))
    connection = sqlite3.connect(_uri(path), uri=True, isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.executescript(_SCHEMA)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    finally:
        connection.close()


FAILURES = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)
"""What Python's SQLite raises where the database is damaged: it reads names and numbers out of it for its messages."""


def told(error: BaseException) -> NoIndex:
    """What an error of SQLite says: that the system does not let us, or that the file is damaged."""
    text = str(error)
    if isinstance(error, sqlite3.OperationalError) and any(word in text for word in _OF_THE_SYSTEM):
        return NoIndex(text)
    return NoIndex(text, damaged=True)


_OF_THE_SYSTEM = ("locked", "busy", "full", "readonly", "unable to open", "disk I/O", "interrupted", "out of memory", "authoriz")


def _path(folder: str, number: int) -> str:
    return os.path.join(folder, f"index-{VERSION}.{number}.sqlite3")


def _uri(path: str, mode: str = "rw") -> str:
    return f"file:{urllib.parse.quote(path)}?mode={mode}"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
