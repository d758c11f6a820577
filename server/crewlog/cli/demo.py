"""`crewlog demo`: the main job, watchable. A lead, two agents and a watcher, each a process with a server of its own, on one home.

Nothing is staged: who gets which task is decided by the race, and the watcher prints the notifications that it receives.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from crewlog.cli.demo_script import AGENTS, PROJECT, TASKS, lead_opens, lead_resumes
from crewlog.cli.output import colours
from crewlog.client import Client

COLOURS = {"lead": "cyan", "ada": "green", "grace": "magenta", "watcher": "yellow", "demo": "white"}
_LIMIT = 60
"""Seconds after which the demonstration has gone wrong."""


def say(who: str, text: str) -> None:
    """One line, headed by who says it."""
    click.echo(f"{click.style(who.rjust(8), fg=COLOURS[who], bold=True)}  {text}", color=colours())
    sys.stdout.flush()


def run_demo(home: str | None, *, fast: bool) -> int:
    """The exit code: 0 when every task was done, each by exactly one agent."""
    began = time.monotonic()
    folder = Path(home).expanduser().resolve() if home else Path(tempfile.mkdtemp(prefix="crewlog-demo-"))
    project = folder / "work" / PROJECT
    project.mkdir(parents=True, exist_ok=True)
    pace = 0.0 if fast else 1.0
    say("demo", f"records in {folder}")
    with Client(home=folder, cwd=project, name="lead", subscribe=False) as lead:
        say("lead", f"has a server of its own (process {lead.pid}) and opens a session")
        session_id = lead_opens(lead, lambda text: say("lead", text), pace)
        watcher = _start_watcher(folder, project, session_id, pace)
        agents = [_start(name, folder, project, session_id, pace) for name in AGENTS]
        codes = [process.wait(_LIMIT) for process in (*agents, watcher)]
    say("lead", "goes away: its server ends with it")
    with Client(home=folder, cwd=project, name="lead again", subscribe=False) as lead:
        say("lead", f"is back, in a new process tree (server {lead.pid}), and resumes where it was")
        lead_resumes(lead, session_id, lambda text: say("lead", text), pace)
        tasks = lead.task.list(session_id).items
    say("demo", f"{len(tasks)} tasks done by {_shares([task.owner for task in tasks])} in {time.monotonic() - began:.0f} s")
    _show_files(folder, session_id)
    complete = len(tasks) == len(TASKS) and all(task.status == "completed" for task in tasks)
    return 0 if complete and not any(codes) else 1


def _start(who: str, home: Path, project: Path, session_id: str, pace: float, ready: int = -1) -> subprocess.Popen[bytes]:
    """A process of its own; `ready`: the descriptor on which it says that it has begun."""
    module = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    arguments = ["-m", "crewlog.cli.demo_worker", who, str(home), str(project), session_id, str(pace), str(ready)]
    environment = {**os.environ, "CREWLOG_DEMO_COLOUR": "1" if colours() else ""}
    return subprocess.Popen([*module, *arguments], env=environment, cwd=home, pass_fds=[ready] if ready >= 0 else [])


def _start_watcher(home: Path, project: Path, session_id: str, pace: float) -> subprocess.Popen[bytes]:
    """The watcher, subscribed: what happens from now on is told to it."""
    reader, writer = os.pipe()
    watcher = _start("watcher", home, project, session_id, pace, writer)
    os.close(writer)
    os.read(reader, 1)  # a byte when it is ready, or the end of the pipe should it have died
    os.close(reader)
    return watcher


def _shares(owners: list[str]) -> str:
    return " and ".join(f"{owner or 'nobody'} ({owners.count(owner)})" for owner in sorted(set(owners)))


def _show_files(folder: Path, session_id: str) -> None:
    say("demo", "what is on disk now, in the format of codebot:")
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            click.echo(f"            {path.relative_to(folder)}  ({path.stat().st_size} bytes)")
    say("demo", "look at it:")
    crewlog = "crewlog" if shutil.which("crewlog") else shlex.quote(str(Path(sys.executable).parent / "crewlog"))
    click.echo(f"            cd {shlex.quote(str(folder / 'work' / PROJECT))}; export CREWLOG_HOME={shlex.quote(str(folder))}")
    for command in ("sessions show last", f"tasks graph --list {session_id}", "watch", "doctor"):
        click.echo(f"            {crewlog} {command}")
