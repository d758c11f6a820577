"""What others change appears where it belongs, and nothing else moves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.client import Client
from editors.neovim.editor import Editor

MANY = 10_000


def fill(home: Path, list_id: str, count: int) -> None:
    """Task files as agents write them, made directly: ten thousand requests would take longer than the test."""
    folder = home / "tasks" / list_id
    folder.mkdir(parents=True)
    for number in range(1, count + 1):
        (folder / f"{number}.json").write_text(
            f'{{"id": "{number}", "subject": "Task number {number}", "status": "pending", "blocks": [], "blockedBy": []}}'
        )


def view(vim: Editor) -> tuple[int, int, str]:
    """Line and top line of the sidebar's window, and the text of its line."""
    found = vim.lua(
        """local win = require("crewlog.sidebar.view").win()
        return vim.api.nvim_win_call(win, function()
          local view = vim.fn.winsaveview()
          return { view.lnum, view.topline, vim.fn.getline(".") }
        end)"""
    )
    return found[0], found[1], found[2]


def test_ten_thousand_tasks(start: Callable[..., Editor], agent: Client, home: Path) -> None:
    fill(home, "board", MANY)
    began = time.monotonic()
    with Client(home=str(home)) as other:  # what any client pays
        other.subscribe()
        other.task.lists()
        other.task.list("board")
    asked = time.monotonic() - began
    vim = start()
    began = time.monotonic()
    vim.command("Crewlog tasks")
    vim.wait_for_row(f"#{MANY} ")
    opened = time.monotonic() - began
    vim.go_to("#5000 ")
    vim.keys("zz")
    vim.wait("in the middle", lambda: view(vim)[1] > 4900)
    at = view(vim)
    delays = []
    for number in random.Random(5).sample(range(1, MANY), 10):
        began = time.monotonic()
        agent.task.claim("board", str(number), "ada")
        vim.wait_for_row(f"#{number} Task number {number}  @ada")
        delays.append(time.monotonic() - began)
        assert view(vim) == at
    agent.task.create("board", "One more")
    vim.wait_for_row("One more")
    agent.task.delete("board", "1")
    vim.wait("it is gone", lambda: vim.sidebar()[2].startswith("    ○ #2 "))
    assert view(vim) == (at[0] - 1, at[1] - 1, at[2])
    delay = sorted(delays)[5]
    print(
        f"\n10,000 tasks: opened in {opened:.2f} s (a bare client gets them in {asked:.2f} s), a change shows after {delay * 1000:.0f} ms"
    )
    assert opened < 5 * asked
    assert delay < opened / 2, "a change costs less than to load it all"


def test_each_window_keeps_its_place(vim: Editor, agent: Client) -> None:
    for number in range(1, 61):
        agent.task.create("board", f"Number {number}")
    vim.command("Crewlog")
    vim.go_to("#40 ")
    vim.keys("zt")
    vim.command("tabnew")
    vim.command("Crewlog")
    vim.go_to("#50 ")
    vim.keys("zb")
    vim.wait("at the bottom", lambda: view(vim)[1] > 10)
    second = view(vim)
    agent.task.delete("board", "3")
    agent.task.update("board", "40", subject="Forty")
    vim.wait_for_row("#40 Forty")
    vim.wait_gone("#3 ")
    assert view(vim) == (second[0] - 1, second[1] - 1, second[2])
    vim.command("tabprevious")
    assert "#40 Forty" in view(vim)[2]


@pytest.mark.parametrize("delay", [0, 0.2, 0.4, 0.8])
def test_what_changes_while_the_server_starts_is_not_missed(vim: Editor, agent: Client, delay: float) -> None:
    session = agent.session.create(name="first").session.id
    for number in range(1, 6):
        agent.task.create("board", f"Number {number}")
    agent.roster.set_team("board", "crew")
    agent.plan.save("plan", "one")
    vim.command("Crewlog")
    end = time.monotonic() + delay
    step = 0
    while time.monotonic() < end or step == 0:
        step += 1
        agent.task.update("board", str(step % 5 + 1), subject=f"Step {step}")
        agent.session.set_name(session, f"name {step}")
        agent.roster.upsert_member("board", {"name": f"m{step % 3}", "agent_type": f"type {step}"})
    agent.plan.save("other", "two")
    agent.task.create("late", "Of a list that was not there")
    vim.wait_for_row(f"#{step % 5 + 1} Step {step}")
    vim.wait_for_row(f"» name {step}")
    vim.wait_for_row(f"@ m{step % 3}  type {step}")
    vim.wait_for_row("≡ other")
    vim.wait_for_row("Of a list that was not there")


