"""Updates of the index that are stopped half way, logs that change under them, and rows that are gone or damaged."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import SessionManager, index_file, stopping, times
from crewlog.storage.index import SessionIndex, Updated
from crewlog.storage.index_file import NoIndex
from crewlog.storage.search import search
from crewlog.storage.stats import gather_stats
from storage.index_work import QUERIES, Work, message

TEXT = "the Parser fails at foo_bar() in src/a/b.py 天气预报 and größer "


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores depend on the time: two searches are compared as of one moment."""
    monkeypatch.setattr(times, "now", lambda: "2026-03-05T00:00:00Z")


def lines(first: int, count: int, said: str = TEXT) -> bytes:
    return b"".join(message(number, f"{said} word{number} " * 10) for number in range(first, first + count))


def call(number: int, **more: Any) -> bytes:
    data = {"model": "sonata-2", "input_tokens": 10, "output_tokens": 1, "latency_ms": 5, **more}
    entry = {"kind": "llm_call", "id": f"{number:08x}", "parent_id": "h0", "timestamp": "2026-03-01T00:00:00Z", "data": data}
    return json.dumps(entry).encode() + b"\n"


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """A home of six sessions of several parts each."""
    work = Work(str(tmp_path / "home"))
    for number in range(6):
        work.create(number, lines(1, 60) + call(900 + number))
    return work


def index_path(work: Work) -> Path:
    path = index_file.current_path(work.home.path)
    assert path is not None
    return Path(path)


def change(work: Work, *statements: str) -> None:
    """Does something to the database, as another program may."""
    connection = sqlite3.connect(index_path(work))
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def indexed(work: Work) -> set[str]:
    return set(SessionIndex(work.home).summaries(work.folder))


def update_until(index: SessionIndex, is_enough: Callable[[], bool]) -> None:
    with stopping.asked_by(is_enough), pytest.raises(stopping.Stopped):
        index.update(small=0)


# --- stopped half way ---


def test_what_was_read_before_a_stop_is_kept_and_the_next_goes_on_from_there(work: Work) -> None:
    told: list[int] = []
    with stopping.asked_by(lambda: len(told) >= 3), pytest.raises(stopping.Stopped):
        work.index.update(small=0, progress=lambda done, total: told.append(done))
    kept = indexed(work)
    assert len(kept) == 3
    work.compare()
    left = sum(os.path.getsize(os.path.join(work.folder, name)) for name in os.listdir(work.folder) if name not in kept)
    done = work.index.update(small=0)
    assert (done.logs, done.read_bytes) == (3, left)
    work.compare()


def test_progress_rises_to_the_whole(work: Work) -> None:
    told: list[tuple[int, int]] = []
    work.index.update(small=0, progress=lambda done, total: told.append((done, total)))
    whole = sum(entry.stat().st_size for entry in os.scandir(work.folder))
    assert [total for _, total in told] == [whole] * 6
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (whole, whole)


def test_a_log_that_was_being_read_when_it_was_stopped_is_read_again(tmp_path: Path) -> None:
    """A long log is left in its middle: nothing of it counts, and nothing of it is found twice later."""
    work = Work(str(tmp_path / "home"))
    work.create(0, lines(1, 3000))
    looks = iter(range(1000))
    update_until(work.index, lambda: next(looks) >= 2)
    assert indexed(work) == set()
    work.compare()
    assert work.index.update(small=0).logs == 1
    work.compare()


