"""Search, statistics, and the trash."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlog.storage import PROCESS, InvalidName, NewEntry, SessionManager, SessionNotFound, StorageFailed, TaskStore, TranscriptStore
from crewlog.storage.home import Home
from crewlog.storage.index import SessionIndex
from crewlog.storage.query import parse_query
from crewlog.storage.search import FOLDED_TO_ASCII, Hit, is_plain, search
from crewlog.storage.sessions import SessionStore
from crewlog.storage.stats import gather_stats
from crewlog.storage.trash import Trash

Ask = Callable[..., list[Hit]]
"""(query, logs, limit)."""


def said(text: str, role: str = "user", **more: object) -> NewEntry:
    return NewEntry("message", json.dumps({"role": role, "content": [{"type": "text", "text": text}], **more}).encode())


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(str(tmp_path / "home/projects/-x"), durability=PROCESS)


@pytest.fixture
def store(manager: SessionManager) -> SessionStore:
    call = {"type": "toolCall", "tool_call": {"id": "c", "name": "read_file", "args": {"path": "src/a/b.py"}}}
    store = manager.create("/x")
    store.append(
        [
            said("Where is foo_bar() defined? The parser fails."),
            NewEntry("message", json.dumps({"role": "assistant", "content": [call]}).encode()),
            said("it is in the Parser of the weather 天气预报 module", "assistant"),
            said("Straße und größer"),
            NewEntry("compaction", b'{"summary":"We spoke about parsers."}'),
            NewEntry("llm_call", b'{"provider":"p","model":"sonata-2","input_tokens":5,"output_tokens":1}'),
        ]
    )
    with open(store.path, "ab") as file:
        line = '{"kind":"message","id":"0dd","parent_id":"%s","timestamp":"2026-01-01T00:00:00Z","data":{"role":"user","content":"odd"}}\n'
        file.write((line % store.leaf_id).encode())
    return store


def find(manager: SessionManager, query: str) -> list[Hit]:
    return search(manager.list().sessions, query)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("parser", 2),
        ("PARSER fails", 1),
        ("pars*", 3),
        ('"the parser"', 2),
        ('"parser the"', 0),
        ("foo_bar()", 1),
        ("foo_ba", 0),
        ("src/a/b.py", 1),
        ("b.py", 1),
        ("天气", 1),
        ("气预", 1),
        ("straße", 1),
        ("parser role:assistant", 1),
        ("role:user", 2),
        ("tool:read_file", 1),
        ("kind:compaction parsers", 1),
        ("model:sonata", 1),
        ("parser after:2020-01-01", 2),
        ("parser before:2020-01-01", 0),
        ("after:nonsense", 0),
        ("", 0),
        ("   ", 0),
    ],
)
def test_what_is_found(manager: SessionManager, store: SessionStore, query: str, count: int) -> None:
    assert len(find(manager, query)) == count


def test_snippets_and_order(manager: SessionManager, store: SessionStore) -> None:
    store.append([said("parser parser parser " + "and so on " * 200 + "needle in the haystack")])
    best, *_ = find(manager, "parser")
    assert "«parser» «parser»" in best.snippet
    (hit,) = find(manager, "needle")
    assert "«needle»" in hit.snippet
    assert len(hit.snippet) < 200
    scores = [hit.score for hit in find(manager, "parser")]
    assert scores == sorted(scores, reverse=True)
    assert len(search(manager.list().sessions, "parser", 1)) == 1
    assert search(manager.list().sessions, "parser", keep_going=lambda: False) == []


def session_of(number: int, *messages: tuple[str, str]) -> bytes:
    """What (time, text) messages are as a log."""
    entries: list[dict[str, Any]] = [
        {
            "kind": "message",
            "id": f"{at:08x}",
            "parent_id": "h0",
            "timestamp": time,
            "data": {"role": "user", "content": [text_block(text)]},
        }
        for at, (time, text) in enumerate(messages, 1)
    ]
    data = {"version": 3, "session_id": f"{number:08x}", "cwd": "/x", "created": messages[0][0]}
    header = {"kind": "header", "id": "h0", "timestamp": messages[0][0], "data": data}
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in [header, *entries])


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Searches logs without and with an index, whose hits are the same, and gives them."""

    def ask(query: str, logs: list[bytes], limit: int = 50) -> list[Hit]:
        home = Home(str(tmp_path / f"home{len(list(tmp_path.iterdir()))}"))
        folder = Path(home.projects, "-x")
        folder.mkdir(parents=True)
        for number, content in enumerate(logs):
            path = folder / f"2026-03-01_{number:08x}.jsonl"
            path.write_bytes(content)
            os.utime(path, (1_000_000_000, 1_000_000_000))
        sessions = SessionManager(str(folder)).list().sessions
        index = SessionIndex(home)
        index.update(small=0)
        assert len(index.summaries(str(folder))) == len(logs)
        found = [search(sessions, query, limit, places=places) for places in (lambda path: None, index.places(query, {str(folder)}))]
        index.close()
        assert [place_of(hit) for hit in found[0]] == [place_of(hit) for hit in found[1]]
        return found[0]

    return ask


