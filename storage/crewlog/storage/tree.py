"""The tree that the lines of a session log make: each entry under its parent, with its place in the file, without its payload."""

from __future__ import annotations

import sys

import msgspec

from crewlog.storage.entries import HEADER_ID, decode_block, read_entry, read_head, read_header, usual_head, usual_lines
from crewlog.storage.errors import EntryNotFound, SessionCorrupt
from crewlog.storage.log import Block, Line
from crewlog.storage.records import EntryKind, Header


class Node(msgspec.Struct, gc=False):
    """Where an entry stands: its place in the tree, and in the file (`offset`, `length` in bytes).

    `data_at`: where its data begins in the line, which ends behind it; 0 where the line must be read to know.
    """

    id: str
    parent_id: str
    kind: str
    offset: int
    length: int
    data_at: int


class Break(msgspec.Struct, rename="camel"):
    """Where a chain ends before it reaches the header: `entry_id` names `missing_parent_id`, which is not in the log, or a cycle."""

    entry_id: str
    missing_parent_id: str
    reason: str


class EntryTree:
    """The entries of one log. The leaf is the entry on the last line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.nodes: dict[str, Node] = {}
        """In file order; of two entries of one id the later one, in the place of the first."""
        self.leaf_id = ""
        self.header: Header | None = None
        self.rewritten = 0
        """How often a known id came again: what was derived from the tree before does not hold any more."""
        self._first_line = 0

    def add(self, line: Line) -> None:
        """Adds the entry on a line. Raises `NotAnEntry`, and for a bad header `SessionCorrupt` or `UnsupportedVersion`."""
        node = read_node(line)
        if node.parent_id == self.leaf_id:
            node.parent_id = self.leaf_id  # one object instead of two equal ones
        if node.id == HEADER_ID:
            if self.header is not None:
                return  # a second header must not hide the history behind it
            self._first_line = self._first_line or line.number
            if node.kind != EntryKind.HEADER:
                return
            self.header = read_header(read_entry(line.content).data, self.path, line.number)
        self.put(node)

    def add_block(self, block: Block) -> bool:
        """Adds the entries on all lines of a block; False, and none, where one of the lines is odd. Raises as `add`, before it adds any."""
        nodes = read_nodes(block)
        if nodes is None:
            return False
        if nodes[0].id == HEADER_ID:
            self.add(block.line(0))
            del nodes[0]
        leaf_id = self.leaf_id
        for node in nodes:
            if node.parent_id == leaf_id:
                node.parent_id = leaf_id  # as in `add`
            leaf_id = node.id
        added = {node.id: node for node in nodes}
        if len(added) == len(nodes) and self.nodes.keys().isdisjoint(added):
            self.nodes.update(added)
            self.leaf_id = leaf_id
        else:
            for node in nodes:
                self.put(node)
        return True

    def put(self, node: Node) -> None:
        """Adds the entry that stands last in the file."""
        if node.id in self.nodes:
            self.rewritten += 1
        self.nodes[node.id] = node
        self.leaf_id = node.id

    def check_header(self) -> None:
        """Raises `SessionCorrupt` where no header was among the lines."""
        if self.header is None and self._first_line:
            raise SessionCorrupt(self.path, self._first_line, 'the first entry is not of kind "header"')
        if self.header is None:
            raise SessionCorrupt(self.path, 0, "session file missing header entry")

    def require(self, entry_id: str) -> Node:
        """Raises `EntryNotFound`."""
        node = self.nodes.get(entry_id)
        if node is None:
            raise EntryNotFound(entry_id, self.path)
        return node

    def chain(self, entry_id: str, after: str = "") -> tuple[list[Node], Break | None]:
        """The nodes from the header (or from where the chain breaks) to an entry; with `after`, from behind that entry where the chain
        runs through it. Raises `EntryNotFound`.
        """
        node = self.require(entry_id)
        chain, seen = [node], {node.id}
        while node.id != HEADER_ID and (not after or node.parent_id != after):
            if not node.parent_id:
                return chain[::-1], Break(node.id, "", "chain does not reach session header")
            parent = self.nodes.get(node.parent_id)
            if parent is None:
                return chain[::-1], Break(node.id, node.parent_id, f"entry {node.parent_id} not found in session log")
            if parent.id in seen:
                return chain[::-1], Break(node.id, parent.id, f"cycle detected in session chain at entry {parent.id}")
            seen.add(parent.id)
            chain.append(parent)
            node = parent
        return chain[::-1], None

    def whole_chain(self, entry_id: str, after: str = "") -> list[Node]:
        """As `chain`, where it must not break. Raises `EntryNotFound`, `SessionCorrupt`."""
        chain, broken = self.chain(entry_id, after)
        if broken is None:
            return chain
        if broken.missing_parent_id and broken.missing_parent_id not in self.nodes:
            raise EntryNotFound(broken.missing_parent_id, self.path)
        raise SessionCorrupt(self.path, 0, broken.reason)


def read_node(line: Line) -> Node:
    """The entry on one line. Raises `NotAnEntry`."""
    head = read_head(line.content)
    if head is not None:
        return Node(head.id, head.parent_id, head.kind, line.offset, len(line.content), head.data_at)
    entry = read_entry(line.content)
    return Node(entry.id, entry.parent_id, entry.kind, line.offset, len(line.content), 0)


def read_nodes(block: Block) -> list[Node] | None:
    """The entries on the lines of a block; None where one of the lines is odd, or a header that is not the first of them."""
    entries = decode_block(block, usual_lines)
    if entries is None:
        return None
    nodes = []
    begin = 0
    for entry, end in zip(entries, block.ends):
        kind, entry_id, parent_id = entry.kind or "", entry.id, entry.parent_id or ""
        if not entry_id or (entry_id == HEADER_ID and begin):
            return None
        head = usual_head(kind, entry_id, parent_id, entry.timestamp)
        length = end - begin - 1
        usual = len(head) + len(memoryview(entry.data)) + 1 == length and block.content.startswith(head, begin)
        nodes.append(Node(entry_id, parent_id, sys.intern(kind), block.offset + begin, length, len(head) if usual else 0))
        begin = end
    return nodes
