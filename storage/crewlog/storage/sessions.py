"""Session logs: `SessionManager` for the folder of one project, `SessionStore` for one log in it.

A store keeps the tree of entries (ids, parents, places in the file), never the payloads; those are read when asked for. It looks at
the file before it answers and reads what others added since. Opening and reading never change the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from crewlog.storage import rawjson, times
from crewlog.storage.entries import (
    HEADER_ID,
    NewEntry,
    NotAnEntry,
    check_new_entry,
    new_id,
    read_entry,
    read_header,
    trim_blanks,
    write_entry,
)
from crewlog.storage.errors import (
    EntryNotFound,
    LeafMoved,
    SessionCorrupt,
    SessionNotFound,
    StoreClosed,
)
from crewlog.storage.files import POWER, Durability
from crewlog.storage.locks import Mutex, require_waiting
from crewlog.storage.log import LONG_READ, AppendLog, BlockReader, Line, Look
from crewlog.storage.records import (
    ContextSnapshot,
    Entry,
    EntryKind,
    GoalStateEntry,
    Header,
    LLMCallEntry,
    ModelChange,
    PlanStateEntry,
    ReasoningEffortChange,
)
from crewlog.storage.snapshot import Reduction, read_compaction

Payload = bytes | msgspec.Raw


class Node(msgspec.Struct, gc=False):
    """Where an entry stands: its place in the tree, and in the file (`offset`, `length` in bytes)."""

    id: str
    parent_id: str
    kind: str
    offset: int
    length: int


class Change(msgspec.Struct):
    """What a refresh found. `kind`: "grew", "shrank" or "replaced"; `added`: entries that are new, or all of them after the latter two."""

    kind: str
    added: int


class Recovered(msgspec.Struct, rename="camel"):
    """What the next append will cut off: `size` bytes at line `line`, torn by a crash or still being written by somebody."""

    line: int
    size: int


class Break(msgspec.Struct, rename="camel"):
    """Where a chain ends before it reaches the header: `entry_id` names `missing_parent_id`, which is not in the log, or a cycle."""

    entry_id: str
    missing_parent_id: str
    reason: str


class SessionStore:
    """One session log. Thread-safe. Made by `SessionManager.create`, `open` and `open_path`.

    Every method raises `StorageFailed` where the system refuses, `SessionCorrupt` where a line cannot be used, `SessionNotFound`
    where the file is gone, `StoreClosed` after `close`; those that write raise `Busy` where the lock is not to be had.
    """

    def __init__(self, path: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.path = path
        self._log = AppendLog(path, durability=durability, root=root)
        self._mutex = Mutex()
        self._closed = False
        self._header: Header | None = None
        self._header_line: Line | None = None
        self._nodes: dict[str, Node] = {}
        self._leaf_id = ""
        self._epoch = 0
        self._reduction: Reduction | None = None
        self._reduced_to: tuple[int, str] = (0, "")
        self.cached_bytes = 0
        """Size of the payloads that the last snapshot left in memory; `drop_cache` gives them back."""

    @property
    def header(self) -> Header:
        """The session's header. As in Go, its name is that of the header's line until a snapshot or `set_name` brought a newer one."""
        assert self._header is not None
        return self._header

    @property
    def session_id(self) -> str:
        return self.header.session_id

    @property
    def leaf_id(self) -> str:
        """The entry on the last line, as of the last refresh."""
        return self._leaf_id

    @property
    def entry_count(self) -> int:
        return len(self._nodes)

    @property
    def recovered(self) -> Recovered | None:
        """The torn tail that was seen, if any."""
        tail = self._log.tail
        return None if tail is None or tail.complete else Recovered(tail.line.number, len(tail.line.content))

    def refresh(self) -> Change | None:
        """Reads what others added since the last look. None when nothing changed."""
        with self._mutex:
            self._check_open()
            look = self._log.look()
            if look is Look.SAME:
                return None
            if look is Look.MISSING:
                raise SessionNotFound(self._header.session_id if self._header else os.path.basename(self.path))
            if look is not Look.GREW:
                self._forget()
            known = len(self._nodes)
            self._log.read_added(self._accept, self._accept_tail)
            if self._header is None:
                line = self._header_line.number if self._header_line else 0
                self._forget()
                if line:
                    raise SessionCorrupt(self.path, line, 'the first entry is not of kind "header"')
                raise SessionCorrupt(self.path, 0, "session file missing header entry")
            added = len(self._nodes) - known
            if look is Look.GREW and not added:
                return None
            return Change(look.value, added)

    def append(self, entries: Sequence[NewEntry], *, expected_leaf_id: str | None = None, field: str = "entries") -> list[Entry]:
        """Appends all entries or none, each the child of the one before, the first of the leaf (or of its own `parent_id`).

        With `expected_leaf_id` raises `LeafMoved` where somebody else appended. Raises `InvalidArgument` naming the entry by `field`,
        `EntryNotFound` for an unknown `parent_id`. The same payload appended twice gives two entries: a caller that retries after a
        lost reply passes `expected_leaf_id`.
        """
        payloads = [check_new_entry(entry, f"{field}[{index}]") for index, entry in enumerate(entries)]
        self._log.begin_append()
        with self._mutex:
            self.refresh()  # a log that was removed is not found, and not locked into being
            with self._log.lock:
                written = self._append_locked(entries, payloads, expected_leaf_id)
        if written:
            self._log.sync()
        return written

    def _append_locked(self, entries: Sequence[NewEntry], payloads: list[bytes], expected_leaf_id: str | None) -> list[Entry]:
        self.refresh()
        if expected_leaf_id is not None and expected_leaf_id != self._leaf_id:
            raise LeafMoved(self._leaf_id)
        parent, made, lines = self._leaf_id, [], []
        taken = _Union(self._nodes)
        for entry, payload in zip(entries, payloads):
            if entry.parent_id is not None:
                self._require(entry.parent_id)
                parent = entry.parent_id
            done = Entry(entry.kind, new_id(taken), parent, times.now(), msgspec.Raw(payload))
            taken.add(done.id)
            made.append(done)
            lines.append(write_entry(done))
            parent = done.id
        if not made:
            return made
        offset = self._log.append(b"".join(lines))
        for done, line in zip(made, lines):
            self._log.line_count += 1
            self._nodes[done.id] = Node(done.id, done.parent_id, done.kind, offset, len(line) - 1)
            self._leaf_id = done.id
            offset += len(line)
        return made

    def append_message(self, message: Payload) -> Entry:
        """A message as raw JSON; long thinking is cut in the file only. Go: AppendMessage."""
        return self._append_one(EntryKind.MESSAGE, message)

    def append_compaction(self, summary: str, kept_messages: Sequence[Payload] = ()) -> Entry:
        return self._append_one(
            EntryKind.COMPACTION, rawjson.join_members(_compaction_members(summary, [bytes(raw) for raw in kept_messages]))
        )

    def append_model_change(self, provider: str, model: str) -> Entry:
        return self._append_one(EntryKind.MODEL_CHANGE, msgspec.json.encode(ModelChange(provider, model)))

    def append_reasoning_effort_change(self, level: str) -> Entry:
        return self._append_one(EntryKind.REASONING_EFFORT_CHANGE, msgspec.json.encode(ReasoningEffortChange(level)))

    def append_plan_state(self, phase: str, slug: str = "", pre_mode: str = "") -> Entry:
        return self._append_one(EntryKind.PLAN_STATE, msgspec.json.encode(PlanStateEntry(phase, slug, pre_mode)))

    def append_goal_state(self, goal: GoalStateEntry) -> Entry:
        return self._append_one(EntryKind.GOAL_STATE, msgspec.json.encode(goal))

    def append_llm_call(self, call: LLMCallEntry) -> Entry:
        return self._append_one(EntryKind.LLM_CALL, msgspec.json.encode(call))

    def set_name(self, name: str, *, expected_leaf_id: str | None = None) -> Entry:
        entry = NewEntry(EntryKind.SESSION_INFO, rawjson.join_members({"name": rawjson.encode_string(name)}))
        done = self.append([entry], expected_leaf_id=expected_leaf_id)[0]
        self._set_header_name(name)
        return done

    def rewind(self, entry_id: str, *, expected_leaf_id: str | None = None) -> Entry:
        """Makes an earlier entry the one to go on from: an empty session_info is appended whose parent it is."""
        return self.append([NewEntry(EntryKind.SESSION_INFO, b"{}", entry_id)], expected_leaf_id=expected_leaf_id)[0]

    def snapshot(self, at_entry_id: str | None = None) -> ContextSnapshot:
        """The session's state at its leaf, or at another entry. Go: BuildSnapshot.

        Raises `EntryNotFound` for a missing entry or parent, `SessionCorrupt` for a cycle and for a chain without header. What the last
        compaction replaced is not read. The state at the leaf is kept, and extended where entries were added to it.
        """
        with self._mutex:
            self.refresh()
            if at_entry_id is not None and at_entry_id != self._leaf_id:
                return self._reduce(Reduction(), self._whole_chain(at_entry_id)).snapshot(at_entry_id)
            if self._reduced_to != (self._epoch, self._leaf_id):
                self._extend_reduction()
            assert self._reduction is not None
            snapshot = self._reduction.snapshot(self._leaf_id)
            snapshot.name = snapshot.name or self.header.name
            if self._reduction.name:
                self._set_header_name(self._reduction.name)
            return snapshot

    build_snapshot = snapshot

    def chain(self, entry_id: str | None = None) -> tuple[list[Node], Break | None]:
        """The nodes from the header (or from where the chain breaks) to `entry_id` (default: the leaf), and the break."""
        with self._mutex:
            self.refresh()
            return self._chain(entry_id or self._leaf_id)

    def nodes(self) -> list[Node]:
        """All nodes in file order."""
        with self._mutex:
            self.refresh()
            return list(self._nodes.values())

    def read_lines(self, nodes: Sequence[Node]) -> Iterator[bytes]:
        """The lines of `nodes` as they are on disk, without line ends."""
        reader = BlockReader(self.path)
        try:
            for node in nodes:
                yield reader.read(node.offset, node.length)
        finally:
            reader.close()

    def drop_cache(self) -> None:
        """Forgets the payloads that the last snapshot left in memory."""
        with self._mutex:
            self._reduction = None
            self._reduced_to = (0, "")
            self.cached_bytes = 0

    def release(self) -> None:
        """Gives the files and the memory back, and opens them again when it is used again."""
        with self._mutex:
            self.drop_cache()
            self._log.close()

    def close(self) -> None:
        """Gives the files back; a second close does nothing."""
        with self._mutex:
            self._closed = True
            self.drop_cache()
            self._log.close()

    @property
    def closed(self) -> bool:
        return self._closed

    def _append_one(self, kind: str, data: Payload) -> Entry:
        return self.append([NewEntry(kind, data)])[0]

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(self.path)

    def _require(self, entry_id: str) -> Node:
        node = self._nodes.get(entry_id)
        if node is None:
            raise EntryNotFound(entry_id, self.path)
        return node

    def _set_header_name(self, name: str) -> None:
        self._header = msgspec.structs.replace(self.header, name=name)

    def _forget(self) -> None:
        self._log.forget()
        self._nodes = {}
        self._header = self._header_line = None
        self._leaf_id = ""
        self._epoch += 1
        self.drop_cache()

    def _accept(self, line: Line) -> None:
        try:
            entry = read_entry(line.content)
        except NotAnEntry as problem:
            if not trim_blanks(line.content):
                return
            raise SessionCorrupt(self.path, line.number, problem.reason) from None
        self._add(entry, line)

    def _accept_tail(self, line: Line) -> bool:
        try:
            entry = read_entry(line.content)
        except NotAnEntry as problem:
            if not problem.is_json:
                return False
            raise SessionCorrupt(self.path, line.number, problem.reason) from None
        self._add(entry, line)
        return True

    def _add(self, entry: Entry, line: Line) -> None:
        if entry.id == HEADER_ID:
            if self._header is not None:
                return  # a second header must not hide the history behind it
            self._header_line = self._header_line or line
            if entry.kind != EntryKind.HEADER:
                return
            self._header = read_header(entry.data, self.path, line.number)
        known = self._nodes.get(entry.id)
        if known is not None:  # the later of two entries of one id wins
            self.drop_cache()
            self._epoch += 1
        self._nodes[entry.id] = Node(entry.id, entry.parent_id, entry.kind, line.offset, len(line.content))
        self._leaf_id = entry.id

    def _chain(self, entry_id: str, after: str = "") -> tuple[list[Node], Break | None]:
        """The chain from the header on; with `after`, from behind that entry where the chain runs through it."""
        node = self._require(entry_id)
        chain, seen = [node], {node.id}
        while node.id != HEADER_ID and (not after or node.parent_id != after):
            if not node.parent_id:
                return chain[::-1], Break(node.id, "", "chain does not reach session header")
            parent = self._nodes.get(node.parent_id)
            if parent is None:
                return chain[::-1], Break(node.id, node.parent_id, f"entry {node.parent_id} not found in session log")
            if parent.id in seen:
                return chain[::-1], Break(node.id, parent.id, f"cycle detected in session chain at entry {parent.id}")
            seen.add(parent.id)
            chain.append(parent)
            node = parent
        return chain[::-1], None

    def _whole_chain(self, entry_id: str, after: str = "") -> list[Node]:
        chain, broken = self._chain(entry_id, after)
        if broken is None:
            return chain
        if broken.missing_parent_id and broken.missing_parent_id not in self._nodes:
            raise EntryNotFound(broken.missing_parent_id, self.path)
        raise SessionCorrupt(self.path, 0, broken.reason)

    def _extend_reduction(self) -> None:
        epoch, reduced_to = self._reduced_to
        fresh = self._reduction is None or epoch != self._epoch
        chain = self._whole_chain(self._leaf_id, "" if fresh else reduced_to)
        reduction = self._reduction
        if reduction is None or fresh or chain[0].id == HEADER_ID:  # nothing kept, or the leaf is on another branch
            self.drop_cache()
            reduction = Reduction()
        self._reduce(reduction, chain)
        self._reduction = reduction
        self.cached_bytes += sum(node.length for node in chain)
        self._reduced_to = (self._epoch, self._leaf_id)

    def _reduce(self, reduction: Reduction, chain: list[Node]) -> Reduction:
        last = max((at for at, node in enumerate(chain) if node.kind == EntryKind.COMPACTION), default=-1)
        wanted = [node for at, node in enumerate(chain) if at >= last or node.kind not in _REPLACED]
        if last >= 0:
            wanted = self._with_last_good_compaction(chain, wanted, last)
        if sum(node.length for node in wanted) > LONG_READ:
            require_waiting()
        for line in self.read_lines(wanted):
            reduction.feed(read_entry(line))
        return reduction

    def _with_last_good_compaction(self, chain: list[Node], wanted: list[Node], last: int) -> list[Node]:
        """A compaction that cannot be read brings nothing, so what the one before it kept stays."""
        for at in range(last, -1, -1):
            if chain[at].kind != EntryKind.COMPACTION:
                continue
            if read_compaction(read_entry(next(iter(self.read_lines([chain[at]])))).data) is not None:
                return wanted if at == last else [node for node in chain if node is chain[at] or node in wanted]
        return wanted


_REPLACED = frozenset({EntryKind.MESSAGE.value, EntryKind.COMPACTION.value})


class _Union:
    """The ids of the log and those given out in this append."""

    def __init__(self, known: dict[str, Node]) -> None:
        self._known = known
        self._new: set[str] = set()

    def __contains__(self, candidate: object) -> bool:
        return candidate in self._known or candidate in self._new

    def add(self, entry_id: str) -> None:
        self._new.add(entry_id)


def _compaction_members(summary: str, kept: list[bytes]) -> dict[str, bytes]:
    members = {"summary": rawjson.encode_string(summary)}
    if kept:
        members["messages"] = rawjson.join_elements(kept)
    return members
