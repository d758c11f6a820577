"""The task board: what callers are told, and what becomes of odd input."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from crewlog.storage import (
    PROCESS,
    AlreadyClaimed,
    Blocked,
    DependencyCycle,
    InvalidArgument,
    StorageFailed,
    TaskNotFound,
    TaskSnapshot,
    TaskStore,
    TaskUpdate,
    WouldBlock,
)
from crewlog.storage.locks import without_waiting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "list"


@pytest.fixture
def store(folder: Path) -> TaskStore:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    return store


def test_a_cycle_is_told_as_a_path(store: TaskStore) -> None:
    for subject in "abcd":
        store.create(subject)
    store.update("1", TaskUpdate(add_blocks=["2"]))
    store.update("2", TaskUpdate(add_blocks=["3"]))
    with pytest.raises(DependencyCycle) as caught:
        store.update("3", TaskUpdate(add_blocks=["1"]))
    path = caught.value.path
    assert path[0] == path[-1]
    assert set(path) == {"1", "2", "3"}
    for place in range(len(path) - 1):
        assert tuple(path[place : place + 2]) in {("1", "2"), ("2", "3"), ("3", "1")}
    with pytest.raises(DependencyCycle) as caught:
        store.update("4", TaskUpdate(add_blocked_by=["4"]))
    assert caught.value.path == ["4", "4"]
    with pytest.raises(DependencyCycle):
        store.update("4", TaskUpdate(add_blocked_by=["1"], add_blocks=["1"]))
    assert store.get("4").blocked_by == []  # type: ignore[union-attr]


def test_creating_with_dependencies(store: TaskStore, folder: Path) -> None:
    store.create("a")
    made = store.create("b", blocked_by=["1"])
    assert made.blocked_by == ["1"]
    assert store.get("1").blocks == ["2"]  # type: ignore[union-attr]
    with pytest.raises(TaskNotFound):
        store.create("c", blocked_by=["1", "99"])
    assert sorted(path.name for path in folder.glob("*.json")) == ["1.json", "2.json"]
    assert store.create("d", blocks=["2"]).id == "3"
    with pytest.raises(Blocked) as caught:
        store.claim("2", "me")
    assert caught.value.blocked_by == ["1", "3"]


def test_dependencies_can_be_removed_from_either_side(store: TaskStore) -> None:
    store.create("a")
    store.create("b", blocked_by=["1"])
    store.update("1", TaskUpdate(remove_blocks=["2", "77"]))
    assert store.get("2").blocked_by == []  # type: ignore[union-attr]
    store.update("2", TaskUpdate(add_blocked_by=["1"]))
    store.update("2", TaskUpdate(remove_blocked_by=["1", "77"]))
    assert store.get("1").blocks == []  # type: ignore[union-attr]


def test_filters_and_skips(store: TaskStore, folder: Path) -> None:
    for subject in "abc":
        store.create(subject)
    store.claim("1", "ada")
    store.update("2", TaskUpdate(status="completed"))
    assert [task.id for task in store.list(status="completed")] == ["2"]
    assert [task.id for task in store.list(owner="ada")] == ["1"]
    assert [task.id for task in store.list(owner="")] == ["2", "3"]
    assert [task.id for task in store.list(claimable=True)] == ["3"]
    (folder / "1.json").unlink()
    (folder / "4.json").write_text('["no task"]')
    (folder / "5.json").mkdir()
    store.invalidate()
    assert [task.id for task in store.list()] == ["2", "3"]
    assert sorted(Path(skipped.path).name for skipped in store.skipped()) == ["4.json", "5.json"]
    assert store.create("d").id == "6"


def test_matching_metadata(store: TaskStore) -> None:
    store.create("a", metadata={"area": "docs", "size": 1})
    store.create("b", metadata={"area": "code", "size": {"x": [1, 2.0]}})
    store.create("c", metadata={"area": "code", "size": {"x": [1, 2]}, "more": None})
    assert store.find_claimable({"area": "code"}).id == "2"  # type: ignore[union-attr]
    assert store.claim_next("me", match={"size": msgspec.Raw(b'{ "x": [1,2] }')}).id == "2"  # type: ignore[union-attr]
    assert store.claim_next("me", match={"area": "code", "size": {"x": [1, 2]}}).id == "3"  # type: ignore[union-attr]
    assert store.claim_next("me", match={"area": "none"}) is None
    assert store.claim_next("me", match={"more": None}) is None


@pytest.mark.parametrize("bad", [float("nan"), object(), b"{", msgspec.Raw(b"nope"), "\ud800"])
def test_metadata_that_is_no_json(store: TaskStore, bad: object) -> None:
    with pytest.raises(InvalidArgument, match="metadata"):
        store.create("a", metadata={"k": bad})
    assert store.list() == []


def test_statuses_and_owners(store: TaskStore) -> None:
    store.create("a")
    with pytest.raises(InvalidArgument, match="status"):
        store.update("1", TaskUpdate(status="done"))
    with pytest.raises(InvalidArgument, match="owner"):
        store.claim("1", "")
    first = store.update("1", TaskUpdate(owner="ada"))
    assert first is not None
    assert first.claim is not None
    assert first.claim.owner == "ada"
    second = store.update("1", TaskUpdate(owner="grace"))
    assert second is not None
    assert second.claim is not None
    assert second.claim.generation > first.claim.generation
    assert store.update("1", TaskUpdate(status="deleted")) is None
    with pytest.raises(TaskNotFound):
        store.update("1", TaskUpdate(status="deleted"))


def test_in_memory_only() -> None:
    told: list[TaskSnapshot] = []
    store = TaskStore()
    store.set_notify_fn(told.append)
    store.create("a")
    store.create("b", blocked_by=["1"])
    store.claim("1", "me", lease_ms=60_000)
    with pytest.raises(AlreadyClaimed):
        store.claim("1", "you")
    store.renew("1", "me")
    store.release("1", "me")
    assert store.delete("1")
    assert not store.delete("1")
    assert store.find_claimable().id == "2"  # type: ignore[union-attr]
    store.reset()
    assert store.create("c").id == "3"
    assert store.skipped() == []
    assert len(told) == 7
    assert told[-1].total == 1
    store.close()


def test_a_refusal_makes_no_folder(store: TaskStore, folder: Path) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.claim("1", "me"),
        lambda: store.update("1", TaskUpdate()),
        lambda: store.release("1", "me"),
    ]
    for call in calls:
        with pytest.raises(TaskNotFound):
            call()
    assert store.claim_next("me") is None
    assert store.delete("1") is False
    store.reset()
    assert not folder.exists()


def test_files_of_any_age_and_hand(store: TaskStore, folder: Path) -> None:
    store.create("a")
    (folder / "1 (copy).json").write_text((folder / "1.json").read_text())
    (folder / "1.json.bak").write_text("{}")
    (folder / "007.json").write_text('{"id":"7","subject":"seven","status":"pending"}')
    (folder / "-5.json").write_text('{"id":"-5","subject":"minus","status":"pending"}')
    (folder / "8.json").write_text('{"id":"../../evil","subject":"x","status":"pending"}')
    (folder / "9.json").write_text('{"id":"9","subject":"x","status":"pending","completedAt":"yesterday"}')
    (folder / "10.json").write_text('{"id":"10","subject":"\\ud800","status":"pending","metadata":{"k":"\\ud800"},"future":"\\ud801"}')
    store.invalidate()
    assert [task.id for task in store.list()] == ["-5", "1", "7", "10", "../../evil"]
    with pytest.raises(InvalidArgument):
        store.update("../../evil", TaskUpdate(subject="y"))
    assert [Path(skipped.path).name for skipped in store.skipped()] == ["9.json"]
    store.update("10", TaskUpdate(description="d"))
    written = (folder / "10.json").read_text()
    assert "\\ud800" in written
    assert "\\ud801" in written
    assert store.get("10").subject == "\ud800"  # type: ignore[union-attr]
    assert store.create("half \ud800").id == "11"
    assert '"half \\ud800"' in (folder / "11.json").read_text()
    assert store.delete("11")
    assert store.delete("7")
    assert not (folder / "007.json").exists()
    assert store.delete("../../evil") is True
    assert sorted(path.name for path in folder.glob("*.json")) == ["-5.json", "1 (copy).json", "1.json", "10.json", "9.json"]


def test_two_files_with_one_id(store: TaskStore, folder: Path) -> None:
    store.create("a")
    (folder / "2.json").write_text('{"id":"1","subject":"impostor","status":"pending"}')
    store.invalidate()
    assert [(task.id, task.subject) for task in store.list()] == [("1", "a")]
    (folder / "1.json").unlink()
    store.invalidate()
    assert [(task.id, task.subject) for task in store.list()] == [("1", "impostor")]


def test_changes_are_told_once(folder: Path, store: TaskStore) -> None:
    other = TaskStore(durability=PROCESS)
    other.set_dir(str(folder))
    other.refresh()
    store.create("a")
    store.create("b")
    changes = other.refresh()
    assert (changes.changed, changes.removed) == ({"1", "2"}, set())
    store.delete("1")
    (folder / "2.json").touch()
    changes = other.refresh()
    assert (changes.changed, changes.removed) == (set(), {"1"})
    assert other.refresh().changed == set()
    assert [task.id for task in other.peek(["2", "1", "77"])] == ["2"]


def test_a_link_out_of_the_home_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    home = tmp_path / "home"
    (home / "tasks").mkdir(parents=True)
    (home / "tasks" / "list").symlink_to(outside)
    store = TaskStore(durability=PROCESS, root=str(home))
    store.set_dir(str(home / "tasks" / "list"))
    with pytest.raises(StorageFailed, match="leads out of"):
        store.create("a")
    assert list(outside.iterdir()) == []


def test_a_long_list_is_not_read_on_an_event_loop(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    for number in range(1, 700):
        (folder / f"{number}.json").write_text(json.dumps({"id": str(number), "subject": "s", "status": "pending"}))
    store = TaskStore(durability=PROCESS)
    with without_waiting(), pytest.raises(WouldBlock):
        store.set_dir(str(folder))
    time.sleep(0.03)  # past the tick of the folder's time stamp: a look made within it is repeated once
    store.set_dir(str(folder))
    store.claim("5", "me")  # makes the side folder, which the folder's time stamp tells of
    time.sleep(0.03)
    store.list()
    with without_waiting():
        assert store.find_claimable().id == "1"  # type: ignore[union-attr]
        store.claim("1", "me")
    power = TaskStore()
    power.set_dir(str(folder))
    with without_waiting(), pytest.raises(WouldBlock):
        power.claim("2", "me")
    assert store.get("2").owner == ""  # type: ignore[union-attr]


def test_a_half_written_file_is_no_change_for_a_moment(store: TaskStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("a")
    store.refresh()
    path = folder / "1.json"
    whole = path.read_bytes()
    for part in (b"", whole[:10], whole[:-1]):
        path.write_bytes(part)
        store.invalidate()
        changes = store.refresh()
        assert (changes.changed, changes.removed) == (set(), set())
        assert [task.subject for task in store.list()] == ["a"]
        assert len(store.skipped()) == 1
        with pytest.raises(StorageFailed, match="somebody may be writing"):
            store.claim("1", "me")
        assert path.read_bytes() == part
    path.write_bytes(whole.replace(b'"a"', b'"b"'))
    assert store.claim("1", "me").subject == "b"
    path.write_bytes(b"{")
    store.invalidate()
    store.refresh()
    later = time.monotonic() + 1.5
    monkeypatch.setattr("crewlog.storage.task_claims.now", lambda: later)
    assert store.refresh().removed == {"1"}
    assert store.list() == []
    assert store.create("c").id == "2"


def test_a_task_removed_while_its_making_is_told_is_returned_all_the_same(tmp_path: Path) -> None:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(tmp_path))
    other = TaskStore(durability=PROCESS)
    other.set_dir(str(tmp_path))

    def removes(_: object) -> None:
        store.set_notify_fn(None)
        other.reset()
        store.refresh()

    store.set_notify_fn(removes)
    assert store.create("short-lived").subject == "short-lived"
    assert store.list() == []
