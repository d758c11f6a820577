"""What the `session/…` methods do."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable

import msgspec

from crewlog.protocol import params as p
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.protocol.errors import InvalidParams
from crewlog.server.call import Call
from crewlog.server.lifecycle import check_folder
from crewlog.server.session_records import info_record
from crewlog.server.workspace import Workspace
from crewlog.storage import sessions as storage
from crewlog.storage import stats as storage_stats
from crewlog.storage import stopping, times
from crewlog.storage.entries import NewEntry
from crewlog.storage.export import export
from crewlog.storage.locks import require_waiting
from crewlog.storage.manager import newest_first
from crewlog.storage.records import Entry, SessionInfo
from crewlog.storage.search import search
from crewlog.storage.stats import gather_stats
from crewlog.storage.views import branches, entry_page

DEFAULT_HITS = 50
SMALL_SESSION = 2000
"""Entries up to which a walk over a session's tree takes about a millisecond."""


def _summary(ws: Workspace, store: storage.SessionStore) -> records.SessionInfo:
    return info_record(ws.manager(os.path.dirname(store.path)).info(store.path))


def create(ws: Workspace, params: p.SessionCreate, call: Call) -> r.SessionAndLeaf:
    cwd = ws.folder_of(params.cwd)
    made = ws.manager(ws.home.sessions(cwd)).create(cwd, name=params.name)
    made.close()
    return _made(ws, made.path, call)


def _made(ws: Workspace, path: str, call: Call) -> r.SessionAndLeaf:
    call.session_changed(path)
    with ws.session_at(path) as store:
        return r.SessionAndLeaf(session=_summary(ws, store), leaf_id=store.leaf_id)


def list_sessions(ws: Workspace, params: p.SessionListParams, call: Call) -> r.SessionListResult:
    words = params.query.casefold().split()
    if params.limit is not None and not params.cursor and not words:
        return _first_page(ws, params, params.limit)
    found: list[SessionInfo] = []
    skipped: list[records.Skipped] = []
    for manager in ws.managers(params.cwd, all_projects=params.all_projects):
        stopping.check()
        listed = manager.list(progress=call.progress)
        found += listed.sessions
        skipped += [records.Skipped(path=item.path, reason=item.reason) for item in listed.skipped]
    if words:
        found = [info for info in found if all(word in f"{info.name}\n{info.first_message}\n{info.id}".casefold() for word in words)]
    found.sort(key=newest_first)
    if params.cursor:
        after = _read_cursor(params.cursor)
        found = [info for info in found if newest_first(info) > after]
    limit = params.limit or (len(found) or 1)
    page = found[:limit]
    cursor = _write_cursor(page[-1]) if len(found) > len(page) else ""
    return r.SessionListResult(sessions=[info_record(info) for info in page], next_cursor=cursor, skipped=[] if params.cursor else skipped)


def _first_page(ws: Workspace, params: p.SessionListParams, limit: int) -> r.SessionListResult:
    """It does not wait for what only later pages need."""
    pages = [manager.first_page(limit) for manager in ws.managers(params.cwd, all_projects=params.all_projects)]
    found = sorted((info for page in pages for info in page.sessions), key=newest_first)
    more = len(found) > limit or any(page.more for page in pages)
    shown = found[:limit]
    return r.SessionListResult(
        sessions=[info_record(info) for info in shown],
        next_cursor=_write_cursor(shown[-1]) if shown and more else "",
        skipped=[records.Skipped(path=item.path, reason=item.reason) for page in pages for item in page.skipped],
    )


def _write_cursor(info: SessionInfo) -> str:
    """The place behind a session in the order of the list: stays where it is while sessions are added."""
    return base64.urlsafe_b64encode(json.dumps(newest_first(info)).encode()).decode()  # of a path that is no UTF-8 too


def _read_cursor(cursor: str) -> tuple[int, str, str]:
    try:
        return msgspec.convert(json.loads(base64.urlsafe_b64decode(cursor)), tuple[int, str, str])
    except (ValueError, RecursionError, msgspec.MsgspecError):
        raise InvalidParams("$.cursor", "pass on the nextCursor of the page before, unchanged") from None


def most_recent(ws: Workspace, params: p.OfProject, call: Call) -> r.OneSession | None:
    found = [info for manager in ws.managers(params.cwd) for info in manager.list().sessions]
    return r.OneSession(session=info_record(min(found, key=newest_first))) if found else None