def place_of(hit: Hit) -> tuple[str, str, str]:
    return hit.session.id, hit.entry_id, hit.snippet


def log_of(*entries: tuple[str, Any], **header: str) -> bytes:
    """What (kind, data) entries are as a log."""
    data = {"version": 3, "session_id": f"{1:08x}", "cwd": "/x", "created": TODAY, **header}
    lines = [("header", "h0", data), *((kind, f"{at:08x}", data) for at, (kind, data) in enumerate(entries, 1))]
    made = [{"kind": kind, "id": id, "parent_id": "h0", "timestamp": TODAY, "data": data} for kind, id, data in lines]
    return b"".join(json.dumps(entry, separators=(",", ":")).encode() + b"\n" for entry in made)


def of_message(text: str, role: str = "user") -> tuple[str, Any]:
    return "message", {"role": role, "content": [text_block(text)]}


def of_call(**call: Any) -> tuple[str, Any]:
    return "message", {"role": "assistant", "content": [{"type": "toolCall", "tool_call": {"id": "c", "name": "edit", **call}}]}


COLOURED = {
    "\x1b[31mFAILED\x1b[0m": "failed",
    "\x1b[1;38:5:196mFAILED\x1b[m tests": '"failed tests"',
    "\x1b[32mtest_\x1b[1mparse\x1b[0mr_x": "test_parser_x",
    "ok\x1b[40GFAILED\x1b[K": '"ok failed"',
    "\x1b[?25l\x1b[2KFAILED\x1b[?25h": "failed",
    "\x1b]0;title\x07FAILED": "failed",
    "\x1b]8;;https://x.y/z\x1b\\FAILED\x1b]8;;\x1b\\": "failed",
    "\x1b(B\x1b[mFAILED": "failed",
    "\x1b[31m失败\x1b[0m": "失败",
    "\x1b[31m失\x1b[1m败了\x1b[0m": "失败了",
}


@pytest.mark.parametrize(("text", "query"), COLOURED.items(), ids=range(len(COLOURED)))
def test_colours_are_no_part_of_words(ask: Ask, text: str, query: str) -> None:
    entries = [
        of_message(text),
        of_message(text, "tool"),
        of_message(json.dumps(text, ensure_ascii=False), "tool"),
        of_message(json.dumps({"stdout": f"one\n{text}\n"}), "tool"),
        of_call(args={"text": text}),
        ("compaction", {"summary": text}),
        ("session_info", {"name": text}),
    ]
    hits = ask(query, [log_of(*entries)])
    assert sorted(hit.entry_id for hit in hits) == [f"{at:08x}" for at in range(1, 1 + len(entries))]
    assert not any("\x1b" in hit.snippet or "u001b" in hit.snippet for hit in hits)
    assert len(ask(text, [log_of(*entries)])) == len(hits)  # as it is copied


