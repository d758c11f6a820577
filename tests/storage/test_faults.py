"""A failed write is an error, changes nothing, in memory or on disk, and the next write works.

Every operation of every store is repeated with its first, second, third … system call failing until it gets through. After each failure
the folder and the store must be as before or, where the call came after the change was made, as after: never between.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
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
)
from crewlog.storage.files import SIDE_FOLDER

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"0123456789"}]}'
WRITING = ("write", "replace", "fdatasync", "fsync", "unlink", "mkdir")


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


STORES: list[Any] = [Session, Tasks, Roster, Transcript, Plans, Prompts]
CASES = [(store, action) for store in STORES for action in store.actions]


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
        before = subject.state()
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
        if failed and fresh != before:
            # Only a sync after the change may fail and leave it: the change is there, only not yet on the device.
            assert made[number] in ("fsync", "fdatasync"), (made, number)
        if made[number : number + 1] != ["unlink"]:
            assert not [name for name in files_of(folder) if name.endswith(".tmp")], made
        if not failed or fresh == before:
            kind.actions[action](subject)
            assert subject.state() == kind(folder).state()
            again = kind(folder)
            kind.actions[next(iter(kind.actions))](again)
            assert not [name for name in files_of(folder) if name.endswith(".tmp")]  # what stayed is swept by the next writer
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
def test_read_only_home(kind: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    kind.prepare(home)
    for path in [home, *home.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    reachable = tmp_path
    while reachable != reachable.parent and reachable.stat().st_uid == os.geteuid() and str(reachable).startswith("/tmp/"):
        reachable.chmod(0o755)
        reachable = reachable.parent
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, kind.__name__, str(home), str(Path(__file__).parent)], capture_output=True, text=True, check=False
    )
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
