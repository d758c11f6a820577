"""The task board of one list: tasks with dependencies, taken by an atomic claim, shared by threads and by processes.

With a folder the files are the truth: before anything is answered, what others changed is read again, and before anything is written,
under the list's lock. How that is found out at a cost that does not grow with the list is told in `ledger` and in LOCKING.md.
"""

from __future__ import annotations

import builtins
import heapq
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from crewlog.storage.errors import (
    AlreadyClaimed,
    AlreadyResolved,
    Blocked,
    InvalidArgument,
    LeaseLost,
    StorageError,
    StorageFailed,
    TaskNotFound,
)
from crewlog.storage.files import POWER, Durability, make_folder, require_inside
from crewlog.storage.high_water_mark import read_high_water_mark
from crewlog.storage.ledger import Line, Taking, new_taking, with_lease, with_longer_lease
from crewlog.storage.listing import Skipped
from crewlog.storage.locks import Mutex, require_waiting
from crewlog.storage.records import Claim, Task, TaskSnapshot, TaskStatus, TaskUpdate
from crewlog.storage.task_files import SUFFIX, file_name, shown_record
from crewlog.storage.task_folder import TaskFolder, is_task_file
from crewlog.storage.task_index import TaskIndex
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

GRACE = 1.0
"""Seconds for which a task whose file cannot be read any more is shown as it was: somebody may be half way through writing it."""

TaskNotifyFn = Callable[[TaskSnapshot], None]
STALENESS = 1.0
"""Seconds after which a list is compared with every file again, unless its owner watches the folder: for edits in place by others."""


class TaskChanges(msgspec.Struct):
    """Ids of tasks that changed (or were added), and of those that are gone."""

    changed: set[str]
    removed: set[str]


