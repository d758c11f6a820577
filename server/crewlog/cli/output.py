"""What commands print: JSON as on the wire, or tables for people. Colours only on a terminal, and never with NO_COLOR."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
import typing
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

import click
import msgspec
from msgspec.structs import FieldInfo

from crewlog.protocol.wire_json import encode_json
from crewlog.storage import rawjson, times

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What commands a terminal, or turns around the text behind it, and what no encoding has."""
_STYLE = re.compile("\x1b\\[[0-9;]*m")
_NARROW = 12
"""Columns that a cell keeps in the narrowest of terminals."""
STATUS_COLOURS = {"pending": "yellow", "in_progress": "cyan", "completed": "green"}
STATUS_SIGNS = {"pending": "○", "in_progress": "◐", "completed": "●"}


def colours() -> bool:
    """Whether standard output shows them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def say(text: str = "") -> None:
    """One line or more, to standard output. What a terminal could take for a command to itself is shown, not sent."""
    kept = text if colours() else _STYLE.sub("", text)
    click.echo(_harmless(kept).encode("utf-8", "backslashreplace"), color=True)


def complain(kind: str, text: str, *, as_json: bool = False) -> None:
    """To standard error, as all refusals are told; `as_json` in the form of the wire. These kinds are the
    command line's own: they have no code.
    """
    if as_json:
        click.echo(encode_json({"error": {"message": text, "data": {"kind": kind}}}), err=True)
        return
    click.echo(f"crewlog: {kind}: {_harmless(_STYLE.sub('', text))}".encode("utf-8", "backslashreplace"), err=True)


def say_json(value: object) -> None:
    """One line of JSON, as the wire has it. On a terminal, what it could take for a command is an escape of JSON: the value is the same."""
    document = encode_json(value)
    if sys.stdout.isatty():
        document = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", document.decode()).encode()
    click.echo(document, color=True)


def say_document(text: str) -> None:
    """To standard output, as it is; on a terminal with what could command it made visible."""
    shown = _CONTROL.sub("�", text) if sys.stdout.isatty() else text
    click.echo(shown.encode("utf-8", "backslashreplace"), nl=not text.endswith("\n"), color=True)


def told(as_json: bool, value: object, text: str) -> None:
    """The outcome of a command: `value` with --json, else `text`."""
    if as_json:
        say_json(value)
    else:
        say(text)


def styled(text: str, colour: str = "", *, bold: bool = False, dim: bool = False) -> str:
    """Of text that came from a record, with its own escape sequences made visible."""
    harmless = _CONTROL.sub("�", text)
    if not harmless or not (colour or bold or dim):
        return harmless
    return click.style(harmless, fg=colour or None, bold=bold or None, dim=dim or None)


def table(rows: Sequence[Sequence[str]], titles: Sequence[str], *, flexible: int = -1) -> str:
    """Aligned columns. Where the terminal is too narrow, the column `flexible` gives way, and then whichever is the widest. Cells may hold
    styles.
    """
    cells = [[click.style(title, dim=True) for title in titles], *[list(row) for row in rows]]
    widths = [max(width(row[column]) for row in cells) for column in range(len(titles))]
    if sys.stdout.isatty():
        spare = shutil.get_terminal_size().columns - sum(widths) - 2 * (len(widths) - 1)
        if spare < 0:
            narrowed = min(widths[flexible], max(_NARROW, widths[flexible] + spare))
            spare += widths[flexible] - narrowed
            widths[flexible] = narrowed
        while spare < 0 and max(widths) > _NARROW:
            widths[widths.index(max(widths))] -= 1
            spare += 1
    return "\n".join("  ".join(_padded(cell, size) for cell, size in zip(row, widths)).rstrip() for row in cells)


def width(text: str) -> int:
    """Columns that a terminal takes for it."""
    return sum(_columns(character) for character in _STYLE.sub("", text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _padded(cell: str, size: int) -> str:
    taken = width(cell)
    if taken <= size:
        return cell + " " * (size - taken)
    plain, kept, used = _STYLE.sub("", cell), "", 0
    for character in plain:
        if used + _columns(character) > size - 1:
            break
        kept += character
        used += _columns(character)
    styles = _STYLE.findall(cell)
    cut = kept + "…" + " " * (size - used - 1)
    return f"{styles[0]}{cut}\x1b[0m" if styles else cut


def one_line(text: str, limit: int = 200) -> str:
    """For a table: blanks of all kinds run together."""
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def ago(timestamp: str) -> str:
    """`5 min ago`; the date where it is long ago, nothing for no time."""
    ns = times.parse_ns(timestamp)
    if ns is None or timestamp == times.ZERO:
        return ""
    seconds = time.time() - ns / 1e9
    for limit, unit, size in ((90, "s", 1), (5400, "min", 60), (129_600, "h", 3600), (864_000, "d", 86_400)):
        if 0 <= seconds < limit:
            return f"{int(seconds / size)} {unit} ago"
    return timestamp[:10]


def sized(count: int) -> str:
    """Bytes for people."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def counted(count: int, one: str, many: str = "") -> str:
    """`1 session`, `2 sessions`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def markdown(text: str) -> None:
    """Markdown: laid out on a terminal, as it is elsewhere."""
    if not colours():
        say(text.rstrip("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(_harmless(text)))


def _harmless(text: str) -> str:
    """Keeps line ends, tabs and our own styles; an escape sequence out of a record loses its beginning."""
    parts = _STYLE.split(text)
    styles = [*_STYLE.findall(text), ""]
    return "".join(_CONTROL.sub("�", part) + style for part, style in zip(parts, styles))


def read_record(raw: msgspec.Raw | bytes, type: type[T]) -> T:
    """A record as it is on disk, read to be shown: half of a surrogate pair in a text is no hindrance.

    Raises `msgspec.ValidationError` for another shape.
    """
    try:
        return msgspec.json.decode(raw, type=type)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        from crewlog.protocol.lenient import convert

        try:
            return convert(rawjson.to_utf8(bytes(raw)), type)
        except rawjson.Invalid as error:
            raise msgspec.ValidationError(str(error)) from None


def read_shown(raw: msgspec.Raw | bytes, type: type[S]) -> S:
    """A record to be shown, as far as it can be read: a field of a shape that is none of its own is as one that is missing."""
    try:
        return read_record(raw, type)
    except msgspec.ValidationError:
        return type(**{field.name: _field(_members(raw), field) for field in msgspec.structs.fields(type)})


def _members(raw: msgspec.Raw | bytes) -> dict[str, bytes]:
    try:
        return rawjson.members(bytes(raw))
    except rawjson.Invalid:
        return {}


def _field(members: dict[str, bytes], field: FieldInfo) -> object:
    value = members.get(field.encode_name)
    if value is not None:
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            return read_record(value, field.type)
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return [] if typing.get_origin(field.type) is list else ""
