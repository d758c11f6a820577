"""The index says what reading the logs says: after any appends, edits and deletions, whatever state it is in itself."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crewlog.storage import PROCESS, SessionManager, times
from crewlog.storage.index import SessionIndex
from crewlog.storage.search import search
from storage.index_work import Work, message

_TOLD = """parser fails Parser PARSER foo_bar() a/b.py src/a/b.py 天气 天气预报 预报 今天天气很好 Straße STRASSE größer
ſet ﬁle K İstanbul x -> != é É ÉCOLE école 🙂 🙂🙃 <tag> &amp; don't it's 1.5e3 __init__ --flag ab abc abcd"""
WORDS = [
    *_TOLD.split(),
    "\\",
    '"',
    "\n",
    "\t\n",
    "\u2028",
    "\x7f",
    "\x00",
    "C:\\new\\table",
    "\x1b[1mparser\x1b[0m",
    "regex\\d+\\u0041",
    "",
]
text = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
moment = st.one_of(
    st.builds("2026-03-0{}T0{}:00:0{}Z".format, st.integers(1, 3), st.integers(0, 9), st.integers(0, 9)),
    st.builds("2026-03-0{}T0{}:00:00.5+08:00".format, st.integers(1, 3), st.integers(0, 9)),
    st.sampled_from(["yesterday", "0001-01-01T00:00:00Z", "0026-03-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
)


@st.composite
def block(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        said = draw(text)
        return {"type": "text", "text": json.dumps(said) if draw(st.booleans()) else said}
    return {
        "type": "toolCall",
        "tool_call": {"id": "c", "name": draw(st.sampled_from(["edit", "Read", "天"])), "args": {"path": draw(text)}},
    }


@st.composite
def payload(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(["message", "message", "message", "llm_call", "compaction", "session_info", "model_change", "unknown"]))
    if kind == "message":
        made: dict[str, Any] = {
            "role": draw(st.sampled_from(["user", "assistant", "tool"])),
            "content": draw(st.lists(block(), max_size=3)),
        }
        if draw(st.booleans()):
            made["usage"] = {"model": "Sonata-2", "cost": {"total": draw(st.sampled_from([0.1, 0.2, 1e-9, 1e16, 0]))}}
        return kind, made
    if kind == "llm_call":
        called = {"model": draw(st.sampled_from(["sonata-1", "Sonata-2"])), "input_tokens": draw(st.integers(0, 9))}
        called |= {"latency_ms": draw(st.integers(0, 9)), "cache_read_tokens": draw(st.sampled_from([0, 7, 2**62]))}
        if draw(st.booleans()):
            called["cache_break"] = {"drop_absolute": 5, "tools_changed": True, "note": draw(text)}
        return kind, called
    if kind == "compaction":
        return kind, {"summary": draw(text)}
    return kind, draw(st.sampled_from([{"name": "a name"}, {"model": "sonata-9"}, {"text": "parser"}, [], 5]))


@st.composite
def line(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 15)) == 0:
        return draw(
            st.sampled_from([b"", b"{not json", b'{"kind":"message","data":{}}', b"  ", b"\xff\xfe", b'{"kind": "message", "id": "z"}'])
        )
    kind, data = draw(payload())
    entry = {"kind": kind, "id": f"{draw(st.integers(0, 999)):08x}", "parent_id": "h0", "timestamp": draw(moment), "data": data}
    spaced = (", ", ": ") if draw(st.integers(0, 5)) == 0 else (",", ":")
    return json.dumps(entry, ensure_ascii=draw(st.booleans()), separators=spaced).encode()


lines = st.lists(line(), max_size=6).map(lambda found: b"".join(item + b"\n" for item in found))
name = st.integers(0, 3)
step = st.one_of(
    st.tuples(st.just("create"), name, lines),
    st.tuples(st.just("append"), name, lines),
    st.tuples(st.just("append"), name, lines),
    st.tuples(st.just("tail"), name, line()),
    st.tuples(st.just("overwrite"), name, st.integers(0, 4000)),
    st.tuples(st.just("truncate"), name, st.integers(0, 4000)),
    st.tuples(st.just("delete"), name, st.just(0)),
    st.tuples(st.just("swap"), name, name),
    st.tuples(st.just("update"), st.just(0), st.just(0)),
    st.tuples(st.just("compare"), st.just(0), st.just(0)),
)


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores depend on the time: two searches are compared as of one moment."""
    monkeypatch.setattr(times, "now", lambda: "2026-03-05T00:00:00Z")


