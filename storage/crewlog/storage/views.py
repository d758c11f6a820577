"""What a viewer asks of a session: pages of its chain, and the leaves of its tree."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.entries import as_json, timestamp_in
from crewlog.storage.errors import EntryNotFound, InvalidArgument
from crewlog.storage.records import EntryKind
from crewlog.storage.sessions import Break, Node, SessionStore

DEFAULT_LIMIT = 200
LAST_TEXT = 80
_LOOK_BACK = 20
_START = 1024
"""Bytes of a line in which what stands before its data is looked for."""


class EntryPage(msgspec.Struct):
    """`entries`: lines as on disk; `has_more`: in the direction that was asked for; `total`: entries on the chain."""

    entries: list[bytes]
    has_more: bool
    leaf_id: str
    total: int
    broken: Break | None


class Branch(msgspec.Struct):
    """One leaf. `length`: entries on its chain; `last_text`: the last text said on it, at most 80 characters."""

    leaf_id: str
    length: int
    timestamp: str
    last_text: str
    current: bool
    broken: Break | None


def entry_page(
    store: SessionStore,
    *,
    after: str | None = None,
    before: str | None = None,
    limit: int | None = None,
    max_bytes: int | None = None,
    kinds: Collection[str] | None = None,
    leaf_id: str | None = None,
) -> EntryPage:
    """A page of the chain to `leaf_id` (default: the leaf), oldest first: behind `after`, ahead of `before`, or else its end.

    A page holds at least one entry where there is one: one that is larger than `max_bytes` comes with `"data": null` and
    `"omittedBytes"`. Where the chain breaks before the header, what can be reached is shown and `broken` tells. Raises `EntryNotFound`.
    """
    if after is not None and before is not None:
        raise InvalidArgument("before", "give either after or before, not both")
    chain, broken = store.chain(leaf_id)
    start, end = _bounds(chain, after, before, store.path)
    wanted = [node for node in chain[start:end] if kinds is None or node.kind in kinds]
    forward = after is not None
    page = _fitting(wanted if forward else wanted[::-1], limit or DEFAULT_LIMIT, max_bytes)
    if not forward:
        page.reverse()
    lines = []
    for node, line in zip(page, _lines(store, page, max_bytes)):
        lines.append(line if line is not None else _without_data(store, node))
    return EntryPage(lines, len(page) < len(wanted), chain[-1].id, len(chain), broken)


def _bounds(chain: Sequence[Node], after: str | None, before: str | None, path: str) -> tuple[int, int]:
    named = after if after is not None else before
    if named is None:
        return 0, len(chain)
    at = next((index for index in range(len(chain) - 1, -1, -1) if chain[index].id == named), None)
    if at is None:
        raise EntryNotFound(named, path)
    return (at + 1, len(chain)) if after is not None else (0, at)


def _fitting(nodes: Sequence[Node], limit: int, max_bytes: int | None) -> list[Node]:
    page: list[Node] = []
    size = 0
    for node in nodes[:limit]:
        counted = node.length if max_bytes is None or node.length <= max_bytes else 200
        if page and max_bytes is not None and size + counted > max_bytes:
            break
        page.append(node)
        size += counted
    return page


def _lines(store: SessionStore, page: Sequence[Node], max_bytes: int | None) -> list[bytes | None]:
    """The lines of a page; those that do not fit are not read."""
    fitting = [node for node in page if max_bytes is None or node.length <= max_bytes]
    lines = dict(zip((id(node) for node in fitting), map(as_json, store.read_lines(fitting))))
    return [lines.get(id(node)) for node in page]


def _without_data(store: SessionStore, node: Node) -> bytes:
    """The entry without what makes it too large; of its line only the start is read."""
    parts = {
        "kind": rawjson.encode_string(node.kind),
        "id": rawjson.encode_string(node.id),
        "parent_id": rawjson.encode_string(node.parent_id),
        "timestamp": rawjson.encode_string(timestamp_in(store.read_lines([node], at_most=_START)[0])),
        "data": b"null",
        "omittedBytes": b"%d" % node.length,
    }
    if not node.parent_id:
        del parts["parent_id"]
    return rawjson.join_members(parts)


def branches(store: SessionStore) -> list[Branch]:
    """The leaves of the session's tree, the current one first, then the latest first in the file."""
    nodes = store.nodes()
    parents = {node.parent_id for node in nodes}
    leaves = [node for node in nodes if node.id not in parents or node.id == store.leaf_id]
    found = [_branch(store, leaf) for leaf in reversed(leaves)]
    found.sort(key=lambda branch: not branch.current)
    return found


def _branch(store: SessionStore, leaf: Node) -> Branch:
    chain, broken = store.chain(leaf.id)
    timestamp = store.read_entries([leaf])[0].timestamp
    return Branch(leaf.id, len(chain), timestamp, _last_text(store, chain), leaf.id == store.leaf_id, broken)


def _last_text(store: SessionStore, chain: Sequence[Node]) -> str:
    messages = [node for node in chain if node.kind == EntryKind.MESSAGE][-_LOOK_BACK:]
    for entry in reversed(store.read_entries(messages)):
        texts = message_texts(bytes(entry.data))
        if texts:
            text = texts[-1]
            return text if len(text) <= LAST_TEXT else text[: LAST_TEXT - 3] + "..."
    return ""


class _TextBlock(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""


class _Texts(msgspec.Struct):
    role: str | None = ""
    content: list[_TextBlock | None] | None = None


_texts_decoder = msgspec.json.Decoder(_Texts)


def message_texts(data: bytes) -> list[str]:
    """The texts of a message's text blocks; none where it is no message."""
    try:
        message = rawjson.decode_lenient(data, _texts_decoder, _Texts)
    except msgspec.MsgspecError:
        return []
    return [block.text for block in message.content or [] if block is not None and block.text]
