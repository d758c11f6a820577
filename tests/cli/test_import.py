"""`crewlog import …`: sessions as Claude Code and Codex write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.commandline import Crewlog

SESSION = "3f0c1c9e-1111-4222-8333-0123456789ab"
WHEN = "2026-03-01T09:3{}:00.123Z"


def claude_record(number: int, parent: int | None, type_: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": type_, "content": content, **more.pop("message", {})}
    return {
        "parentUuid": None if parent is None else f"u{parent}",
        "isSidechain": False,
        "cwd": "/srv/app",
        "sessionId": SESSION,
        "gitBranch": "main",
        "type": type_,
        "message": message,
        "uuid": f"u{number}",
        "timestamp": WHEN.format(number % 10),
        **more,
    }


USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 200, "output_tokens": 40, "service_tier": "x"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": 9007199254740993}}
CLAUDE: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Parser work", "leafUuid": "u4"},
    claude_record(1, None, "user", "List the files"),
    claude_record(
        2,
        1,
        "assistant",
        [{"type": "thinking", "thinking": "hm", "signature": "sig"}, CALL],
        message={"id": "msg_1", "model": "claude-x", "usage": USAGE, "stop_reason": "tool_use"},
    ),
    claude_record(
        3,
        2,
        "user",
        [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a.py"}], "is_error": False}],
        toolUseResult={"stdout": "a.py"},
    ),
    claude_record(4, 3, "assistant", [{"type": "text", "text": "There is a.py"}], message={"id": "msg_2", "model": "claude-x"}),
    claude_record(5, 1, "user", "Another way: what is here?"),
    claude_record(6, None, "user", "Sub task", isSidechain=True, agentId="explorer"),
    claude_record(7, 6, "assistant", [{"type": "text", "text": "Sub answer"}], isSidechain=True, agentId="explorer"),
    {**claude_record(8, 4, "system", "x"), "type": "system", "subtype": "informational"},
    claude_record(9, 8, "user", "Thanks"),
]


def write_lines(path: Path, records: list[dict[str, Any]], more: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + more, "utf-8")
    return path


@pytest.fixture
def claude(crewlog: Crewlog, tmp_path: Path) -> Crewlog:
    write_lines(tmp_path / f"claude/projects/-srv-app/{SESSION}.jsonl", CLAUDE, "not json\n")
    (outcome,) = crewlog.json("import", "claude-code", str(tmp_path / "claude"))["imported"]
    assert outcome["skipped"] == ["line 11: no JSON object"]
    return crewlog


def messages(crewlog: Crewlog, session: str) -> list[dict[str, Any]]:
    entries = crewlog.json("sessions", "show", session)["entries"]
    return [entry["data"] for entry in entries if entry["kind"] == "message"]


def test_a_session_of_claude_code(claude: Crewlog) -> None:
    (info,) = claude.json("sessions", "list", "--project", "/srv/app")["sessions"]
    assert (info["id"], info["name"], info["cwd"]) == ("456789ab", "Parser work", "/srv/app")
    said = messages(claude, info["id"])
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "assistant", "user"]
    assert [block["type"] for block in said[1]["content"]] == ["thinking", "toolCall"]
    assert said[1]["content"][1]["tool_call"] == {"id": "toolu_1", "name": "Bash", "args": CALL["input"]}
    assert said[2]["metadata"]["tool_call_id"] == "toolu_1"
    assert said[2]["content"][0]["text"] == "a.py"
    assert said[0]["timestamp"] == WHEN.format(1)
    assert "There is a.py" in claude.out("sessions", "show", info["id"])


def test_nothing_is_lost_of_it(claude: Crewlog) -> None:
    log = next((claude.home / "projects/-srv-app").glob("*_456789ab.jsonl"))
    kept = []
    for line in log.read_text("utf-8").splitlines():
        data = json.loads(line)["data"]
        holder = data if "record" in data else data.get("imported") or data.get("metadata", {}).get("imported") or {}
        if "record" in holder:
            kept.append(holder["record"])
    transcripts = (claude.home / "tasks/456789ab/team/transcripts/explorer.jsonl").read_text("utf-8").splitlines()
    kept += [json.loads(line)["metadata"]["imported"]["record"] for line in transcripts]
    assert all(record in kept for record in CLAUDE)
    assert '"text":"not json"' in log.read_text("utf-8")


def test_other_branches_are_there_and_sidechains_are_transcripts(claude: Crewlog) -> None:
    branches = claude.json("sessions", "show", "456789ab", "--branches")["branches"]
    assert sorted(branch["lastText"] for branch in branches) == ["Another way: what is here?", "Thanks"]
    assert branches[0]["lastText"] == "Thanks"
    told = claude.out("transcript", "show", "explorer", "--list", "456789ab")
    assert "Sub answer" in told


def test_what_it_took_is_counted_once(claude: Crewlog) -> None:
    usage = claude.json("sessions", "stats", "456789ab")["byModel"]["claude-x"]
    assert (usage["calls"], usage["inputTokens"], usage["cacheReadTokens"], usage["outputTokens"]) == (1, 3, 200, 40)


def records_of(crewlog: Crewlog) -> dict[Path, bytes]:
    """All files but Crewlog's own."""
    return {path: path.read_bytes() for path in crewlog.home.rglob("*") if path.is_file() and ".crewlog" not in path.parts}


