"""What is wrong with the derived index of a home, and how it is set right. No record stands in it: it is made anew from the logs."""

from __future__ import annotations

import os
import sqlite3

import msgspec

from crewlog.storage.errors import Busy, StorageError
from crewlog.storage.home import Home
from crewlog.storage.index import SessionIndex
from crewlog.storage.index_file import FAILURES, NoIndex, connect, current_path, told
from crewlog.storage.index_writer import difference
from crewlog.storage.listing import SessionSummary
from crewlog.storage.locks import ResourceLock

BESIDE = ("", "-wal", "-shm")
"""Endings of the files of one database."""


class IndexFault(msgspec.Struct):
    """`damagedIndex` (a warning) or `indexOutOfStep` (a note: servers bring it in step by themselves)."""

    kind: str
    severity: str
    path: str
    reason: str


def index_fault(home: Home) -> IndexFault | None:
    """None where there is no index, where nothing is wrong with it, and where it cannot be looked at now. Changes nothing."""
    path = current_path(home.path)
    if path is None:
        return None
    try:
        connection = connect(path, home.path, mode=_mode(path))
    except NoIndex as error:
        return _damaged(path, error)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            return _damaged(path, NoIndex(found, damaged=True))
        different = difference(connection, home)
    except FAILURES as error:
        return _damaged(path, told(error))
    except NoIndex as error:
        return _damaged(path, error)
    finally:
        _close(connection)
    unread = sum(_is_session(log) for log in different.unknown)
    counts = [("new to it", unread), ("changed since it read them", different.changed), ("gone", different.gone)]
    parts = [f"{what}: {count}" for what, count in counts if count]
    if not parts:
        return None
    return IndexFault("indexOutOfStep", "note", path, f"sessions {', '.join(parts)}; answers are right all the same, and take longer")


def _mode(path: str) -> str:
    """To read without leaving a trace. What another process has not brought into the file yet can be read only together with it."""
    try:
        pending = os.path.getsize(path + "-wal") > 0
    except OSError:
        pending = False
    return "ro" if pending else "ro&immutable=1"


def _damaged(path: str, error: NoIndex) -> IndexFault | None:
    return IndexFault("damagedIndex", "warning", path, f"{error.reason}; servers do without it") if error.damaged else None


def _is_session(path: str) -> bool:
    try:
        SessionSummary(path).refresh()
    except StorageError:
        return False  # doctor tells why
    return True


def _close(connection: sqlite3.Connection) -> None:
    try:
        connection.close()
    except FAILURES:
        pass  # of a damaged one


def bring_in_step(home: Home) -> str:
    """Reads what the index does not know; what was done. Raises `Busy` where another process is at it."""
    index = SessionIndex(home)
    try:
        done = index.update()
    finally:
        index.close()
    if done.busy:
        raise Busy(current_path(home.path) or home.path, {})
    return f"{done.logs} {'log was' if done.logs == 1 else 'logs were'} read"


def lock(home: Home) -> ResourceLock:
    """That of whoever writes the index."""
    return ResourceLock(os.path.join(home.path, "index"), root=home.path, timeout=0)
