"""A home with something in it, and the command to work with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.commandline import Crewlog
from crewlog.storage import PROCESS, Home, NewEntry, SessionManager

MESSAGE = b'{"role":"%b","content":[{"type":"text","text":"%b"}],"timestamp":"2026-03-01T09:30:00Z"}'
CALL = b'{"provider":"p","model":"m1","input_tokens":100,"output_tokens":20,"cache_read_tokens":300,"latency_ms":250}'


@pytest.fixture
def crewlog(tmp_path: Path) -> Crewlog:
    return Crewlog(tmp_path / "home", tmp_path / "project")


@pytest.fixture
def session_id(crewlog: Crewlog) -> str:
    """A session of the project with three messages."""
    home = Home(str(crewlog.home))
    cwd = str(crewlog.cwd.resolve())
    store = SessionManager(home.sessions(cwd), durability=PROCESS).create(cwd, name="Parser")
    talk = [(b"user", b"Why does the parser fail?"), (b"assistant", b"It does not know about commas."), (b"user", b"Then teach it.")]
    store.append([NewEntry("message", MESSAGE % said) for said in talk] + [NewEntry("llm_call", CALL)])
    store.close()
    return store.session_id
