"""Completion, in the shells themselves: the script is read by the shell, keys are pressed, and the line is what a user would see."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from cli.commandline import Crewlog
from cli.test_live import Terminal

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(crewlog completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(crewlog completion zsh)"'),
}


def offered(crewlog: Crewlog, line: str) -> list[str]:
    """The values that the program offers to bash after `line`."""
    words = len(line.split()) if line.endswith(" ") else len(line.split()) - 1
    done = crewlog.run(_CREWLOG_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(words))
    assert done.stderr == ""
    return [told.partition(",")[2] for told in done.stdout.splitlines() if told]


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_commands_and_what_there_is(crewlog: Crewlog, session_id: str, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    crewlog.run("plans", "new", "release-plan", "--text", "x")
    program, setup = SHELLS[shell]
    crewlog.environment.update(HOME=str(crewlog.cwd), XDG_DATA_HOME=str(crewlog.cwd))
    terminal = Terminal(crewlog, program=program)
    os.write(terminal.master, f"{setup}; echo set''up\r".encode())
    terminal.wait_for(lambda text: "setup" in text)
    lines = {
        "tasks relea\t": "tasks release",
        f"sessions show {session_id[:4]}\t": f"sessions show {session_id}",
        "plans show rel\t": "plans show release-plan",
    }
    for keys, completed in lines.items():
        before = len(terminal.read())
        os.write(terminal.master, f"crewlog {keys}".encode())
        terminal.wait_for(lambda text: completed.split()[-1] in without_styles(text[before:]))  # noqa: B023  # waited for here
        os.write(terminal.master, b"\x15")  # the line is thrown away
    os.write(terminal.master, b"exit\r")
    terminal.end()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_what_there_is_with_a_word_about_it(crewlog: Crewlog, session_id: str) -> None:
    script = f"crewlog completion fish | source; complete -C 'crewlog tasks relea'; complete -C 'crewlog sessions show {session_id[:4]}'"
    environment = {**crewlog.environment, "HOME": str(crewlog.cwd)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], cwd=crewlog.cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["release\tGive a task back.", f"{session_id}\tParser"]


def without_styles(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\r|\x08", "", text)


@pytest.mark.parametrize("shell", [*SHELLS, "fish"])
def test_the_shell_takes_the_script(crewlog: Crewlog, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=crewlog.out("completion", shell), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_offered_are_the_records_that_there_are(crewlog: Crewlog, session_id: str) -> None:
    assert set(offered(crewlog, "crewlog tasks re")) == {"release", "renew", "reopen"}
    assert offered(crewlog, "crewlog sessions rename ") == [session_id, "last"]
    assert offered(crewlog, "crewlog tasks show ") == []
    crewlog.run("tasks", "add", "one", "--list", "work")
    crewlog.run("tasks", "add", "two", "--list", "work", "--blocked-by", "1")
    crewlog.run("tasks", "claim", "1", "--owner", "ada", "--list", "work")
    assert offered(crewlog, "crewlog tasks list --list ") == ["work"]
    assert offered(crewlog, "crewlog tasks done --list work ") == ["1", "2"]
    assert offered(crewlog, "crewlog tasks done --list work 1 ") == ["2"]
    assert offered(crewlog, "crewlog tasks add x --list work --blocked-by ") == ["1", "2"]
    assert offered(crewlog, "crewlog tasks release 1 --list work --owner a") == ["ada"]
    assert offered(crewlog, "crewlog tasks claim 1 --list ../ --owner ") == []


def test_nothing_is_offered_and_nothing_said_where_the_home_is_none(crewlog: Crewlog) -> None:
    crewlog.home.write_text("no folder")
    assert offered(crewlog, "crewlog plans show ") == []
    assert offered(crewlog, "crewlog tasks show --list work ") == []
