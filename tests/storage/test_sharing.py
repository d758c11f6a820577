"""Several processes and foreign hands on the same files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crewlog.storage import (
    PROCESS,
    Busy,
    History,
    LeafMoved,
    PlanChanged,
    PlanStore,
    RosterMember,
    RosterStore,
    SessionManager,
    SessionNotFound,
    StoreClosed,
    TaskStore,
    TaskUpdate,
    TranscriptStore,
    WouldBlock,
    locks,
)
from crewlog.storage.locks import ResourceLock, without_waiting

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"hello"}]}'


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


APPENDERS = """
import sys
from crewlog.storage import PROCESS, SessionManager
import os
store = SessionManager(os.path.dirname(sys.argv[1]), durability=PROCESS).open_path(sys.argv[1])
for number in range(150):
    store.append_message(b'{"role":"user","content":[{"type":"text","text":"%s-%d"}]}' % (sys.argv[2].encode(), number))
"""


def test_several_appenders_make_one_chain_while_others_read(tmp_path: Path) -> None:
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    path = manager.create("/x").path
    writers = [python(APPENDERS, path, name) for name in "abc"]
    reader = manager.open_path(path)
    seen = 0
    while any(writer.poll() is None for writer in writers):
        messages = reader.snapshot().messages
        assert len(messages) >= seen
        seen = len(messages)
        (info,) = SessionManager(str(tmp_path)).list().sessions
        assert info.message_count >= seen
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    texts = [json.loads(bytes(raw))["content"][0]["text"] for raw in manager.open_path(path).snapshot().messages]
    assert len(texts) == 450
    for name in "abc":
        assert [text for text in texts if text.startswith(name)] == [f"{name}-{number}" for number in range(150)]


CLAIMERS = """
import sys
from crewlog.storage import PROCESS, TaskStore
store = TaskStore(durability=PROCESS)
store.set_dir(sys.argv[1])
sys.stdin.readline()
while (task := store.claim_next(sys.argv[2])) is not None:
    print(task.id)
"""


def test_each_task_is_claimed_by_exactly_one_process(tmp_path: Path) -> None:
    folder = tmp_path / "list"
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    for number in range(300):
        store.create(str(number))
    racers = [python(CLAIMERS, str(folder), f"racer{number}") for number in range(4)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    taken = {f"racer{number}": racer.communicate()[0].split() for number, racer in enumerate(racers)}
    everything = [task_id for ids in taken.values() for task_id in ids]
    assert sorted(everything, key=int) == [str(number) for number in range(1, 301)]
    for task in store.list():
        assert task.id in taken[task.owner]


def test_expected_leaf(tmp_path: Path) -> None:
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    one = manager.create("/x")
    other = manager.open_path(one.path)
    leaf = one.append_message(MESSAGE).id
    with pytest.raises(LeafMoved) as caught:
        other.set_name("n", expected_leaf_id="h0")
    assert caught.value.leaf_id == leaf
    other.set_name("n", expected_leaf_id=leaf)


def test_a_log_that_was_removed_or_replaced_is_noticed(tmp_path: Path) -> None:
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    store = manager.create("/x")
    store.append_message(MESSAGE)
    path = Path(store.path)
    copy = path.read_bytes()
    path.unlink()
    with pytest.raises(SessionNotFound):
        store.append_message(MESSAGE)
    assert not path.exists()
    path.write_bytes(copy)  # a restored backup: another file under the same name
    change = store.refresh()
    assert change is not None
    assert change.kind == "replaced"
    store.append_message(MESSAGE)
    assert len(store.snapshot().messages) == 2
    path.write_bytes(copy)  # an older state, written in place
    change = store.refresh()
    assert change is not None
    assert change.kind == "shrank"
    assert len(store.snapshot().messages) == 1
    store.close()
    with pytest.raises(StoreClosed):
        store.append_message(MESSAGE)
    store.close()


def test_codebot_writing_at_an_offset_of_its_own_is_noticed(tmp_path: Path) -> None:
    """It holds the file open, takes no lock and writes where it believes the end is: over what was appended meanwhile."""
    manager = SessionManager(str(tmp_path), durability=PROCESS)
    store = manager.create("/x")
    with open(store.path, "r+b", buffering=0) as codebot:
        codebot.seek(0, os.SEEK_END)
        store.append_message(MESSAGE)
        size = Path(store.path).stat().st_size
        line = b'{"kind":"message","id":"c0deb070","parent_id":"h0","timestamp":"2026-01-01T00:00:00Z","data":{"role":"user","content":'
        filler = size - codebot.tell() - len(line) - len(b"[]}}\n") + 64
        codebot.write(line + b" " * filler + b"[]}}\n")
    change = store.refresh()
    assert change is not None
    assert change.kind == "replaced"
    assert store.leaf_id == "c0deb070"


def test_foreign_changes_of_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "list"
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    store.watched = True  # so that nothing is found by the look that is due after a second
    for subject in "abc":
        store.create(subject)
    store.refresh()
    second = folder / "2.json"
    edited = json.loads(second.read_bytes()) | {"subject": "in place", "future": 1}
    second.write_text(json.dumps(edited))
    changed = store.update("2", TaskUpdate(description="ours"))
    assert changed is not None
    assert (changed.subject, changed.description) == ("in place", "ours")
    assert json.loads(second.read_bytes())["future"] == 1
    os.replace(shutil.copy(folder / "1.json", folder / "x"), folder / "9.json")
    (folder / "3.json").unlink()
    time.sleep(0.03)  # past the tick of the folder's time stamp
    assert {task.id for task in store.list()} == {"1", "2"}  # 9.json holds task 1 again
    assert store.create("d").id == "10"


def test_an_older_state_of_the_folder_gives_out_no_number_again(tmp_path: Path) -> None:
    folder = tmp_path / "list"
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    store.create("a")
    shutil.copytree(folder, tmp_path / "backup")
    store.create("b")
    for path in [*folder.glob("*.json"), folder / ".highwatermark"]:
        path.unlink()
    shutil.copytree(tmp_path / "backup", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".crewlog"))
    assert [task.id for task in store.list()] == ["1"]
    assert store.create("c").id == "3"
    fresh = TaskStore(durability=PROCESS)
    fresh.set_dir(str(folder))
    assert fresh.create("d").id == "4"


def test_the_folder_goes_and_comes_back_while_stores_are_open(tmp_path: Path) -> None:
    home = tmp_path / "home"
    stores = [TaskStore(durability=PROCESS) for _ in range(2)]
    for store in stores:
        store.set_dir(str(home / "tasks" / "list"))
    stores[0].create("a")
    assert [task.id for task in stores[1].list()] == ["1"]
    shutil.rmtree(home)
    for store in stores:
        assert store.list() == []
    assert stores[1].create("b").id == "2"
    assert [task.id for task in stores[0].list()] == ["2"]
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(str(home / "team"))
    roster.set_team("t")
    transcripts = TranscriptStore(str(home / "transcripts"), durability=PROCESS)
    transcripts.append("a", [MESSAGE])
    history = History(str(home / "history.jsonl"), "/p", durability=PROCESS)
    history.add("one")
    plans = PlanStore(str(home / "plans"), durability=PROCESS)
    plans.save("p", "text")
    shutil.rmtree(home)
    roster.set_team("u")
    assert transcripts.append("a", [MESSAGE]) == 1
    assert history.add("two") == 1
    plans.save("p", "text", if_match="")
    assert roster.snapshot().team == "u"


ROSTER_WORK = """
import sys
from crewlog.storage import PROCESS, RosterMember, RosterStore
store = RosterStore(durability=PROCESS)
store.set_dir(sys.argv[1])
for number in range(60):
    store.upsert_member(RosterMember(f"{sys.argv[2]}{number}", "x"))
    if number % 3 == 0:
        store.remove_member(f"{sys.argv[2]}{number}")
