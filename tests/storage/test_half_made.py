"""A process is killed while it makes a session: there is all of it, or nothing that anybody could take for one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, SessionManager

MAKE = """
import os, signal, sys
from crewlog.storage import PROCESS, POWER, SessionManager
manager = SessionManager(sys.argv[1], durability=POWER)
source = manager.open_path(sys.argv[2]) if sys.argv[2] else None
calls, at = 0, int(sys.argv[3])

def killed_before(function):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        if function is write and len(arguments[1]) > 100 and calls + 1 == at:  # and half way through a write
            calls += 1
            function(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call

write = os.write
for name in ("open", "write", "link", "rename", "replace", "unlink", "fsync", "fdatasync", "close"):
    setattr(os, name, killed_before(getattr(os, name)))
made = manager.fork(source, "/w") if source is not None else manager.create("/w")
"""


@pytest.mark.parametrize("makes", ["create", "fork"])
def test_a_session_is_there_whole_or_not_at_all(tmp_path: Path, makes: str) -> None:
    source = ""
    if makes == "fork":
        store = SessionManager(str(tmp_path / "source"), durability=PROCESS).create("/w")
        for _ in range(20):
            store.append_message(b'{"role":"user","content":[]}')
        source = store.path
    killed, at = 0, 0
    while True:
        at += 1
        folder = tmp_path / f"{at}"
        done = subprocess.run([sys.executable, "-c", MAKE, str(folder), source, str(at)], capture_output=True, check=False)
        found = SessionManager(str(folder), durability=PROCESS).list()
        assert found.skipped == [], at
        assert {info.message_count for info in found.sessions} <= {20 if source else 0}, at
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            assert len(found.sessions) == 1
            assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
            break
        killed += 1
    assert killed > 5
