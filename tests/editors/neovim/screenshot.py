"""Makes the picture in the README: the screen of a real Neovim with the plugin, cell by cell, as SVG."""

from __future__ import annotations

import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from crewlog.client import Client, NewEntry
from editors.neovim.editor import PLUGIN, Editor
from editors.neovim.screen import Screen

WIDTH, HEIGHT = 8.4, 18  # of a cell, in pixels


def svg(screen: Screen) -> str:
    """The cells with their colours; runs of equal attributes are one text each."""
    columns, lines = len(screen.rows[0]), len(screen.rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * WIDTH:.0f}" height="{lines * HEIGHT}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
        f'<rect width="100%" height="100%" fill="#{screen.background:06x}"/>',
    ]
    for y, row in enumerate(screen.rows):
        x = 0
        while x < columns:
            stop = x
            while stop < columns and row[stop][1] == row[x][1]:
                stop += 1
            look = screen.attributes.get(row[x][1], {})
            front, back = look.get("foreground", screen.foreground), look.get("background", screen.background)
            if look.get("reverse"):
                front, back = back, front
            text = "".join(cell for cell, _ in row[x:stop])
            if back != screen.background:
                out.append(
                    f'<rect x="{x * WIDTH:.1f}" y="{y * HEIGHT}" width="{(stop - x) * WIDTH:.1f}" height="{HEIGHT}" fill="#{back:06x}"/>'
                )
            if text.strip():
                style = ' font-weight="bold"' if look.get("bold") else ""
                style += ' font-style="italic"' if look.get("italic") else ""
                out.append(
                    f'<text x="{x * WIDTH:.1f}" y="{y * HEIGHT + 14}" fill="#{front:06x}" xml:space="preserve"'
                    f' textLength="{(stop - x) * WIDTH:.1f}"{style}>{escape(text)}</text>'
                )
            x = stop
    return "\n".join([*out, "</svg>\n"])


def picture(folder: Path) -> str:
    project = folder / "project"
    project.mkdir()
    with Client(home=str(folder / "home"), cwd=str(project)) as agent:
        session = agent.session.create(name="Parser: nested comments").session.id
        call = {"type": "tool_call", "tool_call": {"id": "c1", "name": "Bash", "args": {"command": "pytest tests/lexer -q"}}}

        def said(role: str, *blocks: dict[str, Any]) -> NewEntry:
            return NewEntry("message", {"role": role, "content": list(blocks)})

        agent.session.append(
            session,
            [
                said("user", {"type": "text", "text": "Comments inside comments end too early. Fix the lexer."}),
                said("assistant", {"type": "thinking", "thinking": "A counter of depth."}, {"type": "text", "text": "A test first."}, call),
                said("tool", {"type": "text", "text": "1 failed, 41 passed"}),
                said(
                    "assistant", {"type": "text", "text": "It fails as it should. Now the lexer counts how deep it is:\n\n- `/*` adds one"}
                ),
            ],
        )
        for subject, more in (
            ("Write a failing test", {}),
            ("Count the depth of comments", {}),
            ("Tell where a comment was opened", {"blocked_by": ["2"]}),
            ("Update the manual", {"blocked_by": ["2", "3"]}),
        ):
            agent.task.create(session, subject, **more)  # type: ignore[arg-type]
        agent.task.update(session, "1", status="completed")
        agent.task.claim(session, "2", "ada")
        agent.roster.set_team(session, "parsers")
        agent.roster.upsert_member(session, {"name": "ada", "agent_type": "coder"})
        agent.roster.upsert_member(session, {"name": "bob", "agent_type": "reviewer"})
        agent.plan.save("nested-comments", "# Nested comments\n")
        vim = Editor(folder / "nvim", folder / "home", project, size=(104, 26))
        try:
            vim.command("set termguicolors noshowcmd noruler")
            vim.command("Crewlog")
            vim.wait_for_row("@ bob")
            vim.wait_for_row("#4 ")
            vim.command("wincmd p")
            vim.command(f"edit crewlog://session/{session}")
            vim.wait_screen("adds one")
            vim.command("wincmd p")
            vim.go_to("#2 ")
            vim.settle()
            return svg(vim.screen)
        finally:
            vim.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        (PLUGIN / "screenshot.svg").write_text(picture(Path(made)), encoding="utf-8")
