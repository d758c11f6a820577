"""Session logs: `SessionManager` for the folder of one project, `SessionStore` for one log in it.

A store keeps the tree of entries (ids, parents, places in the file), never the payloads; those are read when asked for. It looks at
the file before it answers and reads what others added since. Opening and reading never change the file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from crewlog.storage import collector, rawjson, times
from crewlog.storage.appending import check_new_entry
from crewlog.storage.entries import HEADER_ID, NewEntry, NotAnEntry, new_id, read_entry, trim_blanks, write_entry
from crewlog.storage.errors import LeafMoved, SessionCorrupt, SessionNotFound, StorageError, StorageFailed, StoreClosed
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
from crewlog.storage.tree import Break, EntryTree, Node

__all__ = ["Break", "Change", "Node", "Payload", "Recovered", "SessionStore"]

Payload = bytes | msgspec.Raw
_Read = TypeVar("_Read")


class Change(msgspec.Struct):
    """What a refresh found. `kind`: "grew", "shrank" or "replaced"; `added`: entries that are new, or all of them after the latter two."""

    kind: str
    added: int


class Recovered(msgspec.Struct, rename="camel"):
    """What the next append will cut off: `size` bytes at line `line`, torn by a crash or still being written by somebody."""

    line: int
    size: int


class SessionStore:
    """One session log. Thread-safe. Made by `SessionManager.create`, `open` and `open_path`.

    Every method raises `StorageFailed` where the system refuses, `SessionCorrupt` where a line cannot be used, `SessionNotFound`
    where the file is gone; those that write raise `Busy` where the lock is not to be had, and `StoreClosed` after `close`. Reading goes on
    after it, as in Go.
    """

    def __init__(self, path: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.path = path
        self._log = AppendLog(path, durability=durability, root=root)
        self._mutex = Mutex()
        self._closed = False
        self._header: Header | None = None
        self._tree = EntryTree(path)
        self._reduction: Reduction | None = None
        self._reduced: tuple[EntryTree, int, str] | None = None

    @property
    def header(self) -> Header:
        """The session's header. As in Go, its name is that of the header's line until a snapshot or `set_name` brought a newer one."""
        assert self._header is not None  # a store is handed out after its first refresh
        return self._header

    @property
    def session_id(self) -> str:
        return self.header.session_id

    @property
    def leaf_id(self) -> str:
        """The entry on the last line, as of the last refresh."""
        return self._tree.leaf_id

    @property
    def entry_count(self) -> int:
        return len(self._tree.nodes)

    @property
    def recovered(self) -> Recovered | None:
        """The torn tail that was seen, if any."""
        tail = self._log.tail
        return None if tail is None or tail.complete else Recovered(tail.line.number, len(tail.line.content))

    @property
    def cached_bytes(self) -> int:
        """Size of the payloads that the last snapshot left in memory; `drop_cache` gives them back."""
        return 0 if self._reduction is None else self._reduction.size

    def refresh(self) -> Change | None:
        """Reads what others added since the last look. None when nothing changed."""
        with self._mutex:
            return self._refresh()

    def _refresh(self) -> Change | None:
        look = self._log.look()
        if look is Look.SAME:
            return None
        if look is Look.MISSING:
            raise SessionNotFound(self._header.session_id if self._header else os.path.basename(self.path))
        if look is not Look.GREW:
            self._forget()
        known = len(self._tree.nodes)
        self._log.read_added(self._accept, self._accept_tail, self._tree.add_block)
        if self._tree.header is None:
            tree = self._tree
            self._forget()
            tree.check_header()
        if known == 0:
            self._header = self._tree.header
        added = len(self._tree.nodes) - known
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
            if self._closed:
                raise StoreClosed(self.path)
            if not self._log.lock.opened:
                self._refresh()  # a log that was removed is not found, and not locked into being
            try:
                with self._log.lock:
                    written = self._append_locked(entries, payloads, expected_leaf_id)
            except StorageFailed:
                self._require_file()
                raise
        if written:
            self._sync()
        return written

    def _sync(self) -> None:
        try:
            self._log.sync()
        except StorageFailed:
            with contextlib.suppress(StorageError):  # the first error is the one to tell
                self.refresh()
            raise

    def _append_locked(self, entries: Sequence[NewEntry], payloads: list[bytes], expected_leaf_id: str | None) -> list[Entry]:
        self._refresh()
        tree = self._tree
        if expected_leaf_id is not None and expected_leaf_id != tree.leaf_id:
            raise LeafMoved(tree.leaf_id)
        parent, made, lines = tree.leaf_id, [], []
        taken: set[str] = set()
        for entry, payload in zip(entries, payloads):
            if entry.parent_id is not None:
                parent = tree.require(entry.parent_id).id
            done = Entry(entry.kind, new_id(tree.nodes, taken), parent, times.now(), msgspec.Raw(payload))
            taken.add(done.id)
            made.append(done)
            lines.append(write_entry(done))
            parent = done.id
        if not made:
            return made
        offset = self._log.append(b"".join(lines))
        for done, line in zip(made, lines):
            self._log.line_count += 1
            tree.put(Node(done.id, done.parent_id, done.kind, offset, len(line) - 1, len(line) - len(memoryview(done.data)) - 2))
            offset += len(line)
        return made

    def _require_file(self) -> None:
        if not os.path.lexists(self.path):
            raise SessionNotFound(self.session_id)

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
            self._refresh()
            return self._while_it_stands(lambda: self._snapshot(at_entry_id))

    build_snapshot = snapshot

    def _snapshot(self, at_entry_id: str | None) -> ContextSnapshot:
        tree = self._tree
        if at_entry_id is not None and at_entry_id != tree.leaf_id:
            reduction = Reduction()
            self._reduce(reduction, tree.whole_chain(at_entry_id))
            return reduction.snapshot(at_entry_id)
        reduction = self._reduction_of_leaf()
        snapshot = reduction.snapshot(tree.leaf_id)
        if not snapshot.name and tree.header is not None:
            snapshot.name = tree.header.name
        if reduction.name:
            self._set_header_name(reduction.name)
        return snapshot

    def chain(self, entry_id: str | None = None) -> tuple[list[Node], Break | None]:
        """The nodes from the header (or from where the chain breaks) to `entry_id` (default: the leaf), and the break."""
        with self._mutex:
            self._refresh()
            return self._tree.chain(self._tree.leaf_id if entry_id is None else entry_id)

    def nodes(self) -> list[Node]:
        """All nodes in file order."""
        with self._mutex:
            self._refresh()
            return list(self._tree.nodes.values())

    def read_lines(self, nodes: Sequence[Node], *, at_most: int | None = None) -> list[bytes]:
        """The lines of `nodes` as they are on disk, without line ends, or the first `at_most` bytes of each.

        Raises `StorageFailed` where the log was replaced since.
        """
        with self._mutex:
            if any(self._tree.nodes.get(node.id) is not node for node in nodes):
                raise self._stale()
            ranges = [(node.offset, node.length if at_most is None else min(node.length, at_most)) for node in nodes]
            return self._while_it_stands(lambda: self._read(ranges))

    def read_entries(self, nodes: Sequence[Node]) -> list[Entry]:
        """The entries of `nodes`. Raises as `read_lines`."""
        try:
            return [read_entry(line) for line in self.read_lines(nodes)]
        except NotAnEntry as problem:
            raise SessionCorrupt(self.path, 0, f"it was changed while it was read: {problem.reason}") from None

    def drop_cache(self) -> None:
        """Forgets the payloads that the last snapshot left in memory."""
        with self._mutex:
            self._reduction = None
            self._reduced = None

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

    def _set_header_name(self, name: str) -> None:
        self._header = msgspec.structs.replace(self.header, name=name)

    def _forget(self) -> None:
        self._log.forget()
        self._tree = EntryTree(self.path)
        self.drop_cache()

    def _stale(self) -> StorageFailed:
        return StorageFailed(self.path, "ESTALE", "the log was replaced while it was read; read it anew")

    def _while_it_stands(self, read: Callable[[], _Read]) -> _Read:
        """What `read` gives, if the log did not change under it, but for what was added behind."""
        try:
            found = read()
        except NotAnEntry as problem:
            self.drop_cache()
            if self._log.look() in (Look.SAME, Look.GREW):
                raise SessionCorrupt(self.path, 0, f"it was changed in place: {problem.reason}") from None
            raise self._stale() from None
        if self._log.look() not in (Look.SAME, Look.GREW):
            self.drop_cache()
            raise self._stale()
        return found

    def _read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        reader = BlockReader(self.path)
        try:
            return [reader.read(offset, length) for offset, length in ranges]
        finally:
            reader.close()

    def _accept(self, line: Line) -> None:
        try:
            self._tree.add(line)
        except NotAnEntry as problem:
            if trim_blanks(line.content):
                raise SessionCorrupt(self.path, line.number, problem.reason) from None

    def _accept_tail(self, line: Line) -> bool:
        try:
            self._tree.add(line)
        except NotAnEntry as problem:
            if not problem.is_json:
                return False
            raise SessionCorrupt(self.path, line.number, problem.reason) from None
        return True

    def _reduction_of_leaf(self) -> Reduction:
        """The reduction at the leaf: the one that was kept, extended by what was added, where the leaf is its descendant."""
        tree = self._tree
        wanted = (tree, tree.rewritten, tree.leaf_id)
        kept, before = self._reduction, self._reduced
        if kept is not None and before == wanted:
            return kept
        if kept is not None and before is not None and before[:2] == wanted[:2]:
            chain = tree.whole_chain(tree.leaf_id, after=before[2])
            if chain[0].id == HEADER_ID:  # the leaf is on another branch
                kept = None
        else:
            kept, chain = None, tree.whole_chain(tree.leaf_id)
        self.drop_cache()  # what fails half way is of no use
        reduction = kept or Reduction()
        self._reduce(reduction, chain)
        self._reduction, self._reduced = reduction, wanted
        return reduction

    def _reduce(self, reduction: Reduction, chain: list[Node]) -> None:
        wanted = self._not_replaced(chain)
        size = sum([node.length for node in wanted])
        if size > LONG_READ:
            require_waiting()
        lie_together = bool(wanted) and wanted[-1].offset + wanted[-1].length - wanted[0].offset < 2 * size
        message = EntryKind.MESSAGE.value
        with contextlib.closing(BlockReader(self.path)) as reader, collector.resting():
            read = reader.view if lie_together else reader.read  # views hold what lies between them too
            for node in wanted:
                if node.kind == message and node.data_at:
                    reduction.feed_message(msgspec.Raw(read(node.offset + node.data_at, node.length - node.data_at - 1)))
                else:
                    reduction.feed(read_entry(reader.read(node.offset, node.length)))

    def _not_replaced(self, chain: list[Node]) -> list[Node]:
        """The chain without the messages before its last compaction, and without compactions that a later one replaced.

        A compaction that cannot be read brings nothing, so that the one before it still counts.
        """
        compactions = [at for at, node in enumerate(chain) if node.kind == EntryKind.COMPACTION]
        if not compactions:
            return chain
        last, counting = compactions[-1], set[int]()
        while compactions:
            counting.add(compactions[-1])
            node = chain[compactions.pop()]
            (line,) = self._read([(node.offset, node.length)])
            if read_compaction(read_entry(line).data) is not None:
                break
        return [node for at, node in enumerate(chain) if at >= last or at in counting or node.kind not in _REPLACED]


_REPLACED = frozenset({EntryKind.MESSAGE.value, EntryKind.COMPACTION.value})


def _compaction_members(summary: str, kept: list[bytes]) -> dict[str, bytes]:
    members = {"summary": rawjson.encode_string(summary)}
    if kept:
        members["messages"] = rawjson.join_elements(kept)
    return members
