"""Where a query may match, as the index's database tells it."""

from __future__ import annotations

import bisect
import os
import sqlite3

import msgspec

from crewlog.storage.digest import EARLIEST, LATEST
from crewlog.storage.index_file import NoIndex
from crewlog.storage.index_rows import SEQUENCE_BITS, SEQUENCE_MASK, IndexedPart, Key, folder_key, load, parts_decoder
from crewlog.storage.query import Query
from crewlog.storage.search import Place
from crewlog.storage.terms import Wanted, wanted


class Found:
    """What the index says to a query: `rows`, the parts that hold what is looked for, in rising order (None for all), and for the path of
    each log (number, key, saved state, saved parts).
    """

    def __init__(self, query: Query, rows: list[int] | None) -> None:
        self.logs: dict[str, tuple[int, Key, bytes, bytes]] = {}
        self._query = query
        self._rows = rows

    def places(self, id: int, key: Key, data: bytes) -> list[Place]:
        """Where in a log the query may match. Raises `NoIndex`."""
        wanted: set[int] | None = None
        if self._rows is not None:
            low = bisect.bisect_left(self._rows, id << SEQUENCE_BITS)
            high = bisect.bisect_left(self._rows, (id + 1) << SEQUENCE_BITS, low)
            if low == high:
                return []
            wanted = {row & SEQUENCE_MASK for row in self._rows[low:high]}
        parts = load(data, key, id, parts_decoder).parts
        found = parts if wanted is None else [part for part in parts if part.sequence in wanted]
        return [Place(part.start, part.stop, part.plain) for part in found if _is_in_time(part, self._query)]


def find(connection: sqlite3.Connection, query: Query, folders: set[str]) -> Found:
    models = [str(name) for (name,) in connection.execute("SELECT name FROM models")] if query.models else []
    found = Found(query, _rows(connection, wanted(query, models)))
    for folder in folders:
        folder_name = folder_key(folder)
        rows = connection.execute("SELECT id, name, state, data FROM files JOIN parts ON file = id WHERE folder = ?", (folder_name,))
        for id, name, state, data in rows:
            found.logs[f"{folder}{os.sep}{os.fsdecode(name)}"] = (id, (folder_name, name), state, data)
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