def test_what_was_imported_is_healthy_and_importing_again_changes_nothing(claude: Crewlog, tmp_path: Path) -> None:
    claude.run("doctor", "-q")
    before = records_of(claude)
    (outcome,) = claude.json("import", "claude-code", str(tmp_path / "claude"))["imported"]
    assert (outcome["there"], outcome.get("count", 0)) == (True, 0)
    assert records_of(claude) == before


@pytest.mark.parametrize("at_first", range(1, len(CLAUDE)))
def test_what_was_added_since_comes_in_and_the_tree_is_as_if_it_came_at_once(crewlog: Crewlog, tmp_path: Path, at_first: int) -> None:
    source = tmp_path / f"claude/{SESSION}.jsonl"
    cut = json.dumps(CLAUDE[at_first])[:20]  # the agent was in the middle of a line
    write_lines(source, [claude_record(0, None, "user", "Begin"), *CLAUDE[:at_first]], cut)
    crewlog.run("import", "claude-code", str(source))
    write_lines(source, [claude_record(0, None, "user", "Begin"), *CLAUDE])
    (outcome,) = crewlog.json("import", "claude-code", str(source))["imported"]
    assert outcome["there"]
    assert outcome["count"] >= 1
    crewlog.run("doctor", "-q")
    other = Crewlog(tmp_path / "other-home", crewlog.cwd)
    other.run("import", "claude-code", str(source))

    def told(home: Crewlog) -> list[list[str]]:
        found = home.json("sessions", "show", "456789ab", "--project", "/srv/app", "--branches")["branches"]
        return sorted([branch["lastText"], branch["current"]] for branch in found)

    assert told(crewlog) == told(other)
    exported = [home.out("sessions", "export", "456789ab", "--project", "/srv/app").partition("\n## ")[2] for home in (crewlog, other)]
    assert exported[0] == exported[1]
    transcript = "tasks/456789ab/team/transcripts/explorer.jsonl"
    assert (crewlog.home / transcript).read_text() == (other.home / transcript).read_text()


def test_who_went_on_from_an_imported_session_stays_where_he_is(claude: Crewlog, tmp_path: Path) -> None:
    claude.run("sessions", "rename", "456789ab", "Mine")
    write_lines(tmp_path / f"claude/projects/-srv-app/{SESSION}.jsonl", [*CLAUDE, claude_record(10, 9, "user", "One more")], "not json\n")
    claude.run("import", "claude-code", str(tmp_path / "claude"))
    branches = {branch["lastText"]: branch["current"] for branch in claude.json("sessions", "show", "456789ab", "--branches")["branches"]}
    assert branches["One more"] is False
    assert branches["Thanks"] is True


def test_another_session_of_the_same_id_is_not_mixed_up_with_it(claude: Crewlog, tmp_path: Path) -> None:
    before = records_of(claude)
    other = write_lines(tmp_path / f"elsewhere/{SESSION}.jsonl", [claude_record(1, None, "user", "Somebody else's")])
    assert claude.refused("import", "claude-code", str(other)) == "notImported"
    assert "another session has its id" in claude.out("import", "claude-code", str(other), code=1)
    assert records_of(claude) == before


