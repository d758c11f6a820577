"""`crewlog sessions …`, `history …`, `plans …`, `team …`, `transcript …`."""

from __future__ import annotations

import json
from pathlib import Path

from cli.commandline import Crewlog
from crewlog.storage import PROCESS, History, Home, RosterMember, RosterStore, TranscriptStore


def test_the_list_shows_the_project_and_the_json_is_the_wire_s(crewlog: Crewlog, session_id: str) -> None:
    told = crewlog.out("sessions", "list")
    assert session_id in told
    assert "Why does the parser fail?" in told
    (info,) = crewlog.json("sessions", "list")["sessions"]
    assert (info["id"], info["name"], info["messageCount"]) == (session_id, "Parser", 3)
    assert crewlog.json("sessions", "list", "--project", "/elsewhere")["sessions"] == []
    assert len(crewlog.json("sessions", "list", "--project", "/elsewhere", "--all")["sessions"]) == 1
    assert crewlog.json("sessions", "list", "-q", "nothing of that")["sessions"] == []


def test_show_by_id_by_its_beginning_and_as_last(crewlog: Crewlog, session_id: str) -> None:
    whole = crewlog.out("sessions", "show", session_id)
    assert "It does not know about commas." in whole
    assert crewlog.out("sessions", "show", session_id[:4]) == crewlog.out("sessions", "show", "last") == whole
    assert crewlog.refused("sessions", "show", "last", "--project", "/nowhere") == "sessionNotFound"
    entries = crewlog.json("sessions", "show", "last", "--limit", "2")["entries"]
    assert [entry["kind"] for entry in entries] == ["message", "llm_call"]
    assert crewlog.refused("sessions", "show", "00000000") == "sessionNotFound"
    assert crewlog.refused("sessions", "show", "../x") == "invalidName"


def test_search_names_session_and_entry(crewlog: Crewlog, session_id: str) -> None:
    (hit,) = crewlog.json("sessions", "search", "commas")["hits"]
    assert hit["session"]["id"] == session_id
    assert f"{session_id}:{hit['entryId']}" in crewlog.out("sessions", "search", "commas")
    assert len(crewlog.json("sessions", "search", "about commas")["hits"]) == 1
    assert crewlog.json("sessions", "search", "commas about")["hits"] == []  # one argument with a blank is a phrase
    assert len(crewlog.json("sessions", "search", "commas", "about")["hits"]) == 1


def test_stats_sum_up(crewlog: Crewlog, session_id: str) -> None:
    found = crewlog.json("sessions", "stats")
    assert (found["total"]["inputTokens"], found["total"]["cacheReadTokens"]) == (100, 300)
    assert found["byModel"]["m1"]["cacheHitRate"] == 0.75
    assert "75%" in crewlog.out("sessions", "stats", session_id)
    assert crewlog.json("sessions", "stats", "--since", "2999-01-01")["total"]["calls"] == 0
    assert crewlog.refused("sessions", "stats", "--since", "yesterday") == "invalidParams"


def test_export_to_a_file_never_overwrites(crewlog: Crewlog, session_id: str, tmp_path: Path) -> None:
    target = tmp_path / "session.html"
    crewlog.run("sessions", "export", session_id, "--format", "html", "-o", str(target))
    page = target.read_text("utf-8")
    assert "<html" in page
    assert "commas" in page
    assert crewlog.refused("sessions", "export", session_id, "-o", str(target)) == "ioFailed"
    assert target.read_text("utf-8") == page
    assert crewlog.refused("sessions", "export", session_id, "-o", str(tmp_path / "nowhere/page.html")) == "ioFailed"
    assert "commas" in crewlog.out("sessions", "export", session_id)
    json.loads(crewlog.out("sessions", "export", session_id, "--format", "json"))


def test_fork_rewind_and_branches(crewlog: Crewlog, session_id: str) -> None:
    entries = crewlog.json("sessions", "show", session_id)["entries"]
    second = entries[2]["id"]
    made = crewlog.json("sessions", "fork", session_id, "--at", second)["session"]
    assert made["messageCount"] == 2
    crewlog.run("sessions", "rewind", session_id, second)
    branches = crewlog.json("sessions", "show", session_id, "--branches")["branches"]
    assert len(branches) == 2
    assert branches[0]["current"]
    assert crewlog.refused("sessions", "rewind", session_id, "nope") == "entryNotFound"


def test_rename_delete_restore(crewlog: Crewlog, session_id: str) -> None:
    crewlog.run("sessions", "rename", session_id, "New name")
    assert crewlog.json("sessions", "list")["sessions"][0]["name"] == "New name"
    crewlog.run("sessions", "delete", session_id)
    assert crewlog.json("sessions", "list")["sessions"] == []
    crewlog.run("sessions", "restore", session_id)
    assert crewlog.json("sessions", "list")["sessions"][0]["name"] == "New name"


