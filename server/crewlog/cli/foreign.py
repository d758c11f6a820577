"""Sessions of other agents on their way into ours: what both importers share. Pure, but for `Draft.write`.

Each of our records keeps the original, as it was, under `metadata.imported`: nothing that a format of ours has no place for is lost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import HEADER_ID, NotAnEntry, new_id, read_entry, write_entry
from crewlog.storage.files import POWER
from crewlog.storage.home import Home
from crewlog.storage.log import AppendLog, Line
from crewlog.storage.manager import SUFFIX, SessionManager
from crewlog.storage.records import Entry, EntryKind
from crewlog.storage.transcripts import TranscriptStore

Value = msgspec.Raw | str | int | float | bool | None | Sequence["Value"] | Mapping[str, "Value"]


class ForeignFile(ValueError):
    """A file that is no session of the agent it is said to be from. `str()` says why."""


class Draft(msgspec.Struct):
    """A session that is being made. `source_id`: the other agent's name for it."""

    source_id: str
    cwd: str = ""
    name: str = ""
    entries: list[Entry] = []
    transcripts: dict[str, list[bytes]] = {}
    skipped: list[str] = []
    leaf_id: str = HEADER_ID
    taken: set[str] = set()

    def add(self, kind: str, data: Value, timestamp: str, parent_id: str | None = None) -> str:
        """Adds an entry behind `parent_id` (default: the one added last); its id."""
        id = new_id(self.taken)
        self.taken.add(id)
        moment = timestamp if times.is_time(timestamp) else times.ZERO
        self.entries.append(Entry(kind, id, self.leaf_id if parent_id is None else parent_id, moment, msgspec.Raw(encode(data))))
        self.leaf_id = id
        return id

    def session_id(self) -> str:
        return session_id_of(self.source_id)

    def unreadable(self, source: str, number: int, line: bytes, parent_id: str | None = None) -> None:
        """Keeps a line that is no record, as the text that it is, and tells of it in `skipped`."""
        self.skipped.append(f"line {number}: no JSON object")
        text = line.decode("utf-8", "backslashreplace")
        self.add(f"{source.partition('-')[0]}_unreadable", {"from": source, "record": None, "line": number, "text": text}, "", parent_id)

    def write(self, home: Home, leaf_id: str) -> Written:
        """Writes the session, with `leaf_id` as its leaf; of one that is there already, what was added to the source since.

        Raises `ForeignFile` where another session has its id.
        """
        session_id = self.session_id()
        agents = self._write_transcripts(home, session_id)
        if not self.entries:
            return Written(session_id, agents, not agents)
        folder = home.sessions(self.cwd)
        there = next((name for name in sorted(_names(folder)) if name.endswith(f"_{session_id}{SUFFIX}")), None)
        if there is not None:
            return Written(session_id, agents + self._catch_up(home, os.path.join(folder, there), leaf_id), True)
        count = len(self.entries)
        self._end_at(leaf_id)
        created = next((entry.timestamp for entry in self.entries if entry.timestamp != times.ZERO), "")
        path = os.path.join(folder, f"{created[:10] or times.local_date()}_{session_id}{SUFFIX}")
        lines = b"".join(write_entry(entry) for entry in self.entries)
        SessionManager(folder, durability=POWER, root=home.path).write_new(path, session_id, self.cwd, self.name, lines, created).close()
        return Written(session_id, count, False)

    def _end_at(self, leaf_id: str) -> None:
        """The entry on the last line is the leaf."""
        if leaf_id != self.entries[-1].id:
            self.add(EntryKind.SESSION_INFO, {}, self.entries[-1].timestamp, leaf_id)

    def _catch_up(self, home: Home, path: str, leaf_id: str) -> int:
        """Appends the entries that the log at `path` does not hold, each where it belongs; how many. Who went on from the session in the
        meantime stays where he is.
        """
        log = AppendLog(path, durability=POWER, root=home.path)
        log.begin_append()
        try:
            with log.lock:
                held = _held(log)
                known = {entry.id for entry in held}
                places: dict[tuple[str, bytes], list[str]] = {}
                for entry in reversed(held):
                    places.setdefault(_likeness(entry), []).append(entry.id)
                ids = {HEADER_ID: HEADER_ID}
                new: list[Entry] = []
                for entry in self.entries:
                    standing = places.get(_likeness(read_entry(write_entry(entry)[:-1])))
                    if standing:
                        ids[entry.id] = standing.pop()
                        continue
                    ids[entry.id] = new_id(known)
                    known.add(ids[entry.id])
                    new.append(Entry(entry.kind, ids[entry.id], ids[entry.parent_id], entry.timestamp, entry.data))
                if len(new) == len(self.entries):
                    raise ForeignFile(f"another session has its id, {self.session_id()}, in {path}")
                if not new:
                    return 0
                count, last = len(new), held[-1]
                is_mark = last.kind == EntryKind.SESSION_INFO and bytes(last.data) == b"{}"
                leaf = ids[leaf_id] if last.id in ids.values() or is_mark else last.id
                if leaf != new[-1].id:
                    new.append(Entry(EntryKind.SESSION_INFO, new_id(known), leaf, new[-1].timestamp, msgspec.Raw(b"{}")))
                log.append(b"".join(write_entry(entry) for entry in new))
            log.sync()
            return count
        finally:
            log.close()

    def _write_transcripts(self, home: Home, session_id: str) -> int:
        """Appends the messages that are not there yet; how many."""
        if not self.transcripts:
            return 0
        store = TranscriptStore(home.transcripts(session_id), root=home.path)
        added = 0
        for agent, messages in self.transcripts.items():
            new = messages[store.count(agent) :]
            if new:
                store.append(agent, new)
            added += len(new)
        store.close()
        return added


