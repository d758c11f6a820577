"""A task list's ledger over a long life: it stays small, cheap to write, and is never taken for another."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from crewlog.storage import POWER, PROCESS, Task, TaskStore, TaskUpdate, files, ledger, times
from crewlog.storage.errors import AlreadyClaimed, StorageFailed


def opened(folder: Path) -> TaskStore:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(folder))
    return store


def test_many_claims_that_all_count_do_not_make_every_change_rewrite_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "COMPACT_AT", 2_000)
    store, reader = opened(tmp_path), opened(tmp_path)
    path = tmp_path / ".crewlog/ledger"
    rewritten, identity = 0, 0
    for number in range(1, 301):
        store.create("x")
        store.claim(str(number), "ada", lease_ms=3_600_000)
        found = path.stat().st_ino
        rewritten, identity = rewritten + (found != identity), found
        reader.get("1")
    assert rewritten < 30
    for other in (reader, opened(tmp_path)):
        shown = other.list()
        assert len(shown) == 300
        assert all(task.claim is not None and task.claim.expires_at for task in shown)
        with pytest.raises(AlreadyClaimed):
            other.claim("150", "grace")


@pytest.mark.parametrize("ends", ["given back", "deleted", "reset"])
def test_who_held_what_once_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    monkeypatch.setattr(ledger, "COMPACT_AT", 10_000)
    monkeypatch.setattr(ledger, "PAST_KEPT", 20)
    store, other = opened(tmp_path), opened(tmp_path)
    kept = store.create("one that is held all the time")
    held = store.claim(kept.id, "ada", lease_ms=3_600_000).claim
    task = store.create("x")
    largest = 0
    for number in range(1_000):
        name = f"agent-{number}"
        store.claim(task.id, name, lease_ms=60_000)
        if ends == "given back":
            store.release(task.id, name)
        elif ends == "deleted":
            store.delete(task.id)
            task = other.create("x")
        elif number % 50 == 49:
            store.reset()
            kept, task = store.create("x"), store.create("x")
            held = store.claim(kept.id, "ada", lease_ms=3_600_000).claim
        else:
            task = store.create("x")
        largest = max(largest, (tmp_path / ".crewlog/ledger").stat().st_size)
    assert largest < 60_000  # 1,000 of them take 200,000
    shown = opened(tmp_path).get(kept.id)
    assert shown is not None
    assert held is not None
    assert shown.claim is not None
    assert shown.claim.generation == held.generation


def test_a_change_is_not_refused_because_the_ledger_cannot_be_made_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "COMPACT_AT", 100)

    def full(path: str, *_: object) -> os.stat_result:
        raise StorageFailed(path, "ENOSPC", "No space left on device")

    store, other = opened(tmp_path), opened(tmp_path)
    store.create("x")
    monkeypatch.setattr(ledger, "replace_file", full)
    store.claim("1", "ada", lease_ms=60_000)
    store.renew("1", "ada", lease_ms=120_000)
    store.create("y", blocked_by=["1"])
    store.update("1", TaskUpdate(subject="z"))
    for reader in (other, opened(tmp_path)):
        shown = reader.get("1")
        assert shown is not None
        assert shown.subject == "z"
        assert shown.owner == "ada"
        with pytest.raises(AlreadyClaimed):
            reader.claim("1", "grace")
    monkeypatch.undo()
    assert store.claim_next("ada") is None


def expiry(task: Task) -> int:
    """In nanoseconds."""
    assert task.claim is not None
    return times.parse_ns(task.claim.expires_at) or 0


@pytest.mark.parametrize("lines_more", [0, 1, 50])
def test_a_ledger_that_got_the_number_of_an_earlier_one_is_read_whole(tmp_path: Path, lines_more: int) -> None:
    """File systems give the number of a file that is gone to a new one; the ledger is replaced whenever it has grown long."""
    path = tmp_path / ".crewlog/ledger"
    writer = opened(tmp_path)
    writer.create("x")
    writer.claim("1", "ada", lease_ms=60_000)
    idle = opened(tmp_path)
    size = path.stat().st_size
    os.link(path, tmp_path / "earlier")
    first = idle.get("1")
    assert first is not None

    writer.renew("1", "ada", lease_ms=3_600_000)
    line = path.read_bytes().splitlines()[-1]
    content = line + b" " * (size - len(line) - 1) + b"\n"  # as long as the idle one knows it
    for number in range(lines_more):
        content += b'{"n":%d,"ids":["1"]}\n' % (100 + number)
    (tmp_path / "earlier").write_bytes(content)
    (tmp_path / "earlier").replace(path)

    found = idle.get("1")
    assert found is not None
    assert expiry(found) > expiry(first) + 1_000_000_000_000


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("how", ["claim", "claim_next", "again"])
def test_a_power_cut_takes_no_lease_s_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, compacted: bool) -> None:
    """What was not synced is gone then. Were that the lease alone, the task would belong to the dead holder for ever."""
    synced: dict[int, int] = {}
    sync_data = files.sync_data

    def noted(descriptor: int) -> None:
        sync_data(descriptor)
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    monkeypatch.setattr(files, "sync_data", noted)
    monkeypatch.setattr(ledger, "sync_data", noted)
    if compacted:
        monkeypatch.setattr(ledger, "COMPACT_AT", 100)
    store = TaskStore(durability=POWER)
    store.set_dir(str(tmp_path))
    store.create("x")
    if how == "claim_next":
        assert store.claim_next("ada", lease_ms=60_000) is not None
    else:
        store.claim("1", "ada", lease_ms=1 if how == "again" else 60_000)
    if how == "again":
        while store.find_claimable() is None:
            time.sleep(0.001)
        store.claim("1", "ada", lease_ms=60_000)
    path = tmp_path / ".crewlog/ledger"
    os.truncate(path, synced.get(path.stat().st_ino, 0))
    with pytest.raises(AlreadyClaimed):
        opened(tmp_path).claim("1", "grace")
    monkeypatch.setattr(ledger, "BOOT", "the next")
    assert opened(tmp_path).claim("1", "grace").owner == "grace"
