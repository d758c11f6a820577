"""A failed write is an error, changes nothing, in memory or on disk, and the next write works.

Every operation of every store is repeated with its first, second, third … system call failing until it gets through. After each failure
that is told, the folder and the store must be as before.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import (
    PROCESS,
    History,
    PlanStore,
    RosterMember,
    RosterStore,
    SessionManager,
    StorageFailed,
    TaskStore,
    TaskUpdate,
    TranscriptStore,
    ledger,
)
from crewlog.storage.files import SIDE_FOLDER, append_all
from crewlog.storage.home import Home
from crewlog.storage.trash import Trash

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"0123456789"}]}'
WRITING = ("write", "replace", "rename", "link", "fdatasync", "fsync", "unlink", "mkdir")


class Session:
    known: dict[Path, str] = {}

    def __init__(self, folder: Path) -> None:
        path = self.known.get(folder) or self.known.setdefault(folder, str(next(iter(folder.glob("*.jsonl")))))
        self.store = SessionManager(str(folder)).open_path(path)

    @staticmethod
    def prepare(folder: Path) -> None:
        SessionManager(str(folder), durability=PROCESS).create("/x").append_message(MESSAGE)

    def state(self) -> Any:
        return self.store.leaf_id, len(self.store.snapshot().messages)

    actions: dict[str, Callable[[Any], object]] = {
        "append_message": lambda self: self.store.append_message(MESSAGE),
        "set_name": lambda self: self.store.set_name("named"),
    }


class Tasks:
    def __init__(self, folder: Path) -> None:
        self.store = TaskStore()
        self.store.set_dir(str(folder))

    @staticmethod
    def prepare(folder: Path) -> None:
        store = TaskStore(durability=PROCESS)
        store.set_dir(str(folder))
        for subject in "abc":
            store.create(subject)
        store.update("2", TaskUpdate(add_blocked_by=["1"]))

    def state(self) -> Any:
        return [(t.id, t.subject, t.status, t.owner, t.blocks, t.blocked_by) for t in self.store.list()]

    actions: dict[str, Callable[[Any], object]] = {
        "create": lambda self: self.store.create("d"),
        "create_blocked": lambda self: self.store.create("d", blocked_by=["3"]),
        "update": lambda self: self.store.update("1", TaskUpdate(subject="renamed", metadata={"k": 1})),
        "link": lambda self: self.store.update("3", TaskUpdate(add_blocks=["2"])),
        "claim": lambda self: self.store.claim("1", "me", lease_ms=60_000),
        "claim_next": lambda self: self.store.claim_next("me"),
        "delete": lambda self: self.store.delete("1"),
        "reset": lambda self: self.store.reset(),
    }


class Roster:
    def __init__(self, folder: Path) -> None:
        self.store = RosterStore()
        self.store.set_dir(str(folder))

    @staticmethod
    def prepare(folder: Path) -> None:
        store = RosterStore(durability=PROCESS)
        store.set_dir(str(folder))
        store.upsert_member(RosterMember("a", "x"))

    def state(self) -> Any:
        return self.store.snapshot().document

    actions: dict[str, Callable[[Any], object]] = {
        "set_team": lambda self: self.store.set_team("t", "d"),
        "upsert": lambda self: self.store.upsert_member(RosterMember("b", "y")),
        "remove": lambda self: self.store.remove_member("a"),
        "clear": lambda self: self.store.clear(),
    }


class Transcript:
    def __init__(self, folder: Path) -> None:
        self.store = TranscriptStore(str(folder))

    @staticmethod
    def prepare(folder: Path) -> None:
        TranscriptStore(str(folder), durability=PROCESS).append("a", [MESSAGE])

    def state(self) -> Any:
        return self.store.page("a"), self.store.agents()

    actions: dict[str, Callable[[Any], object]] = {
        "append": lambda self: self.store.append("a", [MESSAGE, MESSAGE]),
    }


class Plans:
    def __init__(self, folder: Path) -> None:
        self.store = PlanStore(str(folder))

    @staticmethod
    def prepare(folder: Path) -> None:
        PlanStore(str(folder), durability=PROCESS).save("p", "old")

    def state(self) -> Any:
        return [(plan.name, self.store.load(plan.name).content) for plan in self.store.list()]

    actions: dict[str, Callable[[Any], object]] = {
        "save": lambda self: self.store.save("p", "new"),
        "save_new": lambda self: self.store.save("q", "new", if_match=""),
        "delete": lambda self: self.store.delete("p"),
    }


class Prompts:
    def __init__(self, folder: Path) -> None:
        self.store = History(str(folder / "history.jsonl"), "/p")

    @staticmethod
    def prepare(folder: Path) -> None:
        History(str(folder / "history.jsonl"), "/p", durability=PROCESS).add("old")

    def state(self) -> Any:
        return [line.display for line in self.store.list()[0]]

    actions: dict[str, Callable[[Any], object]] = {
        "add": lambda self: self.store.add("new"),
    }


class FirstPrompt(Prompts):
    @staticmethod
    def prepare(folder: Path) -> None:
        (folder / "other.txt").write_text("the folder is there")


class FirstMessage(Transcript):
    prepare = FirstPrompt.prepare


class Project:
    """Making and forking sessions."""

    def __init__(self, folder: Path) -> None:
        self.store = SessionManager(str(folder / "project"))
        self.source = next((info.id for info in self.store.list().sessions if info.message_count), "")

    @staticmethod
    def prepare(folder: Path) -> None:
        SessionManager(str(folder / "project"), durability=PROCESS).create("/x", name="source").append_message(MESSAGE)

    def state(self) -> Any:
        return sorted(info.message_count for info in self.store.list().sessions)

    actions: dict[str, Callable[[Any], object]] = {
        "create": lambda self: self.store.create("/x"),
        "fork": lambda self: self.store.fork(self.store.open(self.source), "/y"),
    }


class Deleting:
    """Deleting and restoring sessions with their tasks."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(str(folder / "home"))
        self.trash = Trash(self.home)

    @staticmethod
    def prepare(folder: Path) -> None:
        home = Home(str(folder / "home"))
        for name in ("kept", "gone"):
            session = SessionManager(home.sessions("/x"), durability=PROCESS).create("/x", name=name)
            session.append_message(MESSAGE)
            tasks = TaskStore(durability=PROCESS)
            tasks.set_dir(home.task_list(session.session_id))
            tasks.create("a task")
            if name == "gone":
                Trash(home, PROCESS).delete(session.session_id, session.path)

    def state(self) -> Any:
        names = [info.name for info in SessionManager(self.home.sessions("/x")).list().sessions]
        return sorted(names), sorted(path.parent.name for path in Path(self.home.path).rglob("1.json"))

    def delete(self) -> None:
        info = SessionManager(self.home.sessions("/x")).list().sessions[0]
        self.trash.delete(info.id, info.path)

    def restore(self) -> None:
        self.trash.restore(next(Path(self.home.trash).glob("[!.]*")).name)

    actions: dict[str, Callable[[Any], object]] = {"delete": delete, "restore": restore}


