"""The server missing, refusing, dying, too old: told once and clearly, and a restart picks up where it was."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.client import Client, NewEntry
from editors.neovim.editor import Editor

Start = Callable[..., Editor]

OLD = """
import json, sys
def read():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, value = line.split(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length)) if length else None
while message := read():
    if "id" not in message:
        continue
    result = None
    if message["method"] == "initialize":
        result = {"capabilities": %s, "serverInfo": {"name": "crewlog", "version": "0.0.7"}}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    sys.stdout.buffer.write(b"Content-Length: %%d\\r\\n\\r\\n" %% len(body) + body)
    sys.stdout.buffer.flush()
"""

SECOND_LOOK_IS_SLOW = """
import json, subprocess, sys, time
server = subprocess.Popen([%r, "serve"], stdin=subprocess.PIPE)
looks = 0
while header := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    body = sys.stdin.buffer.read(int(header.split(b":")[1]))
    if json.loads(body).get("method") == "task/get":
        looks += 1
        if looks == 2:
            time.sleep(1)
    server.stdin.write(header + b"\\r\\n" + body)
    server.stdin.flush()
server.stdin.close()
sys.exit(server.wait())
"""


def crewlog(folder: Path, text: str) -> str:
    """A program `crewlog`; the PATH on which it is found."""
    folder.mkdir()
    program = folder / "crewlog"
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}:/usr/bin:/bin"


def health(vim: Editor) -> str:
    """What `:checkhealth crewlog` shows."""
    vim.command("checkhealth crewlog")
    vim.wait("the report", lambda: any("extras" in line for line in vim.lines()))
    text = "\n".join(vim.lines())
    vim.command("bwipeout!")
    return text


def test_a_server_that_is_missing(start: Start, agent: Client, tmp_path: Path) -> None:
    agent.task.create("board", "One")
    vim = start(path="/usr/bin:/bin")
    vim.command("Crewlog")
    vim.wait_for_row("the program `crewlog` is not on PATH")
    assert vim.state() == "failed"
    for command in ("Crewlog close", "Crewlog", "Crewlog session", "Crewlog tasks"):
        vim.command(command)
    [told] = [message for message in vim.notified() if "not on PATH" in message and "checkhealth" in message]
    assert "pip install crewlog" in told
    report = health(vim)
    assert "the program `crewlog` is not on PATH" in report
    assert "Crewlog restart" in report
    # The user installs it and needs no new Neovim.
    real = shutil.which("crewlog")
    assert real
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "crewlog").symlink_to(real)
    vim.lua("vim.env.PATH = ... .. ':' .. vim.env.PATH", str(tmp_path / "installed"))
    vim.go_to("Tasks")
    vim.keys("R")
    vim.wait_for_row("#1 One")


def test_a_command_that_is_named_wrong(start: Start) -> None:
    vim = start(setup='{ cmd = { "/no/such/crewlog", "serve" } }')
    vim.command("Crewlog")
    vim.wait_notified('the command "/no/such/crewlog" of your configuration cannot be run')


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        (
            {"experimental": {"crewlog": {"protocolVersion": 0, "home": "/h", "projectId": "p", "methods": [], "notifications": []}}},
            "is too old",
        ),
        (
            {"experimental": {"crewlog": {"protocolVersion": 2, "home": "/h", "projectId": "p", "methods": [], "notifications": []}}},
            "newer",
        ),
        (
            {
                "experimental": {
                    "crewlog": {"protocolVersion": 1, "home": "/h", "projectId": "p", "methods": ["task/list"], "notifications": []}
                }
            },
            "it lacks crewlog/status",
        ),
        ({}, "no Crewlog server"),
    ],
)
def test_a_server_that_does_not_fit(start: Start, tmp_path: Path, capabilities: object, told: str) -> None:
    vim = start(path=crewlog(tmp_path / "bin", OLD % repr(capabilities)))
    vim.command("Crewlog")
    vim.wait_notified(told)
    vim.wait_for_row(told)
    report = health(vim)
    assert told in report
    assert "update" in report
    assert len(vim.notified()) == 1, vim.notified()
    assert vim.state() == "failed"


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import sys; print('Traceback:\\nNo module named x', file=sys.stderr); sys.exit(3)", "exit code 3): No module named x"),
        ("print('hello, I am a shell')", "before it answered"),
        ("print('Content-Lengthy: none\\r\\n\\r\\n', flush=True); import time; time.sleep(60)", "does not speak the protocol"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    ],
)
def test_a_server_that_ends_before_it_answered(start: Start, tmp_path: Path, program: str, told: str) -> None:
    """It is not tried again by itself, and told once."""
    vim = start(path=crewlog(tmp_path / "bin", program))
    vim.command("Crewlog")
    assert "before it answered" in vim.wait_notified(told)
    assert vim.state() == "failed"
    assert vim.lua('return require("crewlog.client").starts') == 1


def test_a_server_that_does_not_answer(start: Start, tmp_path: Path) -> None:
    vim = start(path=crewlog(tmp_path / "bin", "import time\ntime.sleep(600)"), setup="{ startup_timeout = 300 }")
    vim.command("Crewlog")
    vim.wait_notified("did not answer within")


def test_a_home_that_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    vim = start(setup=f'{{ home = "{tmp_path}/file" }}')
    vim.command("Crewlog")
    vim.wait_notified(f"{tmp_path}/file/")
    vim.wait("each section tells", lambda: not any("loading" in line for line in vim.sidebar()))
    assert len(vim.sidebar()) == 8
    assert sum("Not a directory" in line for line in vim.sidebar()) == 4
    vim.keys("R")
    vim.wait("asked again", lambda: vim.lua('return require("crewlog.store").errors.plans') is not None)
    assert len(vim.notified()) == 1, vim.notified()


def test_a_server_that_is_killed_is_started_again(vim: Editor, agent: Client) -> None:
    agent.task.create("board", "One")
    agent.task.create("board", "Two")
    session = agent.session.create(name="talk").session.id
    vim.command(f"edit crewlog://session/{session}")
    vim.command("vsplit crewlog://task/board/1")
    vim.wait("loaded", lambda: vim.lines()[0] == "---")
    vim.nvim.current.buffer.append("My own words")
    vim.command("Crewlog")
    vim.go_to("#2 Two")
    vim.lua(
        """_G.seen = {}
        vim.api.nvim_create_autocmd('User', { pattern = 'Crewlog*', callback = function(args) table.insert(_G.seen, args.match) end })"""
    )
    vim.kill_server()
    vim.wait("it is gone", lambda: vim.state() != "ready")
    agent.task.create("board", "Three")  # while nobody tells of it
    agent.session.append(session, [NewEntry("message", {"role": "user", "content": [{"type": "text", "text": "said meanwhile"}]})])
    vim.wait_for_row("#3 Three")
    vim.wait("the session too", lambda: "said meanwhile" in "\n".join(vim.lines(vim.nvim.funcs.bufnr(f"crewlog://session/{session}"))))
    assert "#2 Two" in vim.nvim.current.line
    assert "My own words" in vim.lines(vim.nvim.funcs.bufnr("crewlog://task/board/1"))
    assert [message for message in vim.notified() if "started again" in message and "signal 9" in message]
    assert len(vim.notified()) == 1, vim.notified()
    agent.task.update("board", "2", subject="Second")  # and it is told of again
    vim.wait_for_row("#2 Second")
    seen = list(vim.lua("return _G.seen"))
    assert seen.index("CrewlogDisconnected") < seen.index("CrewlogConnected")


def test_what_is_typed_as_soon_as_a_task_is_there_stays(start: Start, agent: Client, tmp_path: Path) -> None:
    """While the server started, the task was asked for more than once."""
    agent.task.create("board", "One")
    program = shutil.which("crewlog")
    vim = start(path=crewlog(tmp_path / "bin", SECOND_LOOK_IS_SLOW % program))
    vim.command("edit crewlog://task/board/1")
    vim.wait("it is loaded", lambda: vim.lines()[0] == "---")
    vim.nvim.current.buffer[1] = "subject: Two"
    time.sleep(1.5)
    assert vim.lines()[1] == "subject: Two"
    vim.command("write")
    task = agent.task.get("board", "1")
    assert task is not None
    assert task.subject == "Two"


def test_a_task_that_could_not_be_loaded_is_there_when_the_server_is(start: Start, agent: Client, tmp_path: Path) -> None:
    agent.task.create("board", "One")
    vim = start(setup='{ cmd = { "/no/such/crewlog", "serve" } }')
    vim.command("edit crewlog://task/board/1")
    vim.wait_notified("cannot be run")
    assert vim.lines() == [""]
    vim.lua('require("crewlog").setup({})')
    vim.command("Crewlog restart")
    vim.wait("it is loaded", lambda: vim.lines()[:2] == ["---", "subject: One"])
    assert not vim.nvim.current.buffer.options["modified"]


def test_requests_of_a_server_that_died_are_answered_with_an_error(vim: Editor) -> None:
    vim.lua('require("crewlog.client").start()')
    vim.wait_ready()
    pid = vim.server_pid()
    os.kill(pid, 19)  # stopped: it cannot answer
    vim.lua(
        """_G.answers = {}
        for i = 1, 3 do
          require("crewlog").request("task/lists", nil, function(err) table.insert(_G.answers, err and err.data.kind or "ok") end)
        end"""
    )
    os.kill(pid, 9)
    vim.wait("all of them", lambda: len(vim.lua("return _G.answers")) == 3)
    assert vim.lua("return _G.answers") == ["disconnected"] * 3
    vim.wait_ready()
    assert vim.server_pid() != pid


def test_one_that_always_dies_is_given_up(start: Start) -> None:
    """After some attempts, with pauses between them, the user is told to look."""
    vim = start(setup="{ startup_timeout = 60000 }")
    vim.command("Crewlog")
    vim.wait_ready()
    vim.lua(
        """local real = vim.defer_fn
        vim.defer_fn = function(run, ms) return real(run, ms >= 1000 and ms <= 30000 and ms / 100 or ms) end"""
    )
    for count in range(1, 7):
        vim.wait_ready()
        vim.kill_server()
        vim.wait("it is gone", lambda: vim.state() != "ready")
        if count < 6:
            vim.wait("another", lambda count=count: vim.lua('return require("crewlog.client").starts') == count + 1)  # type: ignore[misc]
    vim.wait("given up", lambda: vim.state() == "failed")
    assert len(vim.notified()) == 2, vim.notified()
    assert ":Crewlog restart" in vim.notified()[1]
    vim.command("Crewlog restart")
    vim.wait_ready()


def test_stop_and_restart(vim: Editor, agent: Client) -> None:
    agent.task.create("board", "One")
    vim.command("Crewlog")
    vim.wait_for_row("#1 One")
    first = vim.server_pid()
    vim.command("Crewlog stop")
    vim.wait_for_row("server stopped: `R` starts it")
    vim.wait("its process ends", lambda: not os.path.exists(f"/proc/{first}"))
    vim.command("Crewlog restart")
    vim.wait_for_row("#1 One")
    assert vim.server_pid() != first
    assert vim.notified() == []


def test_neovim_leaves_no_server_behind(vim: Editor) -> None:
    vim.command("Crewlog")
    vim.wait_ready()
    pid = vim.server_pid()
    vim.close()
    vim.wait("it ends too", lambda: not os.path.exists(f"/proc/{pid}"))


def test_another_folder_is_another_project(vim: Editor, agent: Client, tmp_path: Path) -> None:
    agent.plan.save("here", "x")
    agent.session.create(name="of this project")
    vim.command("Crewlog sessions")
    vim.wait_for_row("of this project")
    (tmp_path / "other").mkdir()
    vim.command(f"cd {tmp_path / 'other'}")
    vim.wait_for_row("none yet in this folder")
    vim.wait_for_row("≡ here")  # plans are of the home, not of a project
    assert vim.notified() == []


def test_health_of_a_good_server(vim: Editor, home: Path) -> None:
    report = health(vim)
    for words in ("Neovim 0.11", "the configuration is right", "protocol 1", f"home: {home}", 'you claim tasks as "me"', "inotify"):
        assert words in report
    assert "ERROR" not in report
    assert "WARNING" not in report
