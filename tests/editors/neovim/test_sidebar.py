"""The sidebar: what stands in it, how it follows, what keys do."""

from __future__ import annotations

from crewlog.client import Client
from editors.neovim.editor import Editor


def test_it_shows_what_is_there(vim: Editor, agent: Client) -> None:
    session = agent.session.create(name="fix the parser").session
    agent.task.create(session.id, "Reproduce it")
    agent.task.create(session.id, "Fix it", blocked_by=["1"])
    agent.plan.save("calm-running-fox", "# A plan\n")
    agent.roster.set_team(session.id, "parsers")
    agent.roster.upsert_member(session.id, {"name": "ada", "agent_type": "coder"})
    vim.command("Crewlog")
    vim.wait_for_row("#2 Fix it")
    vim.wait_for_row("ada")
    assert [line.rstrip() for line in vim.sidebar()] == [
        "▾ Tasks  0/2",
        "  ▾ fix the parser  0/2",
        "    ○ #1 Reproduce it",
        "    ◌ #2 Fix it  after #1",
        "▾ Sessions  1",
        "  » fix the parser  now",
        "▾ Plans  1",
        "  ≡ calm-running-fox  now",
        "▾ Team",
        "  ▾ parsers  1",
        "    @ ada  coder",
    ]
    buffer = vim.nvim.current.buffer
    assert buffer.options["filetype"] == "crewlog"
    assert buffer.options["buflisted"] is False
    assert buffer.options["modifiable"] is False


def test_a_change_of_another_process_appears(vim: Editor, agent: Client) -> None:
    agent.task.create("board", "Old")
    vim.command("Crewlog tasks")
    vim.wait_for_row("#1 Old")
    agent.task.create("board", "New")
    vim.wait_for_row("#2 New")
    agent.task.claim("board", "1", "ada")
    vim.wait_for_row("#1 Old  @ada")
    agent.task.update("board", "1", status="completed")
    vim.wait_for_row("● #1 Old")
    agent.task.delete("board", "1")
    vim.wait_gone("Old")
