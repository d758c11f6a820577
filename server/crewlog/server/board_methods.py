"""What the `task/…`, `roster/…` and `transcript/…` methods do."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import UNSET, Raw

from crewlog.protocol import params as p
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.server.call import Call
from crewlog.server.session_methods import info_record
from crewlog.server.workspace import Workspace
from crewlog.storage import times
from crewlog.storage.errors import InvalidArgument, StorageError
from crewlog.storage.names import check_name
from crewlog.storage.records import Claim, SessionInfo, Task, TaskSnapshot, TaskStatus, TaskUpdate
from crewlog.storage.task_files import encode_task
from crewlog.storage.tasks import TaskStore


def task_record(task: Task) -> Raw:
    return Raw(encode_task(task, task.claim))


def counts_record(found: TaskSnapshot) -> records.Counts:
    return records.Counts(pending=found.pending, in_progress=found.in_progress, completed=found.completed, total=found.total)


def _store(ws: Workspace, list_id: str) -> TaskStore:
    return ws.tasks.get(check_name(list_id, "listId"))


def create(ws: Workspace, params: p.TaskCreate, call: Call) -> Raw:
    task = _store(ws, params.list_id).create(
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
    task = _store(ws, params.list_id).get(params.id)
    return None if task is None else task_record(task)


def delete(ws: Workspace, params: p.OfTask, call: Call) -> bool:
    existed = _store(ws, params.list_id).delete(params.id)
    call.list_changed(params.list_id)
    call.claimed(params.list_id, params.id, None)
    return existed


def list_tasks(ws: Workspace, params: p.TaskListParams, call: Call) -> r.TaskListResult:
    store = _store(ws, params.list_id)
    items = store.list(status=params.status, owner=params.owner, claimable=params.claimable)
    skipped = [records.Skipped(path=item.path, reason=item.reason) for item in store.skipped()]
    return r.TaskListResult(items=[task_record(task) for task in items], counts=counts_record(store.counts()), revision=0, skipped=skipped)


def lists(ws: Workspace, params: p.OfProject, call: Call) -> r.TaskListsResult:
    sessions: dict[str, SessionInfo] = {}
    for manager in ws.managers(params.cwd, all_projects=params.cwd is None):
        sessions.update((info.id, info) for info in manager.list().sessions)
    found = []
    for list_id in ws.list_ids():
        if call.cancelled:
            break
        info = sessions.get(list_id)
        if params.cwd is not None and info is None:
            continue
        try:
            store = _store(ws, list_id)
            store.refresh_counts()
            modified = times.format_ns(os.stat(ws.home.task_list(list_id)).st_mtime_ns)
        except (StorageError, OSError):
            continue  # a folder with a name of its own, or one that went away: no list
        session = None if info is None else info_record(info)
        found.append(records.TaskListInfo(list_id=list_id, counts=counts_record(store.counts()), modified=modified, session=session))
    return r.TaskListsResult(lists=found)


def update(ws: Workspace, params: p.TaskUpdateParams, call: Call) -> Raw | None:
    def given(value: object) -> object:
        return None if value is UNSET else value

    change = TaskUpdate(
        status=given(params.status),  # type: ignore[arg-type]  # UNSET is gone, the types are those of the params
        subject=given(params.subject),  # type: ignore[arg-type]
        description=given(params.description),  # type: ignore[arg-type]
        active_form=given(params.active_form),  # type: ignore[arg-type]
        owner=given(params.owner),  # type: ignore[arg-type]
        metadata=given(params.metadata),  # type: ignore[arg-type]
        add_blocks=params.add_blocks,
        add_blocked_by=params.add_blocked_by,
        remove_blocks=params.remove_blocks,
        remove_blocked_by=params.remove_blocked_by,
    )
    held = call.held_claim(params.list_id, params.id)
    if params.generation is not None:
        held = Claim(held.owner if held is not None else "", params.generation)
    task = _store(ws, params.list_id).update(params.id, change, held=held)
    call.list_changed(params.list_id)
    if task is None or task.status == TaskStatus.COMPLETED or params.owner is not UNSET:
        call.claimed(params.list_id, params.id, None)
    return None if task is None else task_record(task)


def claim(ws: Workspace, params: p.TaskClaim, call: Call) -> Raw:
    task = _store(ws, params.list_id).claim(params.id, params.owner, lease_ms=params.lease_ms)
    return _claimed(params.list_id, task, params.lease_ms, params.auto_renew, call)


def _claimed(list_id: str, task: Task, lease_ms: int | None, auto_renew: bool, call: Call) -> Raw:
    call.list_changed(list_id)
    if task.claim is not None and lease_ms is not None:
        call.claimed(list_id, task.id, task.claim, lease_ms, auto_renew)
    else:
        call.claimed(list_id, task.id, None)
    return task_record(task)


def find_claimable(ws: Workspace, params: p.OfList, call: Call) -> Raw | None:
    task = _store(ws, params.list_id).find_claimable()
    return None if task is None else task_record(task)


def claim_next(ws: Workspace, params: p.TaskClaimNext, call: Call) -> Raw | None:
    task = _store(ws, params.list_id).claim_next(params.owner, lease_ms=params.lease_ms, match=params.match)
    return None if task is None else _claimed(params.list_id, task, params.lease_ms, params.auto_renew, call)


def renew(ws: Workspace, params: p.TaskRenew, call: Call) -> Raw:
    held = call.held_claim(params.list_id, params.id)
    generation = params.generation
    if generation is None and held is not None and held.owner == params.owner:
        generation = held.generation
    task = _store(ws, params.list_id).renew(params.id, params.owner, lease_ms=params.lease_ms, generation=generation)
    return task_record(task)


def release(ws: Workspace, params: p.TaskRelease, call: Call) -> Raw:
    held = call.held_claim(params.list_id, params.id)
    generation = params.generation
    if generation is None and held is not None and held.owner == params.owner:
        generation = held.generation
    task = _store(ws, params.list_id).release(params.id, params.owner, generation=generation)
    call.list_changed(params.list_id)
    call.claimed(params.list_id, params.id, None)
    return task_record(task)


def reset(ws: Workspace, params: p.OfList, call: Call) -> None:
    _store(ws, params.list_id).reset()
    call.list_changed(params.list_id)


def _roster(ws: Workspace, list_id: str, call: Call | None = None) -> Raw:
    if call is not None:
        call.roster_changed(list_id)
    return Raw(ws.rosters.get(list_id).snapshot().document)


def roster_get(ws: Workspace, params: p.OfList, call: Call) -> Raw:
    return _roster(ws, check_name(params.list_id, "listId"))


def roster_set_team(ws: Workspace, params: p.RosterSetTeam, call: Call) -> Raw:
    ws.rosters.get(check_name(params.list_id, "listId")).set_team(params.team, params.description)
    return _roster(ws, params.list_id, call)


def roster_upsert(ws: Workspace, params: p.RosterUpsertMember, call: Call) -> Raw:
    check_name(params.list_id, "listId")
    if bytes(params.member)[:1] != b"{":
        raise InvalidArgument("member", "a member is a JSON object with name and agent_type")
    ws.rosters.get(params.list_id).upsert_member(params.member)
    return _roster(ws, params.list_id, call)


def roster_remove(ws: Workspace, params: p.RosterRemoveMember, call: Call) -> Raw:
    ws.rosters.get(check_name(params.list_id, "listId")).remove_member(params.name)
    return _roster(ws, params.list_id, call)


def roster_clear(ws: Workspace, params: p.OfList, call: Call) -> Raw:
    ws.rosters.get(check_name(params.list_id, "listId")).clear()
    return _roster(ws, params.list_id, call)


def transcript_append(ws: Workspace, params: p.TranscriptAppend, call: Call) -> r.TranscriptCount:
    check_name(params.list_id, "listId")
    return r.TranscriptCount(count=ws.transcripts.get(params.list_id).append(params.agent, params.messages))


def transcript_load(ws: Workspace, params: p.TranscriptLoad, call: Call) -> r.TranscriptPage:
    check_name(params.list_id, "listId")
    store = ws.transcripts.get(params.list_id)
    if params.offset is None and params.limit is None:
        messages = store.load(params.agent)
    else:
        messages = [Raw(raw) for raw in store.page(params.agent, params.offset or 0, params.limit)]
    return r.TranscriptPage(messages=messages, total=store.count(params.agent))


def transcript_list(ws: Workspace, params: p.OfList, call: Call) -> r.TranscriptListResult:
    check_name(params.list_id, "listId")
    agents = ws.transcripts.get(params.list_id).agents()
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
