"""A home to be indexed, and the comparison of what the index says with what reading the logs says."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crewlog.storage import SessionManager, times
from crewlog.storage.home import Home
from crewlog.storage.index import SessionIndex
from crewlog.storage.search import search
from crewlog.storage.stats import gather_stats

QUERIES = [
    *(
        "parser",
        "pars*",
        "PARSER fails",
        '"parser fails"',
        "foo_bar()",
        "foo_ba",
        "b.py",
        "src/a/b.py",
        "天气",
        "气预",
        "天",
        "很好",
        "strasse",
    ),
    *(
        "größer",
        "set",
        "file",
        "k",
        "istanbul",
        "->",
        "!=",
        "\\",
        "🙂",
        "<tag>",
        "&amp;",
        "école",
        "C:\\new",
        "\\u0041",
        "u0041",
        "a*",
        "ab",
    ),
    *(
        "role:user",
        "role:assistant parser",
        "kind:compaction",
        "kind:message",
        "tool:edit",
        "model:son",
        "model:sonata-2",
        "after:2026-03-02",
    ),
    *(
        "before:2026-03-02",
        "parser after:2026-03-01 before:2026-03-02T12:00:00Z",
        "tool:none",
        "before:0020-01-01",
        "after:9000-01-01",
        "text",
        "message",
        '""',
        "'",
        "NEAR(a b)",
        "x AND",
    ),
]


def message(number: int, said: str) -> bytes:
    data = {"role": "user", "content": [{"type": "text", "text": said}]}
    entry = {"kind": "message", "id": f"{number:08x}", "parent_id": "h0", "timestamp": "2026-03-01T00:00:00Z", "data": data}
    return json.dumps(entry).encode() + b"\n"


class Work:
    """A home whose files' times are set apart, as if between two writes there had always been a while."""

    def __init__(self, folder: str) -> None:
        self.home = Home(folder)
        self.folder = os.path.join(self.home.projects, "-x")
        os.makedirs(self.folder)
        self.clock = 1_000_000_000
        self.index = SessionIndex(self.home)

    def path(self, number: int) -> str:
        return os.path.join(self.folder, f"2026-03-01_0000000{number}.jsonl")

    def settle(self, path: str) -> None:
        self.clock += 1
        os.utime(path, (self.clock, self.clock))

    def write(self, number: int, content: bytes, mode: str = "ab") -> None:
        with open(self.path(number), mode) as file:
            file.write(content)
        self.settle(self.path(number))

    def create(self, number: int, content: bytes) -> None:
        data = {"version": 3, "session_id": f"0000000{number}", "cwd": "/x", "created": "2026-03-01T00:00:00Z"}
        header = {"kind": "header", "id": "h0", "timestamp": "2026-03-01T00:00:00Z", "data": data}
        self.write(number, json.dumps(header).encode() + b"\n" + content, "wb")

    def update(self) -> None:
        self.index.update(small=0)

    def do(self, what: str, number: int, value: Any) -> None:
        path = self.path(number)
        if what == "update":
            self.update()
        elif what == "compare":
            self.compare()
        elif what == "create":
            self.create(number, value)
        elif not os.path.exists(path):
            return
        elif what in ("append", "tail"):
            self.write(number, value)
        elif what == "delete":
            os.unlink(path)
        elif what == "swap" and value != number and os.path.exists(self.path(value)):
            os.rename(path, path + "~")
            os.rename(self.path(value), path)
            os.rename(path + "~", self.path(value))
        elif what in ("overwrite", "truncate"):
            content = Path(path).read_bytes()
            at = min(value, len(content))
            self.write(number, content[:at] + (b"x" + content[at + 1 :] if what == "overwrite" else b""), "wb")

    def compare(self, index: SessionIndex | None = None, queries: Sequence[str] = QUERIES) -> None:
        index = index or self.index
        theirs = SessionManager(self.folder).list()
        ours = SessionManager(self.folder, known=index.summaries).list()
        assert ours == theirs
        for query in queries:
            expected = search(theirs.sessions, query)
            found = search(theirs.sessions, query, places=index.places(query, {self.folder}))
            assert found == expected, query
        for since in (None, times.parse_ns("2026-03-02T05:00:00Z")):
            spent = gather_stats(theirs.sessions, since=since)
            known = gather_stats(theirs.sessions, since=since, usage_of=index.usage_of({self.folder}))
            assert told(known) == told(spent)


def told(stats: Any) -> Any:
    def usage(found: Any) -> Any:
        return (found.calls, found.input_tokens, found.cache_read_tokens, found.cost, found.percentile(0.5), found.percentile(0.95))

    parts = [{key: usage(value) for key, value in part.items()} for part in (stats.by_model, stats.by_day, stats.by_session)]
    return usage(stats.total), parts, stats.cache_breaks, stats.sessions
