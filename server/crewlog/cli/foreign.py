"""Sessions of other agents on their way into ours: what both importers share. Pure, but for `Draft.write`.

Each of our records keeps the original, as it was, under `metadata.imported`: nothing that a format of ours has no place for is lost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import HEADER_ID, new_id, write_entry
from crewlog.storage.files import POWER
from crewlog.storage.home import Home
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
        """Made of the other agent's id, so that the same session imported twice is known."""
        digits = "".join(character for character in self.source_id.lower() if character in "0123456789abcdef")
        return digits[-8:].rjust(8, "0")

    def write(self, home: Home, leaf_id: str) -> str | None:
        """Writes the session, with `leaf_id` as its leaf; its id. None where it is there already."""
        session_id = self.session_id()
        new_agents = self._write_transcripts(home, session_id)
        if not self.entries:
            return session_id if new_agents else None
        folder = home.sessions(self.cwd)
        if any(name.endswith(f"_{session_id}{SUFFIX}") for name in _names(folder)):
            return None
        if leaf_id != self.entries[-1].id:
            self.add(EntryKind.SESSION_INFO, {}, self.entries[-1].timestamp, leaf_id)
        date = next((entry.timestamp[:10] for entry in self.entries if entry.timestamp != times.ZERO), times.local_date())
        path = os.path.join(folder, f"{date}_{session_id}{SUFFIX}")
        lines = b"".join(write_entry(entry) for entry in self.entries)
        SessionManager(folder, durability=POWER, root=home.path).write_new(path, session_id, self.cwd, self.name, lines).close()
        return session_id

    def _write_transcripts(self, home: Home, session_id: str) -> int:
        """Those that are not there yet; how many."""
        if not self.transcripts:
            return 0
        store = TranscriptStore(home.transcripts(session_id), root=home.path)
        new = [agent for agent in self.transcripts if not store.count(agent)]
        for agent in new:
            store.append(agent, self.transcripts[agent])
        store.close()
        return len(new)


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
