"""Neovim as its user sees it: keys go in, lines and a screen come out."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pynvim

from editors.neovim.screen import Screen

PLUGIN = Path(__file__).parents[3] / "editors" / "neovim"
PATIENCE = float(os.environ.get("CREWLOG_TEST_PATIENCE", "60"))
"""Seconds after which something that should happen is said not to; the machine may be busy."""
_T = TypeVar("_T")

BEFORE = """
set noswapfile shortmess+=I laststatus=2 nomore
let g:crewlog_test_messages = []
lua << END
vim.opt.rtp:prepend(%r)
_G.notified = {}
vim.notify = function(message, level) table.insert(_G.notified, message) end
END
"""


class Editor:
    """A Neovim with the plugin and an attached screen.

    `setup`: Lua for `setup()`; `path`: PATH, when the server is not to be found; `started` is called before anything can block it.
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        project: Path,
        *,
        setup: str = "",
        before: str = "",
        path: str | None = None,
        size: tuple[int, int] = (100, 30),
        started: Callable[[Editor], object] = lambda _: None,
    ) -> None:
        folder.mkdir(parents=True)
        init = folder / "init.vim"
        lua = f'lua require("crewlog").setup({setup})\n' if setup else ""
        init.write_text(BEFORE % str(PLUGIN) + before + "\n" + lua)
        environment = {
            **os.environ,
            "HOME": str(folder),
            "CREWLOG_HOME": str(home),
            "CREWLOG_OWNER": "me",
            **{f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
        }
        if path is not None:
            environment["PATH"] = path
        nvim = next(str(Path(part) / "nvim") for part in os.environ["PATH"].split(":") if (Path(part) / "nvim").exists())
        argv = [nvim, "--embed", "--clean", "-n", "-u", str(init)]
        was = os.getcwd()
        saved = dict(os.environ)
        try:  # pynvim starts its child in the environment and folder of this process
            os.chdir(project)
            os.environ.clear()
            os.environ.update(environment)
            self.nvim = pynvim.attach("child", argv=argv)
        finally:
            os.chdir(was)
            os.environ.clear()
            os.environ.update(saved)
        self.screen = Screen(*size)
        self.pid: int = self.nvim.funcs.getpid()
        started(self)
        self.nvim.ui_attach(*size, rgb=True, ext_linegrid=True)

    def kill(self) -> None:
        if is_alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        try:
            if is_alive(self.pid):
                if self.nvim.api.get_mode()["blocking"]:
                    self.nvim.input("<C-c>")
                self.nvim.command("qall!", async_=True)
                self.wait("Neovim ends", lambda: not is_alive(self.pid), 10)
        finally:
            self.kill()
            self.nvim.close()

    # What is done

    def command(self, text: str) -> None:
        self.nvim.command(text)

    def lua(self, code: str, *args: Any) -> Any:
        return self.nvim.exec_lua(code, *args)

    def keys(self, keys: str) -> None:
        """As typed by the user; `keys` in the notation of mappings."""
        self.nvim.input(keys)

    # What is seen

    def pump(self) -> None:
        """Takes in what Neovim has drawn by now."""
        self.nvim.api.get_mode()  # it is answered while Neovim asks its user something, as few others are
        pending = self.nvim._session._pending_messages
        while pending:
            message = self.nvim.next_message()
            if message[1] == "redraw":
                self.screen.handle(message[2])

    def wait(self, what: str, condition: Callable[[], _T], seconds: float = PATIENCE) -> _T:
        """Waits until the condition holds, and gives what it gave."""
        end = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {seconds:.0f} s\n{self.picture()}")
            time.sleep(0.01)

    def picture(self) -> str:
        """The screen, and what was told, for a failure."""
        try:
            self.pump()
            if self.nvim.api.get_mode()["blocking"]:
                return f"{self.screen.text}\nNeovim waits for an answer"
            return f"{self.screen.text}\nnotified: {self.notified()}\nmessages: {self.nvim.funcs.execute('messages')}"
        except (OSError, EOFError):
            return "Neovim is gone"

    def notified(self) -> list[str]:
        """What `vim.notify` was given."""
        return list(self.lua("return _G.notified"))

    def wait_asked(self, question: str) -> None:
        """Waits until Neovim asks, and blocks until it is answered."""
        self.wait_screen(question)

    def answer(self, key: str) -> None:
        """Answers it, and waits until Neovim goes on."""
        self.nvim.input(key)
        self.wait("Neovim goes on", lambda: not self.nvim.api.get_mode()["blocking"])

    def lines(self, buffer: int = 0) -> list[str]:
        return list(self.nvim.api.buf_get_lines(buffer, 0, -1, False))

    def sidebar(self) -> list[str]:
        """The lines of the sidebar's buffer."""
        return list(
            self.lua(
                """local view = package.loaded["crewlog.sidebar.view"]
                return view and view.buf and vim.api.nvim_buf_get_lines(view.buf, 0, -1, false) or {}"""
            )
        )

    def wait_for_row(self, text: str) -> int:
        """Waits until a line of the sidebar holds the text; its number, from 1."""

        return self.wait(f"{text!r} in the sidebar", lambda: self._row(text))

    def wait_gone(self, text: str) -> None:
        self.wait(f"{text!r} gone from the sidebar", lambda: not self._row(text))

    def _row(self, text: str) -> int:
        return int(
            self.lua(
                """local text, view = ..., package.loaded["crewlog.sidebar.view"]
                for number, line in ipairs(view and view.buf and vim.api.nvim_buf_get_lines(view.buf, 0, -1, false) or {}) do
                  if line:find(text, 1, true) then return number end
                end
                return 0""",
                text,
            )
        )

    def go_to(self, text: str) -> None:
        """Puts the cursor of the sidebar on the line with the text."""
        line = self.wait_for_row(text)
        self.nvim.api.win_set_cursor(self.lua('return require("crewlog.sidebar.view").win()'), [line, 0])

    def wait_notified(self, text: str) -> str:
        return self.wait(f"a message with {text!r}", lambda: next((message for message in self.notified() if text in message), ""))

    def wait_screen(self, text: str) -> None:
        def shown() -> bool:
            self.pump()
            return text in self.screen.text

        self.wait(f"{text!r} on the screen", shown)

    def settle(self) -> None:
        """Waits until Neovim has nothing more to draw, and takes it in."""
        self.lua("vim.wait(50, function() return false end); vim.cmd.redraw()")
        self.pump()

    def state(self) -> str:
        return str(self.lua('return require("crewlog.client").state'))

    def wait_ready(self) -> None:
        self.wait("the server is ready", lambda: self.state() == "ready")

    def server_pid(self) -> int:
        err, status = self.lua(
            'local err, status = require("crewlog.client").request_sync("crewlog/status") return {err or false, status or false}'
        )
        assert not err
        return int(status["pid"])

    def kill_server(self) -> None:
        os.kill(self.server_pid(), signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        done, _ = os.waitpid(pid, os.WNOHANG)
        return done == 0
    except ChildProcessError:
        return os.path.exists(f"/proc/{pid}")
