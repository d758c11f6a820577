"""Somebody edits task files in place, without locks and without a word: an operation keeps all that it did not mean to change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, TaskStore, TaskUpdate
from crewlog.storage.errors import StorageFailed

Operation = Callable[[TaskStore], object]
OPERATIONS: dict[str, Operation] = {
    "update": lambda store: store.update("1", TaskUpdate(description="new")),
    "add_blocks": lambda store: store.update("2", TaskUpdate(add_blocks=["1"])),
    "add_blocked_by": lambda store: store.update("2", TaskUpdate(add_blocked_by=["1"])),
    "remove_blocks": lambda store: store.update("3", TaskUpdate(remove_blocks=["1"])),
    "remove_blocked_by": lambda store: store.update("4", TaskUpdate(remove_blocked_by=["1"])),
    "delete what it waits for": lambda store: store.delete("3"),
    "delete what waits for it": lambda store: store.update("4", TaskUpdate(status="deleted")),
    "create behind it": lambda store: store.create("new", blocked_by=["1"]),
    "create before it": lambda store: store.create("new", blocks=["1"]),
    "claim": lambda store: store.claim("1", "ada"),
}


@pytest.fixture
def store(tmp_path: Path) -> TaskStore:
    """Tasks 1 and 2, 3 which blocks 1, and 4 which waits for 1."""
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(tmp_path))
    for subject in ("one", "two"):
        store.create(subject)
    store.create("three", blocks=["1"])
    store.create("four", blocked_by=["1"])
    store.update("3", TaskUpdate(status="completed"))
    store.watched = True  # an event is on its way
    store.list()
    return store


def edit(path: Path, **fields: object) -> None:
    """As an editor does that writes in place."""
    task = json.loads(path.read_bytes())
    task.update(fields)
    with path.open("r+", encoding="utf-8") as file:
        file.write(json.dumps(task, indent=2))
        file.truncate()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_edit_in_place_is_kept_by_every_operation_that_writes_the_task(store: TaskStore, tmp_path: Path, operation: str) -> None:
    edit(tmp_path / "1.json", subject="edited by hand", metadata={"note": "mine"})
    OPERATIONS[operation](store)
    found = json.loads((tmp_path / "1.json").read_bytes())
    assert found["subject"] == "edited by hand"
    assert found["metadata"] == {"note": "mine"}
    shown = store.get("1")
    assert shown is not None
    assert shown.subject == "edited by hand"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_file_that_is_half_written_is_not_written_over(store: TaskStore, tmp_path: Path, operation: str) -> None:
    path = tmp_path / "1.json"
    half = path.read_bytes()[:-20]
    path.write_bytes(half)
    before = {name: (tmp_path / name).read_bytes() for name in ("2.json", "3.json", "4.json")}
    with pytest.raises(StorageFailed, match=r"1\.json"):
        OPERATIONS[operation](store)
    assert path.read_bytes() == half
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert not (tmp_path / "5.json").exists()


def test_a_task_that_is_blocked_by_hand_is_passed_over(store: TaskStore, tmp_path: Path) -> None:
    store.update("2", TaskUpdate(status="completed"))
    edit(tmp_path / "3.json", status="pending", completedAt=None)
    taken = store.claim_next("ada")  # 1 waits for 3 again
    assert taken is not None
    assert taken.id == "3"


def test_a_task_that_somebody_took_by_hand_is_passed_over(store: TaskStore, tmp_path: Path) -> None:
    edit(tmp_path / "1.json", owner="somebody")
    taken = store.claim_next("ada")
    assert taken is not None
    assert taken.id == "2"


def test_a_task_that_is_half_written_is_passed_over(store: TaskStore, tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    half = path.read_bytes()[:-20]
    path.write_bytes(half)
    taken = store.claim_next("ada")
    assert taken is not None
    assert taken.id == "2"
    assert store.claim_next("ada") is None
    assert path.read_bytes() == half
