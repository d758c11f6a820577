"""ANSI escape sequences, which programs colour their output with (ECMA-48): what a terminal shows of a text has none."""

from __future__ import annotations

import re

ESCAPE = "\x1b"
_UNSEEN = re.compile("\x1b(?:\\[[0-9:;]*m|[()][0-9A-Z]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\))")
"""Colours, sets of characters, and what is told to the terminal itself (OSC): titles, the targets of links. What is around them stands
side by side.
"""
_MOVES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""All other control sequences (CSI) move the cursor or erase: what is around them stands apart."""


def without_escapes(text: str) -> str:
    """The text without them; at once where there are none."""
    return _MOVES.sub(" ", _UNSEEN.sub("", text)) if ESCAPE in text else text
