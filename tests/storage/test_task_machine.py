"""The task board against a model: any order of operations, by two stores on one folder as two processes would use it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from crewlog.storage import (
    PROCESS,
    AlreadyClaimed,
    AlreadyResolved,
    Blocked,
    DependencyCycle,
    LeaseLost,
    TaskNotFound,
    TaskStore,
    TaskUpdate,
)
from crewlog.storage.files import SIDE_FOLDER

which = st.integers(0, 1)
numbers = st.integers(1, 8).map(str)
owners = st.sampled_from(["ada", "grace"])
statuses = st.sampled_from(["pending", "in_progress", "completed"])


class Board(RuleBasedStateMachine):
    """`model`: id → [status, owner, blocked_by]."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="crewlog-machine-"))
        self.stores = [self.opened(), self.opened()]
        self.model: dict[str, list[object]] = {}
        self.given: set[str] = set()

    def opened(self) -> TaskStore:
        store = TaskStore(durability=PROCESS)
        store.set_dir(str(self.folder / "list"))
        return store

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def open_blockers(self, id: str) -> list[str]:
        return [other for other in self.blocked_by(id) if self.model[other][0] != "completed"]

    def blocked_by(self, id: str) -> list[str]:
        found = self.model[id][2]
        assert isinstance(found, list)
        return found

    def reaches(self, start: str, goal: str) -> bool:
        """Whether `goal` waits, directly or not, for `start`."""
        seen, waiting = set(), [goal]
        while waiting:
            current = waiting.pop()
            if current == start:
                return True
            if current not in seen:
                seen.add(current)
                waiting += self.blocked_by(current)
        return False

    @rule(at=which)
    def create(self, at: int) -> None:
        task = self.stores[at].create("s")
        assert task.id not in self.given
        assert all(int(task.id) > int(other) for other in self.given)
        self.given.add(task.id)
        self.model[task.id] = ["pending", "", []]

    @rule(at=which, id=numbers, owner=owners)
    def claim(self, at: int, id: str, owner: str) -> None:
        expected: type[Exception] | None = None
        if id not in self.model:
            expected = TaskNotFound
        elif self.model[id][1] not in ("", owner):
            expected = AlreadyClaimed
        elif self.model[id][0] == "completed":
            expected = AlreadyResolved
        elif self.open_blockers(id):
            expected = Blocked
        self.attempt(expected, lambda: self.stores[at].claim(id, owner))
        if expected is None:
            self.model[id][1] = owner

    @rule(at=which, owner=owners)
    def claim_next(self, at: int, owner: str) -> None:
        expected = self.lowest_claimable()
        task = self.stores[at].claim_next(owner)
        assert (task.id if task else None) == expected
        if expected is not None:
            self.model[expected][1] = owner

    def lowest_claimable(self) -> str | None:
        free = [id for id, (status, owner, _) in self.model.items() if status != "completed" and not owner and not self.open_blockers(id)]
        return min(free, key=int, default=None)

    @rule(at=which, id=numbers, owner=owners)
    def release(self, at: int, id: str, owner: str) -> None:
        expected = None if id in self.model and self.model[id][1] == owner else LeaseLost if id in self.model else TaskNotFound
        self.attempt(expected, lambda: self.stores[at].release(id, owner))
        if expected is None:
            self.model[id][1] = ""

    @rule(at=which, id=numbers, status=statuses)
    def set_status(self, at: int, id: str, status: str) -> None:
        expected = None if id in self.model else TaskNotFound
        self.attempt(expected, lambda: self.stores[at].update(id, TaskUpdate(status=status)))
        if expected is None:
            self.model[id][0] = status

    @rule(at=which, blocker=numbers, blocked=numbers, other_side=st.booleans())
    def link(self, at: int, blocker: str, blocked: str, other_side: bool) -> None:
        expected: type[Exception] | None = None
        if blocker not in self.model or blocked not in self.model:
            expected = TaskNotFound
        elif self.reaches(blocked, blocker):
            expected = DependencyCycle
        if other_side:
            self.attempt(expected, lambda: self.stores[at].update(blocked, TaskUpdate(add_blocked_by=[blocker])))
        else:
            self.attempt(expected, lambda: self.stores[at].update(blocker, TaskUpdate(add_blocks=[blocked])))
        if expected is None and blocker not in self.blocked_by(blocked):
            self.blocked_by(blocked).append(blocker)

    @rule(at=which, blocker=numbers, blocked=numbers)
    def unlink(self, at: int, blocker: str, blocked: str) -> None:
        if blocked in self.model and blocker in self.model:
            self.stores[at].update(blocked, TaskUpdate(remove_blocked_by=[blocker]))
            if blocker in self.blocked_by(blocked):
                self.blocked_by(blocked).remove(blocker)

    @rule(at=which, id=numbers)
    def delete(self, at: int, id: str) -> None:
        assert self.stores[at].delete(id) is (id in self.model)
        self.model.pop(id, None)
        for other in self.model:
            if id in self.blocked_by(other):
                self.blocked_by(other).remove(id)

    @rule(at=which)
    def reset(self, at: int) -> None:
        self.stores[at].reset()
        self.model.clear()

    @rule(at=which)
    def reopen(self, at: int) -> None:
        self.stores[at].close()
        self.stores[at] = self.opened()

    @rule()
    def lose_the_side_folder(self) -> None:
        shutil.rmtree(self.folder / "list" / SIDE_FOLDER, ignore_errors=True)

    def attempt(self, expected: type[Exception] | None, call: object) -> None:
        assert callable(call)
        try:
            call()
        except Exception as error:
            assert type(error) is expected, error  # noqa: PT017 - whether it refuses is the model's to say
        else:
            assert expected is None

    @invariant()
    def both_see_the_same(self) -> None:
        for store in self.stores:
            tasks = {task.id: task for task in store.list()}
            assert {id: [t.status, t.owner, sorted(t.blocked_by)] for id, t in tasks.items()} == {
                id: [status, owner, sorted(self.blocked_by(id))] for id, (status, owner, _) in self.model.items()
            }
            for task in tasks.values():
                assert sorted(task.blocks) == sorted(other.id for other in tasks.values() if task.id in other.blocked_by)
            found = store.find_claimable()
            assert (found.id if found else None) == self.lowest_claimable()
            counts = store.counts()
            statuses_now = [status for status, _, _ in self.model.values()]
            assert (counts.pending, counts.in_progress, counts.completed, counts.total) == (
                statuses_now.count("pending"),
                statuses_now.count("in_progress"),
                statuses_now.count("completed"),
                len(statuses_now),
            )


Board.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestBoard = Board.TestCase