def test_what_is_no_escape_of_a_terminal_is_text(ask: Ask) -> None:
    for text in ("\x1b", "\x1b]0;never ended", "a\x1b[", "[31mFAILED", "\\u001b[31mFAILED"):
        (hit,) = ask('"' + text.replace("\x1b[", "") + '"', [log_of(of_message(text))])
        assert "«" in hit.snippet


@pytest.mark.parametrize("query", ["secondline", "third", '"<tag>"', "tag", '"say hi"', "c:\\new", "new", "einen", "naïve", "天气"])
def test_words_of_a_tools_result(ask: Ask, query: str) -> None:
    """codebot writes it as JSON."""
    result = {"stdout": 'first\nsecondline\n\tthird <tag> "say hi" C:\\new\n\neinen naïve\n天气'}
    as_go_writes_it = json.dumps(result, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    for text in (json.dumps(result), json.dumps(result, ensure_ascii=False), as_go_writes_it, json.dumps([result], indent=2)):
        assert len(ask(query, [log_of(of_message(text, "tool"), of_message("nothing"))])) == 1
        assert ask("nsecondline", [log_of(of_message(text, "tool"))]) == []


def test_a_tools_result_that_is_not_json_is_the_text_it_is(ask: Ask) -> None:
    for text in ('[x] "C:\\new"', '{"stdout": "C:\\new', "C:\\new", '"\\new"x'):
        assert len(ask("new", [log_of(of_message(text, "tool"))])) == 1
        assert ask("ew", [log_of(of_message(text, "tool"))]) == []


EVERYWHERE = {
    "the arguments of a call": of_call(args={"path": "needle"}),
    "arguments that are no JSON": of_call(args={}, args_invalid=True, args_raw_text='{"path":\t"needle', args_parse_error="unexpected end"),
    "the name of a tool that is called": of_call(name="needle", args={}),
    "a reference to a tool": ("message", {"role": "assistant", "content": [{"type": "tool_reference", "tool_name": "needle"}]}),
    "thinking": ("message", {"role": "assistant", "content": [{"type": "thinking", "thinking": "a needle"}]}),
    "a summary": ("compaction", {"summary": "a needle"}),
    "what a compaction kept": ("compaction", {"summary": "s", "messages": [None, 5, of_message("x")[1], of_message("a needle")[1]]}),
    "a call that it kept": ("compaction", {"messages": [of_call(args={}, args_raw_text="{needle")[1]]}),
    "a name": ("session_info", {"name": "needle"}),
    "an effort": ("reasoning_effort_change", {"level": "needle"}),
    "an effort as it was written once": ("thinking_change", {"level": "needle"}),
    "a model": ("model_change", {"provider": "p", "model": "needle"}),
    "a goal": ("goal_state", {"status": "active", "objective": "find the needle"}),
}


@pytest.mark.parametrize("entry", EVERYWHERE.values(), ids=EVERYWHERE)
def test_all_that_is_said_is_found(ask: Ask, entry: tuple[str, Any]) -> None:
    for query in ("needle", "NEEDLE", "need*", f"needle kind:{entry[0]}", f"kind:{entry[0]}"):
        assert [hit.entry_id for hit in ask(query, [log_of(entry)])] == [f"{1:08x}"]
    assert ask("needl", [log_of(entry)]) == []


def test_the_name_that_a_session_was_created_with_is_found(ask: Ask) -> None:
    logs = [log_of(of_message("x"), name="the needle"), session_of(2, (TODAY, "y"))]
    for query in ("needle", "needle kind:header", "kind:header"):
        (hit,) = ask(query, logs)
        assert (hit.kind, hit.entry_id, hit.snippet.replace("«", "").replace("»", "")) == ("header", "h0", "the needle")
    assert ask("version", logs) == []


def test_pages_that_are_pasted_as_a_query(ask: Ask) -> None:
    words = [f"w{at}_x" for at in range(3000)] + [f"call{at}()." for at in range(300)] + ["天气", "straße", "ends*"]
    pasted, said = " ".join(words), " ".join(words).replace("ends*", "endswith")
    log = log_of(of_message(said), of_message(said.replace("w17_x", "w17_xy")), of_message(said.replace("call17()", "xcall17()")))
    assert [hit.entry_id for hit in ask(pasted, [log])] == [f"{1:08x}"]


def test_a_search_can_be_stopped_between_the_terms_of_a_query(tmp_path: Path) -> None:
    path = tmp_path / "2026-03-01_00000001.jsonl"
    pasted = " ".join(f"call{at}()" for at in range(1000))
    path.write_bytes(log_of(of_message(pasted)))
    asked = 0

    def keep_going() -> bool:
        nonlocal asked
        asked += 1
        return asked < 100

    assert search(SessionManager(str(tmp_path)).list().sessions, pasted, keep_going=keep_going) == []
    assert asked < 110


@pytest.mark.parametrize("before", ["", "intro ", "so und groß " * 40, "ŉ" * 500 + " "], ids=["first", "near", "far", "far by folding"])
@pytest.mark.parametrize("after", ["", " and so on " * 40], ids=["last", "not last"])
@pytest.mark.parametrize(
    ("query", "said", "marked"),
    [
        ("straße", "Die Straße nach Norden", "Die «Straße» nach Norden"),
        ("STRASSE norden", "Die Straße nach Norden", "Die «Straße» nach «Norden»"),
        ("stras*", "Die Straße nach Norden", "Die «Straß»e nach Norden"),
        ("ﬁnd", "find", "«find»"),
        ("istanbul*", "ISTANBUL İstanbul", "«ISTANBUL» İstanbul"),
        ("天", "今天天气", "今«天»«天»气"),
        ("pars parser", "pars parsers parser", "«pars» parsers «parser»"),
        ('"a  b"', "a  b", "«a b»"),
    ],
)
def test_a_snippet_is_the_text_as_it_is(ask: Ask, before: str, after: str, query: str, said: str, marked: str) -> None:
    (hit,) = ask(query, [log_of(of_message(before + said + after))])
    assert marked in hit.snippet
    assert re.sub(r"\s+", " ", hit.snippet).replace("«", "").replace("»", "").strip("…") in re.sub(r"\s+", " ", before + said + after)
    assert len(hit.snippet) < 200


@pytest.mark.parametrize("before", ["", "intro ", "und so groß weiter " * 20])
def test_a_long_phrase_is_marked_as_far_as_it_is_shown(ask: Ask, before: str) -> None:
    phrase = (
        "TypeError: Cannot read properties of undefined (reading 'map') at Object.<anonymous> (/home/me/src/Table.tsx:123:45) ß and so on"
    )
    (hit,) = ask(f'"{phrase}"', [log_of(of_message(f"{before}{phrase} for ever"))])
    assert "«TypeError: Cannot read properties of undefined (reading 'map')" in hit.snippet
    assert hit.snippet.endswith("»…")
    assert len(hit.snippet) < 200


def test_a_word_that_is_cut_off_in_a_snippet_is_not_marked_as_another(ask: Ask) -> None:
    for length in range(60, 130):
        (hit,) = ask("par", [log_of(of_message(f"par {'x' * length} parser parser"))])
        assert hit.snippet.count("«") == 1


LONG_AGO, YESTERDAY, TODAY = "2020-01-01T00:00:00Z", "2026-11-01T12:00:00Z", "2026-11-02T12:00:00Z"
MANY = [(LONG_AGO, "the parser is here among many other things")] * 600


@pytest.mark.parametrize(
    "others",
    [
        [session_of(0, *MANY, (TODAY, "bye"))],
        [session_of(number, *MANY[:100], (TODAY, "bye")) for number in range(12)],
        [session_of(0, *[(TODAY, said) for _, said in MANY])],
        [session_of(number, *[(TODAY, said) for _, said in MANY[:100]]) for number in range(9)],
    ],
    ids=["old matches of a session touched today", "of twelve", "matches of today", "of nine"],
)
@pytest.mark.parametrize("limit", [1, 50, 200, 500, 5000])
def test_many_matches_do_not_hide_a_better_one(ask: Ask, others: list[bytes], limit: int) -> None:
    hits = ask("parser", [*others, session_of(99, (YESTERDAY, "parser parser parser"))], limit)
    assert hits[0].session.id == f"{99:08x}"
    assert len(hits) == min(limit, 1 + sum(log.count(b"parser") for log in others))


def test_a_higher_limit_adds_hits_behind_the_others(ask: Ask) -> None:
    logs = [
        session_of(number, *[(f"2026-03-0{number + 1}T00:00:00Z", "parser " * (at % 7 + 1)) for at in range(400)]) for number in range(3)
    ]
    pages = [[place_of(hit) for hit in ask("parser", logs, limit)] for limit in (10, 450, 500, 700, 2000)]
    assert [len(page) for page in pages] == [10, 450, 500, 700, 1200]
    for page, longer in pairwise(pages):
        assert longer[: len(page)] == page
    assert len(set(pages[-1])) == 1200


def test_entries_of_one_id_are_found_once_each(ask: Ask) -> None:
    """What a damaged log has, also where a session is looked at again for what it has beyond its few newest."""
    log = session_of(0, *[(TODAY, f"parser number{at}") for at in range(120)])
    doubled = re.sub(rb'"id": "0000006e"', b'"id": "00000047"', log)  # the 11th from the end bears the id of the 50th
    assert doubled != log
    hits = ask("parser", [doubled], 500)
    assert len({hit.snippet for hit in hits}) == len(hits) == 120


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("after:1970-01-01", ["after"]),
        ("after:1970-01-01T01:00:00+01:00", ["after"]),
        ("before:1970-01-01", ["before"]),
        ("after:1969-12-31", ["after", "before"]),
        ("before:1970-01-02", ["after", "before"]),
    ],
)
def test_a_time_alone_is_a_query(ask: Ask, query: str, found: list[str]) -> None:
    log = session_of(0, ("1969-12-31T12:00:00Z", "before"), ("1970-01-01T12:00:00Z", "after"))
    assert sorted(hit.snippet for hit in ask(query, [log])) == found


