"""Messages as agents write them: prose, code with quotes and line breaks, a tool's call with nested arguments."""

from __future__ import annotations

import json
from typing import Any

_CODE = """def total(items: list[str]) -> int:
\t'''Counts what's \\"there\\".'''
\treturn sum(len(item) for item in items)  # naïve – 10 µs

"""


def message(size: int) -> dict[str, Any]:
    """A message of about `size` bytes of JSON."""
    call = {"id": "call_01", "name": "edit", "args": {"path": "src/a.py", "lines": [1, 2, 3], "dry_run": False, "reason": None}}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": ""}, {"type": "toolCall", "tool_call": call}]
    usage = {"input": 1_234, "output": 567, "cost": {"total": 0.0123}}
    made: dict[str, Any] = {"role": "assistant", "content": blocks, "usage": usage, "timestamp": "2026-03-01T09:30:00.123456789Z"}
    missing = size - len(json.dumps(made))
    per_piece = len(json.dumps(_CODE)) - 2
    blocks[0]["text"] = _CODE * max(1, round(missing / per_piece))
    return made


def prompt() -> dict[str, Any]:
    """What a session begins with: the words of a user."""
    text = "Please rename the function total in src/a.py, and its callers too."
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": "2026-03-01T09:30:00.123456789Z"}
