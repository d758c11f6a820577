"""How a client's server is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import IO, Literal

import msgspec

from crewlog.client.errors import ConnectionLost, NotStarted
from crewlog.client.stored import Json
from crewlog.protocol.params import Subscribe

_WITHOUT_CURRENT_FOLDER = (
    "import sys; del sys.path[0]; import runpy; runpy.run_module('crewlog.server', run_name='__main__', alter_sys=True)"
)
"""For Python 3.10, which has no -P: the first entry of the path is the current folder, and nothing is imported from there before."""

START_TIMEOUT = 60.0
"""Seconds until a server that does not answer `initialize` is given up."""
END_TIMEOUT = 5.0
"""Seconds that a server has to answer `shutdown`, and again to end, before it is killed."""

OWN_SESSION = sys.platform != "win32"
"""For `Popen`: the server does not get the keyboard's interrupt, which is meant for the client."""
CREATION_FLAGS = 0
"""The same on Windows."""
if sys.platform == "win32":
    CREATION_FLAGS = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW

ErrorStream = str | os.PathLike[str] | int | IO[bytes] | None
Durability = Literal["power", "process"]


class Options(msgspec.Struct, kw_only=True):
    """What a client is started with; see `crewlog.client.Client`."""

    home: str | os.PathLike[str] | None = None
    cwd: str | os.PathLike[str] | None = None
    durability: Durability | None = None
    subscribe: Subscribe | bool | None = None
    name: str = "crewlog-python"
    command: Sequence[str] | None = None
    stderr: ErrorStream = None

    def initialize_params(self) -> dict[str, Json]:
        """The params of `initialize`."""
        given = {
            "home": None if self.home is None else os.fspath(self.home),
            "cwd": None if self.cwd is None else os.path.abspath(os.fspath(self.cwd)),
            "durability": self.durability,
            "subscribe": self.subscribe,
        }
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": self.name},
            "rootUri": None,
            "capabilities": {},
            "initializationOptions": {key: value for key, value in given.items() if value is not None},
        }


def server_command() -> list[str]:
    """The command that starts a server with this very Python, without importing anything from the current folder."""
    if not sys.executable:
        program = shutil.which("crewlog")
        if program is None:
            raise NotStarted("this process does not know its Python: pass command=[...] to tell how the server is started")
        return [program, "serve"]
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", "crewlog.server"]
    return [sys.executable, "-c", _WITHOUT_CURRENT_FOLDER]


def open_error_stream(stream: ErrorStream) -> int | IO[bytes] | None:
    """What `Popen` takes: a path is opened for appending, readable by its user only."""
    if isinstance(stream, (str, os.PathLike)):
        return os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return stream


def not_startable(command: Sequence[str], error: OSError) -> ConnectionLost:
    return ConnectionLost(f"the server could not be started with {command[0]!r}: {error.strerror or error}")