def open_session(ws: Workspace, params: p.SessionOpen, call: Call) -> r.SessionOpenResult:
    if (params.session_id is None) == (params.path is None):
        raise InvalidParams("$.sessionId", "give either sessionId or path")
    path = check_folder(params.path, "$.path") if params.path is not None else ""
    with ws.session(params.session_id) if params.session_id is not None else ws.session_at(path) as store:
        store.refresh()
        header, recovered = store.header, store.recovered
        return r.SessionOpenResult(
            header=records.HeaderRecord(
                version=header.version, session_id=header.session_id, name=header.name, cwd=header.cwd, created=header.created
            ),
            session=_summary(ws, store),
            leaf_id=store.leaf_id,
            recovered=None if recovered is None else records.Recovered(line=recovered.line, size=recovered.size),
        )


def append(ws: Workspace, params: p.SessionAppend, call: Call) -> r.AppendResult:
    entries = [NewEntry(entry.kind, entry.data) for entry in params.entries]
    with ws.session(params.session_id) as store:
        return _appended(store, store.append(entries, expected_leaf_id=params.expected_leaf_id), call)


def _appended(store: storage.SessionStore, done: list[Entry], call: Call) -> r.AppendResult:
    if done:
        call.session_changed(store.path)
    leaf = done[-1].id if done else store.leaf_id
    refs = [records.EntryRef(id=entry.id, parent_id=entry.parent_id, timestamp=entry.timestamp) for entry in done]
    return r.AppendResult(entries=refs, leaf_id=leaf)


def snapshot(ws: Workspace, params: p.SessionSnapshot, call: Call) -> r.SnapshotResult:
    with ws.session(params.session_id) as store:
        found = store.snapshot(params.at_entry_id)
    return r.SnapshotResult(
        messages=found.messages,
        provider=found.provider,
        model=found.model,
        reasoning_effort=found.reasoning_effort,
        plan_slug=found.plan_slug,
        plan_phase=found.plan_phase,
        plan_pre_mode=found.plan_pre_mode,
        goal=found.goal,
        name=found.name,
        leaf_id=found.leaf_id,
    )


def entries(ws: Workspace, params: p.SessionEntries, call: Call) -> r.EntriesResult:
    with ws.session(params.session_id) as store:
        _require_small(store)
        page = entry_page(
            store,
            after=params.after,
            before=params.before,
            limit=params.limit,
            max_bytes=params.max_bytes,
            kinds=params.kinds,
            leaf_id=params.leaf_id,
        )
    return r.EntriesResult(
        entries=[msgspec.Raw(line) for line in page.entries],
        has_more=page.has_more,
        leaf_id=page.leaf_id,
        total=page.total,
        broken=_break(page.broken),
    )


def _require_small(store: storage.SessionStore) -> None:
    """A walk over the tree of a long session does not belong on the event loop."""
    if store.entry_count > SMALL_SESSION:
        require_waiting()


def _break(broken: storage.Break | None) -> records.Break | None:
    if broken is None:
        return None
    return records.Break(entry_id=broken.entry_id, missing_parent_id=broken.missing_parent_id, reason=broken.reason)


def set_name(ws: Workspace, params: p.SessionSetName, call: Call) -> r.AppendResult:
    with ws.session(params.session_id) as store:
        return _appended(store, [store.set_name(params.name, expected_leaf_id=params.expected_leaf_id)], call)


def rewind(ws: Workspace, params: p.SessionRewind, call: Call) -> r.AppendResult:
    with ws.session(params.session_id) as store:
        return _appended(store, [store.rewind(params.entry_id, expected_leaf_id=params.expected_leaf_id)], call)


def fork(ws: Workspace, params: p.SessionFork, call: Call) -> r.SessionAndLeaf:
    with ws.session(params.session_id) as source:
        cwd = source.header.cwd if params.cwd is None else ws.folder_of(params.cwd)
        folder = os.path.dirname(source.path) if params.cwd is None else ws.home.sessions(cwd)
        made = ws.manager(folder).fork(source, cwd, params.entry_id)
        made.close()
    return _made(ws, made.path, call)


def list_branches(ws: Workspace, params: p.OfSession, call: Call) -> r.BranchesResult:
    with ws.session(params.session_id) as store:
        _require_small(store)
        found = branches(store)
    return r.BranchesResult(
        branches=[
            records.Branch(
                leaf_id=branch.leaf_id,
                length=branch.length,
                timestamp=branch.timestamp,
                last_text=branch.last_text,
                current=branch.current,
                broken=_break(branch.broken),
            )
            for branch in found
        ]
    )


