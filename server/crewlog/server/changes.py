"""From "something happened there" to what the client is told.

Events are hints: what is told comes from comparing the files with what was told last. A change that comes alone is told at once; the more
of them come, the longer they are gathered, up to `LONGEST_WINDOW` seconds. While the client does not read, nothing is made, and
afterwards it gets the final state.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from msgspec import Raw

from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.protocol.envelope import encode_notification, encode_result
from crewlog.server.arrangement import ALL, PLANS, Arrangement, Kind, Mark, session_id_of
from crewlog.server.board_methods import counts_record, task_record
from crewlog.server.lanes import Job, Lanes
from crewlog.server.outbox import Outbox
from crewlog.server.subscriptions import Subscriptions
from crewlog.server.tellers import ListLook, PlanTeller, RosterTeller, SessionLook, SessionTeller, TaskTeller
from crewlog.server.watching import Watcher, start_watcher
from crewlog.server.workspace import Workspace
from crewlog.storage.errors import StorageError

SHORTEST_WINDOW = 0.002
LONGEST_WINDOW = 0.07
"""Seconds between two rounds of telling."""
_LAPSE_MARGIN = 0.002
_LOOKS_A_TURN = 20
"""A list is looked at in some 50 µs; more at once would hold up the client's requests."""

logger = logging.getLogger(__name__)


