"""The team of a task list: who is in it, shared by processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.document import DocumentFile
from crewlog.storage.errors import InvalidArgument, InvalidName, StorageFailed
from crewlog.storage.files import POWER, Durability
from crewlog.storage.locks import Mutex
from crewlog.storage.names import check_name
from crewlog.storage.records import RosterMember
from crewlog.storage.task_files import encode_file

FILE_NAME = "roster.json"


class Roster(msgspec.Struct):
    """The team. `members` are raw JSON records (`RosterMember` reads one), `document` the whole record with fields unknown here."""

    team: str
    description: str
    members: list[msgspec.Raw]
    document: bytes

    def member_records(self) -> list[RosterMember]:
        """The members as records; fields unknown here are left out."""
        return [read_member(raw) for raw in self.members]


class _Member(msgspec.Struct):
    name: str | None = ""
    agent_type: str | None = ""
    color: str | None = ""
    initial_prompt: str | None = ""
    description: str | None = ""
    depth: int | None = 0
    kind: str | None = ""


class _Document(msgspec.Struct):
    team: str | None = ""
    description: str | None = ""
    members: list[_Member | None] | None = None


_member_decoder = msgspec.json.Decoder(_Member)
_document_decoder = msgspec.json.Decoder(_Document)


def read_member(raw: bytes | msgspec.Raw) -> RosterMember:
    """Raises `InvalidArgument` naming the field."""
    try:
        found = rawjson.decode_exact(bytes(raw), _member_decoder, _Member)
    except msgspec.MsgspecError as error:
        reason, _, path = str(error).partition(" - at `$")
        raise InvalidArgument("member" + path.rstrip("`"), reason) from None
    return RosterMember(
        found.name or "",
        found.agent_type or "",
        found.color or "",
        found.initial_prompt or "",
        found.description or "",
        found.depth or 0,
        found.kind or "",
    )


class RosterStore:
    """One team. Without a folder it lives in memory; `set_dir` keeps it in `<dir>/roster.json`. Thread-safe. Go: RosterStore.

    Each change is made to what the file holds at that moment, so that changes by several processes add up. Fields unknown here survive.
    Raises `StorageFailed`, and `Busy` where the lock is not to be had.
    """

    def __init__(self, *, durability: Durability = POWER, root: str | None = None) -> None:
        self._durability = durability
        self._root = root
        self._mutex = Mutex()
        self._file: DocumentFile | None = None
        self._document: dict[str, bytes] = {}

    def set_dir(self, dir: str) -> None:
        """A missing folder or file is no error: there is no team yet. Raises `StorageFailed` for a file that is no roster."""
        with self._mutex:
            self._file = DocumentFile(os.path.join(dir, FILE_NAME), durability=self._durability, root=self._root or dir)
            content = self._file.read()
            if content is not None:
                self._document = self._parse(content)

    def set_team(self, name: str, description: str = "") -> None:
        """Sets the team's name and description; members stay."""
        with self._changing():
            changed = {"team": rawjson.encode_string(name)}
            if description:
                changed["description"] = rawjson.encode_string(description)
            changed.update((key, value) for key, value in self._document.items() if key not in ("team", "description"))
            self._write(changed)

    def upsert_member(self, member: RosterMember | bytes | msgspec.Raw) -> None:
        """Adds a member, or replaces the one of that name in its place. Raises `InvalidName` for a name that cannot name a transcript."""
        raw = msgspec.json.encode(member) if isinstance(member, RosterMember) else rawjson.one_line(member).strip()
        name = read_member(raw).name
        if name or not isinstance(member, RosterMember):
            check_name(name, "name")
        with self._changing():
            members = self._members()
            names = [read_member(known).name for known in members]
            if name in names:
                members[names.index(name)] = raw
            else:
                same = next((known for known in names if known.casefold() == name.casefold()), None)
                if same is not None and self._file is not None and _ignores_case(os.path.dirname(self._file.path)):
                    raise InvalidName(name, f"this file system cannot tell it from the member {same!r}")
                members.append(raw)
            self._write(self._with_members(members))

    def remove_member(self, name: str) -> bool:
        """Whether there was one of that name."""
        if not self._holds_anything():
            return False
        with self._changing():
            members = self._members()
            kept = [known for known in members if read_member(known).name != name]
            if len(kept) == len(members):
                return False
            self._write(self._with_members(kept))
            return True

    def clear(self) -> None:
        """Drops the team and all members, and removes the file."""
        if not self._holds_anything():
            return
        with self._changing():
            if self._file is not None:
                self._file.remove()
            self._document = {}

    def snapshot(self) -> Roster:
        """The team as it is now. Raises `StorageFailed` for a file that is no roster."""
        with self._mutex:
            self._refresh()
            members = [msgspec.Raw(raw) for raw in self._members()]
            description = self._document.get("description", b'""')
            return Roster(
                rawjson.decode_string(self._document.get("team", b'""')) or "",
                rawjson.decode_string(description) or "",
                members,
                rawjson.join_members({"team": b'""', **self._document}),
            )

    def refresh(self) -> bool:
        """Whether the file changed since the last look."""
        with self._mutex:
            return self._refresh()

    def _holds_anything(self) -> bool:
        """Whether there is a team to change, so that a refusal makes no folder."""
        return bool(self._document) or (self._file is not None and self._file.stamp() is not None)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        file = self._file
        with self._mutex:
            if file is None:
                yield
                return
            file.begin()
            with file.lock:
                self._refresh(for_writing=True)
                yield

    def _refresh(self, *, for_writing: bool = False) -> bool:
        file = self._file
        if file is None or file.is_current():
            return False
        content = file.read()
        if content is None:
            self._document = {}
        elif for_writing:
            try:
                self._document = self._parse(content)
            except StorageFailed:
                if not self._document:
                    raise  # a file that was never readable here is left as it is
                return True  # as in Go: the team that was read before replaces what somebody tore
        else:
            self._document = self._parse(content)
        return True

    def _parse(self, content: bytes) -> dict[str, bytes]:
        assert self._file is not None
        try:
            rawjson.decode_exact(content, _document_decoder, _Document)
            document = {} if content.strip() == b"null" else rawjson.members(rawjson.compact(content))
        except (msgspec.MsgspecError, rawjson.Invalid) as error:
            self._file.mark_unread()
            raise StorageFailed(self._file.path, "EBADMSG", f"it is no roster: {error}; repair or remove it") from None
        return {key: value for key, value in document.items() if value != b"null"}

    def _members(self) -> list[bytes]:
        return [b"{}" if raw == b"null" else raw for raw in rawjson.elements(self._document.get("members", b"[]"))]

    def _with_members(self, members: list[bytes]) -> dict[str, bytes]:
        known: dict[str, bytes] = {key: self._document[key] for key in ("team", "description") if key in self._document}
        if members:
            known["members"] = rawjson.join_elements(members)
        return {**known, **{key: value for key, value in self._document.items() if key not in ("team", "description", "members")}}

    def _write(self, document: dict[str, bytes]) -> None:
        document = {"team": b'""', **document}
        if self._file is not None:
            self._file.write(encode_file(rawjson.join_members(document)))
        self._document = document


def _ignores_case(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, FILE_NAME.upper())) and os.path.exists(os.path.join(folder, FILE_NAME))