def session_id_of(source_id: str) -> str:
    """Made of the other agent's id, so that the same session imported twice is known."""
    digits = "".join(character for character in source_id.lower() if character in "0123456789abcdef")
    return digits[-8:].rjust(8, "0")


class Written(msgspec.Struct):
    """What became of a draft: `added` entries and messages, into a session that was `there` already or into a new one."""

    session_id: str
    added: int
    there: bool


def _likeness(entry: Entry) -> tuple[str, bytes]:
    """What two entries made of one record have in common. A call that was still under way at the first import has taken more since."""
    call_id = members(bytes(entry.data)).get("call_id") if entry.kind == EntryKind.LLM_CALL else None
    return entry.kind, call_id or bytes(entry.data)


def _held(log: AppendLog) -> list[Entry]:
    """The entries of a log; what is none is passed over: doctor tells of it."""
    held: list[Entry] = []

    def accept(line: Line) -> bool:
        try:
            held.append(read_entry(line.content))
        except NotAnEntry:
            return False
        return True

    def accept_line(line: Line) -> None:
        accept(line)

    log.read_added(accept_line, accept)
    return held


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def encode(value: Value) -> bytes:
    """A value with raw JSON anywhere in it."""
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, str):
        return rawjson.encode_string(value)
    if isinstance(value, Mapping):
        return rawjson.join_members({key: encode(item) for key, item in value.items()})
    if isinstance(value, Sequence):
        return rawjson.join_elements([encode(item) for item in value])
    return msgspec.json.encode(value)


def message(role: str, content: Sequence[Value], timestamp: str, **more: Value) -> dict[str, Value]:
    """A message of ours; what is None in `more` is left out."""
    given = {name: value for name, value in more.items() if value is not None}
    return {"role": role, "content": content, **given, "timestamp": timestamp if times.is_time(timestamp) else times.ZERO}


def text_block(text: str) -> dict[str, Value]:
    return {"type": "text", "text": text}


def call_block(id: str, name: str, args: msgspec.Raw) -> dict[str, Value]:
    """`args` is raw JSON; what is no object is kept as text, as codebot does."""
    if bytes(args)[:1] == b"{":
        return {"type": "toolCall", "tool_call": {"id": id, "name": name, "args": args}}
    raw = bytes(args).decode("utf-8", "replace")
    return {"type": "toolCall", "tool_call": {"id": id, "name": name, "args": {}, "args_invalid": True, "args_raw_text": raw}}


def imported(source: str, record: bytes | None) -> dict[str, Value]:
    """`metadata.imported`: where a record is from, and what it was."""
    return {"from": source, "record": msgspec.Raw(record) if record is not None else None}


def members(line: bytes) -> dict[str, bytes]:
    """The members of a JSON object; none where it is none."""
    try:
        return rawjson.members(line)
    except rawjson.Invalid:
        return {}


def text_of(parts: Mapping[str, bytes], name: str) -> str:
    """A text member; "" where it is none."""
    return rawjson.decode_string(parts.get(name, b'""')) or ""


def number_of(parts: Mapping[str, bytes], name: str) -> int:
    """A whole number; 0 where it is none."""
    raw = parts.get(name, b"0")
    return int(raw) if raw.isdigit() and len(raw) < 18 else 0


def elements(raw: bytes) -> list[bytes]:
    """The elements of a JSON array; none where it is none."""
    try:
        return rawjson.elements(raw)
    except rawjson.Invalid:
        return []


def joined_texts(raw: bytes) -> str:
    """The text of a content that is a string, or a list of blocks with texts."""
    if raw[:1] == b'"':
        return rawjson.decode_string(raw) or ""
    return "\n".join(text for block in elements(raw) if (text := text_of(members(block), "text")))
