"""Everything that is created is private to its user; names from outside become file names only when they are fit to be some."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.storage import (
    PROCESS,
    History,
    InvalidName,
    PlanStore,
    RosterMember,
    RosterStore,
    SessionManager,
    StorageFailed,
    TaskStore,
    TaskUpdate,
    TranscriptStore,
    check_name,
    project_id,
    resolve_home,
)
from crewlog.storage.files import SIDE_FOLDER
from crewlog.storage.home import Home

MESSAGE = b'{"role":"user","content":[]}'
BAD = [
    "",
    ".",
    "..",
    ".hidden",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\x7fb",
    "a\x85b",
    "é" * 101,
    "ends.",
    "ends ",
    "con",
    "NUL",
    "com1.txt",
    "\ud800",
]


@pytest.mark.parametrize("name", BAD)
def test_bad_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_name(name)
    assert caught.value.reason
    assert len(str(caught.value)) < 300
    home = Home(str(tmp_path / "home"))
    for call in (
        lambda: home.task_list(name),
        lambda: home.team(name),
        lambda: home.transcripts(name),
        lambda: SessionManager(str(tmp_path / "home"), durability=PROCESS).open(name),
        lambda: PlanStore(str(tmp_path / "home"), durability=PROCESS).save(name, "x"),
        lambda: PlanStore(str(tmp_path / "home"), durability=PROCESS).load(name),
        lambda: PlanStore(str(tmp_path / "home"), durability=PROCESS).delete(name),
        lambda: TranscriptStore(str(tmp_path / "home"), durability=PROCESS).append(name, [MESSAGE]),
        lambda: TranscriptStore(str(tmp_path / "home"), durability=PROCESS).load(name),
    ):
        with pytest.raises(InvalidName):
            call()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["a", "7", "a b", "中文", "😀", "a.b", "x" * 200, "console", "é" * 100, "~", "%2e%2e"])
def test_good_names(name: str) -> None:
    assert check_name(name) == name


def test_everything_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = tmp_path / "home"
        session = SessionManager(str(home / "projects/-p"), durability=PROCESS).create("/p")
        session.append_message(MESSAGE)
        tasks = TaskStore(durability=PROCESS)
        tasks.set_dir(str(home / "tasks/l"))
        tasks.create("a")
        tasks.create("b", blocked_by=["1"])
        tasks.update("1", TaskUpdate(subject="c"))
        roster = RosterStore(durability=PROCESS)
        roster.set_dir(str(home / "tasks/l/team"))
        roster.upsert_member(RosterMember("a", "x"))
        TranscriptStore(str(home / "tasks/l/team/transcripts"), durability=PROCESS).append("a", [MESSAGE])
        History(str(home / "history.jsonl"), "/p", durability=PROCESS).add("text")
        PlanStore(str(home / "plans"), durability=PROCESS).save("p", "text")
    finally:
        os.umask(before)
    found = [home, *home.rglob("*")]
    assert len(found) > 20
    for path in found:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_links_never_lead_a_write_out(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    outside.mkdir()
    (outside / "victim.jsonl").write_bytes(b"")
    home.mkdir()
    for name in ("projects", "plans", "tasks"):
        (home / name).symlink_to(outside)
    (home / "history.jsonl").symlink_to(outside / "victim.jsonl")
    root = str(home)
    tasks = TaskStore(durability=PROCESS, root=root)
    tasks.set_dir(str(home / "tasks/l"))
    roster = RosterStore(durability=PROCESS, root=root)
    roster.set_dir(str(home / "tasks/l/team"))
    for call in (
        lambda: SessionManager(str(home / "projects/-p"), durability=PROCESS, root=root).create("/p"),
        lambda: tasks.create("a"),
        lambda: roster.set_team("t"),
        lambda: TranscriptStore(str(home / "tasks/l/team/transcripts"), durability=PROCESS, root=root).append("a", [MESSAGE]),
        lambda: History(str(home / "history.jsonl"), "/p", durability=PROCESS, root=root).add("text"),
        lambda: PlanStore(str(home / "plans"), durability=PROCESS, root=root).save("p", "text"),
    ):
        with pytest.raises(StorageFailed, match="leads out of"):
            call()
    assert [path.name for path in outside.iterdir()] == ["victim.jsonl"]
    assert (outside / "victim.jsonl").read_bytes() == b""


@pytest.mark.parametrize("leads_to", ["file", "nothing", "folder"])
def test_a_link_among_our_own_files_is_not_followed(tmp_path: Path, leads_to: str) -> None:
    """In the place of each lock and ledger, of each temporary name that can be known, and of the folder they stand in."""
    operations = _operations(tmp_path / "origin")
    for operation in operations.values():
        operation()
    own = sorted(path.relative_to(tmp_path / "origin") for path in (tmp_path / "origin").rglob(f"{SIDE_FOLDER}/*"))
    assert len(own) > 8
    folders = sorted({path.parent for path in own})
    victim = tmp_path / "victim"
    if leads_to == "file":
        victim.write_bytes(b"precious")
    elif leads_to == "folder":
        victim.mkdir()
    for number, linked in enumerate([*own, *folders]):
        home = tmp_path / f"home{number}"
        shutil.copytree(tmp_path / "origin", home)
        path = home / linked
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.symlink_to(victim)
        for operation in _operations(home).values():
            with contextlib.suppress(StorageFailed):
                operation()
        found = (
            [p.name for p in victim.iterdir()] if leads_to == "folder" else victim.read_bytes() if leads_to == "file" else victim.exists()
        )
        assert found == {"file": b"precious", "folder": [], "nothing": False}[leads_to], linked


def _operations(home: Path) -> dict[str, Callable[[], object]]:
    root = str(home)
    manager = SessionManager(str(home / "projects/-p"), durability=PROCESS, root=root)
    tasks, roster = TaskStore(durability=PROCESS, root=root), RosterStore(durability=PROCESS, root=root)
    known = manager.list().sessions

    def list_of_tasks() -> None:
        tasks.set_dir(str(home / "tasks/l"))
        first = tasks.create("a")
        tasks.create("b", blocked_by=[first.id])
        tasks.claim(first.id, "me", lease_ms=1000)

    def team() -> None:
        roster.set_dir(str(home / "tasks/l/team"))
        roster.upsert_member(RosterMember("a", "x"))

    return {
        "session": lambda: (manager.open(known[0].id) if known else manager.create("/p")).append_message(MESSAGE),
        "tasks": list_of_tasks,
        "team": team,
        "transcript": lambda: TranscriptStore(str(home / "tasks/l/team/transcripts"), durability=PROCESS, root=root).append("a", [MESSAGE]),
        "history": lambda: History(str(home / "history.jsonl"), "/p", durability=PROCESS, root=root).add("text"),
        "plan": lambda: PlanStore(str(home / "plans"), durability=PROCESS, root=root).save("p", "text"),
    }


def test_a_home_that_is_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    root = str(tmp_path / "home")
    store = SessionManager(root + "/projects/-p", durability=PROCESS, root=root).create("/p")
    store.append_message(MESSAGE)
    other = SessionManager(str(tmp_path / "real/projects/-p"), durability=PROCESS).open(store.session_id)
    other.append_message(MESSAGE)
    assert store.refresh() is not None


def test_the_home_and_its_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREWLOG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_home() == str(tmp_path / ".codebot")
    assert resolve_home("/option") == "/option"
    monkeypatch.setenv("CREWLOG_HOME", "/variable")
    assert resolve_home("/option") == "/variable"
    assert resolve_home("/option", "/initialization") == "/initialization"
    assert project_id("/home/me/my proj") == "-home-me-my-proj"
    assert project_id("/home/dev/我的 项目/x_y.z") == "-home-dev-x-y-z"
