"""What the `task/…`, `roster/…` and `transcript/…` methods do."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec import UNSET, Raw, UnsetType

from crewlog.protocol import params as p
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.server.call import Call
from crewlog.server.session_records import info_record
from crewlog.server.workspace import Workspace
from crewlog.storage import stopping, times
from crewlog.storage.errors import InvalidArgument, StorageError, TaskNotFound
from crewlog.storage.locks import require_waiting
from crewlog.storage.records import Claim, SessionInfo, Task, TaskSnapshot, TaskStatus, TaskUpdate
from crewlog.storage.task_files import shown_record
from crewlog.storage.task_rules import DELETED

if TYPE_CHECKING:
    from crewlog.storage.roster import RosterStore
    from crewlog.storage.tasks import TaskStore

_T = TypeVar("_T")

SMALL_LIST = 300
"""Tasks up to which a list is read and written out in about a millisecond."""


def task_record(task: Task) -> Raw:
    return Raw(shown_record(task))


def counts_record(found: TaskSnapshot) -> records.Counts:
    return records.Counts(pending=found.pending, in_progress=found.in_progress, completed=found.completed, total=found.total)


def create(ws: Workspace, params: p.TaskCreate, call: Call) -> Raw:
    with ws.tasks.use(params.list_id) as store:
        task = store.create(
            params.subject,
            params.description,
            params.active_form,
            params.metadata,
            blocks=params.blocks,
            blocked_by=params.blocked_by,
        )
    call.list_changed(params.list_id)
    return task_record(task)


def get(ws: Workspace, params: p.OfTask, call: Call) -> Raw | None:
    with ws.tasks.use(params.list_id) as store:
        task = store.get(params.id)
    return None if task is None else task_record(task)


def delete(ws: Workspace, params: p.OfTask, call: Call) -> bool:
    held = call.held_claim(params.list_id, params.id)
    with ws.tasks.use(params.list_id) as store:
        existed = store.delete(params.id) if held is None else _delete_held(store, params.id, held)
    call.list_changed(params.list_id)
    call.gave_back(params.list_id, params.id)
    return existed


def _delete_held(store: TaskStore, id: str, held: Claim) -> bool:
    try:
        store.update(id, TaskUpdate(status=DELETED), held=held)
    except TaskNotFound:
        return False
    return True


def list_tasks(ws: Workspace, params: p.TaskListParams, call: Call) -> r.TaskListResult:
    revision = call.revision_of(params.list_id)  # before the tasks are read: they may be newer than it says, never older
    with ws.tasks.use(params.list_id) as store:
        if store.counts().total > SMALL_LIST:
            require_waiting()
        items = store.list(status=params.status, owner=params.owner, claimable=params.claimable)
        skipped = [records.Skipped(path=item.path, reason=item.reason) for item in store.skipped()]
        counts = counts_record(store.counts())
    return r.TaskListResult(items=[task_record(task) for task in items], counts=counts, revision=revision, skipped=skipped)


def lists(ws: Workspace, params: p.OfProject, call: Call) -> r.TaskListsResult:
    sessions: dict[str, SessionInfo] = {}
    for manager in ws.managers(params.cwd, all_projects=params.cwd is None):
        sessions.update((info.id, info) for info in manager.list().sessions)
    found = []
    for list_id in ws.list_ids():
        stopping.check()
        info = sessions.get(list_id)
        if params.cwd is not None and info is None:
            continue
        try:
            with ws.tasks.use(list_id) as store:
                store.refresh_counts()
                counts = counts_record(store.counts())
            modified = times.format_ns(os.stat(ws.home.task_list(list_id)).st_mtime_ns)
        except (StorageError, OSError):
            continue  # a folder with a name of its own, or one that went away: no list
        session = None if info is None else info_record(info)
        found.append(records.TaskListInfo(list_id=list_id, counts=counts, modified=modified, session=session))
    return r.TaskListsResult(lists=found)


def _given(value: _T | UnsetType) -> _T | None:
    return None if isinstance(value, UnsetType) else value


def update(ws: Workspace, params: p.TaskUpdateParams, call: Call) -> Raw | None:
    change = TaskUpdate(
        status=_given(params.status),
        subject=_given(params.subject),
        description=_given(params.description),
        active_form=_given(params.active_form),
        owner=_given(params.owner),
        metadata=_given(params.metadata),
        add_blocks=params.add_blocks,
        add_blocked_by=params.add_blocked_by,
        remove_blocks=params.remove_blocks,
        remove_blocked_by=params.remove_blocked_by,
    )
    with ws.tasks.use(params.list_id) as store:
        task = store.update(params.id, change, held=_held(store, params, call))
    call.list_changed(params.list_id)
    _note_claim(params, task, call)
    return None if task is None else task_record(task)


def _note_claim(params: p.TaskUpdateParams, task: Task | None, call: Call) -> None:
    """What an update means for the leased claim of this client on the task."""
    held = call.held_claim(params.list_id, params.id)
    claim = task.claim if task is not None else None
    if task is None or (params.owner is not UNSET and held is not None and (claim is None or claim.generation != held.generation)):
        call.gave_back(params.list_id, params.id)
    elif task.status == TaskStatus.COMPLETED:
        call.completed(params.list_id, params.id)
    elif params.status is not UNSET and claim is not None and not claim.lapsed:
        call.reopened(params.list_id, params.id, claim)


def _held(store: TaskStore, params: p.TaskUpdateParams, call: Call) -> Claim | None:
    """The claim under which the client writes: the one whose generation it names, or the leased one that it took."""
    held = call.held_claim(params.list_id, params.id)
    if params.generation is None or (held is not None and held.generation == params.generation):
        return held
    present = store.get(params.id)
    owner = present.owner if present is not None else ""
    return Claim(owner, params.generation)


def claim(ws: Workspace, params: p.TaskClaim, call: Call) -> Raw:
    with ws.tasks.use(params.list_id) as store:
        task = store.claim(params.id, params.owner, lease_ms=params.lease_ms)
    return took(params, task, call)


def took(params: p.TaskClaim | p.TaskClaimNext, task: Task, call: Call) -> Raw:
    """The client took a task. Only a leased claim is held against it later: one without a lease binds nobody."""
    call.list_changed(params.list_id)
    held = call.held_claim(params.list_id, task.id)
    if task.claim is not None and params.lease_ms is not None:
        call.took(params.list_id, task.id, task.claim, params.lease_ms if params.auto_renew else 0)
    elif held is not None and (task.claim is None or task.claim.generation != held.generation):
        call.gave_back(params.list_id, task.id)
    return task_record(task)


def find_claimable(ws: Workspace, params: p.OfList, call: Call) -> Raw | None:
    with ws.tasks.use(params.list_id) as store:
        task = store.find_claimable()
    return None if task is None else task_record(task)


def claim_next(ws: Workspace, params: p.TaskClaimNext, call: Call) -> Raw | None:
    with ws.tasks.use(params.list_id) as store:
        task = store.claim_next(params.owner, lease_ms=params.lease_ms, match=params.match)
    return None if task is None else took(params, task, call)


def renew(ws: Workspace, params: p.TaskRenew, call: Call) -> Raw:
    generation = _generation(params, call)
    with ws.tasks.use(params.list_id) as store:
        task = store.renew(params.id, params.owner, lease_ms=params.lease_ms, generation=generation)
    if params.lease_ms is not None and task.claim is not None:
        call.renewed(params.list_id, params.id, task.claim, params.lease_ms)
    return task_record(task)


def release(ws: Workspace, params: p.TaskRelease, call: Call) -> Raw:
    generation = _generation(params, call)
    with ws.tasks.use(params.list_id) as store:
        task = store.release(params.id, params.owner, generation=generation)
    call.list_changed(params.list_id)
    call.gave_back(params.list_id, params.id)
    return task_record(task)


def _generation(params: p.TaskRenew | p.TaskRelease, call: Call) -> int | None:
    """Under one name a task may be taken twice: the client means the taking that it knows of."""
    if params.generation is not None:
        return params.generation
    held = call.held_claim(params.list_id, params.id)
    return held.generation if held is not None and held.owner == params.owner else None


def reset(ws: Workspace, params: p.OfList, call: Call) -> None:
    with ws.tasks.use(params.list_id) as store:
        store.reset()
    call.list_changed(params.list_id)


def roster_get(ws: Workspace, params: p.OfList, call: Call) -> Raw:
    with ws.rosters.use(params.list_id) as store:
        return Raw(store.snapshot().document)


def roster_set_team(ws: Workspace, params: p.RosterSetTeam, call: Call) -> Raw:
    with ws.rosters.use(params.list_id) as store:
        store.set_team(params.team, params.description)
        return _changed_roster(store, params.list_id, call)


def roster_upsert(ws: Workspace, params: p.RosterUpsertMember, call: Call) -> Raw:
    if bytes(params.member)[:1] != b"{":
        raise InvalidArgument("member", "a member is a JSON object with name and agent_type")
    with ws.rosters.use(params.list_id) as store:
        store.upsert_member(params.member)
        return _changed_roster(store, params.list_id, call)


def roster_remove(ws: Workspace, params: p.RosterRemoveMember, call: Call) -> Raw:
    with ws.rosters.use(params.list_id) as store:
        store.remove_member(params.name)
        return _changed_roster(store, params.list_id, call)


def roster_clear(ws: Workspace, params: p.OfList, call: Call) -> Raw:
    with ws.rosters.use(params.list_id) as store:
        store.clear()
        return _changed_roster(store, params.list_id, call)


def _changed_roster(store: RosterStore, list_id: str, call: Call) -> Raw:
    call.roster_changed(list_id)
    return Raw(store.snapshot().document)


def transcript_append(ws: Workspace, params: p.TranscriptAppend, call: Call) -> r.TranscriptCount:
    with ws.transcripts.use(params.list_id) as store:
        return r.TranscriptCount(count=store.append(params.agent, params.messages))


def transcript_load(ws: Workspace, params: p.TranscriptLoad, call: Call) -> r.TranscriptPage:
    with ws.transcripts.use(params.list_id) as store:
        if params.offset is None and params.limit is None:
            messages = store.load(params.agent)
        else:
            messages = [Raw(raw) for raw in store.page(params.agent, params.offset or 0, params.limit)]
        return r.TranscriptPage(messages=messages, total=store.count(params.agent))


def transcript_list(ws: Workspace, params: p.OfList, call: Call) -> r.TranscriptListResult:
    with ws.transcripts.use(params.list_id) as store:
        agents = store.agents()
    return r.TranscriptListResult(agents=[records.TranscriptInfo(agent=agent, count=count) for agent, count in agents])


HANDLERS: dict[str, Callable[..., object]] = {
    "task/create": create,
    "task/get": get,
    "task/delete": delete,
    "task/list": list_tasks,
    "task/lists": lists,
    "task/update": update,
    "task/claim": claim,
    "task/findClaimable": find_claimable,
    "task/claimNext": claim_next,
    "task/renew": renew,
    "task/release": release,
    "task/reset": reset,
    "roster/get": roster_get,
    "roster/setTeam": roster_set_team,
    "roster/upsertMember": roster_upsert,
    "roster/removeMember": roster_remove,
    "roster/clear": roster_clear,
    "transcript/append": transcript_append,
    "transcript/load": transcript_load,
    "transcript/list": transcript_list,
}
