"""Live search in telescope, fzf-lua and snacks.nvim.

Stand-ins with the same call shapes are always there; CREWLOG_TEST_PLUGINS, a folder with clones of telescope.nvim, plenary.nvim and
snacks.nvim, adds the real ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.client import Client, NewEntry
from editors.neovim.editor import Editor

TELESCOPE = """
_G.chosen = function(how) _G.act("prompt", how) end
local modules = {
  telescope = { register_extension = function(extension) return extension end },
  ["telescope.actions"] = { close = function() _G.finder:close(); _G.closed = true end },
  ["telescope.actions.state"] = { get_selected_entry = function() return _G.rows[1] end },
  ["telescope.actions.set"] = { select = { replace = function(_, act) _G.act = act end } },
  ["telescope.sorters"] = { empty = function() return {} end },
  ["telescope.pickers"] = { new = function(opts, defaults)
    return { find = function()
      _G.finder = defaults.finder
      assert(defaults.attach_mappings())
      _G.type_in = function(text)
        local rows = {}
        defaults.finder(text, function(row) table.insert(rows, row) end, function()
          _G.rows, _G.answered = rows, text
          _G.lines = vim.tbl_map(function(row) return row.display end, rows)
        end)
      end
      _G.type_in(defaults.default_text or "")
    end }
  end },
}
"""
FZF_LUA = """
_G.chosen = function(how)
  local keys = { default = "enter", horizontal = "ctrl-s" }
  _G.opts.actions[keys[how]]({ _G.rows[1] }, _G.opts)
end
local modules = {
  ["fzf-lua"] = { fzf_live = function(contents, opts)
    _G.opts = opts
    _G.type_in = function(text)
      local rows, ended = {}, false
      contents({ text })(function(line)
        assert(not ended or line == nil, "a line after the end")
        if line then return table.insert(rows, line) end
        if not ended then
          _G.finished = (_G.finished or 0) + 1
        end
        ended = true
        if text == _G.typed then
          _G.rows, _G.answered = rows, text
          _G.lines = vim.tbl_map(function(row) return row:match("\\t(.*)") end, rows)
        end
      end)
    end
    local type_in = _G.type_in
    _G.type_in = function(text) _G.typed = text; type_in(text) end
    _G.type_in(opts.query or "")
  end },
}
"""
SNACKS = """
_G.Snacks = {}
local running
_G.chosen = function(how)
  _G.source.confirm({ close = function() _G.source.on_close(); _G.closed = true end }, _G.rows[1],
    { cmd = how == "horizontal" and "split" or nil })