class TaskStore:
    """A task list. Without a folder it lives in memory; `set_dir` makes it one of files. Thread-safe. Go: TaskStore.

    Every method may raise `StorageFailed`; those that write may raise `Busy`. A failed write changes nothing, in memory or on disk.
    """

    def __init__(self, *, durability: Durability = POWER, root: str | None = None) -> None:
        self.durability = durability
        self.watched = False
        """Set by an owner who is told of changes in the folder and calls `invalidate`: then no time is spent on looking for them."""
        self._root = root
        self._mutex = Mutex()
        self._folder: TaskFolder | None = None
        self._index = TaskIndex(self._owner_now)
        self._takings: dict[str, dict[str, Taking]] = {}
        self._memory_only: set[str] = set()
        self._next = 1
        self._lapses: builtins.list[tuple[float, str]] = []
        self._changes = TaskChanges(set(), set())
        self._invalid: set[str] | None = set()
        self._damaged: dict[str, float] = {}
        self._notify: TaskNotifyFn | None = None

    def set_dir(self, dir: str) -> None:
        """Keeps the list in the folder `dir`, which need not exist, and reads the tasks there. Tasks made before stay in memory only."""
        with self._mutex:
            self._memory_only |= self._index.tasks.keys()
            if self._folder is not None:
                self._folder.close()
            self._folder = TaskFolder(dir, self.durability, self._root or dir)
            self._next = 1
            self._folder.ledger.read()
            self._takings = self._folder.ledger.takings  # reading may have begun them anew
            self._verify()
            self._next = self._next_number()

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
            self._next = max(self._next_number(), number_from)
            number = self._next
            while (str(number) in self._index.tasks and str(number) not in self._memory_only) or self._is_taken(number):
                number += 1
            self._memory_only.discard(str(number))
            task = Task(
                id=str(number),
                subject=subject,
                description=description,
                active_form=active_form,
                metadata=merge_metadata({}, metadata or {}),
            )
            together = {**self._index.tasks, task.id: task}
            changed = with_dependencies(together, task, blocks=blocks, blocked_by=blocked_by) if blocks or blocked_by else {task.id: task}
            self._write(changed, Line(0, ids=builtins.list(changed), high=number))
            self._next = number + 1
            created = self._with_claim(self._index.tasks[task.id])
        self._tell()
        return created

    def get(self, id: str) -> Task | None:
        with self._mutex:
            self._refresh_one(id)
            return self._shown(id)

    def list(self, *, status: str | None = None, owner: str | None = None, claimable: bool = False) -> builtins.list[Task]:
        """The tasks by id, filtered where asked. `owner` compares with who holds a task now; "" asks for those nobody holds."""
        with self._mutex:
            self._refresh_all()
            tasks = builtins.list(self._index.claimable()) if claimable else self._index.sorted()
            return [
                self._with_claim(task)
                for task in tasks
                if (status is None or task.status == status) and (owner is None or self._owner_now(task) == owner)
            ]

    def snapshot(self) -> TaskSnapshot:
        with self._mutex:
            self._refresh_all()
            found = self._index.snapshot()
            found.items = [self._with_claim(task) for task in found.items]
            return found

    def skipped(self) -> builtins.list[Skipped]:
        """The files that are named as tasks are, and are none, with the reasons."""
        with self._mutex:
            self._refresh_all()
            return builtins.list(self._folder.skipped.values()) if self._folder else []

    def update(self, id: str, update: TaskUpdate, *, held: Claim | None = None) -> Task | None:
        """Changes the given fields; None when the status was "deleted". Raises `TaskNotFound`, `InvalidArgument`, `DependencyCycle`.

        `held`: the claim under which the caller writes; raises `LeaseLost` when it is no longer the one that holds. An empty owner in it
        stands for whoever the generation belongs to.
        """
        if update.status == DELETED:
            self._delete(id, held)
            return None
        with self._changing(id):
            task = self._require(id)
            self._check_held(task, held)
            changed = with_dependencies(
                self._index.tasks,
                updated(task, update),
                blocks=update.add_blocks,
                blocked_by=update.add_blocked_by,
                remove_blocks=update.remove_blocks,
                remove_blocked_by=update.remove_blocked_by,
            )
            changed = {key: value for key, value in changed.items() if value != self._index.tasks[key]}
            takings = []
            if update.owner and update.owner != self._owner_now(task):
                takings.append(self._new_taking(id, update.owner))
                changed.setdefault(id, task)  # whose lease has lapsed: its file may name the owner already
            if changed:
                self._write(changed, Line(0, ids=builtins.list(changed), takings=takings))
            shown = self._shown(id)
        self._tell()
        return shown

    def claim(self, id: str, owner: str, *, lease_ms: int | None = None) -> Task:
        """Gives the task to `owner`, where it can be had. By the same owner again it succeeds and writes nothing (a lease begins anew,
        but ends no earlier than before: one name may have several clients).

        Raises, checked in this order, `TaskNotFound`, `AlreadyClaimed`, `AlreadyResolved`, `Blocked`; `InvalidArgument` for an empty owner.
        """
        _check_claimant(owner, lease_ms)
        with self._changing(id):
            task, wrote = self._claim(self._require(id), owner, lease_ms)
        if wrote:
            self._tell()
        return task

    def claim_next(self, owner: str, *, lease_ms: int | None = None, match: Mapping[str, object] | None = None) -> Task | None:
        """Finds and claims in one step: the claimable task of the lowest number, None where there is none."""
        _check_claimant(owner, lease_ms)
        wanted = _wanted(match)
        if self.find_claimable(match) is None:
            return None
        with self._changing():
            while True:
                found = self._index.first_claimable(wanted)
                if found is None:
                    return None
                if self._is_current(found):
                    break
            task, _ = self._claim(found, owner, lease_ms)
        self._tell()
        return task

    def find_claimable(self, match: Mapping[str, object] | None = None) -> Task | None:
        """The claimable task of the lowest number: unowned, not completed, every blocker completed or gone."""
        with self._mutex:
            self._refresh_all()
            return self._index.first_claimable(_wanted(match))

    def renew(self, id: str, owner: str, *, lease_ms: int | None = None, generation: int | None = None, at_least: bool = False) -> Task:
        """Lets the lease begin anew, of `lease_ms` or as long as before; with `at_least` it ends no earlier than it would. No change of
        the task. Raises `TaskNotFound`, `LeaseLost`.
        """
        if lease_ms is not None:
            check_lease_ms(lease_ms)
        with self._changing(id):
            task = self._require(id)
            taking = self._require_holder(task, owner, generation)
            renewed = (with_longer_lease if at_least else with_lease)(taking, lease_ms or taking.lease_ms)
            self._record(Line(0, renewed=renewed))
            return self._with_claim(task)

    def release(self, id: str, owner: str, *, generation: int | None = None) -> Task:
        """Gives the task back. Raises `TaskNotFound`, `LeaseLost`."""
        with self._changing(id):
            task = self._require(id)
            self._require_holder(task, owner, generation)
            self._write({id: msgspec.structs.replace(task, owner="")}, Line(0, ids=[id]))
            released = self._index.tasks[id]
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
            self._next = max(self._next_number(), *(number + 1 for number in self._numbers()), 1)
            folder = self._folder
            if folder is not None and folder.exists():
                names = sorted(name for name in os.listdir(folder.path) if name.endswith(SUFFIX) and not name.startswith("."))
                line = Line(0, ids=builtins.list(self._index.tasks), high=self._next - 1)
                folder.write_together([], names, line)
                for name in names:
                    folder.forget(name)
                folder.names.clear()
            self._changes.removed |= self._index.tasks.keys()
            self._changes.changed.clear()
            self._index.clear()
            self._memory_only.clear()
            if folder is not None:
                folder.accept()
        self._tell()

    def refresh(self) -> TaskChanges:
        """Reads what others changed and returns what changed, by anyone, since the last call of `refresh`."""
        with self._mutex:
            self._refresh_all()
            changes, self._changes = self._changes, TaskChanges(set(), set())
            return changes

    def peek(self, ids: Iterable[str]) -> builtins.list[Task]:
        """Those of the tasks that are there, as of the last look, by id."""
        with self._mutex:
            found = [self._with_claim(self._index.tasks[id]) for id in ids if id in self._index.tasks]
            sort_tasks_by_id(found)
            return found

    def counts(self) -> TaskSnapshot:
        """The counts as of the last look, without the tasks."""
        with self._mutex:
            counts = self._index.counts
            return TaskSnapshot(
                [],
                counts.get(TaskStatus.PENDING, 0),
                counts.get(TaskStatus.IN_PROGRESS, 0),
                counts.get(TaskStatus.COMPLETED, 0),
                len(self._index.tasks),
            )

    def refresh_counts(self) -> None:
        """Reads what others changed, for `counts` alone: what changed stays to be told by `refresh`."""
        with self._mutex:
            self._refresh_all()

    def invalidate(self, names: set[str] | None = None) -> None:
        """Tells that files may have changed, by their names; None for all of them."""
        with self._mutex:
            known = self._invalid
            self._invalid = None if names is None or known is None else known | {name for name in names if is_task_file(name)}

    def next_lapse(self) -> float | None:
        """Seconds until time alone may change the list: a lease lapses, or a damaged file counts as gone. None where it cannot.

        A lease that was renewed since still counts once.
        """
        with self._mutex:
            moments = [*self._damaged.values(), *(self._lapses[0][:1] if self._lapses else ())]
            return max(0.0, min(moments) - _now()) if moments else None

    def task_json(self, task: Task) -> bytes:
        """The record as it is on disk, on one line, and `claim` with it where the task is claimed."""
        return shown_record(task)

    def close(self) -> None:
        with self._mutex:
            if self._folder is not None:
                self._folder.close()

    @property
    def next_id(self) -> int:
        """The number that the next task will bear unless somebody else takes it first."""
        with self._mutex:
            return self._next

    # --- one change ---

    @contextmanager
    def _changing(self, *ids: str, creates: bool = False) -> Iterator[None]:
        """The mutex, the list's lock, and everything read that others changed; `ids`: tasks whose files must be current."""
        folder = self._folder
        if folder is None:
            with self._mutex:
                self._note_lapses()
                yield
            return
        if self.durability.replacing_waits:
            require_waiting()
        with self._mutex:
            if not creates and not folder.exists():
                self._refresh_all()  # nothing is there, and a refusal must not make a folder
                if not self._index.tasks:
                    yield
                    return
            if creates:
                require_inside(folder.path, folder.root)
                make_folder(folder.path, self.durability)
            with folder.lock:
                self._refresh(*ids)
                folder.sweep()
                yield

    def _claim(self, task: Task, owner: str, lease_ms: int | None) -> tuple[Task, bool]:
        holder = self._owner_now(task)
        if holder and holder != owner:
            raise AlreadyClaimed(task.id, holder)
        if task.status == TaskStatus.COMPLETED:
            raise AlreadyResolved(task.id)
        for blocker in task.blocked_by:
            if blocker in self._index.tasks:
                self._is_current(self._index.tasks[blocker])
        task = self._index.tasks.get(task.id, task)
        waits_for = open_blockers(task, self._index.tasks)
        if waits_for:
            raise Blocked(task.id, waits_for)
        if holder == owner:
            taking = self._taking(task)
            if lease_ms is not None:
                self._record(Line(0, renewed=with_longer_lease(taking or self._new_taking(task.id, owner), lease_ms)))
            return self._with_claim(task), False
        taking = self._new_taking(task.id, owner, lease_ms or 0)
        if task.owner == owner:  # its own lapsed lease: the file says the right thing already
            self._record(Line(0, ids=[task.id], takings=[taking]))
            self._changes.changed.add(task.id)
        else:
            self._write({task.id: msgspec.structs.replace(task, owner=owner)}, Line(0, ids=[task.id], takings=[taking]))
        return self._with_claim(self._index.tasks[task.id]), True

    def _delete(self, id: str, held: Claim | None) -> None:
        with self._changing(id):
            task = self._require(id)
            self._check_held(task, held)
            cleaned = without(self._index.tasks, id)
            on_disk = [value for key, value in cleaned.items() if key not in self._memory_only]
            folder = self._folder
            if folder is not None and id not in self._memory_only:
                removes = sorted({name for name in (folder.names.get(id), file_name_or_none(id)) if name is not None})
                for done in folder.write_together(on_disk, removes, Line(0, ids=[id, *cleaned])):
                    cleaned[done.id] = done
                for name in removes:
                    folder.forget(name)
                folder.names.pop(id, None)
                folder.accept()
                folder.ledger.forget_task(id)
            for changed in cleaned.values():
                self._put(changed)
            self._drop(id)
        self._tell()

    def _write(self, changed: Mapping[str, Task], line: Line) -> None:
        """Files first, memory after: what fails on disk has not happened."""
        folder = self._folder
        on_disk = [task for task in changed.values() if task.id not in self._memory_only]
        done = {task.id: task for task in changed.values()}
        if folder is None:
            for taking in line.takings:
                self._takings.setdefault(taking.id, {})[taking.owner] = taking
        elif len(on_disk) == 1:
            done[on_disk[0].id] = folder.write_task(on_disk[0], line)
            folder.accept()
        elif on_disk:
            done.update((task.id, task) for task in folder.write_together(on_disk, [], line))
            folder.accept()
        for task in done.values():
            self._put(task)

    def _record(self, line: Line) -> None:
        if self._folder is not None:
            self._folder.ledger.write(line)
        else:
            for taking in [*line.takings, *([line.renewed] if line.renewed else [])]:
                self._takings.setdefault(taking.id, {})[taking.owner] = taking
        self._note_lapses()
        for taking in [*line.takings, *([line.renewed] if line.renewed else [])]:
            self._schedule(taking)
            self._index.look_again(taking.id)

    def _tell(self) -> None:
        if self._notify is not None:
            self._notify(self.snapshot())

    # --- what is in memory ---

    def _put(self, task: Task) -> None:
        for taking in self._takings.get(task.id, {}).values():
            self._schedule(taking)
        self._index.put(task)
        self._changes.changed.add(task.id)
        self._changes.removed.discard(task.id)

    def _drop(self, id: str) -> None:
        self._index.drop(id)
        self._memory_only.discard(id)
        self._changes.removed.add(id)
        self._changes.changed.discard(id)

    def _put_lapse(self, id: str) -> None:
        """Who holds the task, or until when, may have changed, though its file did not."""
        for taking in self._takings.get(id, {}).values():
            self._schedule(taking)
        self._index.look_again(id)

    def _schedule(self, taking: Taking) -> None:
        left = taking.lapses_in()
        if left is not None:
            heapq.heappush(self._lapses, (_now() + left, taking.id))

    def _note_lapses(self) -> None:
        """Tasks whose lease may have lapsed since the last look are claimable again."""
        while self._lapses and self._lapses[0][0] <= _now():
            _, task_id = heapq.heappop(self._lapses)
            task = self._index.tasks.get(task_id)
            if task is not None and task.owner and not self._owner_now(task):  # it may have been renewed since
                self._index.look_again(task_id)
                self._changes.changed.add(task_id)

    def _taking(self, task: Task) -> Taking | None:
        return self._takings.get(task.id, {}).get(task.owner)

    def _owner_now(self, task: Task) -> str:
        """Who holds the task. A lease ends with its task: one that is completed stays with whoever completed it."""
        if not task.owner or task.status == TaskStatus.COMPLETED:
            return task.owner
        taking = self._taking(task)
        left = taking.lapses_in() if taking is not None else None
        return "" if left is not None and left <= 0 else task.owner

    def _new_taking(self, id: str, owner: str, lease_ms: int = 0) -> Taking:
        previous = max((taking.generation for taking in self._takings.get(id, {}).values()), default=0)
        return new_taking(id, owner, previous, lease_ms)

    def _shown(self, id: str) -> Task | None:
        task = self._index.tasks.get(id)
        return None if task is None else self._with_claim(task)

    def _with_claim(self, task: Task) -> Task:
        taking = self._taking(task) if task.owner else None
        if taking is None:
            return task
        claim = Claim(taking.owner, taking.generation) if task.status == TaskStatus.COMPLETED else taking.claim()
        return msgspec.structs.replace(task, claim=claim)

    def _require(self, id: str) -> Task:
        task = self._index.tasks.get(id)
        if task is None:
            raise TaskNotFound(id)
        if self._damaged and self._folder is not None and self._name_of(id) in self._damaged:
            path = os.path.join(self._folder.path, self._name_of(id))
            raise StorageFailed(path, "EBADMSG", "it is no task just now; somebody may be writing it: try again, or repair it")
        return task

    def _check_held(self, task: Task, held: Claim | None) -> None:
        if held is not None:
            self._require_holder(task, held.owner or task.owner, held.generation)

    def _require_holder(self, task: Task, owner: str, generation: int | None) -> Taking:
        if self._owner_now(task) != owner or not owner:
            raise LeaseLost(task.id, owner)
        taking = self._taking(task)
        if generation is not None and (taking is None or taking.generation != generation):
            raise LeaseLost(task.id, owner)
        return taking or self._new_taking(task.id, owner)

    # --- what is on disk ---

    def _numbers(self) -> builtins.list[int]:
        return [int(id) for id in self._index.tasks if id.isdigit() and len(id) < 16]

    def _next_number(self) -> int:
        folder = self._folder
        if folder is None:
            return self._next
        mark = max(read_high_water_mark(folder.path), folder.ledger.high)
        return max(mark + 1, folder.highest_number + 1, self._next)

    def _is_taken(self, number: int) -> bool:
        """Whether somebody has put a file there that was not seen yet."""
        if self._folder is None or self._folder.is_current(file_name(str(number))):
            return False
        self._read_file(file_name(str(number)))
        return True

    def _refresh_all(self) -> None:
        folder = self._folder
        if folder is not None and not self.watched and folder.seconds_since_verified() > STALENESS:
            self._invalid = None
        self._refresh()

    def _refresh_one(self, id: str) -> None:
        """Two `stat` calls when neither the list's ledger nor the task's file changed: what else did does not matter to it."""
        folder = self._folder
        name = folder.names.get(id) if folder is not None and self._invalid is not None and not self._damaged else None
        if folder is None or name is None or not folder.ledger.is_current() or not folder.is_current(name):
            self._refresh(id)
        else:
            self._note_lapses()

    def _refresh(self, *ids: str) -> None:
        """Two `stat` calls when nothing changed, and one more for each of `ids`."""
        folder = self._folder
        if folder is None:
            self._note_lapses()
            return
        reading = folder.ledger.read()
        if folder.ledger.takings is not self._takings:
            self._take_over(folder.ledger.takings)
            for task in self._index.tasks.values():
                if task.owner:
                    self._put_lapse(task.id)
        if folder.ledger.unfinished is not None:
            self._finish_change(folder)
        moved = folder.folder_moved()
        if reading.everything or self._invalid is None or folder.needs_settling():
            self._verify()
        else:
            explained = reading.fresh
            for id in {*reading.ids, *ids}:
                explained |= self._look_at(self._name_of(id))
            for name in self._invalid:
                self._look_at(name)
            for name in [name for name, until in self._damaged.items() if until <= _now()]:
                self._read_file(name)
            if moved and explained:
                folder.accept()
            elif moved:
                self._verify()  # somebody else created, renamed or removed a file
        self._invalid = set()
        self._changes.changed |= reading.taken & self._index.tasks.keys()
        for id in reading.taken | reading.renewed:
            self._put_lapse(id)
        self._note_lapses()

    def _take_over(self, takings: dict[str, dict[str, Taking]]) -> None:
        """The ledger is another than before: whose every task is may be another too."""
        self._takings = takings
        for by_owner in takings.values():
            for taking in by_owner.values():
                self._schedule(taking)
        for id in self._index.tasks:
            self._index.look_again(id)

    def _finish_change(self, folder: TaskFolder) -> None:
        """A change of several files that is not done: its writer is at it, and the lock waits for that, or has died."""
        if folder.lock.held:
            unfinished = folder.ledger.unfinished
            if unfinished is not None:
                folder.finish(unfinished)
            return
        with folder.lock:
            folder.ledger.read()
            if folder.ledger.unfinished is not None:
                folder.finish(folder.ledger.unfinished)
        self._invalid = None

    def _verify(self) -> None:
        """Compares every file with what was read of it."""
        folder = self._folder
        assert folder is not None
        changed, gone = folder.changed_files()
        for name in gone:
            self._forget_file(name)
        for name in changed:
            self._read_file(name)

    def _look_at(self, name: str) -> bool:
        """Whether the file was another than before."""
        assert self._folder is not None
        if self._folder.is_current(name):
            return False
        self._read_file(name)
        return True

    def _is_current(self, task: Task) -> bool:
        """Looks at the task's file again; False where that changed the task."""
        if self._folder is None or task.id in self._memory_only:
            return True
        name = self._name_of(task.id)
        if self._folder.is_current(name):
            return True
        self._read_file(name)
        return False

    def _name_of(self, id: str) -> str:
        assert self._folder is not None
        known = self._folder.names.get(id)
        if known is not None:
            return known
        try:
            return file_name(id)
        except InvalidArgument:
            return SUFFIX

    def _read_file(self, name: str) -> None:
        folder = self._folder
        assert folder is not None
        before = folder.files.get(name)
        task = folder.read(name)
        damaged = task is None and before is not None and before.task_id is not None and name in folder.files
        if damaged and before is not None and self._damaged.setdefault(name, _now() + GRACE) > _now():
            folder.files[name].task_id = before.task_id
            return  # somebody may be half way through writing it: what was there still counts, for a moment
        self._damaged.pop(name, None)
        if before is not None and before.task_id is not None and (task is None or task.id != before.task_id):
            self._drop_read(before.task_id, name)
        if task is None:
            return
        other = folder.names.get(task.id)
        if other is not None and other != name and other in folder.files and other == file_name_or_none(task.id):
            return  # of two files with one id, the one that bears its name counts
        folder.names[task.id] = name
        known = self._index.tasks.get(task.id)
        self._memory_only.discard(task.id)
        if known is None or msgspec.structs.replace(known, claim=None) != task:
            self._put(task)

    def _forget_file(self, name: str) -> None:
        assert self._folder is not None
        task_id = self._folder.forget(name)
        if task_id is not None:
            self._drop_read(task_id, name)

    def _drop_read(self, task_id: str, name: str) -> None:
        """The task of a file that is gone; unless another file holds it as well."""
        folder = self._folder
        assert folder is not None
        if folder.names.get(task_id) != name:
            return
        del folder.names[task_id]
        other = next((n for n, state in folder.files.items() if state.task_id == task_id and n != name), None)
        if other is not None:
            self._read_file(other)
        else:
            self._drop(task_id)


def file_name_or_none(task_id: str) -> str | None:
    try:
        return file_name(task_id)
    except StorageError:
        return None


def _check_claimant(owner: str, lease_ms: int | None) -> None:
    if not owner:
        raise InvalidArgument("owner", "it is empty; give the name of whoever takes the task")
    if any("\ud800" <= char <= "\udfff" for char in owner):
        raise InvalidArgument("owner", "it holds half of a surrogate pair")
    if lease_ms is not None:
        check_lease_ms(lease_ms)


def _wanted(match: Mapping[str, object] | None) -> dict[str, msgspec.Raw] | None:
    return {key: msgspec.Raw(encode_value(value)) for key, value in match.items()} if match else None


_now = time.monotonic
