"""A session as one document: Markdown, one HTML page that needs nothing else, or JSON. What stands in it is text, never markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import msgspec

from crewlog.storage import rawjson
from crewlog.storage.entries import as_json
from crewlog.storage.errors import InvalidArgument
from crewlog.storage.records import Entry, EntryKind
from crewlog.storage.sessions import SessionStore
from crewlog.storage.snapshot import read_compaction, session_name

FORMATS = ("markdown", "html", "json")


class Part(msgspec.Struct):
    """One thing shown. `style`: text, thinking, call, result, image or note; `title` heads what is folded away."""

    style: str
    text: str
    title: str = ""


class Section(msgspec.Struct):
    """One entry as it is shown. `role` heads it."""

    role: str
    timestamp: str
    parts: list[Part]


def export(store: SessionStore, format: str) -> str:
    """The chain to the leaf. Where it breaks before the header, what can be reached is shown, and the break is named.

    Raises `InvalidArgument` for another format.
    """
    if format not in FORMATS:
        raise InvalidArgument("format", f"it is one of {', '.join(FORMATS)}, not {format!r}")
    chain, broken = store.chain()
    title = store.header.name or f"Session {store.session_id}"
    if format == "json":
        reason = rawjson.encode_string(broken.reason) if broken else b"null"
        parts = {
            "sessionId": rawjson.encode_string(store.session_id),
            "broken": reason,
            "entries": rawjson.join_elements([as_json(line) for line in store.read_lines(chain)]),
        }
        return rawjson.decode_utf8(rawjson.join_members(parts))
    sections: list[Section] = []
    if broken is not None:
        sections.append(Section("", "", [Part("note", f"Earlier entries cannot be reached: {broken.reason}.")]))
    for entry in store.read_entries(chain):
        title = (session_name(entry.data) or title) if entry.kind == EntryKind.SESSION_INFO else title
        sections += [Section(role, entry.timestamp, parts) for role, parts in _shown(entry)]
    header = f"{store.header.cwd} · {store.header.created}"
    return _markdown(title, header, sections) if format == "markdown" else _html(title, header, sections)


class _Call(msgspec.Struct):
    id: str | None = ""
    name: str | None = ""
    args: msgspec.Raw = msgspec.Raw(b"null")


class _Image(msgspec.Struct):
    data: str | None = ""
    url: str | None = ""
    mime_type: str | None = ""


class _Block(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""
    thinking: str | None = ""
    tool_call: _Call | None = None
    image: _Image | None = None
    tool_name: str | None = ""


class _Message(msgspec.Struct):
    role: str | None = ""
    content: list[_Block | None] | None = None


_message_decoder = msgspec.json.Decoder(_Message)
_object_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _shown(entry: Entry) -> Iterator[tuple[str, list[Part]]]:
    data = bytes(entry.data)
    if entry.kind == EntryKind.MESSAGE:
        yield from _message(data)
    elif entry.kind == EntryKind.COMPACTION:
        compaction = read_compaction(data)
        yield "compaction", [Part("text", compaction.summary if compaction else "")]
    elif entry.kind == EntryKind.MODEL_CHANGE:
        yield "", [Part("note", "Model: " + _field(data, "provider") + " " + _field(data, "model"))]
    elif entry.kind not in _SILENT:
        yield "", [Part("note", f"{entry.kind}: {_shortened(rawjson.decode_utf8(data))}")]


_SILENT = frozenset({EntryKind.HEADER, EntryKind.SESSION_INFO, EntryKind.LLM_CALL, EntryKind.PLAN_STATE, EntryKind.GOAL_STATE})


_NOTE = 500


def _shortened(text: str) -> str:
    """What no reader knows how to show may be anything; that it is there is shown, and how it begins."""
    return text if len(text) <= _NOTE else f"{text[:_NOTE]}… ({len(text):,} characters)"


def _message(data: bytes) -> Iterator[tuple[str, list[Part]]]:
    try:
        message = rawjson.decode_lenient(data, _message_decoder, _Message)
    except msgspec.MsgspecError:
        yield "message", [Part("note", rawjson.decode_utf8(data))]
        return
    parts = [part for block in message.content or [] if block is not None for part in _block(block, message.role or "")]
    yield message.role or "message", parts


def _block(block: _Block, role: str) -> Iterator[Part]:
    if block.thinking:
        yield Part("thinking", block.thinking, "Thinking")
    if block.text:
        yield Part("result" if role == "tool" else "text", block.text, "Result" if role == "tool" else "")
    if block.tool_call is not None:
        arguments = rawjson.decode_utf8(bytes(block.tool_call.args))
        yield Part("call", arguments, f"Tool call: {block.tool_call.name or ''}")
    if block.image is not None:
        yield _image(block.image)
    if block.tool_name:
        yield Part("note", f"Tool: {block.tool_name}")


def _image(image: _Image) -> Part:
    """One that the record holds is shown; where another one lies is told, and nothing is fetched."""
    title = f"Image {image.mime_type or ''}".strip()
    if image.data and image.mime_type in _IMAGES and _BASE64.fullmatch(image.data):
        return Part("picture", f"data:{image.mime_type};base64,{image.data}", f"{title}, {len(image.data) * 3 // 4:,} bytes")
    return Part("image", image.url or "", title)


_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What cannot hold a script."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def _field(data: bytes, name: str) -> str:
    try:
        return rawjson.decode_string(rawjson.members(data).get(name, b'""')) or ""
    except rawjson.Invalid:
        return ""


def _markdown(title: str, header: str, sections: list[Section]) -> str:
    out = [f"# {_inline(title)}", "", _inline(header), ""]
    for section in sections:
        if section.role:
            out += [f"## {_inline(section.role)}", ""]
        for part in section.parts:
            if part.style == "text":
                out += [*_prose(part.text), ""]
            elif part.style == "note":
                out += [f"> {_inline(part.text)}", ""]
            elif part.style == "picture":
                out += [f"**{_inline(part.title)}**", ""]
            else:
                out += [f"**{_inline(part.title)}**", "", *_fenced(part.text), ""]
    return _clean("\n".join(out))


_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!https?://|mailto:)")


def _prose(text: str) -> Iterator[str]:
    """What an agent or a person wrote, which is Markdown: its layout stays. HTML in it is text, and a code block that it leaves open ends
    with it: neither may swallow what comes after.
    """
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
            yield line
        elif found:
            fence = found[1]
            yield line
        else:
            yield _without_tags(line)
    if fence:
        yield fence


def _without_tags(line: str) -> str:
    told, end = "", 0
    for code in _CODE_SPAN.finditer(line):
        told += _TAG.sub("&lt;", line[end : code.start()]) + code[0]
        end = code.end()
    return told + _TAG.sub("&lt;", line[end:])


def _fenced(text: str) -> list[str]:
    """A code block whose fence is longer than any in the text, so that the text cannot end it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, text, fence]


