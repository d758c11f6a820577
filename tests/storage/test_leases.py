"""Claims with a lease: they lapse for every process, wall clocks do not matter, and whoever lost one is told so."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, AlreadyClaimed, Claim, InvalidArgument, LeaseLost, TaskStore, TaskUpdate, ledger
from crewlog.storage.ledger import boot_ns


class Clock:
    """Seconds that pass when the test says so; the wall clock can be set as well."""

    def __init__(self) -> None:
        self.boot = boot_ns()
        self.wall = time.time_ns()

    def passes(self, seconds: float) -> None:
        self.boot += int(seconds * 1e9)
        self.wall += int(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(ledger, "boot_ns", lambda: clock.boot)
    monkeypatch.setattr("crewlog.storage.ledger.time.time_ns", lambda: clock.wall)
    monkeypatch.setattr("crewlog.storage.task_claims.now", lambda: clock.boot / 1e9)
    return clock


@pytest.fixture
def two(tmp_path: Path, clock: Clock) -> tuple[TaskStore, TaskStore]:
    """Two stores on one list, as two processes have them."""
    return opened(tmp_path), opened(tmp_path)


def opened(tmp_path: Path) -> TaskStore:
    store = TaskStore(durability=PROCESS)
    store.set_dir(str(tmp_path / "list"))
    return store


@pytest.mark.parametrize("bad", [0, -1, 86_400_001, 2**53, True, 1.5, "1000"])
def test_what_is_no_lease_is_refused_by_name(two: tuple[TaskStore, TaskStore], bad: object) -> None:
    store, _ = two
    store.create("a")
    calls: list[Callable[[], object]] = [
        lambda: store.claim("1", "me", lease_ms=bad),  # type: ignore[arg-type]
        lambda: store.claim_next("me", lease_ms=bad),  # type: ignore[arg-type]
        lambda: store.renew("1", "me", lease_ms=bad),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match="leaseMs"):
            call()
    task = store.get("1")
    assert task is not None
    assert task.owner == ""


def test_a_lapsed_lease_frees_the_task_for_every_process(two: tuple[TaskStore, TaskStore], clock: Clock) -> None:
    one, other = two
    one.create("a")
    first = one.claim("1", "ada", lease_ms=1000)
    assert first.claim is not None
    assert first.claim.expires_at
    with pytest.raises(AlreadyClaimed):
        other.claim("1", "grace")
    assert other.find_claimable() is None
    assert other.next_lapse() == pytest.approx(1.0)
    clock.passes(0.999)
    assert other.find_claimable() is None
    clock.passes(0.002)
    for store in (one, other):
        found = store.find_claimable()
        assert found is not None
        shown = store.get("1")
        assert shown is not None
        assert shown.claim is not None
        assert shown.claim.lapsed
        assert [task.id for task in store.list(owner="")] == ["1"]
    taken = other.claim_next("grace", lease_ms=1000)
    assert taken is not None
    assert taken.claim is not None
    assert taken.claim.generation > first.claim.generation
    with pytest.raises(AlreadyClaimed):
        one.claim("1", "ada")


def test_a_lease_ends_with_its_task_and_not_with_who_did_it(two: tuple[TaskStore, TaskStore], clock: Clock) -> None:
    one, other = two
    one.create("a")
    taken = one.claim("1", "ada", lease_ms=1000)
    assert taken.claim is not None
    one.update("1", TaskUpdate(status="completed"))
    clock.passes(2)
    for store in two:
        (shown,) = store.list(owner="ada")
        assert shown.claim == Claim("ada", taken.claim.generation)
        assert store.list(owner="") == []
    with pytest.raises(AlreadyClaimed):
        other.claim("1", "grace")
    reopened = other.update("1", TaskUpdate(status="pending"))
    assert reopened is not None
    assert reopened.claim is not None
    assert reopened.claim.lapsed
    assert one.claim("1", "grace").owner == "grace"


def test_renewing_keeps_it_and_is_no_change_of_the_task(two: tuple[TaskStore, TaskStore], clock: Clock, tmp_path: Path) -> None:
    one, other = two
    one.create("a")
    one.claim("1", "ada", lease_ms=1000)
    other.refresh()
    before = (tmp_path / "list" / "1.json").stat().st_mtime_ns
    for _ in range(5):
        clock.passes(0.9)
        one.renew("1", "ada")
        assert other.find_claimable() is None
    changes = other.refresh()
    assert (changes.changed, changes.removed) == (set(), set())
    assert (tmp_path / "list" / "1.json").stat().st_mtime_ns == before
    one.renew("1", "ada", lease_ms=5000)
    clock.passes(4.9)
    assert other.find_claimable() is None


def test_who_was_suspended_for_longer_than_the_lease_is_refused(two: tuple[TaskStore, TaskStore], clock: Clock) -> None:
    one, other = two
    one.create("a")
    held = one.claim("1", "ada", lease_ms=1000).claim
    assert held is not None
    clock.passes(2)
    late: list[Callable[[], object]] = [
        lambda: one.update("1", TaskUpdate(status="completed"), held=held),
        lambda: one.renew("1", "ada", generation=held.generation),
        lambda: one.release("1", "ada", generation=held.generation),
    ]
    for call in late:
        with pytest.raises(LeaseLost):
            call()
    anew = other.claim("1", "ada", lease_ms=1000).claim  # another process, under the same name
    assert anew is not None
    for call in late:
        with pytest.raises(LeaseLost):
            call()
    done = other.update("1", TaskUpdate(status="completed"), held=anew)
    assert done is not None
    assert done.status == "completed"
    with pytest.raises(LeaseLost):
        one.update("1", TaskUpdate(status="deleted"), held=held)


def test_steps_of_the_wall_clock_free_nothing(two: tuple[TaskStore, TaskStore], clock: Clock) -> None:
    one, other = two
    one.create("a")
    one.claim("1", "ada", lease_ms=1000)
    clock.wall += 10**15
    assert other.find_claimable() is None
    clock.wall -= 5 * 10**15
    assert other.find_claimable() is None
    clock.boot += 1_100_000_000
    assert other.find_claimable() is not None


def test_a_machine_that_sleeps_frees_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them sleep: the holder that works again when the lid is opened still has its task, and renews in time."""
    one, other = opened(tmp_path), opened(tmp_path)
    one.create("a")
    one.claim("1", "ada", lease_ms=60_000)
    clock_gettime_ns, asleep = time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", None)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: clock_gettime_ns(clock) + (clock == asleep) * 10**15)
    assert other.find_claimable() is None
    with pytest.raises(AlreadyClaimed):
        other.claim("1", "grace")
    one.renew("1", "ada")


