"""A real Neovim with the plugin, a home, and a client that changes what is in it from another process."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if importlib.util.find_spec("pynvim") is None:
    collect_ignore_glob = ["test_*.py"]  # `run` installs it, into an environment of its own
elif not TYPE_CHECKING:
    from editors.neovim.editor import PATIENCE, Editor

if TYPE_CHECKING:
    from editors.neovim.editor import PATIENCE, Editor

from crewlog.client import Client


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def agent(home: Path, project: Path) -> Iterator[Client]:
    """Somebody else: a client with a server of its own."""
    with Client(home=str(home), cwd=str(project)) as client:
        yield client


@pytest.fixture
def start(tmp_path: Path, home: Path, project: Path) -> Iterator[Callable[..., Editor]]:
    """Starts a Neovim; more than one at a time can be had."""
    editors: list[Editor] = []

    def begin(**options: Any) -> Editor:
        return Editor(tmp_path / f"nvim{len(editors)}", home, project, started=editors.append, **options)

    def too_long(number: int, frame: object) -> None:
        for editor in editors:
            editor.kill()  # whoever waits for its answer gets an error

    was = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(int(PATIENCE * 3))
    try:
        yield begin
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, was)
        for editor in editors:
            editor.close()


@pytest.fixture
def vim(start: Callable[..., Editor]) -> Editor:
    return start()