def _inline(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
h1{font-size:1.5rem}.meta,time{color:gray;font-size:.85rem}section{border-top:1px solid #8884;padding:.75rem 0}
h2{font-size:1rem;margin:0 0 .25rem;text-transform:capitalize}pre,.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}
pre{background:#8881;padding:.25rem .5rem;font-size:.9rem}img{max-width:100%}
details{margin:.25rem 0;opacity:.85}.thinking{opacity:.6}.note{color:gray;font-style:italic}
"""


def _html(title: str, header: str, sections: list[Section]) -> str:
    escape = html.escape
    out = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f'<h1>{escape(title)}</h1><p class="meta">{escape(header)}</p>',
    ]
    for section in sections:
        heading = f"<h2>{escape(section.role)} <time>{escape(section.timestamp)}</time></h2>" if section.role else ""
        out.append(f"<section>{heading}")
        for part in section.parts:
            text = f"<pre>{escape(part.text)}</pre>"
            if part.style == "text":
                out += _html_prose(part.text)
            elif part.style == "picture":
                out.append(f'<img src="{escape(part.text)}" alt="{escape(part.title)}">')
            elif part.style == "note":
                out.append(f'<p class="note">{escape(part.text)}</p>')
            else:
                out.append(f'<details class="{part.style}"><summary>{escape(part.title)}</summary>{text}</details>')
        out.append("</section>")
    out.append("</body></html>")
    return _clean("\n".join(out))


def _html_prose(text: str) -> Iterator[str]:
    """Paragraphs, and what stands between fences as code; all other layout stays as it was typed."""
    fence, lines = "", list[str]()

    def told() -> str:
        block = html.escape("\n".join(lines).strip("\n"))
        return f"<pre>{block}</pre>" if fence else f'<div class="text">{block}</div>'

    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and (not fence or (found[1].startswith(fence) and not line[found.end() :].strip())):
            if lines:
                yield told()
            fence, lines = "" if fence else found[1], []
        else:
            lines.append(line)
    if any(line.strip() for line in lines):
        yield told()


def _clean(text: str) -> str:
    """Half of a surrogate pair cannot be written in UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
