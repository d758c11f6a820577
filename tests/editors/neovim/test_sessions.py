"""Sessions and transcripts in Markdown buffers."""

from __future__ import annotations

from typing import Any

import pytest

from crewlog.client import Client, NewEntry
from editors.neovim.editor import Editor

LOADED = """
local buf = vim.fn.bufnr(...)
local view = require("crewlog.session").views[buf]
return view and not view.busy and #view.entries or -1
"""


def said(role: str, *blocks: dict[str, Any], **more: Any) -> NewEntry:
    return NewEntry("message", {"role": role, "content": list(blocks), **more})


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def talk(agent: Client, session_id: str, first: int, count: int) -> None:
    agent.session.append(session_id, [said("user", words(f"Question {number}")) for number in range(first, first + count)])


def entries(vim: Editor, session_id: str) -> int:
    return int(vim.lua(LOADED, f"crewlog://session/{session_id}"))


def opened(vim: Editor, session_id: str) -> None:
    vim.command(f"edit crewlog://session/{session_id}")
    vim.wait("it is loaded", lambda: entries(vim, session_id) > 0)


@pytest.fixture
def session(agent: Client) -> str:
    return agent.session.create(name="fix the parser").session.id


def test_it_is_markdown_with_folded_tool_calls_and_thinking(vim: Editor, agent: Client, session: str) -> None:
    call = {"type": "tool_call", "tool_call": {"id": "c1", "name": "Bash", "args": {"command": "make test"}}}
    thinking = {"type": "thinking", "thinking": "Hm.\nLet me see."}
    agent.session.append(
        session,
        [
            said("user", words("Why does it **fail**?")),
            said("assistant", thinking, words("I run the tests."), call),
            said("tool", words("FAILED\n```\nno"), metadata={"tool_call_id": "c1", "is_error": True}),
            NewEntry("model_change", {"provider": "p", "model": "m-2"}),
        ],
    )
    opened(vim, session)
    vim.wait("its name is there", lambda: vim.lines()[0] == "# fix the parser")
    lines = vim.lines()
    assert vim.nvim.current.buffer.options["filetype"] == "markdown"
    assert vim.nvim.current.buffer.options["modifiable"] is False
    assert [line.split(" · ")[0] for line in lines if line.startswith("## ")] == ["## user", "## assistant"]
    assert "Why does it **fail**?" in lines
    assert "> Model: p m-2" in lines
    assert lines[lines.index("**Error** FAILED ``` no") + 1] == "````"  # its fence is longer than what it holds

    def folded(line: str) -> bool:
        return bool(vim.nvim.funcs.foldclosed(lines.index(line) + 1) > 0)

    assert folded("Let me see.")
    assert folded('  "command": "make test"')
    assert folded("FAILED")
    assert not folded("I run the tests.")
    vim.keys("gg")
    vim.wait_screen("Tool: Bash make test  (6 lines)")
    vim.keys("zR")
    vim.wait_screen('"command": "make test"')


def test_it_follows_where_the_end_is_shown_and_nowhere_else(vim: Editor, agent: Client, session: str) -> None:
    talk(agent, session, 0, 40)
    opened(vim, session)
    vim.command("split")
    vim.keys("gg")
    vim.wait("at the top", lambda: vim.nvim.current.window.cursor[0] == 1)
    talk(agent, session, 40, 1)
    vim.wait("it came", lambda: "Question 40" in vim.lines())
    upper, lower = vim.nvim.windows[:2]
    assert upper.cursor[0] == 1
    vim.wait("the other window is at the end", lambda: lower.cursor[0] == len(vim.lines()))


def test_only_pages_are_loaded(vim: Editor, agent: Client, session: str) -> None:
    for first in range(0, 20000, 4000):
        talk(agent, session, first, 4000)
    opened(vim, session)
    assert entries(vim, session) == 200
    assert "Question 19999" in vim.lines()
    assert "> … earlier entries: scroll up to load them" in vim.lines()
    assert "Question 19800" in vim.lines()
    vim.keys("gg")
    vim.wait("the page before", lambda: entries(vim, session) == 400)
    assert "Question 19600" in vim.lines()
    assert vim.lines()[vim.nvim.current.window.cursor[0] + 1] == "Question 19800"  # what was there stays on the screen
    vim.wait_screen("Question 19800")


def test_the_beginning_is_a_key_away(vim: Editor, agent: Client, session: str) -> None:
    talk(agent, session, 0, 6000)
    opened(vim, session)
    vim.keys("g[")
    vim.wait("all of it", lambda: entries(vim, session) == 6001)
    vim.wait("the cursor is there", lambda: vim.nvim.current.window.cursor[0] == 1)
    vim.wait_screen("Question 0")
    assert [line for line in vim.lines() if line.startswith("Question")] == [f"Question {number}" for number in range(6000)]


def test_the_whole_of_a_short_one_is_there(vim: Editor, agent: Client, session: str) -> None:
    talk(agent, session, 0, 450)
    opened(vim, session)
    for count in (400, 451):
        vim.keys("gg")
        vim.wait(f"{count} entries", lambda count=count: entries(vim, session) in (count, 451))  # type: ignore[misc]
        vim.keys("G")
    assert [line for line in vim.lines() if line.startswith("Question")] == [f"Question {number}" for number in range(450)]
    assert not any("earlier entries" in line for line in vim.lines())


