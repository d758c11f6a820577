"""Plans, history, status line, windows and tab pages."""

from __future__ import annotations

import os
from pathlib import Path

from crewlog.client import Client, NewEntry
from editors.neovim.editor import Editor


def open_plan(vim: Editor, agent: Client) -> Path:
    agent.plan.save("parser", "one\n")
    vim.command("Crewlog plans")
    vim.go_to("≡ parser")
    vim.keys("<CR>")
    vim.wait("it is open", lambda: vim.nvim.current.buffer.name.endswith("/plans/parser.md"))
    return Path(vim.nvim.current.buffer.name)


def test_a_plan_that_is_not_touched_follows(vim: Editor, agent: Client) -> None:
    open_plan(vim, agent)
    vim.command("set autoread")
    agent.plan.save("parser", "two\nthree\n")
    vim.wait("it follows", lambda: vim.lines() == ["two", "three"])


def test_a_plan_with_a_newer_one_on_disk_asks(vim: Editor, agent: Client) -> None:
    path = open_plan(vim, agent)
    vim.keys("ccmine<Esc>")
    vim.wait("typed", lambda: vim.lines() == ["mine"])
    agent.plan.save("parser", "theirs, and longer\n")
    vim.wait_notified("plan parser was changed by somebody else")
    vim.keys(":write<CR>")
    vim.wait_asked("changed since reading it")
    vim.answer("n<CR>")
    assert path.read_text() == "theirs, and longer\n"
    assert vim.lines() == ["mine"]
    assert vim.nvim.current.buffer.options["modified"]
    vim.command("write!")
    assert path.read_text() == "mine\n"


def test_history_in_a_prompt_buffer(vim: Editor, agent: Client) -> None:
    for text in ("make tests", "fix it", "make docs"):
        agent.history.add(text)
    vim.lua(
        """vim.cmd.new()
        vim.bo.buftype = "prompt"
        vim.fn.prompt_setprompt(vim.api.nvim_get_current_buf(), "ask> ")
        require("crewlog").history.attach(0)"""
    )
    vim.keys("imake")
    vim.wait("typed", lambda: vim.lines()[-1] == "ask> make")
    vim.keys("<C-p>")
    vim.wait("the newest that begins so", lambda: vim.lines()[-1] == "ask> make docs")
    vim.keys("<C-p>")
    vim.wait("the one before", lambda: vim.lines()[-1] == "ask> make tests")
    vim.keys("<C-p>")
    vim.keys("<C-n>")
    vim.wait("newer", lambda: vim.lines()[-1] == "ask> make docs")
    vim.keys("<C-n>")
    vim.wait("what was typed", lambda: vim.lines()[-1] == "ask> make")


def test_history_is_picked(vim: Editor, agent: Client) -> None:
    agent.history.add("two\nlines")
    vim.lua("vim.ui.select = function(items, opts, done) done(items[1], 1) end")
    vim.command("Crewlog history")
    vim.wait("it stands there", lambda: vim.lines() == ["", "two", "lines"])


def test_the_status_line_follows(vim: Editor, agent: Client) -> None:
    agent.task.create("board", "One")
    agent.task.create("board", "Two")
    vim.command("set statusline=%{v:lua.require'crewlog'.statusline()}")
    vim.wait_screen("● 0/2")
    agent.task.update("board", "1", status="in_progress", owner="ada")
    vim.wait_screen("● 0/2 ◐ 1")
    agent.task.update("board", "1", status="completed")
    vim.wait_screen("● 1/2")
    vim.wait("nobody is at work", lambda: "◐" not in vim.lua('return require("crewlog").statusline()'))