def test_others_see_what_is_done_while_an_update_is_still_at_it(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long update commits now and then: who asks meanwhile profits, and a kill costs little."""
    monkeypatch.setattr("crewlog.storage.index_writer._BATCH", 1)
    seen: list[int] = []

    def progress(done: int, total: int) -> None:
        seen.append(len(indexed(work)))

    work.index.update(small=0, progress=progress)
    assert seen == [0, 1, 2, 3, 4, 5]
    work.compare()


def test_a_fault_half_way_leaves_what_was_there(work: Work) -> None:
    work.update()
    for number in range(6):
        work.write(number, lines(100, 5, "added"))

    def fails(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work.index.update(small=0, progress=fails)
    work.compare(queries=["added", "parser"])
    assert work.index.update(small=0).logs == 6
    work.compare(queries=["added", "parser"])


def test_a_question_that_nobody_waits_for_any_more_ends(work: Work) -> None:
    """In the midst of SQLite's own work too."""
    work.update()
    change(
        work,
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
        " INSERT INTO files SELECT i, cast('other' AS BLOB), cast(i AS BLOB), x'00' FROM n",
    )
    with stopping.asked_by(lambda: True), pytest.raises(stopping.Stopped):
        work.index.places("parser", {work.folder, os.path.join(work.home.projects, "other")})
    work.compare(queries=["parser"])


# --- two at once ---


def test_a_database_that_another_program_holds_is_waited_for_and_then_left(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.update()
    work.write(0, lines(100, 5, "added"))
    connect = index_file.connect
    monkeypatch.setattr("crewlog.storage.index.connect", lambda path, home, timeout=0.1: connect(path, home, timeout=0.1))
    other = sqlite3.connect(index_path(work), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert work.index.update(small=0).busy
    work.compare(queries=["added", "parser"])  # whoever only reads need not wait for it
    other.execute("COMMIT")
    before = index_path(work)
    assert work.index.update(small=0).logs == 1
    assert index_path(work) == before
    other.close()


def test_two_threads_update_and_ask_at_once(work: Work) -> None:
    done: list[Updated] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            done.extend(SessionIndex(work.home).update(small=0) for _ in range(5))
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    work.compare(queries=["parser", "天气"])
    for thread in threads:
        thread.join()
    assert faults == []
    assert sum(found.logs for found in done) == 6
    work.compare()


# --- logs that change between the steps ---


def hits(work: Work, query: str, between: Callable[[], None]) -> list[tuple[str, str]]:
    """What is found where the files change after the index was asked, and before they are looked at."""
    sessions = SessionManager(work.folder).list().sessions
    places = work.index.places(query, {work.folder})
    between()
    return [(hit.session.id, hit.entry_id) for hit in search(sessions, query, places=places)]


def test_what_was_appended_after_the_index_was_asked_is_found(work: Work) -> None:
    work.update()
    found = hits(work, "needle", lambda: work.write(2, message(500, "a needle")))
    assert found == [("00000002", f"{500:08x}")]


def test_a_log_replaced_after_the_index_was_asked_is_read_as_it_is(work: Work) -> None:
    work.update()

    def replace() -> None:
        os.unlink(work.path(2))
        work.create(2, message(7, "a needle") + lines(8, 80, "other"))

    assert hits(work, "needle", replace) == [("00000002", f"{7:08x}")]


def test_a_log_removed_after_the_index_was_asked_is_passed_over(work: Work) -> None:
    work.update()
    found = hits(work, "word7", lambda: os.unlink(work.path(2)))
    assert {session for session, _ in found} == {f"0000000{number}" for number in (0, 1, 3, 4, 5)}


def test_a_log_that_shrank_after_the_index_was_asked_yields_what_is_left(work: Work) -> None:
    work.update()

    def cut() -> None:
        content = Path(work.path(2)).read_bytes()
        work.write(2, content[: content.index(b"word7 ")], "wb")

    found = hits(work, "word7", cut)
    assert {session for session, _ in found} == {f"0000000{number}" for number in (0, 1, 3, 4, 5)}


def test_costs_of_a_log_that_is_gone_or_grew_after_the_index_was_asked(work: Work) -> None:
    work.update()
    sessions = SessionManager(work.folder).list().sessions
    usage_of = work.index.usage_of({work.folder})
    os.unlink(work.path(0))
    work.write(1, call(910))
    assert gather_stats(sessions, usage_of=usage_of).total.calls == 6


def test_a_log_that_goes_while_it_is_indexed_leaves_nothing(work: Work) -> None:
    def progress(done: int, total: int) -> None:
        for number in (0, 1):
            if os.path.exists(work.path(number)):
                os.unlink(work.path(number))

    work.index.update(small=0, progress=progress)
    work.compare()
    work.update()
    assert indexed(work) == {os.path.basename(work.path(number)) for number in range(2, 6)}


def test_a_log_that_is_replaced_by_what_is_no_session(work: Work) -> None:
    """It is forgotten, as it is when it becomes one of a version that nobody knows yet, or cannot be read."""
    work.update()
    work.write(0, b"no session\n" + lines(1, 60), "wb")
    work.write(1, b'{"kind":"header","id":"h0","timestamp":"2026-03-01T00:00:00Z","data":{"version":99}}\n', "wb")
    os.unlink(work.path(2))
    os.mkdir(work.path(2))
    work.settle(work.path(2))
    work.write(3, b"", "wb")
    work.update()
    work.compare(queries=["parser", "word7"])
    assert indexed(work) == {os.path.basename(work.path(number)) for number in (4, 5)}


def test_a_log_that_was_replaced_is_indexed_anew(work: Work) -> None:
    """By a longer one, by a shorter one, by one in which nothing is said, and by one of the same length."""
    work.update()
    work.write(0, Path(work.path(1)).read_bytes().replace(b"Parser", b"Lexers") + lines(200, 80), "wb")
    work.write(1, Path(work.path(2)).read_bytes()[:5000].rpartition(b"\n")[0] + b"\n", "wb")
    work.create(2, b"")
    work.write(3, Path(work.path(3)).read_bytes().replace(b"Parser", b"Lexers"), "wb")
    os.rename(work.path(4), work.path(7))
    for _ in range(2):
        work.compare(queries=[*QUERIES, "lexers"])
        work.update()
    assert len(indexed(work)) == 6


def test_a_log_written_to_a_moment_ago_is_looked_at_again(work: Work) -> None:
    """A write in the same tick of the clock might not show: such a log is left for the next update, and read as it is until then."""
    work.update()
    with open(work.path(0), "ab") as file:
        file.write(message(500, "a needle"))
    os.utime(work.path(0))
    done = work.index.update(small=0)
    assert (done.logs, done.unsettled) == (0, 1)
    work.compare(queries=["needle"])
    work.settle(work.path(0))
    done = work.index.update(small=0)
    assert (done.logs, done.unsettled) == (1, 0)
    work.compare(queries=["needle"])


def test_a_log_written_to_while_the_others_are_indexed_is_looked_at_again(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.storage.resuming._SETTLED_NS", 600_000_000_000)  # what is written now stays new, however slowly

    def progress(done: int, total: int) -> None:
        for number in range(6):
            if os.path.basename(work.path(number)) not in seen and not added:
                added.append(number)
                with open(work.path(number), "ab") as file:
                    file.write(message(500, "a needle"))
                os.utime(work.path(number))

    work.update()
    seen: set[str] = set()
    added: list[int] = []
    for number in range(1, 6):
        work.write(number, message(499, "more"))
    done = work.index.update(small=0, progress=progress)
    assert added == [0]  # which was settled and known when the update began
    assert (done.logs, done.unsettled) == (5, 0)
    work.compare(queries=["needle", "more"])
    shutil.rmtree(os.path.join(work.home.path, ".crewlog"))
    seen, added = {os.path.basename(work.path(number)) for number in range(1, 6)}, []
    work.settle(work.path(0))
    for number in range(1, 6):
        work.settle(work.path(number))  # the newest come first
    done = work.index.update(small=0, progress=progress)
    assert (added, done.unsettled) == ([0], 1)
    assert len(indexed(work)) == 5
    work.compare(queries=["needle", "more"])


@pytest.mark.parametrize("more", [b"\n", b"\n" + message(501, "needle two"), b" ", b" glued", message(501, "needle two")])
def test_a_last_record_without_its_line_end(work: Work, more: bytes) -> None:
    """It counts; what comes behind it ends its line, or makes it none."""
    work.update()
    work.write(0, message(500, "a needle").rstrip(b"\n"))
    for index in (work.index, SessionIndex(work.home)):
        work.compare(queries=["needle"])
        index.update(small=0)
        work.compare(queries=["needle"])
    work.write(0, more)
    work.compare(SessionIndex(work.home), ["needle", "two"])
    assert work.index.update(small=0).logs == 1
    work.compare(queries=["needle", "two"])


def test_many_small_appends_of_lines_that_are_no_entries(work: Work) -> None:
    """Small parts at the end are made one, from the log itself."""
    for number in range(30):
        work.write(0, [message(500 + number, f"needle{number} 天气{number}"), b"{torn\n", b"\n"][number % 3])
        work.update()
    work.compare(queries=["needle3", "needle*", "天气9", "parser"])
    places = work.index.places("天气", {work.folder})(work.path(0))
    assert places is not None
    assert len(places) < 20


def test_other_folders_and_files_are_none_of_its_business(work: Work) -> None:
    Path(work.folder, "notes.txt").write_text("parser")
    Path(work.home.projects, "a file").write_text("parser")
    hidden = Path(work.home.projects, ".hidden")
    hidden.mkdir()
    Path(hidden, "2026-03-01_00000001.jsonl").write_bytes(Path(work.path(1)).read_bytes())
    os.symlink("nowhere", os.path.join(work.folder, "dangling.jsonl"))
    assert work.index.update(small=0).logs == 6
    work.compare(queries=["parser"])


# --- odd lines ---


def test_lines_that_are_no_entries_or_no_utf8(work: Work) -> None:
    surrogate = json.dumps("\ud83d needle-one").encode()
    odd = [
        b'{"kind":"message","id":"0a1","parent_id":"h0","timestamp":"2026-03-01T00:00:00Z","data":'
        b'{"role":"user","content":[{"type":"text","text":%b}]}}' % surrogate,
        b'{"kind":"message","id":"0a2","parent_id":"h0","timestamp":"2026-03-01T00:00:00Z","data":'
        b'{"role":"user","content":[{"type":"text","text":"needle-two \xff\xfe caf\xe9"}]}}',
        b'{"kind":"message","id":"0a3","parent_id":"h0","timestamp":"never","data":{"role":"user","content":"needle-three"}}',
        b'{"kind":"message","id":"0a4","parent_id":"h0","timestamp":"2026-03-01T00:00:00Z","data":'
        b'{"role":"assistant","content":[{"type":"toolCall","tool_call":{"name":5,"args":{"path":"needle-four"}}}]}}',
        b"\xff\xfe\x00 needle-five",
        b"[1, 2]",
        b'{"kind":"message","id":"0a6","parent_id":"h0","timestamp":"2026-03-01T00:00:00Z","data":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ]
    for number, line in enumerate(odd):
        if number < 6:
            work.write(number, line + b"\n" + lines(300, 3))
    work.create(7, b"".join(line + b"\n" for line in odd))
    queries = ["needle-one", "needle-two", "needle", "caf*", "user", "role:user needle", "tool:5", "\ud83d", "four"]
    for _ in range(2):
        work.compare(queries=queries)
        work.update()
    assert (
        len(search(SessionManager(work.folder).list().sessions, "needle-two", places=work.index.places("needle-two", {work.folder}))) == 2
    )


def test_numbers_beyond_64_bits_are_counted_from_the_log(work: Work) -> None:
    work.write(0, call(910, input_tokens=2**63 - 1) * 3)
    for _ in range(2):
        work.update()
        sessions = SessionManager(work.folder, known=work.index.summaries).list().sessions
        assert gather_stats(sessions, usage_of=work.index.usage_of({work.folder})).total.input_tokens == 3 * (2**63 - 1) + 60
    work.compare(queries=["parser"])


# --- rows that are gone or damaged ---


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE usage SET data = x'0000000000'",
        "UPDATE usage SET data = x'00'",
        "UPDATE usage SET data = 5",
        "UPDATE parts SET data = x'ffffffffff'",
        "UPDATE files SET state = 'a text'",
        "UPDATE files SET state = (SELECT state FROM files WHERE id = 1)",
        "UPDATE files SET id = id + 100",
    ],
)
def test_a_damaged_row_is_never_believed(work: Work, statement: str) -> None:
    work.update()
    change(work, statement)
    work.compare(SessionIndex(work.home))
    for number in range(6):
        work.write(number, message(700, "added"))
    work.compare(work.index)
    work.update()
    work.compare()
    assert len(indexed(work)) == 6


@pytest.mark.parametrize("table", ["usage", "parts", "files"])
def test_a_row_that_is_gone_is_made_anew(work: Work, table: str) -> None:
    work.update()
    change(work, f"DELETE FROM {table}")
    work.compare()
    for number in range(6):
        work.write(number, message(700, "added"))
    work.update()
    work.compare()
    assert len(work.index.summaries(work.folder)) == 6


@pytest.mark.parametrize("table", ["numbers", "words", "runs", "files", "models"])
def test_a_table_that_is_gone_or_empty_makes_a_new_index(work: Work, table: str) -> None:
    work.update()
    change(work, "DELETE FROM numbers" if table == "numbers" else f"DROP TABLE {table}")
    before = index_path(work)
    for number in range(6):
        work.write(number, message(700, "added 天气"))
    work.compare()
    work.update()
    work.compare()
    assert index_path(work) != before
    assert len(indexed(work)) == 6


def test_a_page_that_is_damaged_is_found_by_the_daily_look(work: Work) -> None:
    """Nothing reads the page otherwise, and the index would carry it along."""
    work.update()
    change(
        work,
        "CREATE TABLE never (a)",
        "INSERT INTO never VALUES (zeroblob(30000))",
        "UPDATE numbers SET value = 0 WHERE name = 'checked_on'",
    )
    work.index.close()
    path = index_path(work)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    root, size = (
        connection.execute(sql).fetchone()[0] for sql in ("SELECT rootpage FROM sqlite_schema WHERE name = 'never'", "PRAGMA page_size")
    )
    connection.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * size : root * size] = os.urandom(size)
    path.write_bytes(content)
    work.update()
    assert index_path(work) != path
    work.compare()
    assert len(indexed(work)) == 6


def test_the_daily_look_is_taken_once_a_day(work: Work) -> None:
    work.update()
    change(work, "UPDATE numbers SET value = 0 WHERE name = 'checked_on'")
    for _ in range(2):
        before = index_path(work)
        work.update()
        assert index_path(work) == before
    connection = sqlite3.connect(index_path(work))
    assert connection.execute("SELECT value FROM numbers WHERE name = 'checked_on'").fetchone() == (int(time.time()) // 86_400,)
    connection.close()


def test_an_index_of_what_is_gone_is_made_anew(work: Work) -> None:
    """Dropped logs leave their words behind: when most of it is such, a new index holds only what is there."""
    work.update()
    change(work, "UPDATE numbers SET value = 3000 WHERE name = 'dead'")
    before = index_path(work)
    work.update()
    assert index_path(work) != before
    assert len(indexed(work)) == 6
    work.compare()


def test_an_index_that_cannot_be_replaced_is_told_of(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage that comes back in the new one too is not met without end."""
    work.update()

    def never(path: str, home: str, *, timeout: float = 0) -> sqlite3.Connection:
        raise NoIndex("damaged, however often it is made", damaged=True)

    with monkeypatch.context() as patched:
        patched.setattr("crewlog.storage.index.connect", never)
        index = SessionIndex(work.home)
        assert index.update(small=0) == Updated()
        assert (index.status().state, index.status().reason) == ("off", "damaged, however often it is made")
        work.compare(index, ["parser"])
    index.update(small=0)
    assert index.status().state == "ready"
    work.compare(index, ["parser"])


def test_without_permission_logs_are_read(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system mounted to be read only."""
    rename = os.rename

    def refuses(source: str, target: str) -> None:
        if "index-" in target:
            raise PermissionError(13, "Permission denied", target)
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refuses)
        work.update()
    status = work.index.status()
    assert status.state == "off"
    assert "EACCES" in status.reason
    work.compare(queries=["parser"])
    work.update()
    assert work.index.status().state == "ready"
    left = [name for name in os.listdir(os.path.join(work.home.path, ".crewlog")) if name.endswith(".tmp")]
    assert left == []


def test_a_full_disk_before_there_is_an_index(work: Work) -> None:
    """RLIMIT_FSIZE makes the system refuse to let a file grow, as a full disk does: nothing half made is left behind."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, limits[1]))
    try:
        work.update()
        work.compare(queries=["parser"])
        status = work.index.status()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert status.state == "off"
    assert status.reason
    assert [name for name in os.listdir(os.path.join(work.home.path, ".crewlog")) if name.startswith("index-")] == []
    work.update()
    work.compare(queries=["parser"])
    assert len(indexed(work)) == 6


def test_the_index_goes_while_it_is_open(work: Work) -> None:
    work.update()
    work.compare(queries=["parser"])
    index_path(work).unlink()
    work.compare(queries=["parser"])
    assert work.index.status().state == "none"
    work.update()
    work.compare(queries=["parser"])
    assert len(indexed(work)) == 6


def test_a_log_edited_in_place_whose_time_was_set_back(work: Work) -> None:
    """As tools do that keep times: the system still knows when it was changed."""
    manager = SessionManager(work.folder)
    manager.list()
    work.update()
    path = work.path(2)
    status = os.stat(path)
    for before, after in ((b"Parser", b"Lexers"), (b"sonata-2", b"sonata-7"), (b"word7 ", b"word8 ")):
        while time.time_ns() - os.stat(path).st_ctime_ns < 50_000_000:
            time.sleep(0.01)  # the clock of the file system must have ticked
        content = Path(path).read_bytes().replace(before, after)
        Path(path).write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert os.stat(path).st_mtime_ns == status.st_mtime_ns
        work.compare(queries=["parser", "lexers", "word7", "model:sonata-7"])
        assert manager.list() == SessionManager(work.folder).list()
        work.compare(SessionIndex(work.home), ["parser", "lexers", "word7", "model:sonata-7"])
        assert work.index.update(small=0).logs == 1
        work.compare(queries=["parser", "lexers", "word7", "model:sonata-7"])
        assert work.index.update(small=0).logs == 0


def test_a_first_message_edited_in_place_before_more_was_appended(work: Work) -> None:
    """As who removes a secret does while the agent goes on: nobody looked in between, and what is before the new end is as it was."""
    work.create(2, message(1, "my password is hunter2") + call(901) + lines(3, 60))
    manager = SessionManager(work.folder)
    assert "hunter2" in str(manager.list())
    work.update()
    edited = Path(work.path(2)).read_bytes().replace(b"hunter2", b"*REMOVE").replace(b'"input_tokens": 10', b'"input_tokens": 20')
    work.write(2, edited + message(999, "one more"), "r+b")
    queries = ["hunter2", "password", "REMOVE", "more"]
    assert manager.list() == SessionManager(work.folder).list()
    work.compare(queries=queries)
    work.compare(SessionIndex(work.home), queries)
    work.update()
    work.compare(queries=queries)