class Changes:
    """Watches what the client subscribed to, or waits for, and tells it of changes. Used on the loop's thread only.

    `list_changed` is called for each list in which something changed, `warn` with a sentence when the system does not tell of changes.
    `since`: from when on the client expects to hear of changes, in nanoseconds since 1970.
    """

    def __init__(
        self,
        workspace: Workspace,
        lanes: Lanes,
        subscriptions: Subscriptions,
        outbox: Outbox,
        waited_lists: Callable[[], set[str]],
        list_changed: Callable[[str], None],
        warn: Callable[[str], None],
        since: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._workspace = workspace
        self._lanes = lanes
        self._subscriptions = subscriptions
        self._outbox = outbox
        self._waited_lists = waited_lists
        self._list_changed = list_changed
        self._warn = warn
        self._starting = False
        self._ended = False
        self._when_started: list[Callable[[], None]] = []
        self._arrangement: Arrangement | None = None
        self._dirty: dict[Mark, set[str] | None] = {}
        self._turn: deque[tuple[Mark, set[str] | None]] = deque()
        self._due: asyncio.TimerHandle | None = None
        self._told_at = 0.0
        self._window = SHORTEST_WINDOW
        self._news = 0
        self._since = since
        self._lapses: dict[str, asyncio.TimerHandle] = {}
        self.revisions: dict[str, int] = {}
        self.sent = 0

    @property
    def state(self) -> records.WatcherState:
        """How the client hears of what others do."""
        if self._arrangement is None:
            return records.WatcherState(kind="none", state="off")
        watcher = self._arrangement.watcher
        return records.WatcherState(kind=watcher.kind, state="ready", reason=watcher.reason)

    def start(self, then: Callable[[], None] = lambda: None) -> None:
        """Begins to watch, and calls `then` when what is wanted is watched. The watcher is made in a thread: its import takes time."""
        if self._ended:
            return
        if self._arrangement is not None:
            self._watch_more(then)
            return
        self._when_started.append(then)
        if not self._starting:
            self._starting = True
            make = partial(start_watcher, self._workspace.home.path, self._event, self._overflow)
            self._lanes.submit(Job(make, self._started, slow=True))

    def end(self) -> None:
        """Watches and tells nothing more."""
        self._ended = True
        for timer in [*self._lapses.values(), *([self._due] if self._due is not None else [])]:
            timer.cancel()
        if self._arrangement is not None:
            self._arrangement.watcher.close()

    def use_list(self, list_id: str) -> None:
        """The client worked on this list: it belongs to what it hears of."""
        arrangement = self._arrangement
        if arrangement is not None and list_id not in arrangement.used_lists:
            arrangement.used_lists.add(list_id)
            if not arrangement.watches_list(list_id) and (
                arrangement.wants_list("task", list_id) or arrangement.wants_list("roster", list_id)
            ):
                self._watch_again(list_id)

    def wait_for(self, list_id: str, then: Callable[[], None]) -> None:
        """Calls `then` when the list is watched."""
        if self._arrangement is not None and self._arrangement.watches_list(list_id):
            then()
        else:
            self.start(then)

    def touch(self, topic: str, key: str = "") -> None:
        """The client itself changed something."""
        self._mark(Mark(topic, key), set())

    def resume(self) -> None:
        """The client reads again."""
        if self._dirty or self._turn:
            self._schedule()

    def present(self, list_ids: list[str], topics: set[str], then: Callable[[r.Subscribed, Exception | None], None], name: str) -> None:
        """Reads the present state of lists and teams, each in its lane, so that what is told later follows on it."""
        answer = r.Subscribed(subscription_id=name)
        rest = deque(list_ids)

        def next_list() -> None:
            if not rest:
                then(answer, None)
                return
            list_id = rest.popleft()
            self._lanes.submit(Job(partial(self._state_of, list_id, topics), partial(took, list_id), ("tasks", list_id)))

        def took(list_id: str, found: object, error: Exception | None) -> None:
            if error is not None:
                then(answer, error)
                return
            assert isinstance(found, tuple)
            tasks, roster = found
            if tasks is not None:
                tasks.revision = self.revisions.get(list_id, 0)
                answer.tasks.append(tasks)
            if roster is not None:
                if self._arrangement is not None:
                    self._rosters.take_as_told(list_id, bytes(roster.roster))
                answer.rosters.append(roster)
            self._loop.call_soon(next_list)

        next_list()

    def _state_of(self, list_id: str, topics: set[str]) -> tuple[r.TaskListState | None, r.RosterState | None]:
        tasks, roster = None, None
        if "task" in topics:
            with self._workspace.tasks.use(list_id) as store:
                store.invalidate()
                items = [task_record(task) for task in store.list()]
                tasks = r.TaskListState(list_id=list_id, items=items, counts=counts_record(store.counts()), revision=0)
        if "roster" in topics:
            with self._workspace.rosters.use(list_id) as team:
                roster = r.RosterState(list_id=list_id, roster=Raw(team.snapshot().document))
        return tasks, roster

    # --- starting ---

    def _started(self, watcher: object, error: Exception | None) -> None:
        if error is not None:
            logger.error("changes by others are not watched", exc_info=error)
            self._starting = False
            self._call_starters()
            return
        made: Watcher = watcher  # type: ignore[assignment]  # what start_watcher returned
        if self._ended:
            made.close()
            self._call_starters()
            return
        self._arrangement = arrangement = Arrangement(
            self._workspace, self._subscriptions, self._waited_lists, made, self._event, self._warn_of
        )
        self._tasks = TaskTeller(self._workspace, arrangement, self._notify, self.revisions)
        self._rosters = RosterTeller(self._workspace, arrangement, self._notify)
        self._plans = PlanTeller(self._workspace, self._subscriptions, self._notify)
        self._sessions = SessionTeller(self._workspace, self._subscriptions, self._notify)
        if made.reason:
            self._warn_of(made.reason)
        self._watch_more(self._call_starters)

    def _call_starters(self) -> None:
        """Whoever waits is answered, also where nothing can be watched any more."""
        for then in self._when_started:
            then()
        self._when_started.clear()
        self._schedule()

    def _watch_more(self, then: Callable[[], None]) -> None:
        """Watches what is wanted now. What is there already is no news; `then` is called when that is known.

        In a thread: a project may hold thousands of sessions. What changed since the client could expect to hear of it is told.
        """
        assert self._arrangement is not None
        arrangement, since = self._arrangement, self._since
        try:
            fresh = arrangement.arrange()
        except StorageError as error:
            logger.error("what is wanted cannot be watched: %s", error)
            then()
            return
        self._since = time.time_ns()
        projects = {folder for folder, _ in arrangement.folders(Kind.PROJECT)} & fresh
        lists = [list_id for folder, list_id in arrangement.folders(Kind.LIST) if folder in fresh]
        own = self._own_folders()

        def look() -> object:
            return self._sessions.look_at_folders(projects, since), self._plans.look()

        def take(found: object, error: Exception | None) -> None:
            if error is None:
                assert isinstance(found, tuple)
                (sessions, news), plans = found
                arrangement.own_sessions |= {session_id_of(path) for path in sessions if os.path.dirname(path) in own}
                self._sessions.take_as_told(sessions)
                for path in news:
                    self._mark(Mark("session", path), None)
                self._plans.take_as_told(plans, since)
                self._mark(PLANS, None)
            else:
                logger.error("what there is was not looked at", exc_info=error)
            for list_id in lists:
                self._rosters.expect(list_id)
                self._lanes.submit(Job(partial(self._tasks.open, list_id, since), partial(self._opened_tasks, list_id), slow=True))
                self._lanes.submit(Job(partial(self._rosters.open, list_id, since), partial(self._opened_roster, list_id), slow=True))
            then()

        self._lanes.submit(Job(look, take, slow=True))

    def _opened_tasks(self, list_id: str, found: object, error: Exception | None) -> None:
        """`found`: whether there are tasks, and whether any of them is news."""
        assert self._arrangement is not None
        if error is not None:
            logger.error("list %s was not looked at", list_id, exc_info=error)
            return
        assert isinstance(found, tuple)
        some, news = found
        if some:
            self._arrangement.known_lists.add(list_id)
        if news:
            self._mark(Mark("task", list_id), None)

    def _opened_roster(self, list_id: str, found: object, error: Exception | None) -> None:
        """`found`: the document, None where it is news."""
        if error is None and isinstance(found, bytes):
            self._rosters.take_as_opened(list_id, found)
        else:
            self._mark(Mark("roster", list_id), None)

    # --- hints ---

    def _event(self, folder: str, name: str | None) -> None:
        """In the watcher's thread."""
        self._post(partial(self._hint, folder, name))

    def _overflow(self) -> None:
        """In the watcher's thread."""
        self._post(partial(self._mark, ALL, None))

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
            self._loop.call_soon_threadsafe(call)

    def _hint(self, folder: str, name: str | None) -> None:
        arrangement = self._arrangement
        if arrangement is None or self._ended:
            return
        if name is None:
            arrangement.lost(folder)
            self._mark(ALL, None)
            return
        for mark in arrangement.meaning(folder, name):
            self._mark(mark, {name} if mark.topic == "task" and mark.key != name else None)
            if mark.key == name or name == "team":
                self._watch_again(mark.key)

    def _watch_again(self, list_id: str) -> None:
        """The list's folders may be there only now."""
        assert self._arrangement is not None
        for folder in self._arrangement.watch_list(list_id):
            for mark in self._arrangement.content(folder):
                self._mark(mark, None)

    def _warn_of(self, reason: str) -> None:
        self._warn(f"Crewlog looks for changes by others twice a second, because {reason}.")
        if self._arrangement is not None:
            self._mark(ALL, None)

    def _mark(self, mark: Mark, names: set[str] | None) -> None:
        """Something may have changed; to be looked at soon. `names`: files of a list that others may have changed, None for any."""
        if mark in self._dirty:
            known = self._dirty[mark]
            self._dirty[mark] = None if known is None or names is None else known | names
        else:
            self._dirty[mark] = names
        self._schedule()

    # --- telling ---

    def _schedule(self) -> None:
        if self._due is not None or self._ended or self._arrangement is None:
            return
        self._due = self._loop.call_later(max(self._told_at + self._window - self._loop.time(), 0), self._tell)

    def _tell(self) -> None:
        self._due = None
        if self._ended or not self._outbox.low:
            return  # `resume` comes back to it
        if not self._turn:
            self._told_at = self._loop.time()
            self._gather()
        for _ in range(min(len(self._turn), _LOOKS_A_TURN)):
            mark, names = self._turn.popleft()
            self._look(mark, names)
            if not self._outbox.low:
                break
        if self._turn and self._outbox.low:
            self._due = self._loop.call_later(0, self._tell)
        elif self._dirty:
            self._schedule()

    def _gather(self) -> None:
        """What is to be looked at in this round."""
        assert self._arrangement is not None
        self._window = min(self._window * 4, LONGEST_WINDOW) if self._news > 1 else max(self._window / 2, SHORTEST_WINDOW)
        self._news = 0
        dirty, self._dirty = self._dirty, {}
        if ALL in dirty:
            known = self._everything()  # what is there no more is not arranged for any more, and is told of all the same
            self._arrangement.arrange()
            del dirty[ALL]
            dirty = dict.fromkeys([*dirty, *known, *self._everything()])
        self._turn.extend(dirty.items())

    def _everything(self) -> dict[Mark, None]:
        arrangement = self._arrangement
        assert arrangement is not None
        marks: dict[Mark, None] = {PLANS: None}
        for kind in (Kind.LIST, Kind.PROJECT):
            for folder, _ in arrangement.folders(kind):
                marks.update(dict.fromkeys(arrangement.content(folder)))
        marks.update((Mark("task", list_id), None) for list_id in arrangement.known_lists)
        marks.update((Mark("roster", list_id), None) for list_id in self._rosters.known())
        marks.update((Mark("session", path), None) for path in self._sessions.known())
        return marks

    def _look(self, mark: Mark, names: set[str] | None) -> None:
        topic, key = mark
        if topic == "task":
            self._run(partial(self._tasks.look, key, names), partial(self._tell_tasks, key), mark, ("tasks", key))
        elif topic == "roster":
            self._run(partial(self._rosters.look, key), partial(self._rosters.tell, key), mark, ("roster", key))
        elif topic == "session":
            self._run(partial(self._sessions.look, key), partial(self._tell_session, key), mark, ("log", key))
        elif topic == "plan":
            self._run(self._plans.look, self._plans.tell, mark, ("plans",))

    def _run(self, look: Callable[[], object], tell: Callable[..., object], mark: Mark, resource: tuple[str, ...]) -> None:
        def done(found: object, error: Exception | None) -> None:
            if error is None:
                if not self._ended:
                    tell(found)
            elif isinstance(error, StorageError):
                logger.info("%s %s cannot be looked at now: %s", mark.topic, mark.key, error)
            else:
                logger.error("%s %s was not looked at", mark.topic, mark.key, exc_info=error)

        self._lanes.submit(Job(look, done, resource))

    def _tell_tasks(self, list_id: str, found: ListLook) -> None:
        self._news += len(found.changed) + len(found.removed)
        if self._tasks.tell(list_id, found):
            self._list_changed(list_id)
        timer = self._lapses.pop(list_id, None)
        if timer is not None:
            timer.cancel()
        if found.lapse is not None:
            self._lapses[list_id] = self._loop.call_later(found.lapse + _LAPSE_MARGIN, self._mark, Mark("task", list_id), set())

    def _tell_session(self, path: str, found: SessionLook | None) -> None:
        arrangement = self._arrangement
        assert arrangement is not None
        self._news += 1
        own = os.path.dirname(path) in self._own_folders()
        if self._sessions.tell(path, found, own=own) == "created" and own and found is not None:
            arrangement.own_sessions.add(found.info.id)

    def _own_folders(self) -> set[str]:
        return {manager.dir for manager in self._workspace.managers(None)}

    def _notify(self, method: str, params: object) -> None:
        self.sent += 1
        self._outbox.send(encode_notification(method, encode_result(params)))
