"""What the `plan/…` and `history/…` methods do."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from crewlog.protocol import params as p
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.server.call import Call
from crewlog.server.workspace import Workspace


def plan_list(ws: Workspace, params: p.NoParams, call: Call) -> r.PlanListResult:
    return r.PlanListResult(
        plans=[
            records.PlanInfo(name=plan.name, modified=plan.modified, size=plan.size, path=f"{ws.plans.dir}/{plan.name}.md")
            for plan in ws.plans.list()
        ]
    )


def plan_load(ws: Workspace, params: p.OfPlan, call: Call) -> r.PlanContent:
    plan = ws.plans.load(params.name)
    return r.PlanContent(content=plan.content, etag=plan.etag)


def plan_save(ws: Workspace, params: p.PlanSave, call: Call) -> r.PlanSaved:
    etag = ws.plans.save(params.name, params.content, if_match=params.if_match)
    call.plan_changed(params.name)
    return r.PlanSaved(etag=etag, path=ws.plans.path(params.name))


def plan_delete(ws: Workspace, params: p.PlanDelete, call: Call) -> r.Deleted:
    existed = ws.plans.delete(params.name, if_match=params.if_match)
    call.plan_changed(params.name)
    return r.Deleted(deleted=existed)


def plan_path(ws: Workspace, params: p.OfPlan, call: Call) -> r.PlanPath:
    return r.PlanPath(path=ws.plans.path(params.name))


def plan_generate_name(ws: Workspace, params: p.NoParams, call: Call) -> r.PlanName:
    return r.PlanName(name=ws.plans.generate_name())


def history_add(ws: Workspace, params: p.HistoryAdd, call: Call) -> r.HistoryLength:
    with ws.history(params.cwd) as history:
        return r.HistoryLength(length=history.add(params.text, params.pasted_contents, session_id=params.session_id or ""))


def history_get(ws: Workspace, params: p.HistoryGet, call: Call) -> Raw | None:
    with ws.history(params.cwd) as history:
        line = history.get(params.index)
    return None if line is None else Raw(line.raw)


def history_list(ws: Workspace, params: p.HistoryListParams, call: Call) -> r.HistoryListResult:
    with ws.history(params.cwd) as history:
        lines, total = history.list(params.offset, params.limit, params.query)
    return r.HistoryListResult(items=[Raw(line.raw) for line in lines], total=total)


def history_navigate(ws: Workspace, params: p.HistoryNavigate, call: Call) -> r.HistoryPlace | None:
    with ws.history(params.cwd) as history:
        found = history.navigate(params.direction, params.index, params.prefix)
    return None if found is None else r.HistoryPlace(index=found[0], item=Raw(found[1].raw))


HANDLERS: dict[str, Callable[..., object]] = {
    "plan/list": plan_list,
    "plan/load": plan_load,
    "plan/save": plan_save,
    "plan/delete": plan_delete,
    "plan/path": plan_path,
    "plan/generateName": plan_generate_name,
    "history/add": history_add,
    "history/get": history_get,
    "history/list": history_list,
    "history/navigate": history_navigate,
}