"""


def test_changes_of_a_roster_by_several_processes_add_up(tmp_path: Path) -> None:
    workers = [python(ROSTER_WORK, str(tmp_path / "team"), name) for name in "ab"]
    assert [worker.wait() for worker in workers] == [0, 0]
    store = RosterStore()
    store.set_dir(str(tmp_path / "team"))
    names = {member.name for member in store.snapshot().member_records()}
    assert names == {f"{who}{number}" for who in "ab" for number in range(60) if number % 3}


def test_a_removed_member_does_not_come_back(tmp_path: Path) -> None:
    one, other = RosterStore(durability=PROCESS), RosterStore(durability=PROCESS)
    for store in (one, other):
        store.set_dir(str(tmp_path / "team"))
    one.upsert_member(RosterMember("gone", "x"))
    other.snapshot()
    one.remove_member("gone")
    other.upsert_member(RosterMember("new", "x"))
    assert [member.name for member in one.snapshot().member_records()] == ["new"]


def test_plans_saved_by_two(tmp_path: Path) -> None:
    one, other = PlanStore(str(tmp_path / "plans"), durability=PROCESS), PlanStore(str(tmp_path / "plans"), durability=PROCESS)
    etag = one.save("p", "first\r\nno line end", if_match="")
    assert other.load("p").content == "first\r\nno line end"
    newer = other.save("p", "second", if_match=etag)
    with pytest.raises(PlanChanged) as caught:
        one.save("p", "lost?", if_match=etag)
    assert caught.value.etag == newer
    assert one.load("p").content == "second"
    (tmp_path / "plans/p.md").unlink()  # by hand, while it is open
    with pytest.raises(PlanChanged) as caught:
        one.save("p", "third", if_match=newer)
    assert caught.value.etag == ""
    with pytest.raises(PlanChanged):
        one.delete("q", if_match="x") if one.save("q", "text") else None


HOLDER = """
import sys, time
from crewlog.storage import locks
from crewlog.storage.locks import ResourceLock
locks.name_client("holder")
with ResourceLock(sys.argv[1], folder=True):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_held_lock_is_busy_and_names_its_holder(tmp_path: Path) -> None:
    holder = python(HOLDER, str(tmp_path))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    lock = ResourceLock(str(tmp_path), folder=True, timeout=0.2)
    with pytest.raises(Busy) as caught, lock:
        pass
    assert caught.value.holder["pid"] == holder.pid
    assert caught.value.holder["client"] == "holder"
    assert {"host", "since"} <= caught.value.holder.keys()
    with without_waiting(), pytest.raises(WouldBlock), lock:
        pass
    holder.send_signal(signal.SIGSTOP)
    lock.timeout = 60
    with pytest.raises(Busy), lock:  # at once: this holding was waited out before
        pass
    holder.kill()
    holder.wait()
    with ResourceLock(str(tmp_path), folder=True, timeout=5):
        pass  # it died with its holder


