"""Each key of the sidebar."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlog.client import Client
from editors.neovim.editor import Editor


@pytest.fixture
def board(vim: Editor, agent: Client) -> Editor:
    """The sidebar with a list of three tasks, the third waiting for the first."""
    agent.task.create("board", "One")
    agent.task.create("board", "Two")
    agent.task.create("board", "Three", blocked_by=["1"])
    vim.command("Crewlog")
    vim.wait_for_row("#3 Three")
    return vim


def answer(vim: Editor, text: str) -> None:
    """What the user will type at the next `vim.ui.input` or pick by its beginning at `vim.ui.select`."""
    vim.lua(
        """local text = ...
        vim.ui.input = function(opts, done) _G.asked = opts; done(text) end
        vim.ui.select = function(items, opts, done)
          _G.asked = opts
          for i, item in ipairs(items) do
            if opts.format_item(item):find(text, 1, true) then return done(item, i) end
          end
          error("there is no choice " .. text)
        end""",
        text,
    )


def test_claim_release_complete_reopen(board: Editor, agent: Client) -> None:
    board.go_to("#1 One")
    board.keys("c")
    board.wait_for_row("◐ #1 One  @me")
    assert agent.task.get("board", "1").owner == "me"  # type: ignore[union-attr]
    board.keys("u")
    board.wait_for_row("○ #1 One")
    board.wait("given back", lambda: not agent.task.get("board", "1").owner)  # type: ignore[union-attr]
    board.keys("x")
    board.wait_for_row("● #1 One")
    board.wait_for_row("○ #3 Three")
    board.keys("X")
    board.wait_for_row("○ #1 One")
    board.wait_for_row("◌ #3 Three  after #1")


def test_a_claim_that_is_refused_is_told(board: Editor) -> None:
    board.go_to("#3 Three")
    board.keys("c")
    board.wait_notified("task 3 waits for 1")
    assert "◌ #3 Three  after #1" in board.sidebar()[4]


def test_what_another_holds_is_released_only_after_a_question(board: Editor, agent: Client) -> None:
    agent.task.claim("board", "2", "ada")
    board.wait_for_row("@ada")
    board.go_to("#2 Two")
    board.keys("un")
    board.go_to("#1 One")
    assert agent.task.get("board", "2").owner == "ada"  # type: ignore[union-attr]
    board.go_to("#2 Two")
    board.keys("uy")
    board.wait_gone("@ada")


def test_add(board: Editor, agent: Client) -> None:
    board.go_to("#1 One")
    answer(board, "Four")
    board.keys("a")
    board.wait_for_row("#4 Four")
    board.wait("the cursor goes to it", lambda: "Four" in board.nvim.current.line)


def test_the_first_task_of_all_makes_a_list(vim: Editor, agent: Client) -> None:
    vim.command("Crewlog tasks")
    vim.wait_for_row("none yet: `a` adds one")
    answer(vim, "chores")
    vim.keys("a")
    vim.wait_for_row("#1 chores")
    assert [task.subject for task in agent.task.list("chores").items] == ["chores"]


def test_rename(board: Editor, agent: Client) -> None:
    board.go_to("#2 Two")
    answer(board, "Second")
    board.keys("r")
    board.wait_for_row("#2 Second")
    assert board.lua("return _G.asked.default") == "Two"


def test_delete_asks_first(board: Editor, agent: Client) -> None:
    board.go_to("#2 Two")
    board.keys("dn")
    board.wait_screen("Two")
    assert agent.task.get("board", "2") is not None
    board.keys("dy")
    board.wait_gone("Two")
    assert agent.task.get("board", "2") is None


def test_blockers(board: Editor, agent: Client) -> None:
    board.go_to("#2 Two")
    answer(board, "#3")
    board.keys("b")
    board.wait_for_row("◌ #2 Two  after #3")
    answer(board, "[x] #3")
    board.keys("b")
    board.wait_for_row("○ #2 Two")
    board.go_to("#1 One")
    answer(board, "#3")
    board.keys("b")
    board.wait_notified("1 -> 3 -> 1")  # it would wait for what waits for it
    board.wait_for_row("○ #1 One")


def test_completed_tasks_can_be_hidden(board: Editor, agent: Client) -> None:
    agent.task.update("board", "1", status="completed")
    board.wait_for_row("● #1 One")
    board.keys("H")
    board.wait_gone("#1 One")
    board.wait_for_row("1 completed")
    board.keys("H")
    board.wait_for_row("● #1 One")


def test_sessions_are_renamed_deleted_and_brought_back(vim: Editor, agent: Client) -> None:
    session = agent.session.create(name="first").session
    vim.command("Crewlog sessions")
    vim.go_to("» first")
    answer(vim, "second")
    vim.keys("r")
    vim.go_to("» second")
    vim.keys("dy")
    vim.wait_gone("» second")
    vim.wait_notified("U")
    vim.keys("U")
    vim.wait_for_row("» second")
    assert agent.session.open(session_id=session.id).session.name == "second"


def test_a_session_is_added(vim: Editor, agent: Client) -> None:
    vim.command("Crewlog sessions")
    vim.wait_for_row("none yet in this folder")
    answer(vim, "night shift")
    vim.keys("a")
    vim.wait_for_row("» night shift")


def test_plans_are_added_renamed_and_deleted(vim: Editor, agent: Client) -> None:
    vim.command("Crewlog plans")
    vim.wait_for_row("none yet: `a` adds one")
    vim.keys("]]")
    vim.go_to("Plans")
    answer(vim, "parser")
    vim.keys("a")
    vim.wait("the file is open", lambda: vim.nvim.current.buffer.name.endswith("/plans/parser.md"))
    assert vim.nvim.current.buffer.options["buftype"] == ""
    vim.keys("i# Parser<Esc>:w<CR>")
    vim.wait("it is saved", lambda: agent.plan.load("parser").content == "# Parser\n")
    vim.command("Crewlog")
    vim.go_to("≡ parser")
    answer(vim, "lexer")
    vim.keys("r")
    vim.wait_for_row("≡ lexer")
    vim.wait_gone("≡ parser")
    assert agent.plan.load("lexer").content == "# Parser\n"
    vim.wait("its window shows the new file", lambda: any(w.buffer.name.endswith("/plans/lexer.md") for w in vim.nvim.windows))
    vim.go_to("≡ lexer")
    vim.keys("d")
    vim.wait_screen("Delete plan lexer?")
    vim.keys("y")
    vim.wait_gone("≡ lexer")


def test_a_member_is_added_and_removed(board: Editor, agent: Client) -> None:
    agent.roster.set_team("board", "crew")
    board.go_to("▾ crew")
    answer(board, "ada")
    board.keys("a")
    board.wait_for_row("@ ada")
    agent.task.claim("board", "1", "ada")
    board.wait_for_row("@ ada  ada  #1")
    board.go_to("@ ada")
    board.keys("dy")
    board.wait_gone("@ ada")


def test_folding(board: Editor) -> None:
    board.go_to("#2 Two")
    board.keys("zc")
    board.wait_gone("#2 Two")
    assert "▸ board" in board.nvim.current.line
    board.keys("zo")
    board.wait_for_row("#2 Two")
    board.keys("zM")
    board.wait("only sections", lambda: len(board.sidebar()) == 4)
    board.keys("zRzR")
    board.wait_for_row("#2 Two")
    board.go_to("▾ Sessions")
    board.keys("<CR>")
    board.wait_for_row("▸ Sessions")
    board.keys("[[")
    assert "Tasks" in board.wait("the section above", lambda: board.nvim.current.line if "Tasks" in board.nvim.current.line else "")
    board.keys("]]]]")
    board.wait("two sections on", lambda: "Plans" in board.nvim.current.line)


def test_close_and_open_again_keep_cursor_and_folds(board: Editor) -> None:
    board.go_to("Sessions")
    board.keys("za")
    board.wait_for_row("▸ Sessions")
    board.go_to("#2 Two")
    board.keys("q")
    board.wait("closed", lambda: len(board.nvim.windows) == 1)
    board.command("Crewlog")
    board.wait_for_row("▸ Sessions")
    assert "#2 Two" in board.nvim.current.line


def test_help_and_details(board: Editor) -> None:
    board.keys("?")
    board.wait_screen("hide or show completed tasks")
    board.keys("q")
    board.go_to("#3 Three")
    board.keys("K")
    board.wait_screen("waits for    #1")
    board.keys("<Esc>")
    board.wait("closed", lambda: len(board.nvim.windows) == 2)


def test_yank_takes_the_id(board: Editor) -> None:
    board.go_to("#3 Three")
    board.keys("y")
    board.wait("yanked", lambda: board.nvim.funcs.getreg('"') == "3")


def test_every_key_has_an_action_and_applies_or_says_that_it_does_not(board: Editor) -> None:
    keys = board.lua('return require("crewlog.sidebar.actions").keys()')
    actions = set(board.lua('return vim.tbl_keys(require("crewlog.sidebar.actions").actions)'))
    assert {name for _, name in keys} == actions
    maps = {m["lhs"] for m in board.nvim.api.buf_get_keymap(board.nvim.current.buffer, "n")}
    assert {key.lower() for key, _ in keys} == {lhs.lower() for lhs in maps}
    board.go_to("▾ Sessions")
    for key in "rdeux":
        board.keys(key)
    board.wait("five messages", lambda: sum("not on this line" in message for message in board.notified()) == 5)


def test_it_opens_beside_the_file_and_not_in_the_sidebar(board: Editor, project: Path) -> None:
    board.go_to("#1 One")
    board.keys("<CR>")
    board.wait("the task is open", lambda: board.nvim.current.buffer.name == "crewlog://task/board/1")
    assert len(board.nvim.windows) == 2
    board.command("wincmd p")
    board.keys("<C-v>")
    board.wait("a second window", lambda: len(board.nvim.windows) == 3)
    board.command("Crewlog")
    board.keys("<C-t>")
    board.wait("a tab page", lambda: len(board.nvim.tabpages) == 2)


def test_keys_can_be_changed(start: type[Editor], agent: Client) -> None:
    vim = start(setup="{ sidebar = { keys = { d = false, D = 'delete' } } }")  # type: ignore[call-arg]
    vim.command("Crewlog")
    maps = {m["lhs"] for m in vim.nvim.api.buf_get_keymap(vim.nvim.current.buffer, "n")}
    assert "D" in maps
    assert "d" not in maps
