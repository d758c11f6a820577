"""`crewlog tasks next --exec`: the command as a job. Signals, kill -9, the terminal, and what an environment cannot hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commandline import Crewlog
from cli.test_live import Terminal
from crewlog.storage import PROCESS, TaskStore

LIMIT = 40


@pytest.fixture
def board(crewlog: Crewlog) -> Crewlog:
    crewlog.environment["CREWLOG_LIST"] = "work"
    crewlog.run("tasks", "add", "Something long")
    return crewlog


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Also a zombie is dead; it may have no parent here that would bury it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start(board: Crewlog, pids: Path, *options: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A command that starts another and waits for it; (the runner, the pids of both)."""
    command = f"sh -c 'echo $PPID $$ > {pids}.new; mv {pids}.new {pids}; exec sleep 300'; true"
    runner = subprocess.Popen(
        board.command("tasks", "next", "--owner", "me", *options, "--exec", command),
        cwd=board.cwd,
        env=board.environment,
        stderr=subprocess.PIPE,
    )
    wait_until(pids.exists)
    return runner, [int(pid) for pid in pids.read_text().split()]


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")


@linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_reaches_all_that_the_command_started(board: Crewlog, tmp_path: Path, number: signal.Signals) -> None:
    runner, pids = start(board, tmp_path / "pids")
    runner.send_signal(number)
    _, errors = runner.communicate(timeout=LIMIT)
    assert (runner.returncode, b"commandFailed: signal" in errors) == (1, True), errors
    wait_until(lambda: not any(map(is_alive, pids)))
    assert board.json("tasks", "show", "1").get("owner", "") == ""


def test_the_second_signal_kills(board: Crewlog, tmp_path: Path) -> None:
    ready, told = tmp_path / "ready", tmp_path / "told"
    command = f"trap 'touch {told}' TERM; touch {ready}; while :; do sleep 0.05; done"
    runner = subprocess.Popen(
        board.command("tasks", "next", "--owner", "me", "--exec", command), cwd=board.cwd, env=board.environment, stderr=subprocess.PIPE
    )
    wait_until(ready.exists)
    runner.terminate()
    wait_until(told.exists)
    runner.terminate()
    _, errors = runner.communicate(timeout=LIMIT)
    assert b"commandFailed: signal 9" in errors


@linux
def test_who_is_killed_takes_the_command_along_and_the_task_comes_back(board: Crewlog, tmp_path: Path) -> None:
    runner, pids = start(board, tmp_path / "pids", "--lease", "1")
    runner.kill()
    runner.communicate(timeout=LIMIT)
    wait_until(lambda: not any(map(is_alive, pids)))
    told = board.run("tasks", "next", "--owner", "other", "--wait", "30", "--exec", "true")
    assert "Something long" in told.stdout
    assert board.json("tasks", "show", "1")["status"] == "completed"


def test_a_description_larger_than_an_environment_is_left_out_of_it(board: Crewlog) -> None:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(board.home / "tasks/work"))
    store.create("Huge", "x" * 3_000_000)
    store.close()
    board.run("tasks", "rm", "1")
    done = board.run("tasks", "next", "--owner", "me", "--exec", 'echo "$CREWLOG_TASK_SUBJECT: ${#CREWLOG_TASK_DESCRIPTION}"')
    assert "Huge: 0" in done.stdout
    assert "CREWLOG_TASK_DESCRIPTION is left out" in done.stderr
    assert board.json("tasks", "show", "2")["status"] == "completed"


@linux
def test_in_a_terminal_it_is_a_job_like_any_other(board: Crewlog) -> None:
    """It reads the keyboard, stops with Ctrl-Z, goes on with fg, ends with Ctrl-C; and the terminal is the shell's again.

    With `exec`, since a Ctrl-Z in the moment in which dash starts a command holds dash up for good: it waits, deaf, for a child that is
    stopped before it began.
    """
    take_terminal = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
    terminal = Terminal(board, program=[sys.executable, "-c", take_terminal, "bash", "--norc", "--noprofile", "-i"])
    os.write(terminal.master, b"PS1='% '; crewlog tasks next --owner me --lease 1 --exec 'head -n 1; echo ready; exec sleep 300'\n")
    wait_until(lambda: board.json("tasks", "show", "1")["status"] == "in_progress")
    os.write(terminal.master, b"typed\n")
    terminal.wait_for(lambda text: "ready" in text.replace("echo ready", "").replace("ready; exec", ""))
    assert terminal.output.count("typed") == 2  # as it was echoed, and as the command read it
    os.write(terminal.master, b"\x1a")
    terminal.wait_for(lambda text: "Stopped" in text)
    before = board.json("tasks", "show", "1")["claim"]["expiresAt"]
    wait_until(lambda: board.json("tasks", "show", "1")["claim"]["expiresAt"] > before)
    told = terminal.output.count("crewlog tasks next")
    os.write(terminal.master, b"fg\n")
    terminal.wait_for(lambda text: text.count("crewlog tasks next") > told)
    os.write(terminal.master, b"\x03")
    terminal.wait_for(lambda text: "commandFailed: signal 2" in text)
    os.write(terminal.master, b"echo $((6*7)); exit\n")
    assert terminal.end() == 0
    assert "42" in terminal.output
    assert board.json("tasks", "show", "1").get("owner", "") == ""
