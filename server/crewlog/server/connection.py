"""One client's connection: the lifecycle, the dispatch of its requests, and their answers."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import msgspec
from msgspec import Raw, UnsetType

from crewlog.protocol import params as p
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.protocol.envelope import (
    Id,
    Malformed,
    Message,
    decode_message,
    decode_params,
    encode_error,
    encode_reply,
    encode_result,
)
from crewlog.protocol.errors import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    InvalidParams,
    ResponseError,
    to_wire,
)
from crewlog.protocol.framing import Damage, Event, Frame, FrameReader, Oversized
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, PROTOCOL_VERSION, Method
from crewlog.server import board_methods, paper_methods, session_methods
from crewlog.server.call import Call
from crewlog.server.changes import Changes
from crewlog.server.lanes import Job, Lanes
from crewlog.server.outbox import Outbox
from crewlog.server.renewal import Renewal
from crewlog.server.subscriptions import Subscriptions, subscription_of
from crewlog.server.syncing import GroupSync
from crewlog.server.waiting import Waiter, Waiting
from crewlog.server.workspace import Workspace
from crewlog.storage import locks
from crewlog.storage.errors import StorageFailed, TooLarge
from crewlog.storage.files import PROCESS, Durability
from crewlog.storage.home import resolve_home
from crewlog.storage.names import check_name
from crewlog.storage.records import Claim

if TYPE_CHECKING:
    from crewlog.server.lsp import LspSide

log = logging.getLogger(__name__)

Handler = Callable[[Workspace, Any, Call], object]
HANDLERS: dict[str, Handler] = {**session_methods.HANDLERS, **board_methods.HANDLERS, **paper_methods.HANDLERS}
_DECODERS = {name: msgspec.json.Decoder(method.params) for name, method in METHODS.items()}


class Options(msgspec.Struct):
    """From the command line; `initializationOptions` override."""

    home: str | None = None
    durability: str = "power"
    max_message_bytes: int = 256 << 20


class Request(msgspec.Struct):
    """A request that is being served. `id` None: a notification, which gets no answer."""

    id: Id | None
    method: Method
    params: Any
    call: Call
    job: Job | None = None
    waiter: Waiter | None = None
    answered: bool = False


class _Initialize(msgspec.Struct, rename="camel"):
    process_id: int | None = None
    client_info: _ClientInfo | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[_Folder] | None = None
    initialization_options: Raw = Raw(b"null")


class _ClientInfo(msgspec.Struct):
    name: str = ""


class _Folder(msgspec.Struct):
    uri: str = ""


class _Cancel(msgspec.Struct):
    id: Id


class Connection:
    """Made on the loop's thread, fed with bytes, ended once. `ended` is called when the client is done with us, with the exit code."""

    def __init__(self, loop: asyncio.AbstractEventLoop, output: int, options: Options, ended: Callable[[int], None]) -> None:
        self._loop = loop
        self._options = options
        self._ended = ended
        self._reader = FrameReader(options.max_message_bytes)
        self.outbox = Outbox(loop, output, self._on_low, lambda: ended(1))
        self._lanes = Lanes(loop)
        self._sync = GroupSync(loop.call_soon_threadsafe)
        self._state = "new"
        self._exiting = False
        self._ws: Workspace | None = None
        self._lsp: LspSide | None = None
        self._initialize_body = b""
        self._requests: dict[Id, list[Request]] = {}
        self._started = time.monotonic()
        self._counters = {"requests": 0, "errors": 0, "damaged": 0}
        self._subscriptions = Subscriptions()
        self._renewal = Renewal(loop, self._renew)
        self._waiting = Waiting(loop, self._next_lapse)
        self._changes: Changes | None = None
        self.on_process_id: Callable[[int], None] = lambda pid: None
        self.on_full: Callable[[], None] = lambda: None
        self.on_low: Callable[[], None] = lambda: None

    # --- bytes in ---

    def feed(self, data: bytes) -> None:
        """Serves what `data` completes; answers are written together afterwards."""
        for event in self._reader.feed(data):
            self._on_event(event)
            if self._exiting:
                break
        self.outbox.flush()
        if self.outbox.full:
            self.on_full()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Frame):
            self._on_body(event.body)
        elif isinstance(event, Damage):
            self._counters["damaged"] += 1
            self._send_error(None, Malformed(-32700, f"{event.reason}; the bytes up to the next Content-Length were passed over"))
        elif isinstance(event, Oversized):
            error = to_wire(TooLarge(self._reader.limit))
            assert error is not None
            self._send_error(None, error)

    def _on_body(self, body: bytes) -> None:
        try:
            message = decode_message(body)
        except Malformed as error:
            self._counters["damaged"] += 1
            self._send_error(error.id, error)
            return
        if message.is_response:
            if self._lsp is not None:
                self._lsp.deliver(body)
            return
        if message.method in METHODS:
            self._on_own(message)
        else:
            self._on_lifecycle(message, body)

    # --- lifecycle ---

    def _on_lifecycle(self, message: Message, body: bytes) -> None:
        id = None if isinstance(message.id, UnsetType) else message.id
        if message.method == "exit":
            self._exiting = True
            self._ended(0 if self._state == "shutdown" else 1)
        elif message.method == "initialize" and id is not None:
            self._answer(id, lambda: self._initialize(message, body))
        elif self._refused_by_state(message, id):
            return
        elif message.method == "shutdown" and id is not None:
            self._state = "shutdown"
            self._waiting.end()
            self._renewal.end()
            self.outbox.send(encode_reply(id, b"null"))
        elif message.method == "$/cancelRequest":
            self._cancel(message)
        elif message.method == "initialized":
            self._start_changes()
        elif message.method.startswith("$/"):
            if id is not None:
                self._send_error(id, _unknown(message.method))
        else:
            self._to_lsp(id, message, body)

    def _refused_by_state(self, message: Message, id: Id | None) -> bool:
        if self._state == "new":
            if id is not None:
                self._send_error(id, ResponseError(NOT_INITIALIZED, "serverNotInitialized", "send initialize first"))
            return True
        if self._state == "shutdown":
            if id is not None:
                rule = "the server was shut down; only exit may follow"
                self._send_error(id, ResponseError(INVALID_REQUEST, "invalidRequest", rule))
            return True
        return False

    def _answer(self, id: Id, work: Callable[[], object]) -> None:
        try:
            self.outbox.send(encode_reply(id, encode_result(work())))
        except Exception as error:  # noqa: BLE001 - whatever it is becomes the request's error
            self._send_error(id, self._wire_error(error, "initialize"))

    def _initialize(self, message: Message, body: bytes) -> object:
        if self._state != "new":
            raise ResponseError(INVALID_REQUEST, "invalidRequest", "initialize was sent before; it is sent once")
        init = decode_params(message.params, msgspec.json.Decoder(_Initialize), _Initialize)
        assert isinstance(init, _Initialize)
        raw = init.initialization_options
        try:
            options = decode_params(raw, msgspec.json.Decoder(p.InitializationOptions), p.InitializationOptions)
        except InvalidParams as error:
            field = "$.initializationOptions" + error.field.removeprefix("$")
            raise InvalidParams(field, error.message.partition(": ")[2]) from None
        assert isinstance(options, p.InitializationOptions)
        client = init.client_info.name if init.client_info is not None else ""
        locks.name_client(client)
        home = resolve_home(self._options.home, options.home)
        durability: Durability = self._sync if (options.durability or self._options.durability) == "power" else PROCESS
        self._ws = Workspace(home, _cwd(options, init), durability)
        if options.subscribe is False:
            self._subscriptions.mute()
        elif isinstance(options.subscribe, p.Subscribe):
            _check_subscribe(options.subscribe)
            self._subscriptions.add(subscription_of(options.subscribe))
        self._state = "ready"
        self._initialize_body = body
        self._loop.call_later(0.05, self._start_changes)  # for clients that never say initialized
        if init.process_id is not None:
            self.on_process_id(init.process_id)
        experimental = {
            "protocolVersion": PROTOCOL_VERSION,
            "home": home,
            "projectId": self._ws.project_id,
            "methods": list(METHODS),
            "notifications": list(NOTIFICATIONS),
        }
        capabilities = {"positionEncoding": "utf-16", "textDocumentSync": 0, "experimental": {"crewlog": experimental}}
        return {"capabilities": capabilities, "serverInfo": {"name": "crewlog", "version": version()}}

    def _to_lsp(self, id: Id | None, message: Message, body: bytes) -> None:
        if message.method.startswith("textDocument/did") or message.method.startswith("notebookDocument/did"):
            return  # documents are none of our business
        if id is not None:
            self._send_error(id, _unknown(message.method))
        else:
            self._lsp_side().deliver(body)

    def _lsp_side(self) -> LspSide:
        if self._lsp is None:
            from crewlog.server.lsp import LspSide

            self._lsp = LspSide("crewlog", version(), self.outbox.send)
        return self._lsp

    async def end(self) -> None:
        """Finishes what was begun, and lets go of everything."""
        self._waiting.end()
        self._renewal.end()
        if self._changes is not None:
            self._changes.end()
        await self._lanes.finish(locks.TIMEOUT + 1)
        await self._loop.run_in_executor(None, self._sync.end)
        await asyncio.sleep(0)
        await self.outbox.drained(2)
        if self._ws is not None:
            self._ws.close()

    # --- our own methods ---

    def _on_own(self, message: Message) -> None:
        id = None if isinstance(message.id, UnsetType) else message.id
        if self._refused_by_state(message, id):
            return
        self._counters["requests"] += 1
        method = METHODS[message.method]
        try:
            params = decode_params(message.params, _DECODERS[message.method], method.params)
        except ResponseError as error:
            self._send_error(id, error)
            return
        request = Request(id, method, params, Call(self._renewal.held))
        if id is not None:
            self._requests.setdefault(id, []).append(request)
        own = _INLINE.get(message.method)
        if own is not None:
            self._run_inline(request, own)
        elif message.method == "task/claimNext":
            self._claim_next(request)
        else:
            self._submit(request, self._finish)

    def _submit(self, request: Request, done: Callable[[Request, object, BaseException | None], None]) -> None:
        handler = HANDLERS[request.method.name]
        ws = self._ws
        assert ws is not None
        taken: list[int] = []

        def run() -> object:
            try:
                return handler(ws, request.params, request.call)
            finally:
                taken.extend(self._sync.take())

        def finished(result: object, error: BaseException | None) -> None:
            if taken:
                self._sync.when_synced(taken, lambda failed: done(request, result, _sync_error(failed) or error))
            else:
                done(request, result, error)

        job = Job(run, finished)
        request.job = job
        resource = request.method.resource
        self._lanes.submit(job, None if resource is None else resource(request.params), slow=request.method.slow)

    def _run_inline(self, request: Request, work: Callable[[Connection, Any], object]) -> None:
        try:
            result = work(self, request.params)
        except Exception as error:  # noqa: BLE001 - whatever it is becomes the request's error
            self._finish(request, None, error)
            return
        if isinstance(result, asyncio.Future):
            result.add_done_callback(lambda done: self._finish(request, None if done.exception() else done.result(), done.exception()))
        else:
            self._finish(request, result, None)

    def _finish(self, request: Request, result: object, error: BaseException | None) -> None:
        """Answers, and acts on what the handler noted."""
        self._act_on(request.call)
        if request.answered:
            return
        request.answered = True
        if request.id is not None:
            self._forget(request)
            if error is not None:
                self._send_error(request.id, self._wire_error(error, request.method.name))
            else:
                if isinstance(result, r.TaskListResult) and self._changes is not None:
                    result.revision = self._changes.revisions.get(request.params.list_id, 0)
                self._reply(request.id, request.method.name, result)
        elif error is not None:
            log.warning("%s, sent as a notification, failed: %s", request.method.name, error)

    def _reply(self, id: Id, method: str, result: object) -> None:
        try:
            body = encode_reply(id, encode_result(result))
        except Exception as error:  # noqa: BLE001 - a result that cannot be encoded must still be answered
            self._send_error(id, self._wire_error(error, method))
            return
        self.outbox.send(body)

    def _forget(self, request: Request) -> None:
        if request.id is None:
            return
        same = self._requests.get(request.id, [])
        if request in same:
            same.remove(request)
        if not same:
            self._requests.pop(request.id, None)

    def _act_on(self, call: Call) -> None:
        for claim in call.claims:
            self._renewal.note(claim)
        call.claims = []
        changes = self._changes
        for list_id in call.lists:
            if changes is not None:
                changes.use_list(list_id)
                changes.touch("task", list_id)
            self._waiting.wake(list_id)
        if changes is not None:
            for list_id in call.rosters:
                changes.use_list(list_id)
                changes.touch("roster", list_id)
            for event in call.sessions:
                changes.touch("session", event.path)
            for _ in call.plans:
                changes.touch("plan", "")
        call.lists, call.rosters, call.sessions, call.plans = set(), set(), [], set()

    def _cancel(self, message: Message) -> None:
        try:
            cancel = decode_params(message.params, msgspec.json.Decoder(_Cancel), _Cancel)
        except ResponseError:
            return  # a notification: nobody waits for an answer
        assert isinstance(cancel, _Cancel)
        for request in list(self._requests.get(cancel.id, [])):
            request.call.cancelled = True
            job, waiter = request.job, request.waiter
            if waiter is not None and not waiter.ended:
                self._waiting.remove(request.params.list_id, waiter)
            elif job is not None and not job.begun:
                job.cancelled = True
            elif not request.method.slow:
                continue  # it has begun: its answer tells what it did
            self._finish(request, None, ResponseError(CANCELLED, "requestCancelled", "the request was cancelled and had no effect"))

    # --- waiting for work, and keeping it ---

    def _claim_next(self, request: Request) -> None:
        params = request.params
        assert isinstance(params, p.TaskClaimNext)

        def first(request: Request, result: object, error: BaseException | None) -> None:
            if result is not None or error is not None or not params.wait_ms or request.answered:
                self._finish(request, result, error)
                return
            waiter = Waiter(
                lambda back: self._submit(request, lambda _, found, failed: back(found, failed)),
                lambda found, failed: self._finish(request, found, failed),
                lambda found: self._give_back(request, found),
            )
            request.waiter = waiter
            self._start_changes()
            self._waiting.add(params.list_id, waiter, params.wait_ms / 1000)
            if self._changes is not None:
                self._changes.rearrange()
                self._waiting.wake(params.list_id)

        self._submit(request, first)

    def _give_back(self, request: Request, found: object) -> None:
        """A task that was taken for a request which had been cancelled by then."""
        claim = next((event.claim for event in request.call.claims if event.claim is not None), None)
        request.call.claims = []
        params = request.params
        task_id = msgspec.json.decode(found, type=_TaskId).id if isinstance(found, Raw) else ""
        ws = self._ws
        assert ws is not None
        generation = claim.generation if claim is not None else None

        def done(result: object, error: BaseException | None) -> None:
            if error is not None:
                log.warning("task %s of list %s was taken for a request that had been cancelled: %s", task_id, params.list_id, error)
            self._act_on(request.call)
            self._waiting.wake(params.list_id)

        job = Job(lambda: ws.tasks.get(params.list_id).release(task_id, params.owner, generation=generation), done)
        self._lanes.submit(job, ("tasks", params.list_id))

    def _renew(self, key: tuple[str, str], claim: Claim, done: Callable[[BaseException | None], None]) -> None:
        ws = self._ws
        assert ws is not None
        list_id, task_id = key

        def renew() -> object:
            return ws.tasks.get(list_id).renew(task_id, claim.owner, generation=claim.generation)

        self._lanes.submit(Job(renew, lambda _, error: done(error)), None, slow=True)

    def _next_lapse(self, list_id: str) -> float | None:
        ws = self._ws
        assert ws is not None
        return ws.tasks.get(list_id).next_lapse()

    # --- changes ---

    def _start_changes(self) -> None:
        if self._changes is not None or self._ws is None or self._state != "ready":
            return
        self._changes = Changes(
            self._loop,
            self._ws,
            self._lanes,
            self._subscriptions,
            self.outbox.send,
            lambda: self.outbox.low,
            self._waiting.wake,
            self._tell_watcher,
        )
        self._changes.waited_lists = self._waiting.lists
        if self._subscriptions.all() or self._waiting.count:
            self._changes.start()

    def _tell_watcher(self, reason: str) -> None:
        """One `window/logMessage` when the system does not tell of changes."""
        message = f"Crewlog looks for changes by others twice a second, because {reason}."
        body = {"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 2, "message": message}}
        self.outbox.send(msgspec.json.encode(body))

    def subscribe(self, params: p.Subscribe) -> object:
        """The watch is in place before the present state is read, so that nothing is missed between the two."""
        _check_subscribe(params)
        self._start_changes()
        changes, ws = self._changes, self._ws
        assert changes is not None
        assert ws is not None
        name = self._subscriptions.add(subscription_of(params))
        changes.start()
        changes.rearrange()
        topics = set(params.topics) if params.topics is not None else {"task", "roster"}
        answer: asyncio.Future[object] = self._loop.create_future()

        def look() -> object:
            found = []
            for list_id in params.list_ids or ():
                store = ws.tasks.get(list_id)
                store.invalidate()
                items = store.list() if "task" in topics else []
                roster = ws.rosters.get(list_id).snapshot().document if "roster" in topics else b""
                found.append((list_id, items, store.counts(), roster))
            return found

        def done(found: object, error: BaseException | None) -> None:
            if answer.cancelled():
                return
            if error is not None:
                self._subscriptions.remove(name)
                answer.set_exception(error)
                return
            result = r.Subscribed(subscription_id=name)
            for list_id, items, counts, roster in found:  # type: ignore[attr-defined]
                if "task" in topics:
                    changes.take_as_told(list_id, [task.id for task in items])
                    result.tasks.append(
                        r.TaskListState(
                            list_id=list_id,
                            items=[board_methods.task_record(task) for task in items],
                            counts=board_methods.counts_record(counts),
                            revision=changes.revisions.get(list_id, 0),
                        )
                    )
                if roster:
                    changes.take_roster_as_told(list_id, roster)
                    result.rosters.append(r.RosterState(list_id=list_id, roster=Raw(roster)))
            answer.set_result(result)

        self._lanes.submit(Job(look, done), None, slow=True)
        return answer

    def unsubscribe(self, params: p.Unsubscribe) -> object:
        if not self._subscriptions.remove(params.subscription_id):
            raise InvalidParams("$.subscriptionId", f"there is no subscription {params.subscription_id!r}")
        if self._changes is not None:
            self._changes.rearrange()
        return None

    def status(self, _: p.NoParams) -> object:
        ws = self._ws
        assert ws is not None
        watcher = self._changes.state if self._changes is not None else records.WatcherState(kind="none", state="off")
        subscriptions = [
            Raw(msgspec.json.encode({"subscriptionId": name, **msgspec.to_builtins(subscription)}))
            for name, subscription in self._subscriptions.all()
        ]
        return r.Status(
            version=version(),
            protocol_version=PROTOCOL_VERSION,
            home=ws.home.path,
            project_id=ws.project_id,
            pid=os.getpid(),
            uptime_ms=int((time.monotonic() - self._started) * 1000),
            watcher=watcher,
            subscriptions=subscriptions,
            counters={
                **self._counters,
                "notifications": self._changes.sent if self._changes is not None else 0,
                "syncs": self._sync.syncs,
                "waiting": self._waiting.count,
                "leases": self._renewal.count,
                "threads": self._lanes.running,
            },
            durability="process" if ws.durability is PROCESS else "power",
        )

    # --- answers ---

    def _send_error(self, id: Id | None, error: ResponseError) -> None:
        self._counters["errors"] += 1
        self.outbox.send(encode_error(id, error))

    def _wire_error(self, error: BaseException, method: str) -> ResponseError:
        known = to_wire(error) if isinstance(error, Exception) else None
        if known is not None:
            return known
        log.error("%s failed", method, exc_info=error)
        told = f"{method} met a fault of the server ({type(error).__name__}); its log file tells more, and a report is welcome"
        return ResponseError(INTERNAL_ERROR, "internalError", told)

    def _on_low(self) -> None:
        self.on_low()
        if self._changes is not None:
            self._changes.resume()


class _TaskId(msgspec.Struct):
    id: str


_INLINE: dict[str, Callable[[Connection, Any], object]] = {
    "crewlog/status": Connection.status,
    "subscribe": Connection.subscribe,
    "unsubscribe": Connection.unsubscribe,
}


def version() -> str:
    """The version of the installed distribution."""
    try:
        return metadata.version("crewlog")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def _unknown(method: str) -> ResponseError:
    return ResponseError(METHOD_NOT_FOUND, "methodNotFound", f"there is no method {method!r}", method=method)


def _sync_error(error: OSError | None) -> StorageFailed | None:
    return None if error is None else StorageFailed.from_os(error)


def _check_subscribe(params: p.Subscribe) -> None:
    for list_id in params.list_ids or ():
        check_name(list_id, "listIds")
    for session_id in params.session_ids or ():
        check_name(session_id, "sessionIds")


def _cwd(options: p.InitializationOptions, init: _Initialize) -> str:
    """The project: `initializationOptions.cwd`, else the first workspace folder, else rootUri, else this process's folder."""
    if options.cwd:
        return options.cwd
    uris = [folder.uri for folder in init.workspace_folders or ()] + [init.root_uri or ""]
    for uri in uris:
        path = _path_of(uri)
        if path:
            return path
    return init.root_path or os.getcwd()


def _path_of(uri: str) -> str:
    parts = urlparse(uri)
    if parts.scheme != "file":
        return ""
    path = unquote(parts.path)
    if os.name == "nt" and path[:1] == "/" and path[2:3] == ":":
        return path[1:]
    return path