@pytest.mark.parametrize(
    "text", ["\ufffd", "\ufffe", "\uffff", "\ufdd0", "\U0001fffe", "\U0010ffff", "\ue000", "\x7f", "\x80", "\xa0", "\u2028"]
)
def test_odd_characters_are_found(ask: Ask, text: str) -> None:
    for said in (text, text * 2, text * 4, f"天{text}", f"{text}天"):
        assert len(ask(f'"{said}"', [session_of(0, (TODAY, f"a {said} b"), (TODAY, "nothing"))])) == 1


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_no_query_is_an_error(text: str) -> None:
    parse_query(text)


def test_queries_that_look_like_syntax(manager: SessionManager, store: SessionStore) -> None:
    for query in ('"', "*", "role:", "NEAR(a b)", "a AND (b", "';--", "^x", "col:x", "-a", '""', "after:"):
        assert isinstance(find(manager, query), list)


def test_statistics(manager: SessionManager, store: SessionStore) -> None:
    for latency in (100, 200, 300, 400):
        call = {"provider": "p", "model": "m", "input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 30, "latency_ms": latency}
        store.append([NewEntry("llm_call", json.dumps(call).encode())])
    broken = {
        "prev_cache_read_tokens": 30,
        "curr_cache_read_tokens": 0,
        "drop_absolute": 30,
        "drop_fraction": 1,
        "tools_changed": True,
        "note": "n",
    }
    store.append([NewEntry("llm_call", json.dumps({"provider": "p", "model": "m", "cache_break": broken}).encode())])
    store.append([said("x", "assistant", usage={"input": 1, "output": 1, "model": "m", "cost": {"total": 0.5}})])
    store.append([NewEntry("llm_call", b'{"model":5}')])
    found = gather_stats(manager.list().sessions)
    usage = found.by_model["m"]
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cost) == (5, 40, 8, 120, 0.5)
    assert usage.cache_hit_rate == 0.75
    assert (usage.percentile(0.5), usage.percentile(0.95)) == (250, 400)
    assert found.total.calls == 6
    (cache_break,) = found.cache_breaks
    assert (cache_break.reasons, cache_break.dropped_tokens, cache_break.note) == (["tools"], 30, "n")
    assert list(found.by_session) == [store.session_id]
    assert gather_stats(manager.list().sessions, since=2**62).total.calls == 0
    assert gather_stats(manager.list().sessions, keep_going=lambda: False).sessions == 0
    Path(store.path).unlink()
    assert manager.list().sessions == []