def test_autocommands(vim: Editor, agent: Client) -> None:
    vim.lua(
        """_G.seen = {}
        vim.api.nvim_create_autocmd("User", { pattern = "Crewlog*", callback = function(args)
          _G.seen[args.match] = vim.tbl_keys(args.data)
        end })"""
    )
    vim.command("Crewlog")
    vim.wait("connected", lambda: "CrewlogConnected" in vim.lua("return _G.seen"))
    agent.task.create("board", "One")
    agent.session.create(name="x")
    agent.plan.save("p", "x")
    agent.roster.set_team("board", "crew")
    wanted = {"CrewlogTasksChanged", "CrewlogSessionsChanged", "CrewlogPlansChanged", "CrewlogTeamChanged"}
    vim.wait("all of them", lambda: wanted <= set(vim.lua("return _G.seen")))
    assert {"listId", "counts"} <= set(vim.lua("return _G.seen.CrewlogTasksChanged"))


def test_windows_and_tab_pages(vim: Editor, agent: Client, project: Path) -> None:
    (project / "code.py").write_text("x = 1\n")
    agent.task.create("board", "One")
    vim.command("edit code.py")
    vim.command("Crewlog")
    vim.wait_for_row("#1 One")
    vim.command("tabnew")
    vim.command("Crewlog")
    vim.command("tabprevious")
    vim.keys("q")
    vim.wait("closed here", lambda: len(vim.nvim.windows) == 3)
    agent.task.create("board", "Two")
    vim.wait_for_row("#2 Two")
    vim.command("tabonly")
    vim.command("Crewlog")
    vim.nvim.ui_try_resize(50, 12)
    vim.wait_for_row("#2 Two")
    vim.nvim.ui_try_resize(100, 30)
    vim.command("bdelete")
    vim.command("Crewlog")
    vim.wait_for_row("#2 Two")
    vim.command("bwipeout")
    vim.command("Crewlog")
    vim.wait_for_row("#2 Two")
    agent.task.create("board", "Three")
    vim.wait_for_row("#3 Three")
    vim.command("only")
    vim.keys("q")
    vim.wait("another buffer in the last window", lambda: vim.nvim.current.buffer.options["filetype"] != "crewlog")
    vim.command("edit code.py")
    assert vim.lines() == ["x = 1"]
    vim.command("Crewlog toggle")
    vim.wait_for_row("#3 Three")
    assert vim.notified() == []
    assert vim.nvim.vvars["errmsg"] == ""


def test_a_session_of_twenty_thousand_entries(vim: Editor, agent: Client, project: Path) -> None:
    """It opens in less time than Neovim needs for some times the whole as a file."""
    session = agent.session.create(name="long").session.id
    text = "A sentence or two of what was said, as long as such things are. " * 4
    for first in range(0, 20000, 5000):
        agent.session.append(
            session,
            [
                NewEntry("message", {"role": "user", "content": [{"type": "text", "text": f"{number} {text}"}]})
                for number in range(first, first + 5000)
            ],
        )
    info = agent.session.open(session_id=session).session
    (project / "log.md").write_bytes(Path(info.path).read_bytes())
    vim.lua('require("crewlog").request_sync("crewlog/status")')

    def spent(command: str, done: str) -> float:
        return float(
            vim.lua(
                """local command, done = ...
                local began = vim.uv.hrtime()
                vim.cmd(command)
                assert(vim.wait(60000, loadstring(done), 1))
                vim.cmd.redraw()
                return (vim.uv.hrtime() - began) / 1e9""",
                command,
                done,
            )
        )

    loaded = (
        'local view = require("crewlog.session").views[vim.api.nvim_get_current_buf()] return view and not view.busy and #view.entries > 0'
    )
    file = spent(f"edit {project}/log.md", "return vim.api.nvim_buf_line_count(0) > 20000")
    ours = spent(
        f"edit crewlog://session/{session}",
        loaded,
    )
    print(
        f"\n20,000 entries ({os.path.getsize(info.path) >> 20} MB): opened in {ours * 1000:.0f} ms; the log as a file {file * 1000:.0f} ms"
    )
    assert ours < 40 * file  # all of it would take far longer; the machine may be busy
    for _ in range(3):
        vim.command("bwipeout")
        ours = min(ours, spent(f"edit crewlog://session/{session}", loaded))
    assert ours < 10 * file
    assert vim.lines()[-2].startswith("19999 ")
