"""Whatever happens to the index, the answers are those that reading the logs gives, and the next update has a whole index again."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import SessionManager, index_file, times
from crewlog.storage.index import SessionIndex
from crewlog.storage.locks import ResourceLock
from crewlog.storage.search import search
from storage.index_work import QUERIES, Work, message

WORKER = [sys.executable, str(Path(__file__).parent / "index_worker.py")]
TEXT = "the Parser fails at foo_bar() in src/a/b.py 天气预报 and größer, role tool edit text message a abc "


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: "2026-03-05T00:00:00Z")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """A home of some sessions of several parts each."""
    work = Work(str(tmp_path / "home"))
    for number in range(4):
        work.create(number, b"".join(message(line, f"{TEXT} word{line} only{number}x{line} " * 10) for line in range(60)))
    return work


def index_path(work: Work) -> Path:
    path = index_file.current_path(work.home.path)
    assert path is not None
    return Path(path)


def is_used(work: Work, index: SessionIndex) -> bool:
    return set(index.summaries(work.folder)) == {name for name in os.listdir(work.folder) if name.endswith(".jsonl")}


@contextlib.contextmanager
def updating(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*WORKER, *map(str, arguments)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_killed_at_any_moment(work: Work) -> None:
    """kill -9 while it is made, or brought up to date."""
    chance = random.Random(6)
    for turn in range(12):
        with updating(work.home.path) as process:
            if turn % 3:
                work.write(turn % 4, b"".join(message(1000 + turn * 100 + line, f"{TEXT} added{turn} " * 10) for line in range(30)))
            time.sleep(chance.random() * 0.06)
            process.send_signal(signal.SIGKILL)
        index = SessionIndex(work.home)
        work.compare(index, ["parser", "word7", f"added{turn}", "气预"])
        index.close()
        if turn % 4 == 3:
            shutil.rmtree(os.path.join(work.home.path, ".crewlog"))
    work.update()
    work.compare()
    assert is_used(work, work.index)


def test_several_processes_at_once(work: Work, tmp_path: Path) -> None:
    """They update it while logs grow, are replaced and removed, and a reader asks all the while."""
    go = tmp_path / "go"
    with updating(work.home.path, go), updating(work.home.path, go), updating(work.home.path, go):
        go.touch()
        for turn in range(12):
            work.write(turn % 4, message(5000 + turn, f"{TEXT} added{turn}"))
            if turn % 5 == 4:
                os.unlink(work.path(3))
                work.create(3, message(1, f"{TEXT} replaced{turn}"))
            work.compare(queries=["parser", f"added{turn}", "天气"])
    work.update()
    work.compare()
    assert is_used(work, work.index)


def test_who_is_late_leaves_it_to_who_is_at_it(work: Work) -> None:
    with ResourceLock(os.path.join(work.home.path, "index"), root=work.home.path):
        assert work.index.update(small=0).busy
    assert work.index.update(small=0).logs == 4


def damage(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    kind = chance.randrange(4)
    if kind == 0:
        del content[chance.randrange(len(content)) :]
    elif kind == 1:
        at = chance.randrange(len(content))
        content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    else:
        for _ in range(chance.choice([1, 10, 100])):
            content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content)


def test_damaged_at_random_bytes(work: Work) -> None:
    """What is listed and summed up is right; what is found is in the files. A row of words that lost one is found out once a day."""
    work.update()
    work.index.close()
    path = index_path(work)
    whole = path.read_bytes()
    sessions = SessionManager(work.folder).list()
    expected = {query: {(hit.session.id, hit.entry_id) for hit in search(sessions.sessions, query)} for query in QUERIES}
    for seed in range(40):
        path.write_bytes(whole)
        damage(path, random.Random(seed))
        index = SessionIndex(work.home)
        assert SessionManager(work.folder, known=index.summaries).list() == sessions, seed
        for query in QUERIES[:12]:
            hits = search(sessions.sessions, query, places=index.places(query, {work.folder}))
            assert {(hit.session.id, hit.entry_id) for hit in hits} <= expected[query], (seed, query)
        work.compare(index, queries=[])
        index.close()


def test_what_is_found_damaged_is_made_anew(work: Work) -> None:
    work.update()
    work.index.close()
    for content in (b"", b"no database at all", b"SQLite format 3\x00" + bytes(5000), index_path(work).read_bytes()[:9000]):
        path = index_path(work)
        path.write_bytes(content)
        index = SessionIndex(work.home)
        work.compare(index, ["parser"])
        assert not is_used(work, index)
        index.update(small=0)
        assert is_used(work, index)
        work.compare(index, ["parser"])
        index.close()
        assert index_path(work) != path
        assert not path.exists()


def test_damage_that_only_shows_in_the_words_is_found_once_a_day(work: Work) -> None:
    work.update()
    work.index.close()
    connection = sqlite3.connect(index_path(work))
    connection.execute("UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 1000")
    connection.execute("UPDATE numbers SET value = 0 WHERE name = 'checked_on'")
    connection.commit()
    connection.close()
    before = index_path(work)
    index = SessionIndex(work.home)
    index.update(small=0)
    assert index_path(work) != before
    work.compare(index)


def test_another_programs_database_and_an_older_version(work: Work) -> None:
    side = Path(work.home.path, ".crewlog")
    side.mkdir()
    older = side / "index-0.7.sqlite3"
    older.write_bytes(b"what an older version wrote")
    newer = side / f"index-{index_file.VERSION + 1}.3.sqlite3"
    newer.write_bytes(b"what a newer version wrote")
    foreign = sqlite3.connect(side / f"index-{index_file.VERSION}.1.sqlite3")
    foreign.execute("CREATE TABLE files (a)")
    foreign.commit()
    foreign.close()
    work.compare(queries=["parser"])
    work.update()
    work.compare(queries=["parser"])
    assert is_used(work, work.index)
    assert not older.exists()
    assert newer.exists()


def test_links_are_not_followed(work: Work, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / "target"
    target.write_bytes(b"")
    side = Path(work.home.path, ".crewlog")
    side.mkdir()
    (side / f"index-{index_file.VERSION}.1.sqlite3").symlink_to(target)
    work.update()
    work.compare(queries=["parser"])
    assert is_used(work, work.index)
    assert target.read_bytes() == b""
    shutil.rmtree(side)
    side.symlink_to(outside)
    index = SessionIndex(work.home)
    index.update(small=0)
    work.compare(index, ["parser"])
    assert index.status().state == "off"
    assert "symbolic link" in index.status().reason
    assert sorted(os.listdir(outside)) == ["target"]


def test_where_nothing_can_be_written_logs_are_read(work: Work) -> None:
    Path(work.home.path, ".crewlog").write_bytes(b"a file in its place")
    work.update()
    work.compare()
    assert work.index.status().state == "off"
    assert work.index.status().reason
    os.unlink(os.path.join(work.home.path, ".crewlog"))
    work.update()
    assert work.index.status().state == "ready"
    assert is_used(work, work.index)


@pytest.mark.parametrize("with_folders", [False, True])
def test_what_sqlite_has_beside_the_database_is_removed(work: Work, with_folders: bool) -> None:
    """While it is open, by somebody who tidies up; and something else is put there."""
    work.update()
    others = [SessionIndex(work.home) for _ in range(2)]
    assert all(is_used(work, index) for index in (work.index, *others))
    for suffix in ("-wal", "-shm"):
        beside = Path(f"{index_path(work)}{suffix}")
        beside.unlink()
        if with_folders:
            beside.mkdir()
    work.write(1, message(3000, "parser"))
    for index in (work.index, *others):
        work.compare(index, ["parser"])
    for index in (work.index, *others) * 2:  # the first one may only find out
        index.update(small=0)
        work.compare(index, ["parser"])
    for index in (work.index, *others, SessionIndex(work.home)):
        assert index.status().state == "ready"
        assert is_used(work, index)


def test_a_full_disk(work: Work) -> None:
    """RLIMIT_FSIZE makes the system refuse to let a file grow, as a full disk does."""
    work.update()
    for number in range(4):
        work.write(number, b"".join(message(2000 + line, f"{TEXT} grown{number}x{line} " * 20) for line in range(100)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        work.update()
        work.compare(queries=["parser", "grown2x7"])
        status = work.index.status()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert status.state == "off"
    assert status.reason
    work.update()
    work.compare()
    assert work.index.status().state == "ready"


def test_without_fts5_logs_are_read(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    class OldSqlite(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such tokenizer: trigram")
            return super().execute(sql, parameters)

    connect = sqlite3.connect
    index_file.missing_feature.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=OldSqlite, **named))
        index = SessionIndex(work.home)
    try:
        assert index.status().state == "off"
        assert "trigram" in index.status().reason
        index.update(small=0)
        work.compare(index)
        assert not os.path.exists(os.path.join(work.home.path, ".crewlog"))
    finally:
        index_file.missing_feature.cache_clear()


def test_the_home_is_removed_and_comes_back(work: Work) -> None:
    work.update()
    assert is_used(work, work.index)
    shutil.rmtree(work.home.path)
    assert work.index.summaries(work.folder) == {}
    work.update()
    os.makedirs(work.folder)
    work.create(0, message(1, "parser"))
    work.update()
    work.compare()
    assert is_used(work, work.index)
