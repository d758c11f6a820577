"""Doctor and the derived index: told when it is out of step or damaged, brought in step, and not touched by looking."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, Home, NewEntry, SessionManager
from crewlog.storage.doctor import Finding, examine, mend
from crewlog.storage.index import SessionIndex
from crewlog.storage.index_file import current_path

TEXT = b'{"role":"user","content":[{"type":"text","text":"%b"}]}'


def settle(folder: Path) -> None:
    """All files are of a while ago: their next change will show in their times."""
    for path in folder.rglob("*.jsonl"):
        if path.stat().st_mtime > time.time() - 30:
            os.utime(path, (path.stat().st_mtime - 60,) * 2)


def add_session(home: Path, text: bytes) -> Path:
    store = SessionManager(Home(str(home)).sessions("/x"), durability=PROCESS).create("/x")
    store.append([NewEntry("message", TEXT % text)])
    store.close()
    return Path(store.path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three sessions that the index knows."""
    tmp_path.chmod(0o700)
    for text in (b"one", b"two", b"three"):
        add_session(tmp_path, text)
    settle(tmp_path)
    update(tmp_path)
    return tmp_path


def update(home: Path) -> None:
    index = SessionIndex(Home(str(home)))
    assert index.update(small=0).unsettled == 0
    index.close()


def database(home: Path) -> Path:
    path = current_path(str(home))
    assert path is not None
    return Path(path)


def findings(home: Path) -> list[Finding]:
    return examine(Home(str(home))).findings


def contents(home: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()}


def test_an_index_in_step_is_fine_and_looking_leaves_no_trace(home: Path) -> None:
    before = contents(home)
    assert findings(home) == []
    assert contents(home) == before


def test_an_index_out_of_step_is_told_and_brought_in_step(home: Path) -> None:
    first, second, _ = sorted((home / "projects/-x").glob("*.jsonl"))
    first.unlink()
    with second.open("ab") as log:
        log.write(b'{"kind":"session_info","id":"zz","parent_id":"h0","timestamp":"2026-03-01T09:30:00Z","data":{"name":"n"}}\n')
    for text in (b"four", b"five"):
        add_session(home, text)
    settle(home)
    (home / "projects/-x/2026-03-01_0badcafe.jsonl").touch()
    (found,) = [finding for finding in findings(home) if finding.kind == "indexOutOfStep"]
    assert (found.severity, found.mendable, found.path) == ("note", True, str(database(home)))
    assert "new to it: 2, changed since it read them: 1, gone: 1" in found.reason
    report = mend(Home(str(home)), examine(Home(str(home))), PROCESS)
    assert [finding.mended for finding in report.findings if finding.kind == "indexOutOfStep"] == ["3 logs were read"]
    assert [finding.kind for finding in findings(home) if "ndex" in finding.kind] == []


@pytest.mark.parametrize("damage", ["nothing", "garbage", "page", "row"])
def test_a_damaged_index_is_told_and_set_aside(home: Path, damage: str) -> None:
    path = database(home)
    content = path.read_bytes()
    if damage == "nothing":
        path.write_bytes(b"")
    elif damage == "garbage":
        path.write_bytes(b"no database at all" * 1000)
    elif damage == "page":
        path.write_bytes(content[:8192] + b"\xa5" * (len(content) - 8192))
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE files SET state = x'00'")
        connection.close()
    spoiled = path.read_bytes()
    (found,) = findings(home)
    assert (found.kind, found.severity, found.mendable) == ("damagedIndex", "warning", True)
    (mended,) = mend(Home(str(home)), examine(Home(str(home))), PROCESS).findings
    assert mended.mended
    assert Path(mended.kept).read_bytes() == spoiled
    assert ".trash" in mended.kept
    assert not path.exists()
    assert findings(home) == []


def test_a_home_without_an_index_needs_none(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    add_session(tmp_path, b"one")
    assert findings(tmp_path) == []
    assert current_path(str(tmp_path)) is None


def test_an_index_that_a_process_has_open_is_looked_at_too(home: Path) -> None:
    writer = sqlite3.connect(database(home), isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("DELETE FROM files WHERE id = (SELECT min(id) FROM files)")
    try:
        (found,) = findings(home)
        assert found.kind == "indexOutOfStep"
        assert "new to it: 1;" in found.reason
    finally:
        writer.close()
