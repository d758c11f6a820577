"""Changes that nobody reads are merged, and tell the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crewlog.client.backlog import Backlog, Change, merged
from crewlog.client.results import Roster, RosterDidChange, Task, TaskDidChange
from crewlog.protocol.records import Counts, SessionInfo
from crewlog.protocol.results import PlanDidChange, SessionDidChange

NOBODY = Counts(pending=0, in_progress=0, completed=0, total=0)
names = st.sampled_from(["a", "b", "c"])


def tasks(list_id: str, revision: int, changed: dict[str, int], removed: list[str]) -> TaskDidChange:
    records = [
        Task(b'{"id":"%b","subject":"%d","status":"pending","blocks":[],"blockedBy":[]}' % (id.encode(), subject))
        for id, subject in changed.items()
    ]
    return TaskDidChange(list_id=list_id, revision=revision, changed=records, removed=removed, counts=NOBODY)


def session(id: str, entries: int, change: str) -> SessionDidChange:
    info = SessionInfo(id=id, name="", path="", cwd="", created="", updated="", message_count=0, first_message="")
    return SessionDidChange(session=info, leaf_id=str(entries), entries=entries, change=change)


def plan(name: str, change: str) -> PlanDidChange:
    return PlanDidChange(name=name, change=change, etag=change)


task_changes = st.builds(
    lambda list_id, changed, removed: tasks(list_id, 0, changed, [id for id in removed if id not in changed]),
    names,
    st.dictionaries(names, st.integers(0, 99), max_size=3),
    st.lists(names, unique=True),
)
changes = st.lists(
    st.one_of(
        task_changes,
        st.builds(lambda id: RosterDidChange(list_id=id, roster=Roster(b'{"team":"%b"}' % id.encode())), names),
        st.builds(plan, names, st.sampled_from(["created", "changed", "deleted"])),
        st.builds(session, names, st.integers(0, 9), st.just("appended")),
    ),
    max_size=40,
)


def board(told: list[Change]) -> dict[tuple[str, str], str]:
    """The tasks that a listener has after these changes."""
    held: dict[tuple[str, str], str] = {}
    for change in told:
        if isinstance(change, TaskDidChange):
            for id in change.removed:
                held.pop((change.list_id, id), None)
            held.update({(change.list_id, task.id): task.subject for task in change.changed})
    return held


def drained(backlog: Backlog) -> list[Change]:
    found = []
    while (change := backlog.take()) is not None:
        found.append(change)
    return found


@given(changes, st.integers(1, 10))
def test_a_reader_that_comes_late_ends_where_one_that_read_all_ends(told: list[Change], limit: int) -> None:
    backlog = Backlog(limit)
    for change in told:
        backlog.add(change)
    assert len(backlog) <= max(limit, 2 * 12)
    late = drained(backlog)
    assert board(late) == board(told)
    assert sum(change.entries for change in late if isinstance(change, SessionDidChange)) == sum(
        change.entries for change in told if isinstance(change, SessionDidChange)
    )
    for kind in (PlanDidChange, RosterDidChange):
        latest = {
            str(getattr(change, "name", None) or getattr(change, "list_id", "")): change for change in told if isinstance(change, kind)
        }
        again = {
            str(getattr(change, "name", None) or getattr(change, "list_id", "")): change for change in late if isinstance(change, kind)
        }
        assert set(again) == set(latest)


def test_few_changes_are_told_one_by_one_in_order() -> None:
    backlog = Backlog(3)
    for revision in (1, 2, 3):
        backlog.add(tasks("l", revision, {"1": revision}, []))
    assert [change.revision for change in drained(backlog) if isinstance(change, TaskDidChange)] == [1, 2, 3]


def test_what_a_merged_change_is_called() -> None:
    def both(first: Change, second: Change) -> tuple[str, int]:
        (one,) = merged([first, second])
        assert isinstance(one, (PlanDidChange, SessionDidChange))
        return one.change, getattr(one, "entries", 0)

    assert both(plan("p", "created"), plan("p", "changed")) == ("created", 0)
    assert both(plan("p", "deleted"), plan("p", "created")) == ("changed", 0)
    assert both(plan("p", "changed"), plan("p", "deleted")) == ("deleted", 0)
    assert both(session("s", 1, "created"), session("s", 2, "appended")) == ("created", 3)
    assert both(session("s", 5, "appended"), session("s", 2, "replaced")) == ("replaced", 2)
    assert both(session("s", 5, "replaced"), session("s", 2, "appended")) == ("replaced", 7)
    assert both(session("s", 5, "appended"), session("s", 0, "deleted")) == ("deleted", 0)