def test_who_holds_a_lock_anew_is_waited_for_anew(tmp_path: Path) -> None:
    lock = ResourceLock(str(tmp_path), folder=True, timeout=0.1)
    for _ in range(3):
        with ResourceLock(str(tmp_path), folder=True):
            for timeout in (0.1, 60):
                lock.timeout = timeout
                with pytest.raises(Busy), lock:
                    pass
        time.sleep(0.02)  # the time of the lock's file counts by the kernel's ticks
        lock.timeout = 0.1
        holder = ResourceLock(str(tmp_path), folder=True)
        with holder:
            begun = time.monotonic()
            with pytest.raises(Busy), lock:
                pass
            assert time.monotonic() - begun >= 0.1
        with lock:
            pass


def test_a_lock_file_unlinked_under_a_waiter_is_no_lock_any_more(tmp_path: Path) -> None:
    one, other = ResourceLock(str(tmp_path), folder=True), ResourceLock(str(tmp_path), folder=True, timeout=1)
    with one:
        shutil.rmtree(tmp_path / ".crewlog")
        with other:
            pass
    with one, pytest.raises(Busy), ResourceLock(str(tmp_path), folder=True, timeout=0.1):
        pass


def test_a_forked_child_does_not_share_its_parents_lock(tmp_path: Path) -> None:
    lock = ResourceLock(str(tmp_path), folder=True, timeout=0.2)
    with lock:
        child = os.fork()
        if child == 0:
            try:
                with lock:
                    os._exit(1)
            except Busy:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_one_object_excludes_threads_too(tmp_path: Path) -> None:
    lock = ResourceLock(str(tmp_path / "x"), timeout=0.1)
    with lock, pytest.raises(Busy) as caught, lock:
        pass
    assert caught.value.holder["pid"] == os.getpid()
    assert locks.TIMEOUT == 10


def test_an_unfinished_change_of_several_files_is_finished_by_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the writer had died between two of its renames."""
    folder = tmp_path / "list"
    writer = TaskStore(durability=PROCESS)
    writer.set_dir(str(folder))
    writer.create("a")
    writer.create("b")
    reader = TaskStore(durability=PROCESS)
    reader.set_dir(str(folder))
    real, calls = os.replace, []

    def dies(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dies)
        with pytest.raises(KeyboardInterrupt):
            writer.update("1", TaskUpdate(add_blocks=["2"]))
    found = {task.id: task for task in reader.list()}
    assert found["1"].blocks == ["2"]
    assert found["2"].blocked_by == ["1"]
    assert list(folder.glob(".*.tmp")) == []


def test_a_file_that_goes_while_the_folder_is_read_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the crash test: a list read while one of its tasks was deleted lacked all that came after it."""
    folder = tmp_path / "list"
    writer = TaskStore(durability=PROCESS)
    writer.set_dir(str(folder))
    plans = PlanStore(str(tmp_path / "plans"), durability=PROCESS)
    for number in range(30):
        writer.create(str(number))
        plans.save(f"p{number}", "text")
    real = os.scandir

    class Scan:
        """The listing is complete before anything is looked at; by then one file is gone."""

        def __init__(self, path: str) -> None:
            with real(path) as entries:
                self.entries = list(entries)
            gone = next(entry for entry in self.entries if entry.name.endswith((".json", ".md")))
            os.unlink(gone.path)

        def __enter__(self) -> Scan:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            return iter(self.entries)

    reader = TaskStore(durability=PROCESS)
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", Scan)
        reader.set_dir(str(folder))
        assert len(plans.list()) == 29
    assert len(reader.list()) == 29


def test_a_file_put_there_by_hand_is_seen_at_the_next_look(tmp_path: Path) -> None:
    folder = tmp_path / "list"
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    store.create("a")
    time.sleep(0.03)  # past the tick of the folder's time stamp
    store.list()
    (folder / "2.json").write_text('{"id":"2","subject":"by hand","status":"pending"}')
    assert [task.id for task in store.list()] == ["1", "2"]
    (folder / "1.json").unlink()
    time.sleep(0.03)
    (folder / "2.json").rename(folder / "3.json")
    assert [(task.id, task.subject) for task in store.list()] == [("2", "by hand")]
