"""What Neovim draws: the cells of its screen, from the events of an attached UI (`:help ui-linegrid`)."""

from __future__ import annotations

from typing import Any


class Screen:
    """`rows` of cells, each a text and the number of its attributes in `attributes`."""

    def __init__(self, width: int, height: int) -> None:
        self.rows: list[list[tuple[str, int]]] = []
        self.attributes: dict[int, dict[str, Any]] = {0: {}}
        self.foreground, self.background = 0xFFFFFF, 0x000000
        self.cursor = (0, 0)
        self.flushes = 0
        self.written: list[tuple[int, int, int]] = []
        """(row, from column, to column) of each piece that was drawn, until somebody clears it."""
        self.grid_resize(1, width, height)

    def handle(self, events: list[list[Any]]) -> None:
        """The argument of a `redraw` notification."""
        for name, *calls in events:
            method = getattr(self, name, None)
            if method is not None:
                for call in calls:
                    method(*call)

    def grid_resize(self, grid: int, width: int, height: int) -> None:
        self.rows = [[(" ", 0)] * width for _ in range(height)]

    def grid_clear(self, grid: int) -> None:
        self.rows = [[(" ", 0)] * len(row) for row in self.rows]

    def grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def grid_line(self, grid: int, row: int, start: int, cells: list[list[Any]], wrap: bool = False) -> None:
        column, attribute = start, 0
        for cell in cells:
            if len(cell) > 1:
                attribute = cell[1]
            for _ in range(cell[2] if len(cell) > 2 else 1):
                self.rows[row][column] = (cell[0], attribute)
                column += 1
        self.written.append((row, start, column))

    def grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, columns: int) -> None:
        moving = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in moving:
            self.rows[row][left:right] = self.rows[row + rows][left:right]

    def hl_attr_define(self, number: int, rgb: dict[str, Any], cterm: dict[str, Any], info: list[Any]) -> None:
        self.attributes[number] = rgb

    def default_colors_set(self, foreground: int, background: int, *rest: int) -> None:
        self.foreground, self.background = foreground, background

    def flush(self) -> None:
        self.flushes += 1

    def lines(self) -> list[str]:
        return ["".join(text for text, _ in row).rstrip() for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())