def test_a_compaction_of_claude_code(crewlog: Crewlog, tmp_path: Path) -> None:
    records = [
        claude_record(1, None, "user", "long talk"),
        {**claude_record(2, None, "system", "x"), "type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u1"},
        claude_record(3, 2, "user", "We talked for long.", isCompactSummary=True),
        claude_record(4, 3, "user", "go on"),
    ]
    crewlog.run("import", "claude-code", str(write_lines(tmp_path / "s-0123abcd.jsonl", records)))
    entries = crewlog.json("sessions", "show", "0123abcd")["entries"]
    assert [entry["kind"] for entry in entries] == ["header", "message", "claude_system", "compaction", "message"]
    assert entries[3]["data"]["summary"] == "We talked for long."


def test_the_file_of_a_subagent_goes_to_its_session(claude: Crewlog, tmp_path: Path) -> None:
    records = [claude_record(1, None, "user", "Look", isSidechain=True, agentId="late")]
    crewlog = claude
    crewlog.run("import", "claude-code", str(write_lines(tmp_path / "agent-late.jsonl", records)))
    assert "Look" in crewlog.out("transcript", "show", "late", "--list", "456789ab")


def test_the_tasks_of_claude_code(crewlog: Crewlog, tmp_path: Path) -> None:
    folder = tmp_path / "tasks/team-a"
    folder.mkdir(parents=True)
    tasks: list[dict[str, Any]] = [
        {"id": "2", "subject": "First", "description": "d", "activeForm": "Doing", "status": "completed", "blocks": ["5"], "blockedBy": []},
        {"id": "5", "subject": "Second", "status": "in_progress", "owner": "ada", "blocks": [], "blockedBy": ["2"], "metadata": {"k": [1]}},
    ]
    for task in tasks:
        (folder / f"{task['id']}.json").write_text(json.dumps(task))
    (folder / "9.json").write_text("{")
    (outcome,) = crewlog.json("import", "claude-code", str(tmp_path / "tasks"))["imported"]
    assert (outcome["id"], outcome["count"]) == ("team-a", 2)
    assert outcome["skipped"][0].startswith("9.json")
    first, second = crewlog.json("tasks", "list", "--list", "team-a")["items"]
    assert (first["id"], second["id"], first["blocks"]) == ("2", "5", ["5"])
    assert (first["subject"], first["status"], first["description"]) == ("First", "completed", "d")
    assert (second["status"], second["owner"], second["blockedBy"], second["metadata"]["k"]) == ("in_progress", "ada", ["2"], [1])
    assert second["metadata"]["imported"]["record"] == tasks[1]
    crewlog.run("doctor", "-q")


