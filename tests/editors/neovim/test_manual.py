"""The manual, the command's completion, and each file of the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlog.client import Client
from editors.neovim.editor import PLUGIN, Editor

FILES = sorted(str(path.relative_to(PLUGIN)) for path in PLUGIN.rglob("*.lua"))


def test_the_manual_has_tags_and_all_that_is_there(vim: Editor, tmp_path: Path) -> None:
    (tmp_path / "rtp" / "doc").mkdir(parents=True)
    text = (PLUGIN / "doc" / "crewlog.txt").read_text()
    (tmp_path / "rtp" / "doc" / "crewlog.txt").write_text(text)
    vim.command(f"helptags {tmp_path}/rtp/doc")  # raises where a tag is there twice
    tags = {line.split("\t")[0] for line in (tmp_path / "rtp" / "doc" / "tags").read_text().splitlines()}
    commands = set(vim.lua('return vim.tbl_keys(require("crewlog.command").commands)'))
    assert {f":Crewlog-{name}" for name in commands} <= tags
    groups = set(vim.lua('return vim.tbl_keys(require("crewlog.highlights").LINKS)'))
    assert {f"hl-{group}" for group in groups} <= tags
    plugs = {m["lhs"] for m in vim.nvim.api.get_keymap("n") if m["lhs"].startswith("<Plug>(crewlog")}
    assert plugs
    assert plugs <= tags
    api = {name for name in vim.lua('return vim.tbl_keys(require("crewlog"))') if name != "setup"}
    assert {f"crewlog.{name}()" for name in api} <= tags
    for key, action in vim.lua('return require("crewlog.sidebar.actions").KEYS'):
        assert any(line.split()[:2] == [key, action] for line in text.splitlines()), key
    links = {part for line in text.splitlines() for part in line.split("|")[1::2] if part.startswith("crewlog-")}
    assert links <= tags
    assert max(len(line) for line in text.splitlines()) <= 110
    vim.command(f"set rtp^={tmp_path}/rtp")
    vim.command("help crewlog-setup")
    assert vim.nvim.current.buffer.name.endswith("crewlog.txt")


@pytest.mark.parametrize("file", FILES)
def test_no_file_sets_a_global(vim: Editor, file: str) -> None:
    """Each file compiles, and no instruction in it (or in a function in it) writes a global."""
    written = vim.lua(
        """local file = ...
        local util, found = require("jit.util"), {}
        local vmdef = require("jit.vmdef")
        local function look(fn)
          local pc = 1
          while true do
            local ins = util.funcbc(fn, pc)
            if not ins then break end
            local op = vmdef.bcnames:sub((ins % 256) * 6 + 1, (ins % 256) * 6 + 6):gsub(" ", "")
            if op == "GSET" then table.insert(found, util.funck(fn, -math.floor(ins / 65536) - 1)) end
            pc = pc + 1
          end
          local k = -1
          while true do
            local const = util.funck(fn, k)
            if const == nil then break end
            if type(const) == "proto" then look(const) end
            k = k - 1
          end
        end
        look(assert(loadfile(file)))
        return found""",
        str(PLUGIN / file),
    )
    assert list(written) == []


def test_completion(vim: Editor, agent: Client) -> None:
    session = agent.session.create(name="one").session.id
    agent.task.create("board", "One")
    vim.command("Crewlog")
    vim.wait_for_row("#1 One")
    vim.wait_for_row("» one")

    def complete(line: str) -> list[str]:
        return list(vim.nvim.funcs.getcompletion(line, "cmdline"))

    assert {"tasks", "sessions", "plans", "team", "history", "health"} <= set(complete("Crewlog "))
    assert complete("Crewlog he") == ["health"]
    assert complete("Crewlog session ") == [session]
    assert complete("Crewlog new b") == ["board"]
    assert complete("Crewlog tasks x") == []
    vim.command("Crewlog nonsense")
    vim.wait_notified("there is no :Crewlog nonsense; known are")
