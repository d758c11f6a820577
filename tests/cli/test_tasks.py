"""`crewlog tasks …`: a board worked from a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cli.commandline import Crewlog


@pytest.fixture
def board(crewlog: Crewlog) -> Crewlog:
    """The list `work` with three tasks in a row."""
    crewlog.environment["CREWLOG_LIST"] = "work"
    crewlog.run("tasks", "add", "Fetch", "--description", "all of it", "-m", "kind=net", "-m", "size=3")
    crewlog.run("tasks", "add", "Cache", "-b", "1")
    crewlog.run("tasks", "add", "Release", "-b", "1", "-b", "2", "--active-form", "Releasing")
    return crewlog


def statuses(board: Crewlog) -> dict[str, str]:
    return {task["id"]: task["status"] for task in board.json("tasks", "list")["items"]}


def test_add_list_show(board: Crewlog) -> None:
    found = board.json("tasks", "list")
    assert [task["id"] for task in found["items"]] == ["1", "2", "3"]
    assert found["items"][0]["metadata"] == {"kind": "net", "size": 3}
    assert found["items"][0]["blocks"] == ["2", "3"]
    assert "all of it" in board.out("tasks", "show", "1")
    assert [task["id"] for task in board.json("tasks", "list", "--claimable")["items"]] == ["1"]
    assert board.refused("tasks", "show", "99") == "taskNotFound"
    assert board.json("tasks", "list", "--lists")["lists"][0]["counts"]["total"] == 3
    assert board.refused("tasks", "add", "x", "-b", "77") == "taskNotFound"


def test_what_is_done_is_waited_for_no_longer(board: Crewlog) -> None:
    board.run("tasks", "done", "1")
    waiting = {line.split()[1]: line.split()[2] for line in board.out("tasks", "list").splitlines()[2:]}
    assert waiting == {"1": "Fetch", "2": "Cache", "3": "2"}
    assert "○  3            2          Release" in board.out("tasks", "list", "--status", "pending")
    assert [line.split(None, 2)[2] for line in board.out("tasks", "show", "3").splitlines() if "wait" in line] == ["2", "1"]
    once = board.out("watch", "--once")
    assert "waits for 2\n" in once
    assert "waits for 1" not in once


def test_claims(board: Crewlog) -> None:
    assert board.refused("tasks", "claim", "2", "--owner", "ada") == "blocked"
    assert board.json("tasks", "next", "--owner", "ada")["id"] == "1"
    assert board.refused("tasks", "claim", "1", "--owner", "grace") == "alreadyClaimed"
    assert board.refused("tasks", "release", "1", "--owner", "grace") == "leaseLost"
    board.run("tasks", "release", "1", "--owner", "ada")
    claimed = board.json("tasks", "claim", "1", "--owner", "grace", "--lease", "60")
    assert claimed["claim"]["expiresAt"]
    renewed = board.json("tasks", "renew", "1", "--owner", "grace", "--lease", "600")
    assert renewed["claim"]["generation"] == claimed["claim"]["generation"]
    assert renewed["claim"]["expiresAt"] > claimed["claim"]["expiresAt"]
    done = board.run("tasks", "next", "--owner", "ada", code=1)
    assert done.stderr.startswith("crewlog: noTask: ")
    board.run("tasks", "next", "--owner", "", code=1)
    board.run("tasks", "next", code=2)


def test_done_by_owner_only_while_he_holds_it(board: Crewlog) -> None:
    board.run("tasks", "claim", "1", "--owner", "ada", "--lease", "0.05")
    time.sleep(0.1)  # the lease is what is waited for
    assert board.refused("tasks", "done", "1", "--owner", "ada") == "leaseLost"
    board.run("tasks", "claim", "1", "--owner", "grace")
    assert board.refused("tasks", "done", "1", "--owner", "ada") == "leaseLost"
    board.run("tasks", "done", "1", "--owner", "grace")
    assert statuses(board)["1"] == "completed"
    board.run("tasks", "reopen", "1")
    assert board.json("tasks", "show", "1").get("owner", "") == ""
    assert statuses(board)["1"] == "pending"


def test_edit_and_rm(board: Crewlog) -> None:
    board.run("tasks", "edit", "1", "-s", "Fetch it", "-m", "kind=null", "-m", 'more={"a":[1]}')
    task = board.json("tasks", "show", "1")
    assert (task["subject"], task["description"], task["metadata"]) == ("Fetch it", "all of it", {"size": 3, "more": {"a": [1]}})
    assert board.refused("tasks", "edit", "1", "--block-by", "3") == "dependencyCycle"
    board.run("tasks", "edit", "2", "--unblock-by", "1")
    assert board.json("tasks", "show", "2")["blockedBy"] == []
    board.run("tasks", "rm", "1", "2")
    assert board.json("tasks", "show", "3")["blockedBy"] == []
    assert board.refused("tasks", "rm", "1") == "taskNotFound"
    assert board.json("tasks", "add", "New")["id"] == "4"


def test_what_nobody_can_mean_is_refused_and_changes_nothing(board: Crewlog) -> None:
    before = board.json("tasks", "list")
    for arguments in (
        ["next", "--owner", "me", "--lease", "nan"],
        ["next", "--owner", "me", "--wait", "nan"],
        ["edit", "1", "--subject", " "],
    ):
        board.run("tasks", *arguments, code=2)
    for command in (["add", "x"], ["next", "--owner", "me"], ["rm", "1"]):
        assert board.refused("tasks", *command, "--list", "") == "invalidName"
    assert board.json("tasks", "list") == before


def test_a_task_is_named_as_it_is_printed(board: Crewlog) -> None:
    assert board.json("tasks", "show", "#1")["id"] == "1"
    assert [line.split()[1] for line in board.out("tasks", "done", "#1", "2").splitlines()] == ["#1", "#2"]


def test_edit_in_an_editor(board: Crewlog, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "New subject\\n\\nNew words\\n" > "$1"\ntouch -d "+5 seconds" "$1"\n')
    editor.chmod(0o755)
    board.run("tasks", "edit", "1", EDITOR=str(editor))
    task = board.json("tasks", "show", "1")
    assert (task["subject"], task["description"]) == ("New subject", "New words")


def test_the_graph_as_tree_and_as_mermaid(board: Crewlog) -> None:
    assert board.out("tasks", "graph").splitlines() == [
        "○ #1 Fetch",
        "├─ ○ #2 Cache",
        "│  └─ ○ #3 Release",
        "└─ ○ #3 see above",
    ]
    mermaid = board.out("tasks", "graph", "--mermaid").splitlines()
    assert mermaid[0] == "flowchart LR"
    assert "    t1 --> t2" in mermaid
    assert board.json("tasks", "graph")["edges"] == [
        {"blocker": "1", "blocked": "2"},
        {"blocker": "1", "blocked": "3"},
        {"blocker": "2", "blocked": "3"},
    ]
    board.run("tasks", "edit", "1", "-s", 'A "quoted" <b> [x]')
    assert "#34;quoted#34; #60;b#62;" in board.out("tasks", "graph", "--mermaid")


def test_which_list_is_meant(crewlog: Crewlog, session_id: str) -> None:
    crewlog.run("tasks", "add", "For the session")
    assert crewlog.json("tasks", "list", "--list", session_id)["counts"]["total"] == 1
    crewlog.run("tasks", "add", "Elsewhere", "--list", "other")
    assert crewlog.json("tasks", "list")["items"][0]["subject"] == "For the session"
    elsewhere = Crewlog(crewlog.home, crewlog.cwd.parent / "another-project")
    assert "Name it with --list" in elsewhere.run("tasks", "list", code=2).stderr
    assert crewlog.refused("tasks", "list", "--list", "../x") == "invalidName"


def test_a_command_that_succeeds_completes_its_task(board: Crewlog, tmp_path: Path) -> None:
    told = tmp_path / "told"
    names = " ".join(f'"$CREWLOG_{name}"' for name in ("TASK_ID", "TASK_SUBJECT", "LIST", "OWNER"))
    script = f"printf '%s|%s|%s|%s' {names} > {told}; echo \"$CREWLOG_TASK\" > {told}.json"
    board.run("tasks", "next", "--owner", "me", "--wait", "5", "--lease", "120", "--exec", script)
    assert told.read_text() == "1|Fetch|work|me"
    assert json.loads(Path(f"{told}.json").read_text())["metadata"] == {"kind": "net", "size": 3}
    assert statuses(board) == {"1": "completed", "2": "pending", "3": "pending"}


def test_a_command_that_fails_gives_its_task_back(board: Crewlog) -> None:
    done = board.run("tasks", "next", "--owner", "me", "--exec", "exit 3", code=1)
    assert "commandFailed: exit code 3" in done.stderr
    task = board.json("tasks", "show", "1")
    assert (task["status"], task.get("owner", ""), task.get("claim")) == ("pending", "", None)


def test_the_lease_is_renewed_while_the_command_runs(board: Crewlog) -> None:
    board.run("tasks", "next", "--owner", "me", "--lease", "0.5", "--exec", "sleep 2")
    assert statuses(board)["1"] == "completed"


def test_a_task_taken_away_meanwhile_is_not_completed(board: Crewlog) -> None:
    steal = "crewlog tasks edit 1 --owner thief"
    done = board.run("tasks", "next", "--owner", "me", "--lease", "60", "--exec", steal, code=1)
    assert "leaseLost" in done.stderr
    task = board.json("tasks", "show", "1")
    assert task["owner"] == "thief"
    assert task["status"] != "completed"


def test_waiting_ends_when_somebody_else_puts_work_there(board: Crewlog) -> None:
    board.run("tasks", "claim", "1", "--owner", "ada")
    waiting = subprocess.Popen(
        board.command("tasks", "next", "--owner", "me", "--wait", "50", "--json"),
        cwd=board.cwd,
        env=board.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    board.run("tasks", "done", "1")
    told, errors = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, errors
    assert json.loads(told)["id"] == "2"


def test_a_signal_gives_the_task_back(board: Crewlog, tmp_path: Path) -> None:
    started = tmp_path / "started"
    process = subprocess.Popen(
        board.command("tasks", "next", "--owner", "me", "--lease", "60", "--exec", f"touch {started}; exec sleep 60"),
        cwd=board.cwd,
        env=board.environment,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"commandFailed" in errors
    assert board.json("tasks", "show", "1").get("owner", "") == ""


def test_scripts_race_for_a_board(board: Crewlog, tmp_path: Path) -> None:
    """Two shell loops work off the board; each task is done once, in an order that the dependencies allow."""
    log = tmp_path / "log"
    loop = f"while crewlog tasks next --owner $0 --wait 2 --lease 30 --exec 'echo $CREWLOG_TASK_ID >> {log}'; do :; done"
    workers = [
        subprocess.Popen(["sh", "-c", loop, name], cwd=board.cwd, env=board.environment, stderr=subprocess.DEVNULL)
        for name in ("ada", "grace")
    ]
    for worker in workers:
        worker.wait(60)
    assert log.read_text().split() == ["1", "2", "3"]
    assert set(statuses(board).values()) == {"completed"}


def test_a_reader_that_goes_away_is_no_failure(board: Crewlog) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        board.command("tasks", "list"), cwd=board.cwd, env=board.environment, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 0
