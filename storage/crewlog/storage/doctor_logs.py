"""What is wrong with a log of lines, and how it becomes readable again without losing a byte. Pure: lines go in, lines come out.

A session's entries form a tree by ids; a transcript is just messages. Both are mended by the same means: a line that cannot be used is
taken out and kept beside the log, whole records inside it are saved, and what hung on it is hung on what stood before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import HEADER_ID, VERSION, NotAnEntry, new_id, read_entry, read_header, write_entry
from crewlog.storage.errors import SessionCorrupt, UnsupportedVersion
from crewlog.storage.messages import message_shape
from crewlog.storage.records import Entry, EntryKind

_RECORD = re.compile(rb'\{"(?:kind|id|timestamp|parent_id|data)":')
_PADDING = b"\0 \t\r"


class Seen(msgspec.Struct, gc=False):
    """One line as it was found; `problem` is "" for a good one. `bad_time`: its timestamp is none."""

    number: int
    offset: int
    length: int
    id: str = ""
    parent_id: str = ""
    kind: str = ""
    problem: str = ""
    torn: bool = False
    bad_time: bool = False


class Fault(msgspec.Struct):
    """One thing that is wrong. `mendable`: whether `mended` sets it right."""

    kind: str
    line: int
    offset: int
    reason: str
    mendable: bool
    severity: str = "error"


class Mended(msgspec.Struct):
    """The lines that a log shall have, and those that were taken out."""

    lines: list[bytes]
    taken_out: list[bytes]


def see_entry(number: int, offset: int, content: bytes, *, torn: bool = False) -> Seen:
    """What a line of a session is. `torn`: it has no line end."""
    seen = Seen(number, offset, len(content))
    try:
        entry = read_entry(content)
    except NotAnEntry as problem:
        seen.problem = problem.reason
        seen.torn = torn and not problem.is_json
        return seen
    seen.id, seen.parent_id, seen.kind = entry.id, entry.parent_id, entry.kind
    seen.bad_time = not times.is_time(entry.timestamp)
    return seen


def see_message(number: int, offset: int, content: bytes, *, torn: bool = False) -> Seen:
    """What a line of a transcript is."""
    seen = Seen(number, offset, len(content))
    if message_shape(content) is None and content.strip() != b"null":
        is_json = rawjson.is_valid(content)
        seen.problem, seen.torn = "it is no message" if is_json else "it is no JSON", torn and not is_json
    return seen


def see_object(number: int, offset: int, content: bytes, *, torn: bool = False) -> Seen:
    """What a line of the history is."""
    seen = Seen(number, offset, len(content))
    try:
        rawjson.members(content)
    except rawjson.Invalid as error:
        seen.problem, seen.torn = str(error), torn
    return seen


def line_faults(lines: Sequence[Seen]) -> Iterator[Fault]:
    """Lines that cannot be used."""
    for seen in lines:
        if seen.torn:
            reason = f"{seen.length} bytes without a line end, left by a crash or still being written; the next append cuts them off"
            yield Fault("tornTail", seen.number, seen.offset, reason, True, "warning")
        elif seen.problem:
            yield Fault("unreadableLine", seen.number, seen.offset, seen.problem, True)
        elif seen.bad_time:
            yield Fault("badTimestamp", seen.number, seen.offset, "its timestamp is no RFC 3339 time", False, "note")


def session_faults_of(lines: Sequence[Seen], header: bytes, path: str) -> list[Fault]:
    """All that is wrong with a session, by line. What is no session at all is left alone, whatever its lines are."""
    found = [*line_faults(lines), *tree_faults(lines, header, path)]
    if any(fault.kind in _HOPELESS and not fault.mendable for fault in found):
        found = [msgspec.structs.replace(fault, mendable=False) for fault in found]
    return sorted(found, key=lambda fault: fault.line)


_HOPELESS = ("noHeader", "badHeader", "unsupportedVersion")


def tree_faults(lines: Sequence[Seen], header: bytes, path: str) -> Iterator[Fault]:
    """What is wrong with the tree of a session. `header`: its first line that is not blank."""
    good = [seen for seen in lines if not seen.problem]
    yield from _header_faults(lines, good, header, path)
    known: dict[str, Seen] = {}
    for seen in good:
        if seen.id in known and seen.id == HEADER_ID:
            yield Fault("secondHeader", seen.number, seen.offset, "a header where there is one already; the first counts", False, "note")
        elif seen.id in known:
            reason = f"entry {seen.id} stands on line {known[seen.id].number} already, and hides it"
            yield Fault("duplicateId", seen.number, seen.offset, reason, True)
            known[seen.id] = seen
        else:
            known[seen.id] = seen
    for seen in known.values():
        if seen.id != HEADER_ID and seen.parent_id not in known:
            reason = f"entry {seen.id} follows {seen.parent_id or 'nothing'}, which is not in the log"
            yield Fault("brokenChain", seen.number, seen.offset, reason, True)
    for cycle in cycles({seen.id: seen.parent_id for seen in known.values()}):
        first = min((known[id] for id in cycle), key=lambda seen: seen.number)
        yield Fault("cycle", first.number, first.offset, f"entries follow each other in a circle: {' -> '.join(cycle[:8])}", True)


def _header_faults(lines: Sequence[Seen], good: Sequence[Seen], header: bytes, path: str) -> Iterator[Fault]:
    if not lines:
        yield Fault("noHeader", 0, 0, "the file is empty", False)
        return
    first = good[0] if good else None
    if first is None or first.id != HEADER_ID or first.kind != EntryKind.HEADER:
        where = first or lines[0]
        yield Fault("noHeader", where.number, where.offset, "the first entry is no header", has_orphans(good))
        return
    try:
        named = read_header(read_entry(header).data, path, first.number).session_id
        if not path.endswith(f"_{named}.jsonl"):
            yield Fault("misnamedSession", first.number, first.offset, f"its header says that it is session {named!r}", False, "warning")
    except SessionCorrupt as error:
        yield Fault("badHeader", first.number, first.offset, error.reason, False)
    except UnsupportedVersion as error:
        reason = f"it was written in version {error.found} of the format, not {error.expected}"
        yield Fault("unsupportedVersion", first.number, first.offset, reason, False)


def has_orphans(good: Sequence[Seen]) -> bool:
    """Whether a log without header holds a session all the same: nobody turns somebody's notes into one."""
    return any(seen.parent_id != "" and seen.kind in _KINDS for seen in good)


