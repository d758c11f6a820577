"""Messages as agents write them: prose, code with quotes and line breaks, a tool's call with nested arguments."""

from __future__ import annotations

import json
from typing import Any

_CODE = """def total(items: list[str]) -> int:
\t'''Counts what's \\"there\\".'''
\treturn sum(len(item) for item in items)  # naïve – 10 µs

"""


def message(size: int, call_id: str = "call_01") -> dict[str, Any]:
    """What an assistant says and calls, of about `size` bytes of JSON."""
    call = {"id": call_id, "name": "edit", "args": {"path": "src/a.py", "lines": [1, 2, 3], "dry_run": False, "reason": None}}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": ""}, {"type": "toolCall", "tool_call": call}]
    usage = {"input": 1_234, "output": 567, "cost": {"total": 0.0123}}
    made: dict[str, Any] = {"role": "assistant", "content": blocks, "usage": usage, "timestamp": "2026-03-01T09:30:00.123456789Z"}
    _fill(made, size)
    return made


def answer(size: int, call_id: str) -> dict[str, Any]:
    """What a tool gave for a call, of about `size` bytes of JSON."""
    told = {"tool_call_id": call_id, "is_error": False}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": ""}]
    made: dict[str, Any] = {"role": "tool", "content": blocks, "metadata": told, "timestamp": "2026-03-01T09:30:01.123456789Z"}
    _fill(made, size)
    return made


def turn(number: int, size: int) -> dict[str, Any]:
    """The message with that number of a conversation: the user's words, then calls and their answers in turns."""
    if number == 1:
        return prompt()
    return answer(size, f"call_{number - 1}") if number % 2 else message(size, f"call_{number}")


def _fill(made: dict[str, Any], size: int) -> None:
    missing = size - len(json.dumps(made))
    per_piece = len(json.dumps(_CODE)) - 2
    made["content"][0]["text"] = _CODE * max(1, round(missing / per_piece))


def prompt() -> dict[str, Any]:
    """What a session begins with: the words of a user."""
    text = "Please rename the function total in src/a.py, and its callers too."
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": "2026-03-01T09:30:00.123456789Z"}