def test_deleting_and_restoring(tmp_path: Path, manager: SessionManager, store: SessionStore) -> None:
    home = Home(str(tmp_path / "home"))
    trash = Trash(home, PROCESS)
    session_id, path = store.session_id, Path(store.path)
    tasks = TaskStore(durability=PROCESS, root=home.path)
    tasks.set_dir(home.task_list(session_id))
    tasks.create("a")
    TranscriptStore(home.transcripts(session_id), durability=PROCESS).append("ada", [b'{"role":"user"}'])
    content = path.read_bytes()
    trash.delete(session_id, str(path))
    assert not path.exists()
    assert not Path(home.task_list(session_id)).exists()
    assert manager.list().sessions == []
    with pytest.raises(SessionNotFound):
        trash.delete(session_id, str(path))
    assert trash.restore(session_id) == str(path)
    assert path.read_bytes() == content
    assert [task.id for task in tasks.list()] == ["1"]
    assert TranscriptStore(home.transcripts(session_id)).count("ada") == 1
    with pytest.raises(SessionNotFound):
        trash.restore(session_id)
    with pytest.raises(InvalidName):
        trash.restore("../x")
    trash.delete(session_id, str(path))
    path.write_bytes(content)
    with pytest.raises(StorageFailed, match="something stands"):
        trash.restore(session_id)
    trash.delete(session_id, str(path))  # a second one of the same id: both are kept
    assert trash.restore(session_id) == str(path)
    path.unlink()
    assert trash.restore(session_id) == str(path)


