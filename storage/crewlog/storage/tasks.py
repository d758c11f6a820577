"""The task board of one list: tasks with dependencies, taken by an atomic claim, shared by threads and by processes.

With a folder the files are the truth: before anything is answered, what others changed is read again, and before anything is written,
under the list's lock. How that is found out at a cost that does not grow with the list is told in `ledger` and in LOCKING.md.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from crewlog.storage import task_claims
from crewlog.storage.errors import (
    AlreadyClaimed,
    AlreadyResolved,
    Blocked,
    InvalidArgument,
    StorageFailed,
    TaskNotFound,
)
from crewlog.storage.files import POWER, Durability, make_folder, require_inside
from crewlog.storage.ledger import Line, with_lease, with_longer_lease
from crewlog.storage.listing import Skipped
from crewlog.storage.locks import Mutex, require_waiting
from crewlog.storage.records import Claim, Task, TaskSnapshot, TaskStatus, TaskUpdate
from crewlog.storage.task_board import TaskBoard, TaskChanges
from crewlog.storage.task_files import shown_record
from crewlog.storage.task_folder import TaskFolder, is_task_file
from crewlog.storage.task_rules import (
    DELETED,
    check_lease_ms,
    encode_value,
    merge_metadata,
    open_blockers,
    sort_tasks_by_id,
    updated,
    with_dependencies,
    without,
)

TaskNotifyFn = Callable[[TaskSnapshot], None]


class TaskStore:
    """A task list. Without a folder it lives in memory; `set_dir` makes it one of files. Thread-safe. Go: TaskStore.

    Every method may raise `StorageFailed`; those that write may raise `Busy`. A failed write changes nothing, in memory or on disk.
    """

    def __init__(self, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.durability = durability
        self._root = root
        self._mutex = Mutex()
        self._board = TaskBoard()
        self._notify: TaskNotifyFn | None = None

    @property
    def watched(self) -> bool:
        """Set by an owner who is told of changes in the folder and calls `invalidate`: then no time is spent on looking for them."""
        return self._board.watched

    @watched.setter
    def watched(self, watched: bool) -> None:
        self._board.watched = watched

    def set_dir(self, dir: str) -> None:
        """Keeps the list in the folder `dir`, which need not exist, and reads the tasks there. Tasks made before stay in memory only."""
        with self._mutex:
            self._board.follow(TaskFolder(dir, self.durability, self._root or dir))

    def set_notify_fn(self, notify: TaskNotifyFn | None) -> None:
        """`notify` is called after each change made through this store, with the whole list."""
        self._notify = notify

    def create(
        self,
        subject: str,
        description: str = "",
        active_form: str = "",
        metadata: Mapping[str, object] | None = None,
        *,
        blocks: Sequence[str] = (),
        blocked_by: Sequence[str] = (),
        number_from: int = 1,
    ) -> Task:
        """Adds a task under a number that no task of this list ever had, and not below `number_from`. Raises `TaskNotFound` for unknown
        blockers.
        """
        with self._changing(creates=True):
            number = self._board.free_number(number_from)
            self._board.memory_only.discard(str(number))
            task = Task(
                id=str(number),
                subject=subject,
                description=description,
                active_form=active_form,
                metadata=merge_metadata({}, metadata or {}),
            )

            def change() -> dict[str, Task]:
                return with_dependencies({**self._tasks, task.id: task}, task, blocks=blocks, blocked_by=blocked_by)

            changed = self._board.settled(change) if blocks or blocked_by else {task.id: task}
            self._board.write(changed, Line(0, ids=builtins.list(changed), high=number))
            self._board.next = number + 1
            created = self._board.claims.shown(self._tasks[task.id])
        self._tell()
        return created

    def get(self, id: str) -> Task | None:
        with self._mutex:
            self._board.refresh_one(id)
            return self._board.shown(id)

    def list(self, *, status: str | None = None, owner: str | None = None, claimable: bool = False) -> builtins.list[Task]:
        """The tasks by id, filtered where asked. `owner` compares with who holds a task now; "" asks for those nobody holds."""
        with self._mutex:
            self._board.refresh_all()
            tasks = builtins.list(self._board.index.claimable()) if claimable else self._board.index.sorted()
            return [
                self._board.claims.shown(task)
                for task in tasks
                if (status is None or task.status == status) and (owner is None or self._board.claims.owner_now(task) == owner)
            ]

    def snapshot(self) -> TaskSnapshot:
        with self._mutex:
            self._board.refresh_all()
            found = self._board.index.snapshot()
            found.items = [self._board.claims.shown(task) for task in found.items]
            return found

    def skipped(self) -> builtins.list[Skipped]:
        """The files that are named as tasks are, and are none, with the reasons."""
        with self._mutex:
            self._board.refresh_all()
            return builtins.list(self._board.folder.skipped.values()) if self._board.folder else []

    def update(self, id: str, update: TaskUpdate, *, held: Claim | None = None) -> Task | None:
        """Changes the given fields; None when the status was "deleted". Raises `TaskNotFound`, `InvalidArgument`, `DependencyCycle`.

        `held`: the claim under which the caller writes; raises `LeaseLost` when it is no longer the one that holds. An empty owner in it
        stands for whoever the generation belongs to.
        """
        if update.status == DELETED:
            self._delete(id, held)
            return None
        with self._changing(id):

            def change() -> dict[str, Task]:
                task = self._board.require(id)
                self._board.claims.check_held(task, held)
                changed = with_dependencies(
                    self._tasks,
                    updated(task, update),
                    blocks=update.add_blocks,
                    blocked_by=update.add_blocked_by,
                    remove_blocks=update.remove_blocks,
                    remove_blocked_by=update.remove_blocked_by,
                )
                return {key: value for key, value in changed.items() if value != self._tasks[key]}

            changed = self._board.settled(change)
            task = self._tasks[id]
            takings = []
            if update.owner and update.owner != self._board.claims.owner_now(task):
                takings.append(self._board.claims.new_taking(id, update.owner))
                changed.setdefault(id, task)  # whose lease has lapsed: its file may name the owner already
            if changed:
                self._board.write(changed, Line(0, ids=builtins.list(changed), takings=takings))
            shown = self._board.shown(id)
        self._tell()
        return shown

    def claim(self, id: str, owner: str, *, lease_ms: int | None = None) -> Task:
        """Gives the task to `owner`, where it can be had. By the same owner again it succeeds and writes nothing (a lease begins anew,
        but ends no earlier than before: one name may have several clients).

        Raises, checked in this order, `TaskNotFound`, `AlreadyClaimed`, `AlreadyResolved`, `Blocked`; `InvalidArgument` for an empty owner.
        """
        _check_claimant(owner, lease_ms)
        with self._changing(id):
            task, wrote = self._claim(self._board.require(id), owner, lease_ms)
        if wrote:
            self._tell()
        return task

    def claim_next(self, owner: str, *, lease_ms: int | None = None, match: Mapping[str, object] | None = None) -> Task | None:
        """Finds and claims in one step: the claimable task of the lowest number, None where there is none."""
        _check_claimant(owner, lease_ms)
        wanted = _wanted(match)
        if not self._may_claim(wanted) and self.find_claimable(match) is None:
            return None
        with self._changing():
            while True:
                found = self._board.first_claimable(wanted)
                if found is None:
                    return None
                if self._board.is_current(found):
                    with contextlib.suppress(Blocked):  # somebody opened a blocker again by hand, which is known now
                        task, _ = self._claim(found, owner, lease_ms)
                        break
        self._tell()
        return task

    def _may_claim(self, wanted: dict[str, msgspec.Raw] | None) -> bool:
        """Whether there was something to claim at the last look. Whether it is still there shows under the lock, at no more cost."""
        with self._mutex:
            return self._board.first_claimable(wanted) is not None

    def find_claimable(self, match: Mapping[str, object] | None = None) -> Task | None:
        """The claimable task of the lowest number: unowned, not completed, every blocker completed or gone."""
        with self._mutex:
            self._board.refresh_all()
            return self._board.first_claimable(_wanted(match))

    def renew(self, id: str, owner: str, *, lease_ms: int | None = None, generation: int | None = None, at_least: bool = False) -> Task:
        """Lets the lease begin anew, of `lease_ms` or as long as before; with `at_least` it ends no earlier than it would. No change of
        the task. Raises `TaskNotFound`, `LeaseLost`.
        """
        if lease_ms is not None:
            check_lease_ms(lease_ms)
        with self._changing(id):
            task = self._board.require(id)
            taking = self._board.claims.require_holder(task, owner, generation)
            renewed = (with_longer_lease if at_least else with_lease)(taking, lease_ms or taking.lease_ms)
            self._board.record(Line(0, renewed=renewed))
            return self._board.claims.shown(task)

    def release(self, id: str, owner: str, *, generation: int | None = None) -> Task:
        """Gives the task back. Raises `TaskNotFound`, `LeaseLost`."""
        with self._changing(id):
            task = self._board.require(id)
            self._board.claims.require_holder(task, owner, generation)
            self._board.write({id: msgspec.structs.replace(task, owner="")}, Line(0, ids=[id]))
            released = self._tasks[id]
        self._tell()
        return released

    def delete(self, id: str) -> bool:
        """Whether it was there. The other tasks no longer name it."""
        try:
            self._delete(id, None)
        except TaskNotFound:
            return False
        return True

    def reset(self) -> None:
        """Removes all tasks; their numbers are not given out again."""
        with self._changing():
            self._board.remove_all()
        self._tell()

    def refresh(self) -> TaskChanges:
        """Reads what others changed and returns what changed, by anyone, since the last call of `refresh`."""
        with self._mutex:
            self._board.refresh_all()
            changes, self._board.changes = self._board.changes, TaskChanges(set(), set())
            return changes

    def peek(self, ids: Iterable[str]) -> builtins.list[Task]:
        """Those of the tasks that are there, as of the last look, by id."""
        with self._mutex:
            found = [self._board.claims.shown(self._tasks[id]) for id in ids if id in self._tasks]
            sort_tasks_by_id(found)
            return found

    def counts(self) -> TaskSnapshot:
        """The counts as of the last look, without the tasks."""
        with self._mutex:
            counts = self._board.index.counts
            return TaskSnapshot(
                [],
                counts.get(TaskStatus.PENDING, 0),
                counts.get(TaskStatus.IN_PROGRESS, 0),
                counts.get(TaskStatus.COMPLETED, 0),
                len(self._tasks),
            )

    def refresh_counts(self) -> None:
        """Reads what others changed, for `counts` alone: what changed stays to be told by `refresh`."""
        with self._mutex:
            self._board.refresh_all()

    def invalidate(self, names: set[str] | None = None) -> None:
        """Tells that files may have changed, by their names; None for all of them."""
        with self._mutex:
            known = self._board.invalid
            self._board.invalid = None if names is None or known is None else known | {name for name in names if is_task_file(name)}

    def next_lapse(self) -> float | None:
        """Seconds until time alone may change the list: a lease lapses, or a damaged file counts as gone. None where it cannot.

        A lease that was renewed since still counts once.
        """
        with self._mutex:
            moment = self._board.next_moment()
            return None if moment is None else max(0.0, moment - task_claims.now())

    def task_json(self, task: Task) -> bytes:
        """The record as it is on disk, on one line, and `claim` with it where the task is claimed."""
        return shown_record(task)

    def close(self) -> None:
        with self._mutex:
            if self._board.folder is not None:
                self._board.folder.close()

    @property
    def next_id(self) -> int:
        """The number that the next task will bear unless somebody else takes it first."""
        with self._mutex:
            return self._board.next

    # --- one change ---

    @contextmanager
    def _changing(self, *ids: str, creates: bool = False) -> Iterator[None]:
        """The mutex, the list's lock, and everything read that others changed; `ids`: tasks whose files must be current."""
        folder = self._board.folder
        if folder is None:
            with self._mutex:
                self._board.note_lapses()
                yield
            return
        if self.durability.replacing_waits:
            require_waiting()
        with self._mutex, contextlib.ExitStack() as locked:
            if self._lock(folder, locked, creates=creates):
                self._board.refresh(*ids)
                folder.sweep()
            yield

    def _lock(self, folder: TaskFolder, locked: contextlib.ExitStack, *, creates: bool) -> bool:
        """Takes the list's lock; False where there is no list, since a refusal must not make a folder: neither before the lock, nor in
        the place of a list that was moved away while it was waited for.
        """
        while True:
            if not creates and not folder.exists():
                self._board.refresh_all()
                if not self._tasks:
                    return False
                creates = True  # the tasks that it had before it had a folder
            if creates:
                require_inside(folder.path, folder.root)
                make_folder(folder.path, self.durability)
            try:
                locked.enter_context(folder.lock)
            except StorageFailed as error:
                if error.errno_name != "ENOENT" or folder.exists():
                    raise
            else:
                return True

    def _claim(self, task: Task, owner: str, lease_ms: int | None) -> tuple[Task, bool]:
        holder = self._board.claims.owner_now(task)
        if holder and holder != owner:
            raise AlreadyClaimed(task.id, holder)
        if task.status == TaskStatus.COMPLETED:
            raise AlreadyResolved(task.id)
        for blocker in task.blocked_by:
            if blocker in self._tasks:
                self._board.is_current(self._tasks[blocker])
        task = self._tasks.get(task.id, task)
        waits_for = open_blockers(task, self._tasks)
        if waits_for:
            raise Blocked(task.id, waits_for)
        if holder == owner:
            taking = self._board.claims.taking(task)
            if lease_ms is not None:
                self._board.record(Line(0, renewed=with_longer_lease(taking or self._board.claims.new_taking(task.id, owner), lease_ms)))
            return self._board.claims.shown(task), False
        taking = self._board.claims.new_taking(task.id, owner, lease_ms or 0)
        if task.owner == owner:  # its own lapsed lease: the file says the right thing already
            self._board.record(Line(0, ids=[task.id], takings=[taking]))
            self._board.changes.changed.add(task.id)
        else:
            self._board.write({task.id: msgspec.structs.replace(task, owner=owner)}, Line(0, ids=[task.id], takings=[taking]))
        return self._board.claims.shown(self._tasks[task.id]), True

    def _delete(self, id: str, held: Claim | None) -> None:
        with self._changing(id):
            self._board.claims.check_held(self._board.require(id), held)
            self._board.remove(id, self._board.settled(lambda: without(self._tasks, id)))
        self._tell()

    def _tell(self) -> None:
        if self._notify is not None:
            self._notify(self.snapshot())

    @property
    def _tasks(self) -> dict[str, Task]:
        return self._board.index.tasks


def _check_claimant(owner: str, lease_ms: int | None) -> None:
    if not owner:
        raise InvalidArgument("owner", "it is empty; give the name of whoever takes the task")
    if any("\ud800" <= char <= "\udfff" for char in owner):
        raise InvalidArgument("owner", "it holds half of a surrogate pair")
    if lease_ms is not None:
        check_lease_ms(lease_ms)


def _wanted(match: Mapping[str, object] | None) -> dict[str, msgspec.Raw] | None:
    return {key: msgspec.Raw(encode_value(value)) for key, value in match.items()} if match else None