def test_a_lease_of_an_earlier_boot_ended_with_it(two: tuple[TaskStore, TaskStore], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = two
    one.create("a")
    one.claim("1", "ada", lease_ms=80_000_000)
    monkeypatch.setattr(ledger, "BOOT", "another")
    assert other.find_claimable() is not None


def test_a_lease_of_another_host_goes_by_the_wall_clock(
    two: tuple[TaskStore, TaskStore], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    one.create("a")
    one.claim("1", "ada", lease_ms=10_000)
    monkeypatch.setattr(ledger, "HOST", "another")
    assert other.find_claimable() is None
    clock.wall += 11_000_000_000
    other.invalidate()
    shown = other.get("1")
    assert shown is not None
    assert shown.claim is not None
    assert shown.claim.lapsed


def test_claiming_again_by_the_same_owner(two: tuple[TaskStore, TaskStore], clock: Clock, tmp_path: Path) -> None:
    one, other = two
    one.create("a")
    first = one.claim("1", "ada").claim
    assert first is not None
    written = (tmp_path / "list" / "1.json").stat()
    again = other.claim("1", "ada").claim
    assert again == first
    leased = other.claim("1", "ada", lease_ms=1000).claim
    assert leased is not None
    assert leased.generation == first.generation
    assert (tmp_path / "list" / "1.json").stat().st_ino == written.st_ino
    clock.passes(2)
    anew = one.claim("1", "ada", lease_ms=1000).claim
    assert anew is not None
    assert anew.generation > first.generation
    assert (tmp_path / "list" / "1.json").stat().st_ino == written.st_ino


def test_of_two_clients_of_one_name_the_longer_lease_counts(two: tuple[TaskStore, TaskStore], clock: Clock) -> None:
    one, other = two
    one.create("a")
    first = one.claim("1", "ada", lease_ms=60_000).claim
    second = other.claim("1", "ada", lease_ms=1000).claim
    assert first is not None
    assert second is not None
    assert second.generation == first.generation
    clock.passes(1)
    other.renew("1", "ada", lease_ms=1000, generation=second.generation, at_least=True)
    clock.passes(50)
    assert one.find_claimable() is None
    assert one.renew("1", "ada").claim is not None, "and for as long as it was taken"
    clock.passes(59)
    assert other.find_claimable() is None
    other.renew("1", "ada", lease_ms=1000)  # who asks for less gets it
    clock.passes(2)
    assert one.find_claimable() is not None


def test_the_number_rises_even_when_the_ledger_is_lost(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.create("a")
    first = store.claim("1", "ada").claim
    (tmp_path / "list/.crewlog/ledger").unlink()
    store.update("1", TaskUpdate(owner=""))
    second = store.claim("1", "ada").claim
    assert first is not None
    assert second is not None
    assert second.generation > first.generation


def test_only_the_holder_may_renew_or_release(two: tuple[TaskStore, TaskStore]) -> None:
    one, other = two
    one.create("a")
    with pytest.raises(LeaseLost):
        one.renew("1", "ada", lease_ms=1000)
    one.claim("1", "ada")
    with pytest.raises(LeaseLost):
        other.release("1", "grace")
    assert other.release("1", "ada").owner == ""
    with pytest.raises(LeaseLost):
        one.update("1", TaskUpdate(subject="x"), held=Claim("ada", 1))


def test_the_ledger_is_compacted_and_keeps_the_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "COMPACT_AT", 2000)
    one, other = opened(tmp_path), opened(tmp_path)
    for number in range(5):
        one.create(str(number))
    held = one.claim("2", "ada", lease_ms=60_000).claim
    for number in range(200):
        one.update("1", TaskUpdate(subject=str(number)))
        assert other.get("1").subject == str(number)  # type: ignore[union-attr]
    assert (tmp_path / "list/.crewlog/ledger").stat().st_size < 4000
    with pytest.raises(AlreadyClaimed):
        other.claim("2", "grace")
    fresh = opened(tmp_path)
    shown = fresh.get("2")
    assert shown is not None
    assert held is not None
    assert shown.claim is not None
    assert shown.claim.generation == held.generation
    fresh.create("5")


def test_whoever_comes_after_the_lapse_sees_it(tmp_path: Path, clock: Clock) -> None:
    store = opened(tmp_path)
    store.create("a")
    store.claim("1", "ada", lease_ms=1000)
    clock.passes(2)
    late = opened(tmp_path)
    found = late.find_claimable()
    assert found is not None
    early = opened(tmp_path)
    store.claim("1", "ada", lease_ms=1000)
    assert early.find_claimable() is None
    (tmp_path / "list/.crewlog/ledger").unlink()  # the claim stays, without its end
    assert early.find_claimable() is None
    clock.passes(2)
    assert early.find_claimable() is None


def test_an_update_by_others_gives_a_lapsed_holder_nothing(two: tuple[TaskStore, TaskStore], clock: Clock) -> None:
    one, other = two
    one.create("a")
    one.claim("1", "ada", lease_ms=1000)
    clock.passes(2)
    other.update("1", TaskUpdate(description="seen by somebody"))
    for store in two:
        assert store.find_claimable() is not None
    given = other.update("1", TaskUpdate(owner="ada"))
    assert given is not None
    assert given.claim is not None
    assert not given.claim.lapsed
    for store in two:
        assert store.find_claimable() is None


@pytest.mark.parametrize("renews", [False, True])
def test_a_lease_ends_though_others_came_and_went_a_thousand_times(two: tuple[TaskStore, TaskStore], clock: Clock, renews: bool) -> None:
    one, other = two
    for subject in "abc":
        one.create(subject)
    one.claim("1", "ada", lease_ms=1000)
    one.claim("2", "ada", lease_ms=500_000)
    other.refresh()
    for _ in range(300):
        one.claim("3", "grace", lease_ms=600_000)
        if renews:
            one.renew("3", "grace")
        one.release("3", "grace")
    for store in two:
        assert store.next_lapse() is not None
        assert store.find_claimable() == store.get("3")
    clock.passes(2)
    for store in two:
        assert "1" in store.refresh().changed
        assert [task.id for task in store.list(claimable=True)] == ["1", "3"]
    clock.passes(500)
    for store in two:
        assert store.refresh().changed == {"2"}
        assert [task.id for task in store.list(claimable=True)] == ["1", "2", "3"]
        assert store.next_lapse() is None or store.next_lapse() == pytest.approx(98, abs=5)  # of what was given back