def test_what_a_record_says_cannot_command_the_terminal(crewlog: Crewlog, session_id: str) -> None:
    crewlog.run("sessions", "rename", session_id, "a\x1b]0;owned\x07b\x1b[2Jc")
    told = crewlog.out("sessions", "list")
    assert "\x1b" not in told
    assert "\x07" not in told


def test_plans_are_written_and_nobody_s_words_are_overwritten(crewlog: Crewlog, tmp_path: Path) -> None:
    path = Path(crewlog.json("plans", "new", "big-plan", "--text", "# One")["path"])
    assert path.read_text() == "# One\n"
    assert crewlog.refused("plans", "new", "big-plan", "--text", "again") == "planChanged"
    assert crewlog.out("plans", "show", "big-plan") == "# One\n"
    source = tmp_path / "plan.md"
    source.write_bytes(b"# Two\r\nlast")
    crewlog.run("plans", "edit", "big-plan", "--file", str(source))
    assert path.read_bytes() == b"# Two\r\nlast"
    named = Path(crewlog.out("plans", "new", "--text", "x").strip())
    assert named.exists()
    assert {plan["name"] for plan in crewlog.json("plans", "list")["plans"]} == {"big-plan", named.stem}
    crewlog.run("plans", "rm", "big-plan")
    assert crewlog.refused("plans", "rm", "big-plan") == "storageFailed"
    assert crewlog.refused("plans", "new", "../x", "--text", "x") == "invalidName"


def test_an_edit_that_came_too_late_is_kept_beside(crewlog: Crewlog, tmp_path: Path) -> None:
    crewlog.run("plans", "new", "shared", "--text", "one")
    editor = tmp_path / "editor"
    plan = crewlog.home / "plans/shared.md"
    editor.write_text(f'#!/bin/sh\necho "somebody else" > {plan}\nsleep 1\necho "mine" > "$1"\ntouch -d "+5 seconds" "$1"\n')
    editor.chmod(0o755)
    done = crewlog.run("plans", "edit", "shared", code=1, EDITOR=str(editor))
    assert "planChanged" in done.stderr
    assert plan.read_text() == "somebody else\n"
    texts = {path.name: path.read_text() for path in (crewlog.home / "plans").glob("*.md")}
    assert sorted(texts.values()) == ["mine\n", "somebody else\n"]
    assert any(name in done.stderr for name, text in texts.items() if text == "mine\n")


def test_without_a_terminal_nobody_is_asked(crewlog: Crewlog) -> None:
    assert "EDITOR" in crewlog.run("plans", "new", "x", code=2).stderr


def test_history(crewlog: Crewlog) -> None:
    history = History(str(crewlog.home / "history.jsonl"), str(crewlog.cwd.resolve()), durability=PROCESS)
    crewlog.home.mkdir()
    for text in ("first thing", "second thing", "something else"):
        history.add(text)
    told = crewlog.out("history", "list")
    assert told.index("something else") < told.index("first thing")
    assert [line["display"] for line in crewlog.json("history", "search", "THING", "-n", "1")["items"]] == ["something else"]
    assert crewlog.json("history", "list", "--project", "/elsewhere")["total"] == 0


def test_team_and_transcript(crewlog: Crewlog, session_id: str) -> None:
    home = Home(str(crewlog.home))
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(home.team(session_id))
    roster.set_team("crew", "two of them")
    roster.upsert_member(RosterMember("ada", "coder", description="writes"))
    TranscriptStore(home.transcripts(session_id), durability=PROCESS).append(
        "ada",
        [b'{"role":"user","content":[{"type":"text","text":"Do it"}]}', b'{"role":"assistant","content":[{"type":"text","text":"Done"}]}'],
    )
    told = crewlog.out("team", "show", "--list", session_id)
    assert "crew" in told
    assert "ada" in told
    assert "2" in told
    assert crewlog.json("team", "show", "--list", session_id)["team"] == "crew"
    assert "Done" in crewlog.out("transcript", "show", "ada", "--list", session_id, "-n", "1")
    assert len(crewlog.json("transcript", "show", "ada", "--list", session_id)["messages"]) == 2


def test_reading_leaves_nothing_behind(crewlog: Crewlog) -> None:
    for arguments in (
        ["sessions", "list"],
        ["plans", "list"],
        ["history", "list"],
        ["status"],
        ["doctor"],
        ["tasks", "list", "--list", "x"],
    ):
        crewlog.run(*arguments)
    assert not crewlog.home.exists()
