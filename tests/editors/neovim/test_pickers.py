"""Live search in telescope, fzf-lua and snacks.nvim.

Stand-ins that call as the real ones do are always there; CREWLOG_TEST_PLUGINS, a folder with clones of telescope.nvim, plenary.nvim,
fzf-lua and snacks.nvim, adds the real ones.
"""

from __future__ import annotations

import os
import shutil
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
  ["telescope.actions.state"] = { get_selected_entry = function() return _G.selected end }, -- that of any picker
  ["telescope.actions.set"] = { select = { replace = function(_, act) _G.act = act end } },
  ["telescope.sorters"] = { empty = function() return {} end },
  ["telescope.pickers"] = { new = function(opts, defaults)
    return { find = function()
      local last, sorting = 0, false
      _G.finder = defaults.finder
      assert(defaults.attach_mappings())
      _G.type_in = function(text)
        last = last + 1
        local mine = last
        vim.schedule(function()
          if mine ~= last then return end
          local rows = {}
          sorting = true
          defaults.finder(text, function(row)
            if mine ~= last then return true end
            if row and sorting then table.insert(rows, row) end
          end, vim.schedule_wrap(function()
            sorting = false -- whatever was asked meanwhile
            if mine ~= last then return end
            _G.rows, _G.answered, _G.selected = rows, text, rows[1]
            _G.lines = vim.tbl_map(function(row) return row.display end, rows)
          end))
        end)
      end
      _G.type_in(defaults.default_text or "")
    end }
  end },
}
"""
FZF_LUA = """
local old = false
_G.chosen = function(how)
  local keys = { default = "enter", horizontal = "ctrl-s" }
  _G.opts.actions[keys[how]]({ _G.rows[1] }, _G.opts)
