"""What a shell, a file system and other programs can do to a command: it is told in a sentence, and nothing is half done."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from cli.commandline import Crewlog
from cli.test_live import Terminal
from crewlog.cli.output import width
from crewlog.storage import PROCESS, Home, NewEntry, PlanStore, SessionManager, TaskStore, TaskUpdate, TranscriptStore


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_failure_and_nothing_is_printed_into_a_record(crewlog: Crewlog, redirection: str) -> None:
    for arguments in (["tasks", "add", "Written", "--list", "board"], ["tasks", "list", "--list", "board"], ["sessions", "list"]):
        line = f"{shlex.join(crewlog.command(*arguments))} {redirection}"
        done = subprocess.run(["sh", "-c", line], cwd=crewlog.cwd, env=crewlog.environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    assert [task["subject"] for task in crewlog.json("tasks", "list", "--list", "board")["items"]] == ["Written"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_output_that_cannot_be_written_is_told(crewlog: Crewlog, as_json: list[str]) -> None:
    line = f"{shlex.join(crewlog.command('sessions', 'list', *as_json))} > /dev/full"
    done = subprocess.run(["sh", "-c", line], cwd=crewlog.cwd, env=crewlog.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "ioFailed" in done.stderr
    assert "No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_that_was_deleted_is_told(crewlog: Crewlog, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"rmdir {shlex.quote(str(gone))}; exec {shlex.join(crewlog.command('sessions', 'list'))}"
    done = subprocess.run(["sh", "-c", line], cwd=gone, env=crewlog.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--project" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["tasks", "add", b"\xff\xfe"], ["tasks", "add", "x", "--meta", b"a=\xff"], ["tasks", "add", "x", "-b", b"\xff"]]
)
def test_text_that_is_no_utf_8_is_refused_and_writes_nothing(crewlog: Crewlog, arguments: list[str | bytes]) -> None:
    command = [*crewlog.command(), *arguments, "--list", "board"]
    done = subprocess.run(command, cwd=crewlog.cwd, env=crewlog.environment, capture_output=True, timeout=60)
    assert done.returncode == 2
    assert b"UTF-8" in done.stderr
    assert not crewlog.home.exists()


def test_text_is_text_in_every_locale(crewlog: Crewlog) -> None:
    crewlog.environment.update(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", CREWLOG_LIST="work")
    assert "○ #1 Größe 测试 😀" in crewlog.out("tasks", "add", "Größe 测试 😀")
    done = crewlog.out("tasks", "next", "--owner", "me", "--exec", 'echo "<$CREWLOG_TASK_SUBJECT>"')
    assert done == "<Größe 测试 😀>\n● #1 Größe 测试 😀  me\n"


@pytest.mark.parametrize(
    ("columns", "command"), [(80, ["sessions", "list", "--all"]), (60, ["sessions", "list"]), (50, ["plans", "list"])], ids=str
)
def test_a_table_fits_into_a_narrow_terminal(crewlog: Crewlog, columns: int, command: list[str]) -> None:
    home, cwd = Home(str(crewlog.home)), str(crewlog.cwd.resolve())
    SessionManager(home.sessions(cwd), durability=PROCESS).create(cwd, name="a rather long name of a session, 测试 " * 3).close()
    PlanStore(home.plans).save("a-plan-with-a-name-of-some-length", "text")
    terminal = Terminal(crewlog, *command, columns=columns)
    assert terminal.end() == 0
    title, row = re.sub(r"\x1b\[[0-9;]*m", "", terminal.output).splitlines()
    assert max(width(title), width(row)) <= columns
    assert "…" in row


def test_half_of_a_surrogate_pair_in_a_record_is_shown(crewlog: Crewlog) -> None:
    """Other programs write them: JavaScript cuts texts without looking."""
    crewlog.run("tasks", "add", "x", "--list", "board")
    path = crewlog.home / "tasks/board/1.json"
    path.write_bytes(path.read_bytes().replace(b'"x"', rb'"half \ud83d of it"'))
    for command in (["list"], ["show", "1"], ["graph"], ["graph", "--mermaid"]):
        assert "of it" in crewlog.out("tasks", *command, "--list", "board")
    assert crewlog.json("tasks", "show", "1", "--list", "board")["subject"] == "half \ud83d of it"


def test_what_the_command_line_refuses_by_itself_is_json_too(crewlog: Crewlog, tmp_path: Path) -> None:
    crewlog.run("tasks", "add", "x", "--list", "board")
    crewlog.run("tasks", "add", "y", "--list", "board", "--blocked-by", "1")
    (tmp_path / "no-session.jsonl").write_text("hello\n")
    assert crewlog.refused("tasks", "next", "--owner", "me", "--list", "empty") == "noTask"
    assert crewlog.refused("tasks", "next", "--owner", "me", "--list", "empty", "--exec", "true") == "noTask"
    assert crewlog.refused("tasks", "next", "--owner", "me", "--list", "board", "--exec", "false") == "commandFailed"
    assert crewlog.refused("import", "codex", str(tmp_path / "no-session.jsonl")) == "notImported"
    (crewlog.home / "tasks/board/1.json").write_text("{}")
    assert crewlog.refused("doctor") == "problemsFound"


@pytest.mark.parametrize(
    "command", [["doctor"], ["status"], ["watch", "--once"], ["sessions", "list"], ["tasks", "add", "x", "--list", "l"]]
)
def test_a_home_that_is_no_folder_is_told(crewlog: Crewlog, command: list[str]) -> None:
    crewlog.home.write_text("precious")
    assert crewlog.refused(*command) == "storageFailed"
    assert crewlog.home.read_text() == "precious"


HOSTILE = "\x1b]0;owned\x07\x9b31m\u202egnp.exe"


@pytest.mark.parametrize(
    "command",
    [
        ["sessions", "export", "last"],
        ["sessions", "export", "last", "--format", "html"],
        ["sessions", "export", "last", "--format", "json"],
        ["sessions", "export", "last", "--json"],
        ["sessions", "show", "last"],
        ["sessions", "show", "last", "--limit", "9"],
        ["sessions", "show", "last", "--json"],
        ["sessions", "list"],
        ["sessions", "search", "exe"],
        ["history", "list"],
        ["history", "list", "--json"],
        ["plans", "show", "evil"],
        ["plans", "show", "evil", "--json"],
        ["tasks", "show", "1", "--list", "evil"],
        ["tasks", "show", "1", "--list", "evil", "--json"],
        ["tasks", "graph", "--mermaid", "--list", "evil"],
        ["team", "show", "--list", "evil"],
        ["transcript", "show", "ada", "--list", "evil"],
        ["watch", "--once"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_no_record_commands_a_terminal(crewlog: Crewlog, command: list[str]) -> None:
    home, cwd = Home(str(crewlog.home)), str(crewlog.cwd.resolve())
    message = json.dumps({"role": "user", "content": [{"type": "text", "text": HOSTILE}]}, ensure_ascii=False).encode()
    store = SessionManager(home.sessions(cwd), durability=PROCESS).create(cwd, name=HOSTILE)
    store.append([NewEntry("message", message)])
    store.close()
    PlanStore(home.plans).save("evil", HOSTILE)
    board = TaskStore(durability=PROCESS)
    board.set_dir(home.task_list("evil"))
    board.create(HOSTILE, HOSTILE, HOSTILE, {"key": msgspec.Raw(json.dumps(HOSTILE, ensure_ascii=False).encode())})
    board.update("1", TaskUpdate(owner=HOSTILE, status="in_progress"))
    transcripts = TranscriptStore(home.transcripts("evil"))
    transcripts.append("ada", [message])
    Path(home.task_list("evil"), f"{HOSTILE}.json").write_text("{}")
    history = {"display": HOSTILE, "project": cwd, "timestamp": 1}
    Path(home.history).write_text(json.dumps(history, ensure_ascii=False) + "\n", "utf-8")
    terminal = Terminal(crewlog, *command)
    terminal.end()
    told = re.sub(r"\x1b\[([0-9;]*m|K)", "", terminal.output)
    assert "owned" in told or command[0] == "team", told
    assert "Traceback" not in told
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", told), told


def test_a_task_needs_words(crewlog: Crewlog) -> None:
    assert "SUBJECT" in crewlog.run("tasks", "add", " ", "--list", "board", code=2).stderr
    assert not crewlog.home.exists()


ODD_SESSION = """\
{"kind":"header","id":"h0","timestamp":"bad","data":{"version":3,"session_id":"0000000a","cwd":"/p","created":"x"}}
{"kind":"message","id":"00000001","parent_id":"h0","timestamp":"2026-01-01T00:00:00Z","data":{"role":5,"content":"words"}}
{"kind":"message","id":"00000002","parent_id":"00000001","timestamp":null,"data":null}
{"kind":"message","id":"00000003","parent_id":"00000002","data":{"role":"user","content":[{"text":"\\ud83d"},null,{"type":7},{"tool_call":{"name":9}}]}}
{"kind":"llm_call","id":"00000004","parent_id":"00000003","timestamp":"2026-01-01T00:00:00Z","data":{"model":5,"input_tokens":"x"}}
{"kind":"llm_call","id":"00000005","parent_id":"00000004","timestamp":"2026-01-01T00:00:00Z","data":{"model":"m","input_tokens":1e400}}
{"kind":"session_info","id":"00000006","parent_id":"00000005","timestamp":"2026-01-01T00:00:00Z","data":{"name":5}}
"""
ODD_HISTORY = """\
{"display":5,"pastedContents":{},"timestamp":1,"project":"/p"}
{"display":"ok","pastedContents":[],"timestamp":"x","project":"/p"}
{"display":"huge","pastedContents":{},"timestamp":99999999999999,"project":"/p"}
{"display":"huger","pastedContents":{},"timestamp":99999999999999999999,"project":"/p"}
{"display":"before all","pastedContents":{},"timestamp":-99999999999999,"project":"/p"}
{"display":"half \\ud83d","pastedContents":{},"timestamp":1767225600000,"project":"/p"}
"""
ODD_FILES = {
    "projects/-p/2026-01-01_0000000a.jsonl": ODD_SESSION,
    "history.jsonl": ODD_HISTORY,
    "tasks/q/2.json": '{"id":"2","subject":"a","status":"weird","owner":"\\u001b[31m","blockedBy":["2","x"],"metadata":{"k":1e400}}',
    "tasks/q/3.json": '{"id":"3","subject":"a\\nb","status":"pending","blocks":["3"],"blockedBy":["4"]}',
    "tasks/q/4.json": '{"id":"4","subject":5}',
    "tasks/q/team/roster.json": '{"team":"t","members":[{"name":"x"},{"name":"y","agent_type":"z","depth":-7}]}',
    "tasks/q/team/transcripts/a.jsonl": '{"role":"user"}\nnull\n{"role":"tool","content":[{"type":"text","text":"\\ud83d"}]}\n',
    "plans/odd.md": "\0\x1b[31m",
}
READERS = """
sessions list --project /p; sessions list --all; sessions show 0000000a --project /p; sessions show last -n 9 --project /p;
sessions show last --branches --project /p; sessions stats --all; sessions search words --all; sessions export last --project /p;
sessions export last --format html --project /p; tasks list --list q; tasks list --lists; tasks show 2 --list q; tasks show 3 --list q;
tasks graph --list q; tasks graph --mermaid --list q; history list --project /p; history search half --project /p;
team show --list q; transcript show a --list q; plans list; plans show odd; watch --once --project /p --list q; status
"""


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_records_of_odd_shapes_are_shown_as_far_as_they_go(crewlog: Crewlog, as_json: list[str]) -> None:
    for name, content in ODD_FILES.items():
        path = crewlog.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    for command in READERS.split(";"):
        told = crewlog.out(*command.split(), *as_json)
        assert "\x1b" not in told, command
        for line in told.splitlines() if as_json else ():
            json.loads(line)
