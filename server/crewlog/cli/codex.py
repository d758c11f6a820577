"""Codex's rollout files (`rollout-<time>-<uuid>.jsonl`), read into ours: lines of `{timestamp, type, payload}`, in one chain.

Older files have the items bare, without `payload`, under a first line with the session's id.
"""

from __future__ import annotations

import msgspec

from crewlog.cli.foreign import (
    Draft,
    ForeignFile,
    Value,
    call_block,
    elements,
    imported,
    joined_texts,
    members,
    message,
    number_of,
    text_block,
    text_of,
)
from crewlog.storage import rawjson
from crewlog.storage.records import EntryKind

SOURCE = "codex"
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_ITEMS = ("message", "reasoning", *_CALLS, *_RESULTS)


class Reader:
    """One rollout file, line by line, into a draft."""

    def __init__(self, source_id: str) -> None:
        self.draft = Draft(source_id)
        self._known = False
        self._model = ""
        self._effort = ""
        self._total = b""

    def read(self, line: bytes, number: int) -> None:
        """One line. What is no JSON object is told in `draft.skipped`."""
        parts = members(line)
        if not parts:
            self.draft.unreadable(SOURCE, number, line)
            return
        when, kind = text_of(parts, "timestamp"), text_of(parts, "type")
        payload = members(parts["payload"]) if "payload" in parts else parts
        if kind == "session_meta" or (not kind and "id" in parts and "record_type" not in parts):
            self._begin(payload, line, when)
        elif kind == "turn_context":
            self._turn(payload, line, when)
        elif kind == "compacted":
            self._known = True
            self.draft.add(EntryKind.COMPACTION, {"summary": text_of(payload, "message"), "imported": imported(SOURCE, line)}, when)
        elif kind == "event_msg":
            self._event(payload, line, when)
        elif (kind == "response_item" and "payload" in parts) or kind in _ITEMS:
            self._known = True
            self._item(payload, line, when)
        else:
            self.draft.add(f"codex_{kind or 'record'}", imported(SOURCE, line), when)

    def finished(self) -> Draft:
        """Raises `ForeignFile` where nothing in the file was of Codex."""
        if not self._known:
            raise ForeignFile("there is no response_item in it: this is no rollout of Codex")
        return self.draft

    def _begin(self, payload: dict[str, bytes], line: bytes, when: str) -> None:
        self.draft.source_id = text_of(payload, "id") or self.draft.source_id
        self.draft.cwd = text_of(payload, "cwd") or self.draft.cwd
        self.draft.add("codex_session_meta", imported(SOURCE, line), when or text_of(payload, "timestamp"))

    def _turn(self, payload: dict[str, bytes], line: bytes, when: str) -> None:
        self.draft.cwd = self.draft.cwd or text_of(payload, "cwd")
        model, effort = text_of(payload, "model"), text_of(payload, "effort")
        if model and model != self._model:
            self._model = model
            self.draft.add(EntryKind.MODEL_CHANGE, {"provider": "openai", "model": model}, when)
        if effort and effort != self._effort:
            self._effort = effort
            self.draft.add(EntryKind.REASONING_EFFORT_CHANGE, {"level": effort}, when)
        self.draft.add("codex_turn_context", imported(SOURCE, line), when)

    def _event(self, payload: dict[str, bytes], line: bytes, when: str) -> None:
        info = members(payload.get("info", b"{}"))
        last, total = members(info.get("last_token_usage", b"{}")), info.get("total_token_usage", b"")
        if text_of(payload, "type") != "token_count" or not last or (total and total == self._total):  # told again, nothing was taken since
            self.draft.add(f"codex_{text_of(payload, 'type') or 'event'}", imported(SOURCE, line), when)
            return
        self._total = total
        cached = number_of(last, "cached_input_tokens")
        taken: dict[str, Value] = {
            "provider": "openai",
            "model": self._model,
            "input_tokens": max(0, number_of(last, "input_tokens") - cached),
            "output_tokens": number_of(last, "output_tokens"),
            "cache_read_tokens": cached,
            "total_tokens": number_of(last, "total_tokens"),
            "reasoning_effort": self._effort,
            "imported": imported(SOURCE, line),
        }
        self.draft.add(EntryKind.LLM_CALL, taken, when)

    def _item(self, item: dict[str, bytes], line: bytes, when: str) -> None:
        kind = text_of(item, "type")
        metadata: dict[str, Value] = {"imported": imported(SOURCE, line)}
        if kind == "message":
            role = text_of(item, "role")
            if role == "developer":
                role = "system"
            texts = [text_of(members(block), "text") for block in elements(item.get("content", b"[]"))]
            if role == "user" and texts and texts[0].startswith(("<environment_context>", "<user_instructions>", "# AGENTS.md")):
                metadata["injected"] = True
            blocks: list[Value] = [_block(block) for block in elements(item.get("content", b"[]"))]
            made = message(role or "user", blocks, when, metadata=metadata)
        elif kind == "reasoning":
            thinking = joined_texts(item.get("summary", b"[]")) or joined_texts(item.get("content", b"[]"))
            made = message("assistant", [{"type": "thinking", "thinking": thinking}], when, metadata=metadata)
        elif kind in _RESULTS:
            made = _result(item, when, metadata)
        elif kind in _CALLS:
            made = message("assistant", [_call(item, kind)], when, metadata=metadata)
        else:
            self.draft.add(f"codex_{kind or 'item'}", imported(SOURCE, line), when)
            return
        self.draft.add(EntryKind.MESSAGE, made, when)


def _block(raw: bytes) -> Value:
    block = members(raw)
    if text_of(block, "type") == "input_image":
        return {"type": "image", "image": {"url": text_of(block, "image_url")}}
    return text_block(text_of(block, "text"))


def _call(item: dict[str, bytes], kind: str) -> Value:
    """A call; its arguments are JSON in a text (`function_call`), plain text (`custom_tool_call`), or a record."""
    id = text_of(item, "call_id") or text_of(item, "id")
    if kind == "function_call":
        args = (rawjson.decode_string(item.get("arguments", b'"{}"')) or "{}").encode("utf-8", "surrogatepass").strip()
        return call_block(
            id, text_of(item, "name"), msgspec.Raw(args if members(args) or args == b"{}" else rawjson.encode_string(args.decode()))
        )
    if kind == "custom_tool_call":
        return call_block(id, text_of(item, "name"), msgspec.Raw(b'{"input":%b}' % item.get("input", b'""')))
    return call_block(id, kind.removesuffix("_call"), msgspec.Raw(item.get("action", b"{}")))


def _result(item: dict[str, bytes], when: str, metadata: dict[str, Value]) -> dict[str, Value]:
    output = item.get("output", b'""')
    record = members(output)
    content = record.get("content", b'""') if record else output
    failed = record.get("success") == b"false"
    known: dict[str, Value] = {"tool_call_id": text_of(item, "call_id"), "is_error": failed, **metadata}
    return message("tool", [text_block(joined_texts(content))], when, metadata=known)