end
local modules = {
  ["fzf-lua"] = { fzf_live = function(contents, opts)
    _G.opts = opts
    local function ask(text)
      local rows, ended = {}, false
      local co
      local function put(line)
        if old and opts.func_async_callback ~= false then
          assert(not ended, "the pipe is closed")
          assert(not line or coroutine.running() == co, "attempt to yield outside a coroutine")
        end
        assert(not ended or line == nil, "a line after the end")
        if line then return table.insert(rows, line) end
        if not ended then
          _G.finished = (_G.finished or 0) + 1
        end
        ended = true
        if text == _G.typed then
          _G.rows, _G.answered = rows, text
          _G.lines = vim.tbl_map(function(row) return row:match("^%d+" .. opts.fzf_opts["--delimiter"] .. "(.*)") end, rows)
        end
      end
      coroutine.wrap(function()
        co = coroutine.running()
        contents(old and text or { text })(put)
      end)()
    end
    _G.type_in = function(text) _G.typed = text; ask(text) end
    if opts.query or opts.exec_empty_query then
      _G.type_in(opts.query or "")
    else
      _G.answered, _G.lines = "", {}
    end
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
  snacks = { picker = { pick = function(name, opts)
    local source = vim.tbl_deep_extend("force", modules["snacks.picker.config.sources"][name], _G.of_user or {}, opts)
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
STAND_INS = {
    "telescope": TELESCOPE,
    "fzf-lua": FZF_LUA,
    "fzf-lua of 2024": FZF_LUA.replace("old = false", "old = true"),
    "snacks": SNACKS,
}
PRELOAD = "for name, module in pairs(modules) do package.preload[name] = function() return module end end"

Begin = Callable[..., Editor]


def option_of(name: str) -> str:
    return name.removesuffix(" of 2024")


def with_picker(start: Begin, name: str, option: str = "", more: str = "") -> Editor:
    setup = f'{{ picker = "{option or option_of(name)}"{more} }}'
    return start(setup=setup, before=f"lua << END\n{STAND_INS[name]}\n{PRELOAD}\nEND")


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
    if option_of(name) == "fzf-lua":
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
    vim = with_picker(start, name, more=', cmd = { "no-such-program" }')
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
    assert f"searches are shown in {option_of(name)}" in "\n".join(vim.lines())


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


def test_telescope_is_not_told_of_a_late_end(start: Begin, agent: Client) -> None:
    """It would take the end for that of what was asked meanwhile, and drop what is found for that."""
    say(agent, "needle")
    vim = with_picker(start, "telescope")
    vim.lua(
        """local search = require("crewlog.search")
        local query = search.query
        search.query = function(text, opts, done)
          if text ~= "slow" then return query(text, opts, done) end
          _G.late = done
          return function() end
        end"""
    )
    vim.command("Crewlog search slow")
    vim.wait("it is asked", lambda: vim.lua("return _G.late ~= nil"))
    vim.lua('_G.type_in("needle") _G.late(nil, {})')
    assert len(answered(vim, "needle")) == 1


def test_telescope_opens_nothing_that_another_picker_had_selected(start: Begin) -> None:
    vim = with_picker(start, "telescope")
    vim.lua('_G.selected = { value = "README.md", display = "README.md", ordinal = "README.md" }')
    vim.lua('require("crewlog.search").query = function() return function() end end')
    vim.command("Crewlog search needle")
    vim.lua('_G.chosen("default")')
    assert vim.lua("return _G.closed") is True
    assert len(vim.nvim.buffers) == 1


def test_telescope_gives_its_quickfix_list_names(start: Begin, agent: Client) -> None:
    session = say(agent, "needle")
    vim = with_picker(start, "telescope")
    vim.command("Crewlog search needle")
    assert len(answered(vim, "needle")) == 1
    assert vim.lua("return { _G.rows[1].filename, _G.rows[1].text == _G.rows[1].display }") == [f"crewlog://session/{session}", True]


def test_the_source_of_snacks_is_registered(start: Begin) -> None:
    vim = with_picker(start, "snacks")
    assert vim.lua('return require("snacks.picker.config.sources").crewlog.live') is True


def test_what_the_user_has_set_for_the_source_of_snacks_holds(start: Begin, agent: Client) -> None:
    say(agent, "needle")
    vim = with_picker(start, "snacks")
    vim.lua('_G.of_user = { title = "Mine" }')
    vim.command("Crewlog search needle")
    assert len(answered(vim, "needle")) == 1
    assert vim.lua("return _G.source.title") == "Mine"


def test_a_snacks_without_a_picker(start: Begin, agent: Client) -> None:
    say(agent, "needle")
    vim = start(setup='{ picker = "auto" }', before="lua _G.Snacks = {} package.preload.snacks = function() return Snacks end")
    vim.lua("vim.ui.select = function(items) _G.count = #items end")
    vim.command("Crewlog search needle")
    vim.wait("vim.ui.select serves", lambda: vim.lua("return _G.count") == 1)
    assert vim.notified() == []
    assert vim.nvim.funcs.execute("messages").strip() == ""


PLUGINS = os.environ.get("CREWLOG_TEST_PLUGINS", "")
REAL = {"telescope": ("telescope.nvim", "plenary.nvim"), "fzf-lua": ("fzf-lua",), "snacks": ("snacks.nvim",)}
SPLIT = {"telescope": "<C-x>", "fzf-lua": "<C-s>", "snacks": "<C-s>"}


def with_plugin(start: Begin, name: str) -> Editor:
    folders = [Path(PLUGINS) / folder for folder in REAL[name]]
    if not PLUGINS or not all(folder.is_dir() for folder in folders):
        pytest.skip(f"CREWLOG_TEST_PLUGINS names no folder with clones of {' and '.join(REAL[name])}")
    if name == "fzf-lua" and not shutil.which("fzf"):
        pytest.skip("fzf is not installed")
    before = "".join(f"set rtp+={folder}\n" for folder in folders)
    if name == "snacks":
        before += 'lua require("snacks").setup({})\n'
    return start(setup=f'{{ picker = "{name}" }}', before=before)


def wait_opened(vim: Editor, session: str) -> None:
    vim.wait("it is opened", lambda: vim.nvim.funcs.bufname() == f"crewlog://session/{session}")
    vim.wait("at the entry", lambda: vim.nvim.current.line.startswith("## user"))
    vim.wait("in normal mode", lambda: vim.nvim.api.get_mode()["mode"] == "n")


@pytest.mark.parametrize("name", REAL)
def test_the_real_plugin(start: Begin, agent: Client, name: str) -> None:
    session = say(agent, "the needle is here: with:colons")
    other = say(agent, "hay")
    vim = with_plugin(start, name)
    vim.command("Crewlog search")
    vim.wait_screen("Search sessions")
    for key in "needle":  # one by one, as they are typed
        vim.keys(key)
    vim.wait_screen("«needle»")
    vim.keys("<CR>")
    wait_opened(vim, session)
    vim.command("Crewlog search hay")
    vim.wait_screen("«hay»")
    vim.keys(SPLIT[name])
    wait_opened(vim, other)
    vim.wait("the picker is closed", lambda: len(vim.nvim.windows) == 2)
    assert vim.notified() == []
    assert vim.nvim.funcs.execute("messages").strip() == ""
