"""Claude Code's session files and task lists, read into ours.

A session is one `<uuid>.jsonl`: records with `uuid` and `parentUuid` form a tree; those with `isSidechain` are conversations of
subagents and become transcripts; a tool's result stands in a user record and becomes a `tool` message; the summary of a compaction becomes
a compaction.
"""

from __future__ import annotations

import msgspec

from crewlog.cli.foreign import (
    Draft,
    ForeignFile,
    Value,
    call_block,
    elements,
    encode,
    imported,
    joined_texts,
    members,
    message,
    number_of,
    text_block,
    text_of,
)
from crewlog.storage import rawjson
from crewlog.storage.entries import HEADER_ID
from crewlog.storage.records import EntryKind

SOURCE = "claude-code"
_TALKING = ("user", "assistant")


class Reader:
    """One session file, line by line, into a draft."""

    def __init__(self, source_id: str) -> None:
        self.draft = Draft(source_id)
        self.main_leaf = HEADER_ID
        self._places: dict[str, str] = {}
        """By `uuid`: the last of our entries made of that record."""
        self._side_agents: dict[str, str] = {}
        self._model = ""
        self._session = ""
        self._counted: dict[str, int] = {}
        """By the id of a call: the place among our entries of what it took."""

    def read(self, line: bytes, number: int) -> None:
        """One line. What is no JSON object is told in `draft.skipped`."""
        parts = members(line)
        if not parts:
            self.draft.unreadable(SOURCE, number, line, self.main_leaf)
            self.main_leaf = self.draft.leaf_id
            return
        self.draft.cwd = self.draft.cwd or text_of(parts, "cwd")
        self._session = self._session or text_of(parts, "sessionId")
        kind = text_of(parts, "type")
        if kind in ("summary", "custom-title"):
            self.draft.name = text_of(parts, "summary") or text_of(parts, "customTitle") or self.draft.name
            self._other(parts, line, kind)
        elif parts.get("isSidechain") == b"true" and kind in _TALKING:
            self._side(parts, line, kind)
        elif kind in _TALKING:
            self._talk(parts, line, kind)
        else:
            self._other(parts, line, kind)

    def finished(self) -> Draft:
        """Raises `ForeignFile` where nothing in the file was of Claude Code."""
        if not self._places and not self.draft.transcripts:
            raise ForeignFile("there is no record with uuid and message in it: this is no session of Claude Code")
        if not self._places:  # the file of a subagent: it belongs to the session that its records name
            self.draft.source_id = self._session or self.draft.source_id
            self.draft.entries.clear()
        return self.draft

    def _parent(self, parts: dict[str, bytes]) -> str:
        """Where the record hangs; behind what was read before where its own parent is not in the file."""
        named = text_of(parts, "parentUuid") or text_of(parts, "logicalParentUuid")
        return self._places.get(named, self.main_leaf if named or not self._places else HEADER_ID)

    def _talk(self, parts: dict[str, bytes], line: bytes, kind: str) -> None:
        when = text_of(parts, "timestamp")
        self.draft.leaf_id = self._parent(parts)
        said = members(parts.get("message", b"{}"))
        if parts.get("isCompactSummary") == b"true":
            data: dict[str, Value] = {"summary": joined_texts(said.get("content", b'""')), "imported": imported(SOURCE, line)}
            self.draft.add(EntryKind.COMPACTION, data, when)
        else:
            if kind == "assistant":
                self._model_change(said, when)
            for made in messages_of(kind, parts, said, line):
                self.draft.add(EntryKind.MESSAGE, made, when)
            self._count(said, when)
        self._place(parts)

    def _model_change(self, said: dict[str, bytes], when: str) -> None:
        model = text_of(said, "model")
        if model and model != self._model and not model.startswith("<"):
            self._model = model
            self.draft.add(EntryKind.MODEL_CHANGE, {"provider": "anthropic", "model": model}, when)

    def _count(self, said: dict[str, bytes], when: str) -> None:
        """What the call took: of its records, several where it streamed, the last one tells. A message that the agent made up, such as
        that of an error, was no call.
        """
        usage, call, model = members(said.get("usage", b"{}")), text_of(said, "id"), text_of(said, "model")
        if not usage or model.startswith("<"):
            return
        taken: dict[str, Value] = {
            "provider": "anthropic",
            "model": model,
            "input_tokens": number_of(usage, "input_tokens"),
            "output_tokens": number_of(usage, "output_tokens"),
            "cache_read_tokens": number_of(usage, "cache_read_input_tokens"),
            "cache_creation_tokens": number_of(usage, "cache_creation_input_tokens"),
            "stop_reason": text_of(said, "stop_reason"),
            "call_id": call,
        }
        if not call:
            del taken["call_id"]
        if call and call in self._counted:
            self.draft.entries[self._counted[call]].data = msgspec.Raw(encode(taken))
            return
        self._counted[call] = len(self.draft.entries)
        self.draft.add(EntryKind.LLM_CALL, taken, when)

    def _side(self, parts: dict[str, bytes], line: bytes, kind: str) -> None:
        parent = text_of(parts, "parentUuid")
        agent = text_of(parts, "agentId") or self._side_agents.get(parent) or f"sidechain-{len(set(self._side_agents.values())) + 1}"
        self._side_agents[text_of(parts, "uuid")] = agent
        said = members(parts.get("message", b"{}"))
        self.draft.transcripts.setdefault(agent, []).extend(encode(made) for made in messages_of(kind, parts, said, line))

    def _other(self, parts: dict[str, bytes], line: bytes, kind: str) -> None:
        """Records that we have no kind for are kept under their own: viewers show them as unknown, the snapshot passes over them."""
        if "uuid" not in parts:
            if kind:
                self.draft.add(f"claude_{kind}", imported(SOURCE, line), text_of(parts, "timestamp"), self.main_leaf)
                self.main_leaf = self.draft.leaf_id
            return
        self.draft.leaf_id = self._parent(parts)
        self.draft.add(f"claude_{kind or 'record'}", imported(SOURCE, line), text_of(parts, "timestamp"))
        self._place(parts)

    def _place(self, parts: dict[str, bytes]) -> None:
        self._places[text_of(parts, "uuid")] = self.draft.leaf_id
        self.main_leaf = self.draft.leaf_id