def test_a_rewound_session_is_loaded_anew(vim: Editor, agent: Client, session: str) -> None:
    talk(agent, session, 0, 3)
    opened(vim, session)
    second = agent.session.entries(session).entries[-2].id
    agent.session.rewind(session, second)
    agent.session.append(session, [said("user", words("Another way"))])
    vim.wait("the other branch", lambda: "Another way" in vim.lines())
    vim.wait("what is on no branch is gone", lambda: "Question 2" not in vim.lines())


def test_an_entry_is_opened_as_it_is_stored(vim: Editor, agent: Client, session: str) -> None:
    big = "y" * 30000
    agent.session.append(session, [said("user", words(big), extra={"kept": True})])
    opened(vim, session)
    assert any("more bytes" in line for line in vim.lines())
    vim.keys("G<CR>")
    vim.wait("it is open", lambda: vim.nvim.current.buffer.options["filetype"] == "json")
    assert big in "".join(vim.lines())
    assert '      "kept": true' in vim.lines()


HOSTILE = "a\x1b[31mb\x00c\r\nd\u202ee\n```\n# not a heading of ours\n" + "z" * (1 << 20)


def test_hostile_texts(vim: Editor, agent: Client, session: str) -> None:
    name = "na\nme\x1b]0;title\x07" + "n" * (1 << 20)
    agent.session.set_name(session, name)
    agent.session.append(session, [said("us\ner", words(HOSTILE)), NewEntry("odd\nkind", {"a": 1})])
    vim.command("Crewlog")
    vim.wait_for_row("» na me␛]0;title␇nn")
    vim.keys("q")
    vim.wait("closed", lambda: len(vim.nvim.windows) == 1)
    opened(vim, session)
    lines = vim.lines()
    assert "\n" not in lines[0]
    assert len(lines[0]) < 300
    assert any(line.startswith("> odd kind") for line in lines)
    vim.keys("gg")
    vim.wait_screen("a^[[31mb^@c")  # as Neovim shows control characters
    assert "# not a heading of ours" in vim.lines()


def test_search_goes_to_the_entry(vim: Editor, agent: Client, session: str) -> None:
    talk(agent, session, 0, 600)
    agent.session.append(session, [said("user", words("the needle is here"))])
    talk(agent, session, 600, 600)
    vim.lua("vim.ui.select = function(items, opts, done) _G.shown = vim.tbl_map(opts.format_item, items); done(items[1], 1) end")
    vim.command("Crewlog search needle")
    vim.wait("it is opened there", lambda: vim.nvim.current.line.startswith("## user") and entries(vim, session) > 0)
    at = vim.nvim.current.window.cursor[0]
    assert vim.lines()[at + 1] == "the needle is here"
    assert entries(vim, session) < 601
    assert "needle" in vim.lua("return _G.shown[1]")
    vim.keys("G")
    vim.wait("what comes after is loaded too", lambda: "Question 750" in vim.lines())
    vim.command("Crewlog search nowhere")
    vim.wait_notified("nothing was found")


def test_a_transcript(vim: Editor, agent: Client) -> None:
    agent.task.create("board", "One")
    agent.roster.set_team("board", "crew")
    agent.roster.upsert_member("board", {"name": "ada l", "agent_type": "coder"})
    agent.transcript.append("board", "ada l", [{"role": "user", "content": [words(f"Message {number}")]} for number in range(300)])
    vim.command("Crewlog team")
    vim.go_to("@ ada l")
    vim.keys("<CR>")
    vim.wait("it is open", lambda: vim.nvim.current.buffer.name == "crewlog://transcript/board/ada%20l")
    vim.wait("its end is loaded", lambda: "Message 299" in vim.lines())
    assert "Message 99" not in vim.lines()
    vim.keys("gg")
    vim.wait("its beginning too", lambda: "Message 0" in vim.lines())


def test_one_that_is_not_there(vim: Editor) -> None:
    vim.command("edit crewlog://session/0badf00d")
    vim.wait("it says so", lambda: "0badf00d" in vim.lines()[0])
    vim.command("edit crewlog://nonsense")
    vim.wait_notified("there is nothing behind crewlog://nonsense")


def test_a_session_that_is_shown_is_opened_again_at_an_entry(vim: Editor, agent: Client, session: str) -> None:
    talk(agent, session, 1, 30)
    entry = agent.session.entries(session).entries[2].id  # the first is the name
    opened(vim, session)
    for _ in range(2):
        vim.lua('require("crewlog.session").open(...)', session, entry)
        vim.wait("it is at the entry", lambda: vim.lua("return vim.fn.getline(vim.fn.line('.') + 2)") == "Question 2")
        vim.lua('require("crewlog.client").request_sync("crewlog/status")')  # what it still asks for has been answered by now
        vim.settle()
        assert vim.lua("return vim.fn.getline(vim.fn.line('.') + 2)") == "Question 2", vim.picture()
        vim.keys("G")
        vim.wait("it is at the end", lambda: vim.lua("return vim.fn.line('.') == vim.fn.line('$')"))
