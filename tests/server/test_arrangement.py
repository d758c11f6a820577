"""Which lists are the client's own, where there are many of them and of sessions?"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from crewlog.server.arrangement import Arrangement, Kind
from crewlog.server.subscriptions import Subscriptions
from crewlog.server.workspace import Workspace
from crewlog.storage.files import PROCESS


class Watches:
    """Watches nothing, but knows which folders it should."""

    kind = "none"
    reason = ""

    def __init__(self) -> None:
        self.folders: set[str] = set()

    def watch(self, folder: str) -> bool:
        self.folders.add(folder)
        return os.path.isdir(folder)

    def unwatch(self, folder: str) -> None:
        self.folders.discard(folder)

    def close(self) -> None:
        self.folders.clear()


def test_the_lists_of_a_large_home_are_sorted_out_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is done on the event loop: to look through all projects for each list would hold up the client for seconds."""
    projects, lists = 20, 100
    own = tmp_path / "work"
    workspace = Workspace(str(tmp_path / "home"), str(own), PROCESS)
    folders = [workspace.home.sessions(workspace.cwd), *(workspace.home.sessions(f"/other/{number}") for number in range(projects))]
    wanted = set()
    for number in range(lists):
        session = f"{number:08x}"
        Path(workspace.home.task_list(session)).mkdir(parents=True)
        at = number % (projects + 2)
        if at < len(folders):  # of the others there is no session
            Path(folders[at]).mkdir(parents=True, exist_ok=True)
            Path(folders[at], f"2026-01-01_{session}.jsonl").touch()
        if at in (0, projects + 1):
            wanted.add(session)
    looked = 0
    listdir = os.listdir

    def counted(path: str) -> list[str]:
        nonlocal looked
        looked += 1
        return listdir(path)

    monkeypatch.setattr(os, "listdir", counted)
    arrangement = Arrangement(workspace, Subscriptions(), set, Watches(), lambda *_: None, lambda _: None)
    arrangement.arrange()
    assert {list_id for _, list_id in arrangement.folders(Kind.LIST)} == wanted
    assert {f"{number:08x}" for number in range(lists) if arrangement.is_own(f"{number:08x}")} == wanted
    assert looked <= 4 * (projects + 2)


def test_of_lists_that_are_gone_nothing_is_watched_or_kept(tmp_path: Path) -> None:
    """A client that makes and deletes sessions for days has worked on thousands of lists."""
    workspace = Workspace(str(tmp_path / "home"), str(tmp_path / "work"), PROCESS)
    watches = Watches()
    arrangement = Arrangement(workspace, Subscriptions(), set, watches, lambda *_: None, lambda _: None)
    for number in range(100):
        name = f"list{number}"
        with workspace.tasks.use(name) as store:
            store.create("s")
        arrangement.used_lists.add(name)
    arrangement.arrange()
    assert len(workspace.tasks.kept) == 100
    for number in range(99):
        shutil.rmtree(workspace.home.task_list(f"list{number}"))
    arrangement.arrange()
    assert workspace.tasks.kept == {"list99"}
    assert len([folder for folder in watches.folders if folder.startswith(workspace.home.tasks + os.sep)]) == 2
    with workspace.tasks.use("list99"):
        pass
    assert len(workspace.tasks) <= 65
    workspace.close()