def test_a_deletion_that_fails_half_way_is_undone(
    tmp_path: Path, manager: SessionManager, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    tasks = TaskStore(durability=PROCESS, root=home.path)
    tasks.set_dir(home.task_list(store.session_id))
    tasks.create("a")
    real = os.rename

    def rename(source: str, target: str) -> None:
        if source == home.task_list(store.session_id):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        with pytest.raises(StorageFailed, match="EACCES"):
            Trash(home, PROCESS).delete(store.session_id, store.path)
    assert [info.id for info in manager.list().sessions] == [store.session_id]
    assert [task.id for task in tasks.list()] == ["1"]
    Trash(home, PROCESS).delete(store.session_id, store.path)
    assert manager.list().sessions == []
    assert Trash(home, PROCESS).restore(store.session_id) == store.path


def test_characters_that_are_casefolded_to_ascii_are_known() -> None:
    """Of a line without them it is told by its bytes that it does not hold a word."""
    odd = [chr(code) for code in range(128, 0x110000) if any(part.isascii() for part in chr(code).casefold())]
    assert len(odd) >= 19
    assert [char for char in odd if not char.encode().startswith(FOLDED_TO_ASCII)] == []


def test_no_letter_is_casefolded_to_one_without_case() -> None:
    changed = [chr(code) for code in range(0x110000) if chr(code).casefold() != chr(code)]
    assert not any(is_plain(part) for char in changed for part in char.casefold() if not part.isascii())