def messages_of(kind: str, parts: dict[str, bytes], said: dict[str, bytes], line: bytes) -> list[dict[str, Value]]:
    """Our messages for one record; the first keeps the record itself."""
    when = text_of(parts, "timestamp")
    content = said.get("content", b'""')
    made: list[dict[str, Value]] = []
    talk: list[Value] = [text_block(rawjson.decode_string(content) or "")] if content[:1] == b'"' else []
    for raw in elements(content) if content[:1] == b"[" else ():
        block = members(raw)
        if text_of(block, "type") == "tool_result":
            made.append(_tool_message(block, when))
        else:
            talk.append(_block(block, raw))
    if talk or not made:
        usage = msgspec.Raw(said["usage"]) if "usage" in said else None
        made.append(message(kind, talk, when, stop_reason=text_of(said, "stop_reason") or None, usage=usage))
    metadata = made[0].get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    injected = {"injected": True} if parts.get("isMeta") == b"true" else {}
    made[0]["metadata"] = {**known, **injected, "imported": imported(SOURCE, line)}
    return made


def _tool_message(block: dict[str, bytes], when: str) -> dict[str, Value]:
    metadata: dict[str, Value] = {"tool_call_id": text_of(block, "tool_use_id"), "is_error": block.get("is_error") == b"true"}
    return message("tool", [text_block(joined_texts(block.get("content", b'""')))], when, metadata=metadata)


def _block(block: dict[str, bytes], raw: bytes) -> Value:
    kind = text_of(block, "type")
    if kind == "text":
        return text_block(text_of(block, "text"))
    if kind == "thinking":
        return {"type": "thinking", "thinking": text_of(block, "thinking")}
    if kind == "tool_use":
        return call_block(text_of(block, "id"), text_of(block, "name"), msgspec.Raw(block.get("input", b"{}")))
    if kind == "image":
        source = members(block.get("source", b"{}"))
        image = {"data": text_of(source, "data"), "url": text_of(source, "url"), "mime_type": text_of(source, "media_type")}
        return {"type": "image", "image": {name: value for name, value in image.items() if value}}
    return text_block(f"[{kind or 'block'}] {raw.decode('utf-8', 'replace')[:200]}")
