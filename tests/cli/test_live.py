"""`crewlog watch`, `status` and `doctor` as commands: what a user sees."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cli.commandline import Crewlog

LIMIT = 40


class Terminal:
    """`crewlog …`, or another program, in a terminal of its own, `columns` × `rows`."""

    def __init__(self, crewlog: Crewlog, *arguments: str, columns: int = 100, rows: int = 30, program: Sequence[str] | None = None) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environment = {**crewlog.environment, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            program or crewlog.command(*arguments),
            cwd=crewlog.cwd,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.set_blocking(self.master, False)
        self.output = ""

    def read(self) -> str:
        try:
            while chunk := os.read(self.master, 65536):
                self.output += chunk.decode("utf-8", "replace")
        except OSError:
            pass  # nothing more now
        return self.output

    def wait_for(self, seen: Callable[[str], object]) -> None:
        deadline = time.monotonic() + LIMIT
        while not seen(self.read()):
            assert time.monotonic() < deadline, self.output[-3000:]
            assert self.process.poll() is None, self.output[-3000:]
            time.sleep(0.02)

    def screen(self) -> str:
        """The last picture that was drawn whole."""
        pictures = self.read().split("\x1b[?2026h")[1:]
        whole = [picture for picture in pictures if "\x1b[?2026l" in picture]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", whole[-1]) if whole else ""

    def end(self) -> int:
        deadline = time.monotonic() + LIMIT
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self.read()
        return self.process.returncode


def test_watch_shows_what_others_do_and_q_quits(crewlog: Crewlog, session_id: str) -> None:
    crewlog.run("tasks", "add", "The first thing", "--list", session_id)
    terminal = Terminal(crewlog, "watch")
    terminal.wait_for(lambda _: "The first thing" in terminal.screen())
    assert "Then teach it." in terminal.screen()
    crewlog.run("tasks", "next", "--owner", "ada", "--list", session_id)
    terminal.wait_for(lambda _: re.search(r"ada\s+#1", terminal.screen()))
    crewlog.run("tasks", "done", "1", "--list", session_id)
    terminal.wait_for(lambda _: "1/1 done" in terminal.screen())
    os.write(terminal.master, b"q")
    assert terminal.end() == 0
    assert terminal.output.rstrip().endswith("\x1b[?1049l")
    assert termios.tcgetattr(terminal.slave) == terminal.before
    pictures = terminal.output.split("\x1b[?2026h")[1:]
    assert all("\x1b[2J" not in picture for picture in pictures), "clearing the screen would flicker"


def test_watch_tells_when_its_server_is_gone(crewlog: Crewlog, session_id: str) -> None:
    crewlog.run("tasks", "add", "The first thing", "--list", session_id)
    terminal = Terminal(crewlog, "watch")
    terminal.wait_for(lambda _: "The first thing" in terminal.screen())
    os.kill(wait_for_server(crewlog), signal.SIGKILL)
    assert terminal.end() == 1
    assert "crewlog: connectionLost: the server that tells of changes is gone" in terminal.output.rpartition("\x1b[?1049l")[2]
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_watch_without_a_terminal_tells_when_its_server_is_gone(crewlog: Crewlog, session_id: str) -> None:
    watching = subprocess.Popen(
        crewlog.command("watch"), cwd=crewlog.cwd, env=crewlog.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    os.kill(wait_for_server(crewlog), signal.SIGKILL)
    _, complaint = watching.communicate(timeout=60)
    assert (watching.returncode, complaint) == (1, "crewlog: connectionLost: the server that tells of changes is gone\n")


def wait_for_server(crewlog: Crewlog) -> int:
    """The process of the one server on the home."""
    deadline = time.monotonic() + LIMIT
    while not (found := [process["pid"] for process in crewlog.json("status")["processes"] if process["watches"]]):
        assert time.monotonic() < deadline
    return int(found[0])


def test_watch_follows_the_size_of_the_terminal(crewlog: Crewlog, session_id: str) -> None:
    for number in range(30):
        crewlog.run("tasks", "add", f"A rather long description of task {number} " * 3, "--list", session_id)
    terminal = Terminal(crewlog, "watch", columns=60, rows=12)
    terminal.wait_for(lambda _: "task 0" in terminal.screen())
    lines = terminal.screen().replace("\r", "").split("\n")
    assert len(lines) <= 12
    assert all(len(line) <= 60 for line in lines), lines
    fcntl.ioctl(terminal.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.kill(terminal.process.pid, signal.SIGWINCH)
    terminal.wait_for(lambda _: len(terminal.screen().split("\n")) > 30)
    os.kill(terminal.process.pid, signal.SIGTERM)
    assert terminal.end() == 0
    assert terminal.output.rstrip().endswith("\x1b[?1049l")


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 2), (20, 5)])
def test_watch_in_a_tiny_terminal(crewlog: Crewlog, session_id: str, columns: int, rows: int) -> None:
    terminal = Terminal(crewlog, "watch", columns=columns, rows=rows)
    terminal.wait_for(lambda text: "\x1b[?2026l" in text)
    lines = terminal.screen().replace("\r", "").split("\n")
    assert len(lines) <= rows
    assert all(len(line) <= columns for line in lines), lines
    os.write(terminal.master, b"xq")
    assert terminal.end() == 0


def test_watch_stops_with_ctrl_z_and_goes_on(crewlog: Crewlog, session_id: str) -> None:
    terminal = Terminal(crewlog, "watch")
    terminal.wait_for(lambda _: "Then teach it." in terminal.screen())
    os.kill(terminal.process.pid, signal.SIGTSTP)  # what the terminal sends for the key
    terminal.wait_for(lambda text: text.endswith("\x1b[?1049l"))
    assert termios.tcgetattr(terminal.slave) == terminal.before
    drawn = len(terminal.output)
    crewlog.run("tasks", "add", "Meanwhile", "--list", session_id)
    os.kill(terminal.process.pid, signal.SIGCONT)
    terminal.wait_for(lambda text: "Meanwhile" in text[drawn:])
    os.write(terminal.master, b"q")
    assert terminal.end() == 0
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_watch_without_a_terminal_tells_notifications(crewlog: Crewlog, session_id: str) -> None:
    process = subprocess.Popen(
        crewlog.command("watch", "--json"), cwd=crewlog.cwd, env=crewlog.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    deadline = time.monotonic() + LIMIT
    while not any(item["watches"] for item in crewlog.json("status")["processes"]):
        assert time.monotonic() < deadline, "status does not see the watcher"
    crewlog.run("plans", "new", "p", "--text", "x")
    told = json.loads(process.stdout.readline())
    assert told["method"] == "plan/didChange"
    assert told["params"]["name"] == "p"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, errors) == (0, b"")


def test_watch_once(crewlog: Crewlog, session_id: str) -> None:
    told = crewlog.out("watch", "--once")
    assert session_id in told
    assert "\x1b" not in told
    assert len(told.splitlines()) < 30
    assert crewlog.json("watch", "--once")["session"]["id"] == session_id
    assert "no session yet" in crewlog.out("watch", "--once", "--project", "/elsewhere")


def test_status_names_sizes_and_who_writes(crewlog: Crewlog, session_id: str) -> None:
    found = crewlog.json("status")
    assert found["home"] == str(crewlog.home)
    assert found["diskUse"]["sessions"]["files"] == 1
    assert {process["pid"] for process in found["processes"]} <= {os.getpid()}  # this process made the session
    crewlog.run("tasks", "add", "x", "--list", session_id)
    holder = subprocess.Popen(
        crewlog.command("tasks", "next", "--owner", "ada", "--list", session_id, "--exec", "echo ready; sleep 60"),
        cwd=crewlog.cwd,
        env=crewlog.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"ready\n"
    assert "crewlog tasks next (ada)" in {process["client"] for process in crewlog.json("status")["processes"]}
    assert "ada" in crewlog.out("status")
    holder.terminate()
    holder.wait(LIMIT)


def test_doctor_as_a_command(crewlog: Crewlog, session_id: str) -> None:
    crewlog.run("doctor")
    log = next(crewlog.home.glob("projects/*/*.jsonl"))
    log.write_bytes(log.read_bytes() + b"bad\n")
    done = crewlog.run("doctor", code=1)
    assert re.search(rf"unreadableLine  projects/\S+_{session_id}\.jsonl:6 \(byte \d+\)", done.stdout)
    assert "problemsFound: 1" in done.stderr
    assert "--fix" in done.stdout
    before = log.read_bytes()
    fixed = crewlog.json("doctor", "--fix")
    (finding,) = fixed["findings"]
    assert finding["kind"] == "unreadableLine"
    assert Path(finding["kept"]).read_bytes() == before
    assert fixed["remaining"] == []
    assert "nothing is wrong" in crewlog.out("doctor")
