"""A list is moved to the trash while others wait for its lock: nothing stands in its place afterwards, so that it can come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, SessionManager, TaskStore, TaskUpdate
from crewlog.storage.errors import StorageError, TaskNotFound
from crewlog.storage.home import Home
from crewlog.storage.trash import Trash

WRITES: dict[str, Callable[[TaskStore], object]] = {
    "update": lambda store: store.update("1", TaskUpdate(subject="late")),
    "delete by update": lambda store: store.update("1", TaskUpdate(status="deleted")),
    "claim": lambda store: store.claim("1", "ada"),
    "renew": lambda store: store.renew("1", "ada"),
    "release": lambda store: store.release("1", "ada"),
}
EMPTY: dict[str, Callable[[TaskStore], object]] = {
    "delete": lambda store: store.delete("1"),
    "claim_next": lambda store: store.claim_next("ada"),
    "reset": lambda store: store.reset(),
}


@pytest.mark.parametrize("write", [*WRITES, *EMPTY])
def test_who_waited_for_a_list_that_was_deleted_leaves_nothing_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    home = Home(str(tmp_path))
    session = SessionManager(home.sessions("/w"), durability=PROCESS, root=home.path).create("/w")
    folder = Path(home.task_list(session.session_id))
    store = TaskStore(durability=PROCESS, root=home.path)
    store.set_dir(str(folder))
    store.create("one")
    if write in ("renew", "release"):
        store.claim("1", "ada", lease_ms=60_000)
    outcome: list[object] = []

    def late() -> None:
        try:
            outcome.append({**WRITES, **EMPTY}[write](store))
        except StorageError as error:
            outcome.append(error)

    waiting = threading.Thread(target=late, daemon=True)
    move_all = Trash._move_all

    def slow(self: Trash, moves: list[tuple[str, str]]) -> None:
        """Under the locks."""
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        move_all(self, moves)

    monkeypatch.setattr(Trash, "_move_all", slow)
    Trash(home, PROCESS).delete(session.session_id, session.path)
    waiting.join(15)
    if write in WRITES:
        assert isinstance(outcome[0], TaskNotFound)
    else:
        assert not outcome[0]
    assert not folder.exists()
    monkeypatch.undo()
    assert Trash(home, PROCESS).restore(session.session_id) == session.path
    assert [task.subject for task in store.list()] == ["one"]


def test_a_task_made_in_a_list_that_was_deleted_meanwhile_begins_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(str(tmp_path))
    session = SessionManager(home.sessions("/w"), durability=PROCESS, root=home.path).create("/w")
    store = TaskStore(durability=PROCESS, root=home.path)
    store.set_dir(home.task_list(session.session_id))
    store.create("one")
    waiting = threading.Thread(target=lambda: store.create("two"), daemon=True)
    move_all = Trash._move_all

    def slow(self: Trash, moves: list[tuple[str, str]]) -> None:
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        move_all(self, moves)

    monkeypatch.setattr(Trash, "_move_all", slow)
    Trash(home, PROCESS).delete(session.session_id, session.path)
    waiting.join(15)
    assert [(task.id, task.subject) for task in store.list()] == [("2", "two")]