@settings(
    max_examples=int(os.environ.get("CREWLOG_INDEX_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(step, max_size=14))
def test_the_index_says_what_the_files_say(steps: list[tuple[str, int, Any]]) -> None:
    folder = tempfile.mkdtemp()
    try:
        work = Work(folder)
        work.create(0, b"")
        for what, number, value in steps:
            work.do(what, number, value)
        work.compare()
        work.update()
        work.compare()
        work.compare(SessionIndex(work.home))
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(str(tmp_path / "home"))


def test_only_what_was_appended_is_read(work: Work) -> None:
    for number in range(4):
        work.create(number, b"".join(message(line, "word " * 200) for line in range(100)))
    assert work.index.update(small=0).logs == 4
    assert work.index.update(small=0).logs == 0
    added = message(100, "needle")
    work.write(2, added)
    done = work.index.update(small=0)
    assert (done.logs, done.read_bytes) == (1, len(added))
    work.compare()


def test_many_small_appends_leave_a_small_index(work: Work) -> None:
    work.create(0, b"")
    for number in range(60):
        work.write(0, message(number, f"word{number} and more"))
        work.update()
    work.compare()
    hits = search(SessionManager(work.folder).list().sessions, "word7", places=work.index.places("word7", {work.folder}))
    assert [hit.entry_id for hit in hits] == [f"{7:08x}"]
    places = work.index.places("and", {work.folder})(work.path(0))
    assert places is not None
    assert len(places) < 20


def test_a_small_home_gets_no_index_and_a_reader_leaves_nothing_behind(work: Work) -> None:
    work.create(0, message(1, "parser"))
    work.compare()
    work.index.update()
    assert not os.path.exists(os.path.join(work.home.path, ".crewlog"))
    assert work.index.status().state == "none"


def test_the_index_is_private(work: Work) -> None:
    work.create(0, message(1, "parser"))
    work.update()
    work.index.places("parser", {work.folder})
    side = Path(work.home.path, ".crewlog")
    found = {path.name: path.stat().st_mode & 0o777 for path in side.iterdir()}
    assert any(name.startswith("index-") for name in found)
    assert set(found.values()) == {0o600}
    assert side.stat().st_mode & 0o777 == 0o700


def test_durability_is_not_the_indexs_business(work: Work) -> None:
    """Logs are only read."""
    store = SessionManager(work.folder, durability=PROCESS).create("/x")
    before = Path(store.path).read_bytes()
    work.settle(store.path)
    work.update()
    assert Path(store.path).read_bytes() == before


_ANY = st.characters(exclude_categories=())  # surrogates too, which JSON can hold
_SIGNS = st.sampled_from(list("\"'*()[]{}:^-+~!%_.,;/\\ \t\n\x00|&<>=天气ßſ\ud7ff\ud800\udfff\ue000\U0010ffff"))
_PIECES = st.one_of(
    st.sampled_from(
        [*WORDS, "AND", "OR", "NOT", "NEAR(", "text:", "role:", "kind:message", "tool:edit", "model:so", "after:", "before:2026-03-02"]
    ),
    st.text(_SIGNS, max_size=6),
    st.text(_ANY, max_size=6),
)
queries = st.lists(_PIECES, max_size=6).flatmap(
    lambda pieces: st.sampled_from(["", " ", "*", '"']).map(lambda between: between.join(pieces))
)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Work:
    work = Work(str(tmp_path_factory.mktemp("indexed") / "home"))
    for number in range(4):
        said = (" ".join(WORDS[at::4]) + f" word{at} \ud7ff\ue000\U0010ffff" for at in range(number, 40 + number))
        work.create(number, b"".join(message(at, text) for at, text in enumerate(said)))
    work.update()
    return work


@settings(
    max_examples=int(os.environ.get("CREWLOG_INDEX_EXAMPLES", "300")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(queries)
def test_no_query_is_an_error_and_each_is_answered_as_without_an_index(indexed: Work, query: str) -> None:
    sessions = SessionManager(indexed.folder).list().sessions
    assert search(sessions, query, places=indexed.index.places(query, {indexed.folder})) == search(sessions, query)
    assert len(indexed.index.summaries(indexed.folder)) == 4  # it is not taken for damaged


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"role:r{number}" for number in range(5_000)) + " role:user",
        " ".join(f"word{number}" for number in range(5_000)),
        "word1 " * 5_000,
        "word1_" * 5_000,
        "a" * 300_000,
        "天" * 30_000,
        "天 " * 5_000,
        "word1" + "*" * 5_000,
        '"' * 5_001,
        "tool:" + "x" * 300_000,
    ],
)
def test_queries_of_any_length(indexed: Work, query: str) -> None:
    """SQLite has limits for what it is asked; they are none of the user's concern."""
    sessions = SessionManager(indexed.folder).list().sessions
    assert search(sessions, query, places=indexed.index.places(query, {indexed.folder})) == search(sessions, query)
    assert len(indexed.index.summaries(indexed.folder)) == 4


def test_the_longest_words_are_found(work: Work) -> None:
    longest = "x" * 40_000
    work.create(0, message(1, longest) + message(2, longest + "y") + message(3, f"a {'x' * 199}") + message(4, "x" * 201))
    work.update()
    work.compare(queries=[longest, longest + "*", longest + "y", "x" * 199, "x" * 200, "x" * 200 + "*", "x" * 201, f"-{longest}"])
