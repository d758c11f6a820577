"""A task that is edited in a buffer."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from crewlog.client import Client
from editors.neovim.editor import Editor


def opened(vim: Editor, agent: Client, **fields: str) -> Editor:
    agent.task.create("board", fields.pop("subject", "Fix it"), **fields)  # type: ignore[arg-type]
    vim.command("edit crewlog://task/board/1")
    vim.wait("it is loaded", lambda: vim.lines()[0] == "---")
    return vim


@pytest.fixture
def edited(vim: Editor, agent: Client) -> Editor:
    return opened(vim, agent, description="Line one\nLine two")


def modified(vim: Editor) -> bool:
    return bool(vim.nvim.current.buffer.options["modified"])


def test_all_fields_can_be_edited_and_saved(edited: Editor, agent: Client) -> None:
    agent.task.create("board", "First")
    assert edited.lines() == [
        "---", "subject: Fix it", "status: pending", "owner:", "activeForm:", "blockedBy:", "blocks:", "---", "Line one", "Line two",
    ]  # fmt: skip
    assert not modified(edited)
    edited.nvim.current.buffer[:] = [
        "---", "subject: Mend it", "status: in_progress", "owner: ada", "activeForm: Mending", "blockedBy: #2", "---", "Other", "",
    ]  # fmt: skip
    edited.command("write")
    assert not modified(edited), edited.picture()
    task = agent.task.get("board", "1")
    assert task is not None
    assert (task.subject, task.status, task.owner, task.active_form, task.blocked_by) == ("Mend it", "in_progress", "ada", "Mending", ["2"])
    assert task.description == "Other\n"


def test_what_is_not_touched_is_not_sent(edited: Editor, agent: Client) -> None:
    """Somebody else's change of another field stays, and is shown after the save."""
    edited.keys("/Line one<CR>ccMine<Esc>")
    edited.wait("it is typed", lambda: "Mine" in edited.lines())
    agent.task.update("board", "1", subject="Theirs")
    edited.wait_notified("changed by somebody else")
    edited.command("write")
    task = agent.task.get("board", "1")
    assert task is not None
    assert (task.subject, task.description) == ("Theirs", "Mine\nLine two")
    assert "subject: Theirs" in edited.lines()


def test_an_untouched_buffer_follows(edited: Editor, agent: Client) -> None:
    edited.lua('require("crewlog.client").start()')
    agent.task.update("board", "1", subject="Changed by an agent")
    edited.wait("it follows", lambda: "subject: Changed by an agent" in edited.lines())
    assert not modified(edited)


@pytest.fixture
def conflict(edited: Editor, agent: Client) -> Editor:
    edited.nvim.current.buffer[1] = "subject: Mine"
    agent.task.update("board", "1", subject="Theirs")
    edited.wait_notified("changed by somebody else")
    return edited


def subject(agent: Client) -> str:
    task = agent.task.get("board", "1")
    assert task is not None
    return task.subject


def test_a_conflict_is_told_and_can_be_cancelled(conflict: Editor, agent: Client) -> None:
    conflict.keys(":write<CR>")
    conflict.wait_asked("changed by somebody else: subject")
    conflict.answer("n")
    assert subject(agent) == "Theirs"
    assert modified(conflict)
    assert "subject: Mine" in conflict.lines()


def test_wq_does_not_quit_with_what_was_not_saved(conflict: Editor, agent: Client) -> None:
    conflict.command("split")
    conflict.keys(":wq<CR>")
    conflict.wait_asked("changed by somebody else: subject")
    conflict.answer("n")
    assert len(conflict.nvim.windows) == 2
    assert "subject: Mine" in conflict.lines()


def test_a_conflict_is_compared_and_saved_then(conflict: Editor, agent: Client) -> None:
    conflict.keys(":write<CR>")
    conflict.wait_asked("changed by somebody else: subject")
    conflict.answer("c")
    conflict.wait("both are shown", lambda: len(conflict.nvim.windows) == 2)
    assert all(window.options["diff"] for window in conflict.nvim.windows)
    assert "subject: Theirs" in conflict.nvim.windows[1].buffer[:]
    assert subject(agent) == "Theirs"
    assert modified(conflict)
    conflict.command("write")
    assert subject(agent) == "Mine"
    assert not modified(conflict)


def test_a_conflict_is_overwritten_by_choice_or_with_a_bang(conflict: Editor, agent: Client) -> None:
    conflict.keys(":write<CR>")
    conflict.wait_asked("changed by somebody else: subject")
    conflict.answer("s")
    conflict.wait("saved", lambda: not modified(conflict))
    assert subject(agent) == "Mine"
    conflict.nvim.current.buffer[1] = "subject: Mine again"
    agent.task.update("board", "1", subject="Theirs again")
    conflict.wait("told", lambda: sum("changed by somebody else" in message for message in conflict.notified()) == 2)
    conflict.command("write!")
    assert subject(agent) == "Mine again"