end
local modules
modules = {
  ["snacks.picker.config.sources"] = {},
  ["snacks.picker.util.async"] = { running = function() return running end },
  snacks = { picker = { pick = function(source)
    _G.source = source
    _G.type_in = function(text)
      local rows = {}
      local function done()
        _G.rows, _G.answered = rows, text
        _G.lines = vim.tbl_map(function(row) return source.format(row)[1][1] end, rows)
      end
      local found = source.finder(source, { filter = { search = text } })
      if type(found) == "table" then rows = found return done() end
      local task = {}
      local co = coroutine.create(function() found(function(row) table.insert(rows, row) end) done() end)
      local function step() running = task assert(coroutine.resume(co)) end
      function task.suspend() coroutine.yield() end
      task.resume = vim.schedule_wrap(step)
      vim.uv.new_timer():start(0, 0, step) -- a fast context, as in the real one
    end
    _G.type_in(source.search or "")
  end } },
}
"""
STAND_INS = {"telescope": TELESCOPE, "fzf-lua": FZF_LUA, "snacks": SNACKS}
PRELOAD = "for name, module in pairs(modules) do package.preload[name] = function() return module end end"

Begin = Callable[..., Editor]


def with_picker(start: Begin, name: str, option: str = "") -> Editor:
    return start(setup=f'{{ picker = "{option or name}" }}', before=f"lua << END\n{STAND_INS[name]}\n{PRELOAD}\nEND")


def say(agent: Client, text: str, name: str = "s") -> str:
    session = agent.session.create(name=name).session.id
    agent.session.append(session, [NewEntry("message", {"role": "user", "content": [{"type": "text", "text": text}]})])
    return session


def answered(vim: Editor, query: str) -> list[str]:
    vim.wait(f"{query!r} is answered", lambda: vim.lua("return _G.answered") == query)
    return list(vim.lua("return _G.lines"))


@pytest.mark.parametrize("name", STAND_INS)
def test_live_search_opens_the_entry(start: Begin, agent: Client, name: str) -> None:
    session = say(agent, "the needle is here")
    say(agent, "a haystack")
    vim = with_picker(start, name)
    vim.command("Crewlog search")
    assert answered(vim, "") == []
    vim.lua('_G.type_in("haystack")')
    assert ["haystack" in line for line in answered(vim, "haystack")] == [True]
    vim.lua('_G.type_in("needle")')
    assert ["needle" in line for line in answered(vim, "needle")] == [True]
    windows = len(vim.nvim.windows)
    vim.lua('_G.chosen("horizontal")')
    vim.wait("it is opened", lambda: vim.nvim.current.buffer.name == f"crewlog://session/{session}")
    assert len(vim.nvim.windows) == windows + 1
    vim.wait("at the entry", lambda: vim.nvim.current.line.startswith("## user"))
    assert vim.notified() == []


@pytest.mark.parametrize("name", STAND_INS)
def test_the_last_question_wins(start: Begin, agent: Client, name: str) -> None:
    say(agent, "one")
    say(agent, "two")
    vim = with_picker(start, name)
    vim.command("Crewlog search one")
    vim.lua('for _ = 1, 20 do _G.type_in("one") end _G.type_in("two")')
    lines = answered(vim, "two")
    assert len(lines) == 1
    assert "two" in lines[0]
    vim.lua('require("crewlog").request_sync("crewlog/status")')  # what was asked before has been answered by now
    assert vim.lua("return _G.answered") == "two"
    if name == "fzf-lua":
        assert vim.lua("return _G.finished") == 22  # each of its pipes is closed, once


@pytest.mark.parametrize("name", STAND_INS)
def test_hostile_text_is_one_line(start: Begin, agent: Client, name: str) -> None:
    say(agent, "needle\n\x1b[31mred\ttab\x00\u202eend", name="bad\nname\x1b]0;x\x07\t")
    vim = with_picker(start, name)
    vim.command("Crewlog search needle")
    lines = answered(vim, "needle")
    assert len(lines) == 1
    assert not set(lines[0]) & {"\n", "\r", "\t", "\x1b", "\x07", "\x00", "\u202e"}


@pytest.mark.parametrize("name", STAND_INS)
def test_an_error_is_told_once(start: Begin, agent: Client, name: str) -> None:
    vim = start(
        setup=f'{{ picker = "{name}", cmd = {{ "no-such-program" }} }}',
        before=f"lua << END\n{STAND_INS[name]}\n{PRELOAD}\nEND",
    )
    vim.command("Crewlog search one")
    assert answered(vim, "one") == []
    told = len(vim.notified())
    vim.lua('_G.type_in("two")')
    assert answered(vim, "two") == []
    assert len(vim.notified()) == told


@pytest.mark.parametrize("name", STAND_INS)
def test_auto_takes_what_is_there(start: Begin, agent: Client, name: str) -> None:
    say(agent, "needle")
    vim = with_picker(start, name, "auto")
    vim.command("Crewlog search needle")
    assert len(answered(vim, "needle")) == 1
    vim.command("checkhealth crewlog")
    assert f"searches are shown in {name}" in "\n".join(vim.lines())


def test_a_picker_that_is_not_there(start: Begin, agent: Client) -> None:
    say(agent, "needle")
    vim = start(setup='{ picker = "telescope" }')
    vim.lua("vim.ui.select = function(items, opts, done) _G.count = #items end")
    vim.command("Crewlog search needle")
    vim.wait_notified('picker = "telescope", but it is not installed')
    vim.wait("vim.ui.select serves", lambda: vim.lua("return _G.count") == 1)


def test_a_wrong_picker_is_refused(vim: Editor) -> None:
    ok, why = vim.lua('return { pcall(require("crewlog").setup, { picker = "tele" }) }')
    assert not ok
    assert 'picker must be "select", "auto", "telescope", "fzf-lua" or "snacks", not "tele"' in why


def test_the_telescope_extension(start: Begin, agent: Client) -> None:
    say(agent, "needle")
    vim = with_picker(start, "telescope")
    vim.lua('require("telescope._extensions.crewlog").exports.crewlog({ query = "needle" })')
    assert len(answered(vim, "needle")) == 1


def test_the_source_of_snacks_is_registered(start: Begin) -> None:
    vim = with_picker(start, "snacks")
    assert vim.lua('return require("snacks.picker.config.sources").crewlog.live') is True


PLUGINS = os.environ.get("CREWLOG_TEST_PLUGINS", "")
REAL = {"telescope": ("telescope.nvim", "plenary.nvim"), "snacks": ("snacks.nvim",)}


@pytest.mark.parametrize("name", REAL)
def test_the_real_plugin(start: Begin, agent: Client, name: str) -> None:
    folders = [Path(PLUGINS) / folder for folder in REAL[name]]
    if not PLUGINS or not all(folder.is_dir() for folder in folders):
        pytest.skip(f"CREWLOG_TEST_PLUGINS names no folder with clones of {' and '.join(REAL[name])}")
    session = say(agent, "the needle is here")
    before = "".join(f"set rtp+={folder}\n" for folder in folders)
    if name == "snacks":
        before += 'lua require("snacks").setup({})\n'
    vim = start(setup=f'{{ picker = "{name}" }}', before=before)
    vim.command("Crewlog search")
    vim.wait_screen("Search sessions")
    vim.keys("needle")
    vim.wait_screen("«needle»")
    vim.keys("<CR>")
    vim.wait("it is opened", lambda: vim.nvim.current.buffer.name == f"crewlog://session/{session}")