def claude_task(folder: Path, number: int, **fields: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    task = {"id": str(number), "subject": f"task {number}", "status": "pending", "blocks": [], "blockedBy": [], **fields}
    (folder / f"{number}.json").write_text(json.dumps(task))


def test_the_tasks_of_a_session_are_the_tasks_of_the_session(claude: Crewlog, tmp_path: Path) -> None:
    claude_task(tmp_path / "tasks" / SESSION, 1)
    (outcome,) = claude.json("import", "claude-code", str(tmp_path / "tasks"))["imported"]
    assert outcome["id"] == "456789ab"
    (found,) = [item for item in claude.json("tasks", "list", "--lists")["lists"] if item["counts"]["total"]]
    assert found["session"]["name"] == "Parser work"


def test_a_task_list_that_went_on_is_imported_again(crewlog: Crewlog, tmp_path: Path) -> None:
    folder = tmp_path / "tasks/team"
    for number in (1, 2, 3):
        claude_task(folder, number, status="in_progress", owner="ada", metadata={"html": "<a & b>"})
    crewlog.run("import", "claude-code", str(folder))
    crewlog.run("tasks", "edit", "2", "--status", "completed", "--list", "team")
    crewlog.run("tasks", "edit", "3", "--subject", "mine", "--list", "team")
    claude_task(folder, 1, status="completed", owner="ada", subject="more precisely", metadata={})
    claude_task(folder, 2, status="pending", owner="ada", description="what it is about")
    claude_task(folder, 7, blockedBy=["1"])
    (outcome,) = crewlog.json("import", "claude-code", str(folder))["imported"]
    assert (outcome["there"], outcome["count"], outcome["changed"]) == (True, 1, 2)
    tasks = {task["id"]: task for task in crewlog.json("tasks", "list", "--list", "team")["items"]}
    assert [(task["id"], task["subject"], task["status"], task.get("description")) for task in tasks.values()] == [
        ("1", "more precisely", "completed", None),
        ("2", "task 2", "completed", "what it is about"),
        ("3", "mine", "in_progress", None),
        ("7", "task 7", "pending", None),
    ]
    assert tasks["7"]["blockedBy"] == ["1"]
    assert "is here already  " in crewlog.out("import", "claude-code", str(folder))


def test_what_cannot_be_imported_keeps_nothing_else_out(crewlog: Crewlog, tmp_path: Path) -> None:
    tasks = tmp_path / "claude/tasks"
    claude_task(tasks / ".hidden", 1)
    claude_task(tasks / "circle", 1, blockedBy=["2"])
    claude_task(tasks / "circle", 2, blockedBy=["1"])
    (tasks / "circle/3.json").mkdir()
    write_lines(tmp_path / f"claude/projects/-srv-app/{SESSION}.jsonl", CLAUDE)
    (tmp_path / "claude/projects/-srv-app/gone.jsonl").symlink_to("/nonexistent")
    outcomes = {Path(item["path"]).name: item for item in crewlog.json("import", "claude-code", str(tmp_path / "claude"))["imported"]}
    assert "begins with a dot" in outcomes[".hidden"]["problem"]
    assert "No such file" in outcomes["gone.jsonl"]["problem"]
    assert outcomes[f"{SESSION}.jsonl"]["count"]
    assert outcomes["circle"]["count"] == 2
    assert [note.partition(":")[0] for note in outcomes["circle"]["skipped"]] == ["3.json", "2.json"]
    crewlog.run("doctor", "-q")


def test_a_call_that_streamed_is_counted_by_its_last_record(crewlog: Crewlog, tmp_path: Path) -> None:
    def part(number: int, tokens: int) -> dict[str, Any]:
        message = {"id": "msg_1", "model": "claude-x", "usage": {**USAGE, "output_tokens": tokens}}
        return claude_record(number, number - 1 or None, "assistant", [{"type": "text", "text": f"part {number}"}], message=message)

    error = claude_record(5, 4, "assistant", [], message={"id": "e", "model": "<synthetic>", "usage": {"output_tokens": 0}})
    records = [claude_record(1, None, "user", "Go"), part(2, 1), part(3, 30), part(4, 90), error]
    path = tmp_path / f"{SESSION}.jsonl"
    for written in (3, 5):
        crewlog.run("import", "claude-code", str(write_lines(path, records[:written])))
    other = Crewlog(tmp_path / "other home", tmp_path)
    other.run("import", "claude-code", str(path))
    assert crewlog.json("sessions", "stats", "456789ab")["total"]["calls"] == 1
    found = other.json("sessions", "stats", "456789ab")
    assert (found["total"]["calls"], found["total"]["outputTokens"], list(found["byModel"])) == (1, 90, ["claude-x"])


def test_an_imported_session_is_as_old_as_it_is(claude: Crewlog) -> None:
    (info,) = claude.json("sessions", "list", "--all")["sessions"]
    assert (info["created"], info["updated"]) == (WHEN.format(1), WHEN.format(9))


def codex_line(type_: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": WHEN.format(1), "type": type_, "payload": payload}


CODEX = [
    codex_line("session_meta", {"id": "0199aaaa-bbbb-7ccc-8ddd-00000badcafe", "cwd": "/srv/app", "git": {"branch": "b"}}),
    codex_line("turn_context", {"cwd": "/srv/app", "model": "gpt-y", "effort": "high"}),
    codex_line("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x"}]}),
    codex_line("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]}),
    codex_line("event_msg", {"type": "user_message", "message": "Fix it"}),
    codex_line("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}], "encrypted_content": "e"}),
    codex_line("response_item", {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"}),
    codex_line("response_item", {"type": "function_call_output", "call_id": "c1", "output": "a.py"}),
    codex_line("response_item", {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c2"}),
    codex_line("response_item", {"type": "custom_tool_call_output", "call_id": "c2", "output": {"content": "bad", "success": False}}),
    codex_line("response_item", {"type": "function_call", "name": "shell", "arguments": "no json", "call_id": "c3"}),
    codex_line(
        "event_msg",
        {
            "type": "token_count",
            "info": {"last_token_usage": {"input_tokens": 500, "cached_input_tokens": 400, "output_tokens": 9, "total_tokens": 509}},
        },
    ),
    codex_line("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fixed"}]}),
    codex_line("unheard_of", {"a": 1}),
]


def test_what_codex_tells_again_is_counted_once(crewlog: Crewlog, tmp_path: Path) -> None:
    def told(total: int) -> dict[str, Any]:
        info = {"last_token_usage": {"input_tokens": 10, "output_tokens": 5}, "total_token_usage": {"input_tokens": total}}
        return codex_line("event_msg", {"type": "token_count", "info": info})

    records = [*CODEX[:4], told(10), told(10), told(20), codex_line("event_msg", {"type": "token_count", "info": None})]
    crewlog.run("import", "codex", str(write_lines(tmp_path / "rollout-1.jsonl", records)))
    assert crewlog.json("sessions", "stats", "0badcafe")["total"]["calls"] == 2


def test_a_rollout_of_codex(crewlog: Crewlog, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "codex/2026/03/01/rollout-2026-03-01T09-30-00-0199aaaa-bbbb-7ccc-8ddd-00000badcafe.jsonl", CODEX)
    crewlog.run("import", "codex", str(tmp_path / "codex"))
    (info,) = crewlog.json("sessions", "list", "--project", "/srv/app")["sessions"]
    assert (info["id"], info["firstMessage"]) == ("0badcafe", "Fix it")
    said = messages(crewlog, "0badcafe")
    roles = ["user", "user", "assistant", "assistant", "tool", "assistant", "tool", "assistant", "assistant"]
    assert [message["role"] for message in said] == roles
    assert said[3]["content"][0]["tool_call"]["args"] == {"command": ["ls"]}
    assert said[5]["content"][0]["tool_call"]["args"] == {"input": "*** Begin"}
    assert said[6]["metadata"]["is_error"] is True
    assert said[7]["content"][0]["tool_call"]["args_invalid"] is True
    usage = crewlog.json("sessions", "stats", "0badcafe")["byModel"]["gpt-y"]
    assert (usage["inputTokens"], usage["cacheReadTokens"]) == (100, 400)
    log = next((crewlog.home / "projects/-srv-app").glob("*_0badcafe.jsonl")).read_text("utf-8")
    records = []
    for line in log.splitlines():
        data = json.loads(line)["data"]
        records.append((data if "record" in data else data.get("imported") or data.get("metadata", {}).get("imported") or {}).get("record"))
    assert all(json.loads(line) in records for line in path.read_text().splitlines())
    crewlog.run("doctor", "-q")
    assert crewlog.json("import", "codex", str(path))["imported"][0]["there"] is True


def test_an_old_rollout_of_bare_items(crewlog: Crewlog, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"id": "aaaa-00000000beef", "timestamp": WHEN.format(1), "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    ]
    crewlog.run("import", "codex", str(write_lines(tmp_path / "rollout-x.jsonl", records)))
    assert messages(crewlog, "0000beef")[0]["content"][0]["text"] == "Hello"


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_what_is_no_session_is_refused_and_hides_no_other(crewlog: Crewlog, tmp_path: Path, agent: str) -> None:
    bad = write_lines(tmp_path / "in/bad.jsonl", [{"type": "nothing"}], "[]\n\x00")
    done = crewlog.run("import", agent, str(bad), code=1)
    assert "notImported" in done.stderr
    good = CLAUDE if agent == "claude-code" else CODEX
    write_lines(tmp_path / "in/good-0badcafe.jsonl", good)
    outcomes = crewlog.json("import", agent, str(tmp_path / "in"))["imported"]
    assert [bool(outcome.get("problem")) for outcome in outcomes] == [True, False]
    assert not (crewlog.home / "projects/-tmp").exists()


def test_what_was_read_is_not_changed(crewlog: Crewlog, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in/s-0badcafe.jsonl", CLAUDE)
    before = path.read_bytes(), path.stat().st_mtime_ns
    crewlog.run("import", "claude-code", str(path))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]
