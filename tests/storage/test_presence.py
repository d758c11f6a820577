"""Who has a home open: found from locks and from the kernel, without a register."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, Home, TaskStore
from crewlog.storage.presence import Process, processes

HOLD = """
import sys
from crewlog.storage import PROCESS, TaskStore
from crewlog.storage.locks import name_client
name_client("the test")
store = TaskStore(durability=PROCESS)
store.set_dir(sys.argv[1])
store.create("x")
print("ready", flush=True)
sys.stdin.read()
"""
WATCH = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
descriptor = libc.inotify_init()
assert libc.inotify_add_watch(descriptor, sys.argv[1].encode(), 2) > 0
print("ready", flush=True)
sys.stdin.read()
"""


def started(code: str, folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def seen(home: Path, pid: int) -> Process | None:
    return next((process for process in processes(Home(str(home))) if process.pid == pid), None)


def test_who_writes_is_seen_until_he_ends(home: Path) -> None:
    holder = started(HOLD, home / "tasks/work")
    found = seen(home, holder.pid)
    assert found is not None
    assert found.client == "the test"
    assert sys.platform != "linux" or (found.open_files > 0 and "-c" in found.command and found.parent)
    holder.communicate(timeout=30)
    assert seen(home, holder.pid) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who watches")
def test_who_only_watches_is_seen(home: Path) -> None:
    (home / "tasks/work").mkdir(parents=True)
    for folder in (home, home / "tasks/work"):
        watcher = started(WATCH, folder)
        found = seen(home, watcher.pid)
        assert found is not None
        assert (found.watches, found.client) == (True, "")
        watcher.communicate(timeout=30)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who watches")
def test_who_watches_elsewhere_is_not(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    watcher = started(WATCH, tmp_path)
    assert seen(home, watcher.pid) is None
    watcher.communicate(timeout=30)


def test_locks_of_others_and_of_the_dead_name_nobody(home: Path) -> None:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(home / "tasks/work"))
    store.create("x")
    side = home / "tasks/work/.crewlog"
    for name, holder in (
        ("elsewhere", {"pid": 1, "started": 0, "host": "another-host"}),
        ("reused", {"pid": 1, "started": time.time_ns(), "host": socket.gethostname()}),
    ):
        (side / f"{name}.lock").write_text(json.dumps(holder))
    (side / "empty.lock").write_bytes(b"")
    (side / "odd.lock").write_bytes(b"\xff{")
    assert processes(Home(str(home))) == []  # this process is left out


def test_a_home_that_is_not_there_is_open_to_nobody(home: Path) -> None:
    assert processes(Home(str(home))) == []
    assert not home.exists()


def test_where_the_kernel_tells_nothing_the_locks_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = started(HOLD, home / "tasks/work")

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("crewlog.storage.presence.os.listdir", refuse)
    monkeypatch.setattr("crewlog.storage.presence._command", lambda pid: "")
    monkeypatch.setattr("crewlog.storage.presence._parent", lambda pid: "")
    found = seen(home, holder.pid)
    assert found is not None
    assert (found.client, found.open_files) == ("the test", 0)
    holder.communicate(timeout=30)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who watches")
def test_processes_that_end_while_they_are_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = started(HOLD, home / "tasks/work")

    def refuse(path: str, *_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("crewlog.storage.presence.open", refuse, raising=False)
    found = seen(home, holder.pid)
    assert found is not None
    assert (found.command, found.parent, found.client) == ("", "", "")
    monkeypatch.setattr("crewlog.storage.presence.os.readlink", refuse)
    assert seen(home, holder.pid) is None
    holder.communicate(timeout=30)
