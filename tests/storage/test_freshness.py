"""What a look at a task list costs that did not change, or that only Crewlog changed: the same, however many tasks there are."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage import PROCESS, TaskStore, TaskUpdate, WouldBlock
from crewlog.storage.locks import without_waiting
from crewlog.storage.task_folder import UNSETTLED_NS

MANY = 300
PAUSE = 2.5 * UNSETTLED_NS / 1e9


def opened(folder: Path) -> TaskStore:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    store.watched = True
    return store


@pytest.fixture
def two(tmp_path: Path) -> tuple[TaskStore, TaskStore]:
    one = opened(tmp_path / "list")
    for number in range(MANY):
        one.create(f"{number}")
    other = opened(tmp_path / "list")
    time.sleep(PAUSE)
    for store in (one, other):
        store.list()
    return one, other


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    calls: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in ("stat", "scandir", "open"):
            patched.setattr(os, name, counting(name))
        yield calls


def test_what_did_not_change_costs_two_looks(two: tuple[TaskStore, TaskStore], monkeypatch: pytest.MonkeyPatch) -> None:
    for store in two:
        store.get("7")
        with counted(monkeypatch) as calls:
            store.get("7")
        assert calls == {"stat": 2}
        with counted(monkeypatch) as calls:
            store.find_claimable()
        assert calls["stat"] <= 3
        assert calls["scandir"] == calls["open"] == 0


def test_a_list_that_only_crewlog_changes_is_never_scanned(two: tuple[TaskStore, TaskStore], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is time between the changes, as there is in life."""
    one, other = two
    with counted(monkeypatch) as calls:
        for number in range(1, 9):
            one.claim(str(number), "me")
            assert other.get(str(number)).owner == "me"  # type: ignore[union-attr]
            time.sleep(PAUSE)
            other.update(str(number), TaskUpdate(subject="renamed", add_blocks=[str(MANY)]))
            assert one.get(str(number)).subject == "renamed"  # type: ignore[union-attr]
            time.sleep(PAUSE)
            made = one.create("new")
            assert [task.id for task in other.list()][-1] == made.id
            other.delete(made.id)
            assert one.get(made.id) is None
            time.sleep(PAUSE)
            other.release(str(number), "me")
            taken = one.claim_next("me", lease_ms=60_000)
            assert taken is not None
            assert taken.id == str(number)
            assert len(one.list()) == len(other.list()) == MANY
    assert calls["scandir"] == 0


def test_staging_is_no_change_of_the_folder(two: tuple[TaskStore, TaskStore], monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that looks while a writer prepares its change has nothing to look for."""
    one, other = two
    real = os.replace

    def looks(source: str, target: str) -> None:
        with counted(monkeypatch) as calls:
            assert other.get("5").subject == "4"  # type: ignore[union-attr]
            other.find_claimable()
            with without_waiting():
                assert len(other.list()) == MANY
        assert calls["scandir"] == 0
        seen.append(target)
        real(source, target)

    seen: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", looks)
        one.update("5", TaskUpdate(subject="changed"))
    assert len(seen) == 1
    assert other.get("5").subject == "changed"  # type: ignore[union-attr]


def test_a_file_put_there_unseen_is_not_written_over(tmp_path: Path) -> None:
    """By hand, in the same tick in which we made a task: its number is taken."""
    folder = tmp_path / "list"
    store = opened(folder)
    for number in range(1, 20, 2):
        assert store.create("ours").id == str(number)
        by_hand = f'{{"id":"{number + 1}","subject":"by hand","status":"pending","blocks":[],"blockedBy":[]}}'
        (folder / f"{number + 1}.json").write_text(by_hand)
    assert [task.subject for task in opened(folder).list()] == ["ours", "by hand"] * 10
    assert [task.subject for task in store.list()][-2:] in (["ours", "by hand"], ["by hand", "ours"])


def test_a_long_list_is_not_read_on_an_event_loop(tmp_path: Path) -> None:
    one = opened(tmp_path / "list")
    for number in range(600):
        one.create(f"{number}")
    other = TaskStore(durability=PROCESS)
    with without_waiting(), pytest.raises(WouldBlock):
        other.set_dir(str(tmp_path / "list"))


def test_a_long_list_that_is_removed_costs_less_than_it_did_to_read(tmp_path: Path) -> None:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(tmp_path))
    files = [tmp_path / f"{number}.json" for number in range(1, 8_001)]
    for number, path in enumerate(files, 1):
        path.write_text(f'{{"id":"{number}","subject":"s","status":"pending","blocks":[],"blockedBy":[]}}')
    begun = time.monotonic()
    assert len(store.list()) == len(files)
    read = time.monotonic() - begun
    for path in files:
        path.unlink()
    begun = time.monotonic()
    assert store.list() == []
    assert time.monotonic() - begun < read


def test_of_two_files_with_one_task_the_other_counts_when_one_goes(tmp_path: Path) -> None:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(tmp_path))
    for name, subject in (("1", "first"), ("2", "second"), ("3", "third")):
        (tmp_path / f"{name}.json").write_text(f'{{"id":"1","subject":"{subject}","status":"pending","blocks":[],"blockedBy":[]}}')
    seen = []
    for name in ("1", "2", "3"):
        seen += [task.subject for task in store.list()]
        (tmp_path / f"{name}.json").unlink()
        store.invalidate()
    assert seen[0] == "first"
    assert sorted(seen) == ["first", "second", "third"]
    assert store.list() == []


@pytest.mark.parametrize("how", ["files appear", "the ledger is shortened"])
def test_what_has_to_wait_is_not_lost(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that would take long on the event loop is made again in a thread: it must find what the first one had begun with."""
    folder = tmp_path / "list"
    writer = opened(folder)
    writer.create("first")
    for number in range(2, 603):
        (folder / f"{number}.json").write_text(
            f'{{"id": "{number}", "subject": "by hand", "status": "pending", "blocks": [], "blockedBy": []}}'
        )
    time.sleep(PAUSE)
    reader = opened(folder)
    writer.list()
    time.sleep(PAUSE)
    reader.list()
    if how == "files appear":
        for number in range(603, 1205):
            (folder / f"{number}.json").write_text(
                f'{{"id": "{number}", "subject": "more", "status": "pending", "blocks": [], "blockedBy": []}}'
            )
    else:
        monkeypatch.setattr("crewlog.storage.ledger.COMPACT_AT", 0)
        for number in range(1, 4):
            writer.claim(str(number), "me")
    with without_waiting(), pytest.raises(WouldBlock):
        reader.find_claimable()
    if how == "files appear":
        assert len(reader.list()) == 1204
    else:
        assert [task.owner for task in reader.list()[:4]] == ["me", "me", "me", ""]