_KINDS = frozenset(kind.value for kind in EntryKind)


def cycles(parents: dict[str, str]) -> Iterator[list[str]]:
    """Each circle among entries, as ids."""
    done: set[str] = {HEADER_ID}
    for start in parents:
        way: dict[str, None] = {}
        current = start
        while current in parents and current not in done and current not in way:
            way[current] = None
            current = parents[current]
        if current in way:
            ids = list(way)
            yield ids[ids.index(current) :]
        done.update(way)


def mended_messages(lines: Iterable[bytes]) -> Mended:
    """A transcript with each line a message."""
    found = Mended([], [])
    for number, content in enumerate(lines, 1):
        if not see_message(number, 0, content).problem:
            found.lines.append(content)
            continue
        found.taken_out.append(content)
        found.lines += _whole_records(content, lambda piece: not see_message(0, 0, piece).problem)
    return found


def _whole_records(content: bytes, usable: Callable[[bytes], object]) -> list[bytes]:
    """Records that stand whole in a line that is none: behind NUL bytes of a power cut, or glued to the half of another."""
    starts = [match.start() for match in _RECORD.finditer(content)]
    found: list[bytes] = []
    for start, end in zip(starts, [*starts[1:], len(content)]):
        for piece in (content[start:].strip(_PADDING), content[start:end].strip(_PADDING)):
            if usable(piece):
                found.append(piece)
                break
        if found and len(found[-1]) >= len(content[start:].strip(_PADDING)):
            break  # it reaches to the end: what looks like records inside it is text
    return found


class _Line(msgspec.Struct):
    """An entry on its way into the mended log."""

    content: bytes
    id: str
    parent_id: str
    kind: str = ""

    @property
    def is_header(self) -> bool:
        return self.id == HEADER_ID and self.kind == EntryKind.HEADER

    def moved(self, id: str, parent_id: str) -> _Line:
        """The same entry under another id or parent; all else of it stays to the byte."""
        parts: dict[str, bytes] = {}
        for name, value in rawjson.members(self.content).items():
            parts[name] = value
            if name == "id":
                parts["id"], parts["parent_id"] = rawjson.encode_string(id), b""
        parts["parent_id"] = rawjson.encode_string(parent_id)
        return _Line(rawjson.join_members(parts), id, parent_id, self.kind)


