"""Coming and going: the sidebar as the last window, `:q`, `:qall`, and a Neovim without any configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.client import Client
from editors.neovim.editor import PATIENCE, PLUGIN, Editor, is_alive

Start = Callable[..., Editor]

WITHOUT_CONFIGURATION = """
local function shown()
  for _, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    if line:find("One", 1, true) then return line end
  end
end
vim.wait(%d, function() return shown() ~= nil end, 20)
io.stdout:write("shown:", shown() or "nothing", "\\n")
vim.cmd("qall")
"""


def leave(vim: Editor, keys: str) -> None:
    pid = vim.server_pid()
    vim.nvim.input(keys)
    vim.wait("Neovim ends", lambda: not is_alive(vim.pid))
    vim.wait("its server ends with it", lambda: not is_alive(pid))


def test_the_sidebar_may_be_the_last_window(vim: Editor, agent: Client) -> None:
    agent.task.create("board", "One")
    vim.command("Crewlog tasks")
    vim.wait_for_row("One")
    vim.command("wincmd p")
    vim.keys(":quit<CR>")
    vim.wait("one window is left", lambda: len(vim.nvim.windows) == 1)
    vim.go_to("One")
    vim.keys("<CR>")
    vim.wait("the task is opened beside it", lambda: len(vim.nvim.windows) == 2)
    vim.keys(":quit<CR>")
    vim.wait("one window is left", lambda: len(vim.nvim.windows) == 1)
    leave(vim, ":quit<CR>")


@pytest.mark.parametrize("command", ["qall", "xall", "wqall"])
def test_all_is_left_at_once(vim: Editor, agent: Client, command: str) -> None:
    agent.task.create("board", "One")
    vim.command("Crewlog tasks")
    vim.wait_for_row("One")
    leave(vim, f":{command}<CR>")


def test_without_any_configuration(agent: Client, home: Path, project: Path, tmp_path: Path) -> None:
    """As bug reports are made: `nvim -u NONE`, the folder on the runtime path, the plugin loaded by hand."""
    agent.task.create("board", "One")
    script = tmp_path / "look.lua"
    script.write_text(WITHOUT_CONFIGURATION % (PATIENCE * 1000))
    bare = ("nvim", "--headless", "-u", "NONE", "-i", "NONE", "--cmd", f"set runtimepath^={PLUGIN}")
    done = subprocess.run(
        [*bare, "-c", "runtime plugin/crewlog.lua", "-c", "Crewlog tasks", "-c", f"luafile {script}"],
        cwd=project,
        env={**os.environ, "HOME": str(tmp_path), "CREWLOG_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=True,
    )
    assert "shown:" in done.stdout
    assert "One" in done.stdout
    assert "Error" not in done.stderr + done.stdout