def test_a_task_that_was_deleted_can_be_added_anew(edited: Editor, agent: Client) -> None:
    edited.nvim.current.buffer[1] = "subject: Mine"
    agent.task.delete("board", "1")
    edited.wait_notified("deleted by somebody else")
    edited.keys(":write<CR>")
    edited.wait_asked("Add it anew?")
    edited.answer("y")
    edited.wait("added", lambda: [task.subject for task in agent.task.list("board").items] == ["Mine"])
    edited.wait("the buffer is of the new one", lambda: edited.nvim.current.buffer.name == "crewlog://task/board/2")
    assert not modified(edited)


@pytest.mark.parametrize(
    ("line", "text", "told"),
    [
        (0, "", "line 1"),
        (1, "subject:", "the subject is empty"),
        (1, "topic: x", "line 2: not one of the fields"),
        (1, 'subject: "x', "line 2: a value that begins with a quote"),
        (2, "status: someday", "someday"),
        (5, "blockedBy: 77", "77"),
        (5, "blockedBy: 1", "1"),
    ],
)
def test_what_cannot_be_saved_is_told_and_kept(edited: Editor, agent: Client, line: int, text: str, told: str) -> None:
    edited.nvim.current.buffer[line] = text
    edited.command("write")
    assert told in edited.notified()[-1]
    assert "nothing was saved" in edited.notified()[-1]
    assert modified(edited)
    assert edited.lines()[line] == text
    assert subject(agent) == "Fix it"


def test_a_new_task(vim: Editor, agent: Client) -> None:
    vim.command("Crewlog new chores")
    vim.nvim.current.buffer[:] = ["---", "subject: Water the plants", "owner: me", "---", "All of them"]
    vim.command("write")
    task = agent.task.get("chores", "1")
    assert task is not None
    assert (task.subject, task.owner, task.description) == ("Water the plants", "me", "All of them")
    assert vim.nvim.current.buffer.name == "crewlog://task/chores/1"
    vim.nvim.current.buffer[1] = "subject: Water the roses"
    vim.command("write")
    assert [found.subject for found in agent.task.list("chores").items] == ["Water the roses"]


HOSTILE = 'a\nb\t\x1b[31m\x00"\u202e\r\n \u2028 --- # '


def test_hostile_texts_come_back_equal(vim: Editor, agent: Client) -> None:
    opened(vim, agent, subject=HOSTILE, description=HOSTILE)
    vim.command("set modified")
    vim.command("write")
    assert subject(agent) == HOSTILE
    vim.nvim.current.buffer.append("end")
    vim.wait("typed", lambda: vim.lines()[-1] == "end")
    vim.command("write")
    task = agent.task.get("board", "1")
    assert task is not None
    assert task.description == HOSTILE + "\nend"
    vim.nvim.current.buffer[1] = 'subject: "x\\ny"'
    vim.command("write")
    assert subject(agent) == "x\ny"


def test_a_megabyte(vim: Editor, agent: Client) -> None:
    big = "x" * (1 << 20)
    opened(vim, agent, subject=big, description=big)
    vim.nvim.current.buffer[2] = "status: completed"
    vim.command("write")
    task = agent.task.get("board", "1")
    assert task is not None
    assert task.status == "completed"
    assert task.subject == big


def test_a_save_that_takes_long_can_be_interrupted(edited: Editor, agent: Client) -> None:
    """It waits for as long as it takes; who does not want to wait is told that nobody knows."""
    pid = edited.server_pid()
    edited.nvim.current.buffer[1] = "subject: Mend it"
    os.kill(pid, signal.SIGSTOP)
    try:
        edited.keys(":write<CR>")
        time.sleep(1)
        edited.keys("<C-c>")
        edited.wait_notified("interrupted before the server answered task/get; nothing was saved")
        assert modified(edited)
    finally:
        os.kill(pid, signal.SIGCONT)
    edited.command("write")
    task = agent.task.get("board", "1")
    assert task is not None
    assert task.subject == "Mend it"


def test_bytes_that_are_no_text_are_not_sent(edited: Editor, agent: Client) -> None:
    edited.lua('vim.api.nvim_buf_set_lines(0, 1, 2, false, { "subject: caf\\xe9" })')
    edited.command("write")
    assert "not UTF-8" in edited.notified()[-1]
    assert modified(edited)


def test_a_task_that_is_not_there(vim: Editor, project: Path) -> None:
    vim.command("edit crewlog://task/board/9")
    vim.wait_notified("there is no task #9 in board")


def test_opening_a_task_that_is_being_edited_goes_there(edited: Editor) -> None:
    edited.keys("/Line one<CR>ccMine<Esc>")
    edited.wait("it is typed", lambda: "Mine" in edited.lines())
    edited.command("Crewlog tasks")
    edited.go_to("#1 Fix it")
    edited.keys("<CR>")
    edited.wait("it is shown", lambda: edited.nvim.funcs.bufname() == "crewlog://task/board/1")
    assert "Mine" in edited.lines()
    assert modified(edited)
    assert edited.nvim.funcs.execute("messages").strip() == ""
    assert len(edited.nvim.windows) == 2