def delete(ws: Workspace, params: p.OfSession, call: Call) -> r.Deleted:
    path = ws.session_path(params.session_id)
    ws.trash.delete(params.session_id, path)
    ws.forget_session(params.session_id, path)
    call.session_changed(path)
    call.list_changed(params.session_id)
    call.roster_changed(params.session_id)
    return r.Deleted(deleted=True)


def restore(ws: Workspace, params: p.OfSession, call: Call) -> r.OneSession:
    path = ws.trash.restore(params.session_id)
    call.list_changed(params.session_id)
    call.roster_changed(params.session_id)
    return r.OneSession(session=_made(ws, path, call).session)


def _sessions(ws: Workspace, cwd: str | None, all_projects: bool, call: Call) -> list[SessionInfo]:
    """Newest first."""
    found = [info for manager in ws.managers(cwd, all_projects=all_projects) for info in manager.list(progress=call.progress).sessions]
    return sorted(found, key=newest_first)


def search_sessions(ws: Workspace, params: p.SessionSearch, call: Call) -> r.SearchResult:
    sessions = _sessions(ws, params.cwd, params.all_projects, call)
    done = 0

    def looked_at(path: str) -> None:
        nonlocal done
        done += 1
        call.progress(done, len(sessions))

    places = ws.index.places(params.query, {os.path.dirname(info.path) for info in sessions})
    hits = search(sessions, params.query, params.limit or DEFAULT_HITS, keep_going=stopping.keep_going, places=places, looked_at=looked_at)
    stopping.check()
    return r.SearchResult(
        hits=[
            records.SearchHit(
                session=info_record(hit.session),
                entry_id=hit.entry_id,
                kind=hit.kind,
                timestamp=hit.timestamp,
                snippet=hit.snippet,
                score=hit.score,
            )
            for hit in hits
        ]
    )


def export_session(ws: Workspace, params: p.SessionExport, call: Call) -> r.ExportResult:
    with ws.session(params.session_id) as store:
        return r.ExportResult(text=export(store, params.format))


def stats(ws: Workspace, params: p.SessionStats, call: Call) -> r.StatsResult:
    since = None
    if params.since is not None:
        since = times.parse_ns(params.since)
        if since is None:
            raise InvalidParams("$.since", "an RFC 3339 time was expected, such as 2026-03-01T09:30:00Z")
    if params.session_id is not None:
        path = ws.session_path(params.session_id)
        sessions = [ws.manager(os.path.dirname(path)).info(path)]
    else:
        sessions = _sessions(ws, params.cwd, params.all_projects, call)
    known = ws.index.usage_of({os.path.dirname(info.path) for info in sessions})
    done = 0

    def usage_of(info: SessionInfo) -> storage_stats.SessionUsage | None:
        nonlocal done
        done += 1
        call.progress(done, len(sessions))
        return known(info)

    found = gather_stats(sessions, since=since, keep_going=stopping.keep_going, usage_of=usage_of)
    stopping.check()
    return r.StatsResult(
        total=_usage(found.total),
        by_model={name: _usage(usage) for name, usage in found.by_model.items()},
        by_day={name: _usage(usage) for name, usage in sorted(found.by_day.items())},
        by_session={name: _usage(usage) for name, usage in found.by_session.items()},
        cache_breaks=[
            records.CacheBreak(
                session_id=item.session_id,
                entry_id=item.entry_id,
                timestamp=item.timestamp,
                dropped_tokens=item.dropped_tokens,
                reasons=item.reasons,
                note=item.note,
            )
            for item in found.cache_breaks
        ],
        sessions=found.sessions,
    )


def _usage(usage: storage_stats.Usage) -> records.Usage:
    latency = records.Latency(median=usage.percentile(0.5), p95=usage.percentile(0.95)) if usage.latencies else None
    return records.Usage(
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        cache_hit_rate=round(usage.cache_hit_rate, 6),
        cost=usage.cost,
        latency=latency,
    )


HANDLERS: dict[str, Callable[..., object]] = {
    "session/create": create,
    "session/list": list_sessions,
    "session/mostRecent": most_recent,
    "session/open": open_session,
    "session/append": append,
    "session/snapshot": snapshot,
    "session/entries": entries,
    "session/setName": set_name,
    "session/rewind": rewind,
    "session/fork": fork,
    "session/branches": list_branches,
    "session/delete": delete,
    "session/restore": restore,
    "session/search": search_sessions,
    "session/export": export_session,
    "session/stats": stats,
}