STORES: list[Any] = [Session, Tasks, Roster, Transcript, Plans, Prompts, FirstPrompt, FirstMessage, Project]
CASES = [(store, action) for store in [*STORES, Deleting] for action in store.actions]


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> Iterator[list[str]]:
    """The `number`-th call (from 0) that changes the disk fails, and all of its kind after it. Yields the calls that were made."""
    made: list[str] = []

    def wrap(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made.append(name)
            if len(made) - 1 == number:
                raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in WRITING:
            patched.setattr(os, name, wrap(name))
        yield made


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything but our own side folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and SIDE_FOLDER not in path.parts
    }


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(("kind", "action"), CASES, ids=[f"{store.__name__}-{action}" for store, action in CASES])
def test_every_failing_call(kind: Any, action: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    kind.prepare(origin)
    for number in range(60):
        folder = tmp_path / f"try{number}"
        shutil.copytree(origin, folder)
        subject = kind(folder)
        before, files = subject.state(), files_of(folder)
        with failing(monkeypatch, number, code) as made:
            try:
                kind.actions[action](subject)
                failed = False
            except StorageFailed as error:
                failed = error.errno_name == errno.errorcode[code]
                assert failed
        if len(made) <= number:
            assert not failed
            break
        fresh = kind(folder).state()
        assert subject.state() == fresh, made
        if failed:
            assert fresh == before, (made, number)
            assert files_of(folder) == files, (made, number)
        if made[number : number + 1] != ["unlink"]:
            assert not [name for name in files_of(folder) if name.endswith(".tmp")], made
        if failed:
            kind.actions[action](subject)
            assert subject.state() == kind(folder).state() != before, (made, number)
    else:
        pytest.fail("it never got through")
    assert number > 0


LIMITED = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import test_faults
from crewlog.storage import StorageFailed
kind = next(store for store in test_faults.STORES if store.__name__ == sys.argv[1])
folder = Path(sys.argv[2])
subject = kind(folder)
before, files = subject.state(), test_faults.files_of(folder)
largest = max(len(content) for content in files.values())
for action in kind.actions:
    for limit in (1, largest + 3):
        if action == "save_new" and "q" in dict(before):
            continue
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            kind.actions[action](subject)
            failed = False
        except StorageFailed as error:
            failed = True
            assert error.errno_name == "EFBIG", error
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if failed:
            assert subject.state() == before == kind(folder).state(), (action, limit)
            assert test_faults.files_of(folder) == files, (action, limit)
            kind.actions[action](subject)
            assert subject.state() == kind(folder).state(), (action, limit)
        before, files = subject.state(), test_faults.files_of(folder)
        print(action, limit, failed)
"""


@pytest.mark.parametrize("kind", STORES, ids=[store.__name__ for store in STORES])
def test_short_writes(kind: Any, tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes the system write a part and then refuse, as a full disk does."""
    kind.prepare(tmp_path)
    program = [sys.executable, "-c", LIMITED, kind.__name__, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " True" in done.stdout  # some write did fail


READ_ONLY = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import test_faults
from crewlog.storage import StorageFailed
os.setuid(65534)  # after the imports: this Python may be private to root
kind = next(store for store in test_faults.STORES if store.__name__ == sys.argv[1])
subject = kind(Path(sys.argv[2]))
before = subject.state()
for action in kind.actions:
    try:
        kind.actions[action](subject)
    except StorageFailed as error:
        assert error.errno_name in ("EACCES", "EPERM"), error
    else:
        raise SystemExit(f"{action} went through")
    assert subject.state() == before
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody who may not write")
@pytest.mark.parametrize("kind", STORES, ids=[store.__name__ for store in STORES])
def test_read_only_home(kind: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others whenever another run of it begins
        os.chmod(folder, 0o755)
        home = Path(folder, "home")
        home.mkdir()
        kind.prepare(home)
        for path in [home, *home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        program = [sys.executable, "-c", READ_ONLY, kind.__name__, str(home), str(Path(__file__).parent)]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


READING = ("open", "stat", "fstat", "pread", "read", "scandir", "listdir")


def reads(kind: Any, folder: Path) -> Any:
    """Opens the store and reads all there is."""
    return kind(folder).state()


@pytest.mark.parametrize("kind", STORES, ids=[store.__name__ for store in STORES])
def test_every_failing_read(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that the system refuses is told as `StorageFailed` (or does not matter), and the next one works."""
    kind.prepare(tmp_path)
    before = reads(kind, tmp_path)
    mine = str(tmp_path)
    for number in range(200):
        count = 0

        def wrap(name: str, number: int = number) -> Callable[..., Any]:
            real = getattr(os, name)

            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal count
                if args and (isinstance(args[0], int) or str(args[0]).startswith(mine)):
                    count += 1
                    if count - 1 == number:
                        raise OSError(errno.EIO, os.strerror(errno.EIO))
                return real(*args, **kwargs)

            return call

        with monkeypatch.context() as patched:
            for name in READING:
                patched.setattr(os, name, wrap(name))
            try:
                reads(kind, tmp_path)
            except StorageFailed as error:
                assert error.errno_name == "EIO"  # noqa: PT017 - whether it fails is what is being found out
        assert reads(kind, tmp_path) == before
        if count <= number:
            return
    pytest.fail("it never got through")


def test_a_failing_read_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in STORES:
        folder = tmp_path / kind.__name__
        folder.mkdir()
        kind.prepare(folder)
        subject = kind(folder)
        before = subject.state()
        for action in kind.actions:
            with monkeypatch.context() as patched:
                patched.setattr(os, "stat", refusing)
                with pytest.raises(StorageFailed):
                    kind.actions[action](subject)
            assert subject.state() == before


def refusing(*_: object, **__: object) -> os.stat_result:
    raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def test_what_is_made_and_cannot_be_noted_as_made_stays_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full when the ledger should say that a deletion is complete. It was told as a success, and is one: whoever comes next
    neither undoes it nor does it again to a file that somebody put there since.
    """
    Tasks.prepare(tmp_path)
    store = Tasks(tmp_path).store
    real = append_all

    def full(descriptor: int, content: bytes, size: int) -> None:
        if b'"done"' in content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor, content, size)

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "append_all", full)
        assert store.delete("1")
        assert [task.id for task in store.list()] == ["2", "3"]
        put_there = b'{"id":"1","subject":"put there by hand","status":"pending","blocks":[],"blockedBy":[]}'
        (tmp_path / "1.json").write_bytes(put_there)
        for subject in (store, Tasks(tmp_path).store):
            assert [task.id for task in subject.list()] == ["1", "2", "3"]
        store.update("2", TaskUpdate(subject="goes on"))
    assert (tmp_path / "1.json").read_bytes() == put_there
    assert [task.subject for task in Tasks(tmp_path).store.list()] == ["put there by hand", "goes on", "c"]


def test_a_refused_change_of_several_files_is_not_made_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tasks.prepare(tmp_path)
    store, other = Tasks(tmp_path).store, Tasks(tmp_path).store
    before, files = Tasks(tmp_path).state(), files_of(tmp_path)

    def refuses(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for call in (lambda: store.delete("1"), store.reset, lambda: store.update("3", TaskUpdate(add_blocks=["2"]))):
        with monkeypatch.context() as patched:
            patched.setattr(ledger, "sync_data", refuses)
            with pytest.raises(StorageFailed):
                call()
        for subject in (store, other, Tasks(tmp_path).store):
            assert [(t.id, t.subject, t.status, t.owner, t.blocks, t.blocked_by) for t in subject.list()] == before
        assert files_of(tmp_path) == files
    assert other.delete("1")
    assert [task.id for task in store.list()] == ["2", "3"]