def mended_session(lines: Iterable[bytes], session_id: str, cwd: str) -> Mended:
    """A session that opens and whose every entry can be reached. `session_id`, `cwd`: for the header, should it be lost."""
    entries, taken_out = _usable_entries(lines)
    if not entries or not entries[0].is_header:
        header = next((entry for entry in entries if entry.is_header), None)
        if header is not None:
            entries.remove(header)
        else:
            _rename_false_headers(entries)
        entries.insert(0, header or _new_header(entries, session_id, cwd))
    _tell_apart(entries)
    _hang_up(entries)
    return Mended([entry.content for entry in entries], taken_out)


def _usable_entries(lines: Iterable[bytes]) -> tuple[list[_Line], list[bytes]]:
    entries: list[_Line] = []
    taken_out: list[bytes] = []
    for content in lines:
        line = _as_line(content)
        if line is not None:
            entries.append(line)
            continue
        taken_out.append(content)
        entries += [line for piece in _whole_records(content, _as_line) if (line := _as_line(piece)) is not None]
    return entries, taken_out


def _as_line(content: bytes) -> _Line | None:
    try:
        entry = read_entry(content)
    except NotAnEntry:
        return None
    return _Line(content, entry.id, entry.parent_id, entry.kind)


def _new_header(entries: Sequence[_Line], session_id: str, cwd: str) -> _Line:
    created = next((entry.timestamp for line in entries if times.is_time((entry := read_entry(line.content)).timestamp)), times.ZERO)
    parts = {"version": b"%d" % VERSION, "session_id": rawjson.encode_string(session_id), "cwd": rawjson.encode_string(cwd)}
    parts["created"] = rawjson.encode_string(created)
    line = write_entry(Entry(EntryKind.HEADER, HEADER_ID, "", created, msgspec.Raw(rawjson.join_members(parts))))
    return _Line(line[:-1], HEADER_ID, "", EntryKind.HEADER)


def _rename_false_headers(entries: list[_Line]) -> None:
    """Of a log without header: whatever bears a header's id gets one of its own."""
    taken = {entry.id for entry in entries}
    for position, entry in enumerate(entries):
        if entry.id == HEADER_ID:
            id = new_id(taken)
            taken.add(id)
            entries[position] = entry.moved(id, "")


def _tell_apart(entries: list[_Line]) -> None:
    """Of entries with one id the earlier ones get ids of their own, and what was appended to them follows them."""
    taken = {entry.id for entry in entries}
    last = {entry.id: position for position, entry in enumerate(entries)}
    renamed: dict[str, str] = {}
    for position, entry in enumerate(entries):
        if entry.id == HEADER_ID:
            continue
        parent = renamed.get(entry.parent_id, entry.parent_id)
        id = entry.id
        if last[id] != position:
            id = new_id(taken)
            taken.add(id)
            renamed[entry.id] = id
        else:
            renamed.pop(entry.id, None)
        if (id, parent) != (entry.id, entry.parent_id):
            entries[position] = entry.moved(id, parent)


def _hang_up(entries: list[_Line]) -> None:
    """An entry whose parent is missing, or that follows itself in a circle, follows what stands before it in the log."""
    known = {entry.id for entry in entries}
    before = HEADER_ID
    for position, entry in enumerate(entries):
        if entry.id == HEADER_ID:
            continue
        if entry.parent_id not in known:
            entries[position] = entry.moved(entry.id, before)
        before = entry.id
    places = {entry.id: position for position, entry in enumerate(entries) if entry.id != HEADER_ID}
    while circle := next(cycles({entry.id: entry.parent_id for entry in entries if entry.id != HEADER_ID}), None):
        first = min(places[id] for id in circle)
        parent = entries[first - 1].id if first and _reaches_header(entries, places, first - 1) else HEADER_ID
        entries[first] = entries[first].moved(entries[first].id, parent)


def _reaches_header(entries: Sequence[_Line], places: dict[str, int], position: int) -> bool:
    seen: set[str] = set()
    entry = entries[position]
    while entry.id != HEADER_ID:
        if entry.id in seen or (entry.parent_id not in places and entry.parent_id != HEADER_ID):
            return False
        seen.add(entry.id)
        if entry.parent_id == HEADER_ID:
            return True
        entry = entries[places[entry.parent_id]]
    return True
