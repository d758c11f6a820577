"""What a ready client can ask for: its requests are carried out, in order and without waiting for each other, and answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from crewlog.protocol import params as p
from crewlog.protocol import results as r
from crewlog.protocol.envelope import Id, encode_error, encode_reply, encode_result
from crewlog.protocol.errors import CANCELLED, INTERNAL_ERROR, InvalidParams, ResponseError, to_wire
from crewlog.protocol.methods import METHODS, PROTOCOL_VERSION, Method
from crewlog.server import board_methods, paper_methods, session_methods
from crewlog.server.call import Call, ClaimChange, ClaimEvent, TaskKey
from crewlog.server.changes import Changes
from crewlog.server.group_sync import GroupSync, Ticket
from crewlog.server.indexing import FIRST_LOOK, Indexer
from crewlog.server.lanes import Job, Lanes
from crewlog.server.lifecycle import Wishes
from crewlog.server.outbox import Outbox
from crewlog.server.progress import Progress
from crewlog.server.renewal import Renewal
from crewlog.server.subscriptions import Subscriptions, check_subscribe, subscription_of
from crewlog.server.version import VERSION
from crewlog.server.waiting import Tried, Waiter, Waiting
from crewlog.server.workspace import Workspace
from crewlog.storage.errors import StorageError, StorageFailed, WouldBlock
from crewlog.storage.files import PROCESS, Durability
from crewlog.storage.locks import TIMEOUT, without_waiting
from crewlog.storage.records import Claim, TaskStatus
from crewlog.storage.stopping import Stopped

Handler = Callable[[Workspace, Any, Call], object]
HANDLERS: dict[str, Handler] = {**session_methods.HANDLERS, **board_methods.HANDLERS, **paper_methods.HANDLERS}
_AWAY = frozenset({"session/create", "session/fork", "session/delete", "session/restore"})
"""Methods of several steps, which cannot be tried and then done again from the beginning: in a thread from the start."""
_INDEXED = frozenset({"session/list", "session/search", "session/stats"})
"""Methods that an index makes quick."""
_READS = frozenset(
    name for name, method in METHODS.items() if name in HANDLERS and not method.mutates and not method.slow and name not in _AWAY | _INDEXED
)
"""Methods that have no effect, and that an answer follows at once as a rule."""
_AFTER_ANSWER = 0.2
"""Seconds that the index waits after such a request came, so that it does not compete with the request."""
_LOOK_AGAIN = 0.05
_NOTHING = b"null"

logger = logging.getLogger(__name__)


class Request:
    """A request that is being served. `id` None: sent as a notification, and gets no answer."""

    __slots__ = ("answered", "call", "id", "job", "method", "params", "progress", "size", "ticket", "waiter", "withdrawn")

    def __init__(self, id: Id | None, method: Method, params: Any, call: Call, size: int) -> None:
        self.id = id
        self.method = method
        self.params = params
        self.call = call
        self.size = size
        self.job: Job | None = None
        self.waiter: Waiter | None = None
        self.ticket: Ticket | None = None
        self.progress: Progress | None = None
        self.answered = False
        self.withdrawn = False
        """Whether it was cancelled after it had begun."""


Done = Callable[[Request, "bytes | None", "Exception | None"], None]


class Service:
    """Made when the client is known. Used on the loop's thread only.

    `warn` shows the client a sentence; `progress` is called after work has come back from threads. `since`: nanoseconds since 1970 when
    it was told that it is served.
    """

    def __init__(self, wishes: Wishes, outbox: Outbox, warn: Callable[[str], None], progress: Callable[[], None], since: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._started_at = time.monotonic()
        self._outbox = outbox
        self._sync = GroupSync(self._post)
        durability: Durability = self._sync if wishes.durability == "power" else PROCESS
        self.workspace = Workspace(wishes.home, wishes.cwd, durability)
        self._progress = progress
        self._lanes = Lanes(self._work_came_back)
        self._subscriptions = Subscriptions()
        if wishes.subscribe is False:
            self._subscriptions.mute()
        elif isinstance(wishes.subscribe, p.Subscribe):
            self._subscriptions.add(subscription_of(wishes.subscribe))
        self._renewal = Renewal(self._renew)
        self._waiting = Waiting(self._next_lapse)
        self._changes = Changes(
            self.workspace, self._lanes, self._subscriptions, outbox, self._waiting.lists, self._waiting.wake, warn, since
        )
        self._indexer = Indexer(lambda: self.workspace.index)
        self._loop.call_later(FIRST_LOOK, self._indexer.kick)
        self._begun = False
        self._may_wait = True
        self._reading = Call(self._renewal.held, self._changes.revisions)
        self._open: dict[Id, Request] = {}
        self._own: dict[str, Callable[[Request], None]] = {
            "crewlog/status": self._status,
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "task/claimNext": self._claim_next,
        }
        self._counters = {"requests": 0, "errors": 0}
        self.open_bytes = 0
        """Bytes of requests that are not answered yet."""

    def begin(self) -> None:
        """The client is ready for notifications."""
        if self._subscriptions.all() and not self._begun:
            self._begun = True
            self._changes.start()

    def request(self, id: Id | None, method: Method, params: Any, size: int) -> None:
        """Serves a request, and answers it unless it is a notification. The caller has seen to it that the id is free."""
        self._counters["requests"] += 1
        if id is not None and method.name in _READS and self._answer_at_once(id, method, params):
            return
        request = Request(id, method, params, Call(self._renewal.held, self._changes.revisions), size)
        if id is not None:
            self._open[id] = request
            self.open_bytes += size
        own = self._own.get(method.name)
        if own is None:
            if method.name in _INDEXED:
                self._indexer.kick(_AFTER_ANSWER)
                self._prepare_progress(request)
            self._submit(request, self._finish)
            return
        try:
            own(request)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this request's error and nobody else's
            self._finish(request, None, error)

    def _answer_at_once(self, id: Id, method: Method, params: Any) -> bool:
        """Does what only reads without the keeping of a request that waits; False where it has to wait."""
        if self._lanes.busy and method.resource is not None and not self._lanes.is_free(method.resource(params)):
            return False
        try:
            with without_waiting():
                reply = encode_reply(id, encode_result(HANDLERS[method.name](self.workspace, params, self._reading)))
        except WouldBlock:
            return False
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this request's error and nobody else's
            self._counters["errors"] += 1
            reply = encode_error(id, _wire_error(error, method.name))
        self._outbox.send(reply)
        return True

    def _prepare_progress(self, request: Request) -> None:
        token = request.params.work_done_token
        if token is not None:
            request.progress = Progress(token, request.method.doc, self._outbox.send, self._post)
            request.call.progress = request.progress.report

    def is_open(self, id: Id) -> bool:
        """Whether a request of that id is not answered yet."""
        return id in self._open

    def cancel(self, id: Id) -> None:
        """What is not begun, or waits, has no effect; what only reads stops soon; of anything else its answer tells."""
        request = self._open.get(id)
        if request is None:
            return
        job, waiter = request.job, request.waiter
        if waiter is not None:
            self._waiting.remove(waiter)
        elif job is None or not self._lanes.remove(job):
            request.call.cancelled = not request.method.mutates
            request.withdrawn = True
            return
        self._finish(request, None, _cancelled())

    def stop_waiting(self) -> None:
        """Ends the requests that wait for work, and lets no other begin to: the client is about to go."""
        self._may_wait = False
        for request in [request for request in self._open.values() if request.waiter is not None]:
            assert request.id is not None
            self.cancel(request.id)

    def abandon(self) -> None:
        """The client is gone: what is not begun is dropped, what only reads is stopped."""
        for id in list(self._open):
            self.cancel(id)

    def hold(self) -> None:
        """Begins nothing more until `release`."""
        self._lanes.hold()

    def release(self) -> None:
        """The client has taken what it was owed."""
        self._lanes.release()
        self._changes.resume()

    def turn_over(self) -> None:
        """A batch of messages, or of work from threads, has been dealt with: one sync and one write serve all of it."""
        self._sync.start()
        self._hold_if_owed()

    def _work_came_back(self) -> None:
        self.turn_over()
        self._progress()

    def _hold_if_owed(self) -> None:
        """A client that does not take its replies gets no more of them made; `release` goes on when it has."""
        self._outbox.flush()
        if self._outbox.full:
            self._lanes.hold()

    async def end(self) -> None:
        """Finishes what was begun and lets go of everything. Leases are renewed no more."""
        self._indexer.end()
        self._renewal.end()
        self._changes.end()
        self.stop_waiting()
        self._lanes.release()
        deadline = self._loop.time() + TIMEOUT + 1
        await self._lanes.finish(TIMEOUT + 1)
        while self._open and self._loop.time() < deadline:
            self._sync.start()
            await asyncio.sleep(0.005)  # the device answers when it does
        self.workspace.close()

    # --- one request ---

    def _submit(self, request: Request, done: Done) -> None:
        handler, method = HANDLERS[request.method.name], request.method

        def run() -> bytes:
            try:
                return encode_result(handler(self.workspace, request.params, request.call))
            finally:
                ticket = self._sync.take_ticket()
                if ticket is not None:
                    request.ticket = ticket

        resource = method.resource(request.params) if method.resource is not None else None
        request.job = Job(
            run,
            partial(self._done, request, done),
            resource,
            slow=method.slow,
            away=method.name in _AWAY,
            stopped=lambda: request.call.cancelled,
        )
        self._lanes.submit(request.job)

    def _done(self, request: Request, done: Done, result: object, error: Exception | None) -> None:
        """The work is over; the answer follows when what it tells is on the device."""
        found = result if isinstance(result, bytes) else None
        if request.ticket is None:
            done(request, found, error)
        else:
            ticket, request.ticket = request.ticket, None
            self._sync.when_synced(ticket, lambda failed: done(request, found, _sync_error(failed) or error))

    def _finish(self, request: Request, result: bytes | None, error: Exception | None) -> None:
        """Answers, and does what follows from what the handler noted."""
        self._act_on(request.call)
        if request.answered:
            return
        request.answered = True
        if request.progress is not None:
            request.progress.end()
        if request.id is None:
            if error is not None:
                logger.warning("%s, sent as a notification, failed: %s", request.method.name, error)
            return
        del self._open[request.id]
        self.open_bytes -= request.size
        if error is None:
            self._outbox.send(encode_reply(request.id, result if result is not None else _NOTHING))
        else:
            self._counters["errors"] += 1
            self._outbox.send(encode_error(request.id, _wire_error(error, request.method.name)))
        if self._outbox.full:
            self._hold_if_owed()

    def _act_on(self, call: Call) -> None:
        for claim in call.claims:
            self._renewal.note(claim)
        for list_id in call.lists:
            self._changes.use_list(list_id)
            self._changes.touch("task", list_id)
            self._waiting.wake(list_id)
        for list_id in call.rosters:
            self._changes.use_list(list_id)
            self._changes.touch("roster", list_id)
        for path in call.sessions:
            self._changes.touch("session", path)
        if call.plans:
            self._changes.touch("plan")
        call.forget()

    def _post(self, call: Callable[[], None]) -> None:
        """From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending, and nobody listens any more
            self._loop.call_soon_threadsafe(call)

    # --- claims ---

    def _claim_next(self, request: Request) -> None:
        params = request.params

        def first(request: Request, result: bytes | None, error: Exception | None) -> None:
            if result != _NOTHING or error is not None or not params.wait_ms or request.answered:
                self._finish(request, result, error)
            elif request.withdrawn or not self._may_wait:
                self._finish(request, None, _cancelled())
            else:
                self._wait_for_work(request)

        self._submit(request, first)

    def _wait_for_work(self, request: Request) -> None:
        params = request.params
        wants = b"" if not params.match else encode_result(dict(sorted(params.match.items())))

        def attempt(tried: Tried) -> None:
            self._submit(request, lambda _, found, failed: tried(None if found == _NOTHING else found, failed))

        request.waiter = Waiter(
            params.list_id,
            wants,
            attempt,
            lambda found, failed: self._finish(request, found, failed),
            lambda found: self._give_back(request, found),
        )
        self._waiting.add(request.waiter, params.wait_ms / 1000)
        self._changes.wait_for(params.list_id, lambda: self._waiting.wake(params.list_id))

    def _give_back(self, request: Request, found: bytes) -> None:
        """A task that was taken for a request which had been cancelled, or whose time was up, by then."""
        params = request.params
        task_id = msgspec.json.decode(found, type=_TaskId).id
        key = (params.list_id, task_id)
        for claim in request.call.claims:
            self._renewal.note(claim)
        request.call.forget()  # what the answer to the cancel did not know of yet
        held = self._renewal.held.get(key)
        generation = held.generation if held is not None else None
        self._renewal.note(ClaimEvent(ClaimChange.GAVE_BACK, key))

        def release() -> None:
            with self.workspace.tasks.use(params.list_id) as store:
                store.release(task_id, params.owner, generation=generation)

        def done(_: object, error: Exception | None) -> None:
            if error is not None:
                logger.warning("task %s of list %s was taken for nobody and not given back: %s", task_id, params.list_id, error)
            self._changes.touch("task", params.list_id)
            self._waiting.wake(params.list_id)

        self._lanes.submit(Job(release, done, ("tasks", params.list_id)))

    def _renew(self, key: TaskKey, claim: Claim, lease_ms: int) -> bool:
        """In a thread of the renewal's. Never earlier than the lease ends already: one name may have several clients. False for a task
        that somebody completed: its lease ended with it.
        """
        list_id, task_id = key
        with self.workspace.tasks.use(list_id) as store:
            task = store.get(task_id)
            if task is not None and task.status == TaskStatus.COMPLETED:
                return False
            store.renew(task_id, claim.owner, lease_ms=lease_ms or None, generation=claim.generation, at_least=True)
        return True

    def _next_lapse(self, list_id: str) -> float | None:
        try:
            with without_waiting(), self.workspace.tasks.use(list_id) as store:
                return store.next_lapse()
        except WouldBlock:
            return _LOOK_AGAIN  # somebody is at work on the list, perhaps waiting for its lock
        except StorageError:
            return None  # the list cannot be read: the next change of it wakes those who wait

    # --- what is about the client itself ---

    def _subscribe(self, request: Request) -> None:
        """The watch is in place before the present state is read, so that nothing is missed between the two."""
        params: p.Subscribe = request.params
        check_subscribe(params)
        name = self._subscriptions.add(subscription_of(params))
        topics: set[str] = {*params.topics} if params.topics is not None else {"task", "roster"}

        def done(answer: r.Subscribed, error: Exception | None) -> None:
            if error is not None:
                self._subscriptions.remove(name)
            self._finish(request, None if error is not None else encode_result(answer), error)

        self._changes.start(lambda: self._changes.present(list(params.list_ids or ()), topics, done, name))

    def _unsubscribe(self, request: Request) -> None:
        name = request.params.subscription_id
        if not self._subscriptions.remove(name):
            raise InvalidParams("$.subscriptionId", f"there is no subscription {name[:80]!r}")
        self._changes.start()
        self._finish(request, _NOTHING, None)

    def _status(self, request: Request) -> None:
        workspace = self.workspace
        subscriptions = [
            Raw(msgspec.json.encode({"subscriptionId": name, **msgspec.to_builtins(subscription)}))
            for name, subscription in self._subscriptions.all()
        ]
        status = r.Status(
            version=VERSION,
            protocol_version=PROTOCOL_VERSION,
            home=workspace.home.path,
            project_id=workspace.project_id,
            pid=os.getpid(),
            uptime_ms=int((time.monotonic() - self._started_at) * 1000),
            watcher=self._changes.state,
            subscriptions=subscriptions,
            counters={
                **self._counters,
                "notifications": self._changes.sent,
                "syncs": self._sync.syncs,
                "waiting": self._waiting.count,
                "leases": self._renewal.count,
                "running": self._lanes.running,
                "queued": self._lanes.queued,
            },
            durability="process" if workspace.durability is PROCESS else "power",
            index=self._indexer.state,
        )
        self._finish(request, encode_result(status), None)


class _TaskId(msgspec.Struct):
    id: str


def _sync_error(error: OSError | None) -> StorageFailed | None:
    return None if error is None else StorageFailed.from_os(error, "the device")


def _cancelled() -> ResponseError:
    return ResponseError(CANCELLED, "requestCancelled", "the request was cancelled; it had no effect")


def _wire_error(error: Exception, method: str) -> ResponseError:
    if isinstance(error, Stopped):
        return _cancelled()
    known = to_wire(error)
    if known is not None:
        return known
    logger.error("%s failed", method, exc_info=error)
    told = f"{method} met a fault of the server ({type(error).__name__}); its log tells more, and a report is welcome"
    return ResponseError(INTERNAL_ERROR, "internalError", told)