def test_the_row_under_the_cursor_goes(vim: Editor, agent: Client) -> None:
    for number in range(1, 6):
        agent.task.create("board", f"Number {number}")
    vim.command("Crewlog")
    vim.go_to("#3 ")
    agent.task.delete("board", "3")
    vim.wait_gone("#3 ")
    assert "#4 " in view(vim)[2]


def test_only_what_changed_is_drawn(vim: Editor, agent: Client) -> None:
    """No flicker: one change writes its own line on the screen, and no other of the sidebar."""
    for number in range(1, 21):
        agent.task.create("board", f"Number {number}")
    vim.command("Crewlog")
    row = vim.wait_for_row("#10 ")
    vim.wait_for_row("#20 ")
    vim.wait_screen("#20 Number 20")
    vim.go_to("#3 ")
    vim.settle()
    vim.screen.written.clear()
    agent.task.claim("board", "10", "ada")
    vim.wait_screen("#10 Number 10  @ada")
    vim.settle()
    lines = {line for line, start, stop in vim.screen.written if start < 40 and line < 27}
    assert lines == {row - 1}
    # What the user does not see is not drawn at all.
    vim.screen.written.clear()
    agent.task.create("other", "Elsewhere")
    vim.wait_for_row("Elsewhere")
    vim.settle()
    assert not {line for line, start, stop in vim.screen.written if start < 40 and 3 < line < 20}, vim.screen.written


def test_a_storm_of_changes_ends_right(vim: Editor, agent: Client) -> None:
    """Five hundred changes one after another: what is shown at the end is what is there."""
    chance = random.Random(1)
    for number in range(1, 41):
        agent.task.create("board", f"Number {number}")
    vim.command("Crewlog")
    vim.wait_for_row("#40 ")
    for step in range(500):
        task_id = str(chance.randint(1, 40))
        match chance.randint(0, 3):
            case 0:
                agent.task.update("board", task_id, subject=f"Step {step}")
            case 1:
                agent.task.update("board", task_id, status=chance.choice(["pending", "completed"]))
            case _:
                agent.task.update("board", task_id, owner=chance.choice(["ada", "bob", ""]))
    agent.task.update("board", "1", subject="The end")
    vim.wait_for_row("#1 The end")
    for task in agent.task.list("board").items:
        [line] = [line for line in vim.sidebar() if f"#{task.id} " in line]
        assert task.subject in line
        assert ("●" in line) == (task.status == "completed")
        assert (f"@{task.owner}" in line) == bool(task.owner and task.status != "completed")


HOSTILE = "a\nb\x1b[31mc\x00d\t\u202ee\r\x07" + "z" * (1 << 20)


def test_hostile_names_stay_on_one_line(vim: Editor, agent: Client) -> None:
    agent.task.create("board", HOSTILE, active_form=HOSTILE)
    agent.task.create("board", "%#Error#%{execute('qall!')}")
    agent.task.update("board", "1", owner=HOSTILE[:200], status="in_progress")
    agent.roster.set_team("board", HOSTILE[:1000])
    vim.command("Crewlog")
    vim.wait_for_row("#1 a b␛[31mc␀d eec".replace("eec", "e"))
    vim.wait_for_row("%#Error#%{execute('qall!')}")
    rows = vim.sidebar()
    assert all(len(row) < 500 for row in rows)
    assert not any(character in row for row in rows for character in "\x1b\x00\x07\u202e\r\n")
    vim.go_to("#1 ")
    vim.keys("K")
    vim.wait_screen("#1 a b␛[31mc␀d e")
    vim.keys("q")
    vim.go_to("#1 ")
    vim.keys("y")
    vim.wait("yanked", lambda: vim.nvim.funcs.getreg('"') == "1")
    vim.keys("dn")
    vim.wait("asked", lambda: not vim.nvim.api.get_mode()["blocking"])
    assert vim.state() == "ready"


@pytest.mark.parametrize("name", ["a b", "ä%41", "x'y", "a|b", "#1%", "~", "$HOME", "`id`", "-x", "a*b?[c]"])
def test_odd_list_names(vim: Editor, agent: Client, name: str) -> None:
    agent.task.create(name, "One")
    vim.command("Crewlog")
    vim.go_to("#1 One")
    vim.keys("<CR>")
    vim.wait("it is open", lambda: vim.lines()[:2] == ["---", "subject: One"])
    vim.nvim.current.buffer[1] = "subject: Two"
    vim.command("write")
    assert agent.task.get(name, "1").subject == "Two"  # type: ignore[union-attr]
