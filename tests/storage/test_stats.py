"""What sessions cost, from the logs alone and through the index: odd entries, moments, numbers that no float holds."""

from __future__ import annotations

import json
import math
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlog.storage import PROCESS, CacheBreakInfo, LLMCallEntry, SessionManager, times
from crewlog.storage.home import Home
from crewlog.storage.index import SessionIndex
from crewlog.storage.sessions import SessionStore
from crewlog.storage.stats import Stats, Usage, UsageCounter, gather_stats
from storage.index_work import Work, told


def entry(number: int, kind: str, data: Any, moment: str = "2026-03-01T00:00:00Z") -> bytes:
    line = {"kind": kind, "id": f"{number:08x}", "parent_id": "h0", "timestamp": moment, "data": data}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def call(number: int, moment: str = "2026-03-01T00:00:00Z", **more: Any) -> bytes:
    return entry(number, "llm_call", {"model": "m", "input_tokens": 10, "output_tokens": 1, **more}, moment)


def cost(number: int, total: Any, **more: Any) -> bytes:
    return entry(number, "message", {"role": "assistant", "usage": {"model": "m", "cost": {"total": total}}, **more})


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(str(tmp_path / "home"))


def both(work: Work, since: str | None = None) -> Stats:
    """From the logs, after a comparison with what the index says."""
    moment = None if since is None else times.parse_ns(since)
    sessions = SessionManager(work.folder).list().sessions
    read = gather_stats(sessions, since=moment)
    for _ in range(2):
        assert told(gather_stats(sessions, since=moment, usage_of=work.index.usage_of({work.folder}))) == told(read)
        work.update()
    return read


def test_calls_and_messages_of_odd_shapes_are_passed_over(work: Work) -> None:
    odd = [
        b'{"kind":"llm_call","id":"0b","timestamp":"2026-03-01T00:00:00Z","data":{torn\n',
        entry(2, "llm_call", {"model": 5}),
        entry(3, "llm_call", []),
        cost(4, "a lot"),
        cost(5, None),
        entry(6, "message", {"usage": {"cost": 5}}),
        entry(7, "message", {"usage": None, "cost": 1}),
        entry(8, "session_info", {"name": '"llm_call" and "cost"'}),
        call(9)[:-2] + b"\n",
    ]
    work.create(1, call(1) + b"".join(odd) + cost(10, 0.5) + call(11).rstrip(b"\n"))
    found = both(work)
    assert (found.total.calls, found.total.input_tokens, found.total.cost) == (2, 20, 0.5)
    assert list(found.by_model) == ["m"]


CHANGED = dict.fromkeys(("system_changed", "frozen_system_changed", "dynamic_system_changed", "tools_changed"), True)
BROKEN = {"prev_cache_read_tokens": 9, "curr_cache_read_tokens": 2, "drop_absolute": 7, "drop_fraction": 0.5, **CHANGED, "note": "n"}
COUNTS = {"input_tokens": 10, "output_tokens": 1, "cache_read_tokens": 4, "cache_creation_tokens": 2, "total_tokens": 17, "latency_ms": 12}
FULL = {"provider": "p", "model": "m", **COUNTS, "stop_reason": "end", "reasoning_effort": "high", "cache_break": BROKEN}


def counted(work: Work, data: dict[str, Any]) -> tuple[Any, ...]:
    """What is told of the one call of a session."""
    work.create(1, entry(1, "llm_call", data))
    found = both(work)
    total = found.total
    tokens = [total.input_tokens, total.output_tokens, total.cache_read_tokens, total.cache_creation_tokens]
    breaks = [(item.dropped_tokens, item.reasons, item.note) for item in found.cache_breaks]
    return total.calls, list(found.by_model), tokens, total.percentile(0.5), breaks


@pytest.mark.parametrize("field", FULL)
def test_a_field_that_is_null_is_one_that_was_not_set(work: Work, field: str) -> None:
    """As Go reads it: the rest of the call counts."""
    without = {name: value for name, value in FULL.items() if name != field}
    assert counted(work, {**FULL, field: None}) == counted(work, without)
    assert counted(work, without)[0] == 1


@pytest.mark.parametrize("field", BROKEN)
def test_so_it_is_in_a_cache_break(work: Work, field: str) -> None:
    without = {name: value for name, value in BROKEN.items() if name != field}
    assert counted(work, {**FULL, "cache_break": {**BROKEN, field: None}}) == counted(work, {**FULL, "cache_break": without})
    assert len(counted(work, {**FULL, "cache_break": without})[4]) == 1


def test_so_it_is_in_the_cost_of_a_message(work: Work) -> None:
    usage = {"provider": None, "model": None, "input": None, "total_tokens": None, "cost": {"input": None, "total": 0.5}}
    work.create(1, entry(1, "message", {"role": None, "content": None, "metadata": None, "usage": usage}))
    assert {model: spent.cost for model, spent in both(work).by_model.items()} == {"": 0.5}


def test_numbers_that_are_written_as_fractions_count(work: Work) -> None:
    fractions = {name: float(value) for name, value in COUNTS.items()}
    broken = {**BROKEN, "drop_absolute": 7.0}
    assert counted(work, {**FULL, **fractions, "latency_ms": 12.4, "cache_break": broken}) == counted(work, FULL)


@pytest.mark.parametrize("number", [2**63, 10**30, 10**400, 1e300, -(10**400)])
def test_counts_beyond_what_go_holds_harm_no_other(work: Work, number: float) -> None:
    """There still are sums, shares and percentiles."""
    work.create(1, call(1, latency_ms=5) + entry(2, "llm_call", dict.fromkeys(COUNTS, number)))
    found = both(work).total
    assert found.calls == 2
    most = float(2**63 - 1) if number > 0 else 5.0
    assert (found.percentile(0.95), math.isfinite(found.cache_hit_rate)) == (most, True)


def test_what_is_since_a_moment(work: Work) -> None:
    """Also when it is in the midst of a day, and where there is no time."""
    moments = ["2026-03-01T08:00:00Z", "2026-03-01T12:00:00+08:00", "2026-03-01T20:00:00Z", "2026-03-02T08:00:00Z", "never"]
    broken = {"drop_absolute": 7, "tools_changed": True, "system_changed": True, "note": "n"}
    work.create(1, b"".join(call(number + 1, moment, cache_break=broken) for number, moment in enumerate(moments)))
    for since, calls in [
        (None, 5),
        ("2026-03-01T04:00:00Z", 4),
        ("2026-03-01T04:00:01Z", 3),
        ("2026-03-01T08:00:00Z", 3),
        ("2026-03-01T09:00:00Z", 2),
        ("2026-03-02T00:00:00Z", 1),
        ("2026-03-03T00:00:00Z", 0),
    ]:
        found = both(work, since)
        assert (found.total.calls, len(found.cache_breaks)) == (calls, calls), since
    assert {day: usage.calls for day, usage in both(work).by_day.items()} == {"2026-03-01": 3, "2026-03-02": 1, "never": 1}
    assert {tuple(found.reasons) for found in both(work).cache_breaks} == {("system", "tools")}


def test_by_model_day_and_session(work: Work) -> None:
    work.create(1, call(1, model="a", latency_ms=30) + call(2, "2026-03-02T00:00:00Z", model="b", latency_ms=10))
    work.create(2, call(3, model="a", cache_read_tokens=30, latency_ms=20))
    work.create(3, b"")
    found = both(work)
    assert {key: usage.calls for key, usage in found.by_model.items()} == {"a": 2, "b": 1}
    assert {key: usage.calls for key, usage in found.by_day.items()} == {"2026-03-01": 2, "2026-03-02": 1}
    assert {key: usage.calls for key, usage in found.by_session.items()} == {"00000001": 2, "00000002": 1}
    assert found.sessions == 3
    assert (found.by_model["a"].cache_hit_rate, found.by_model["b"].cache_hit_rate, Usage().cache_hit_rate) == (0.6, 0.0, 0.0)
    assert [found.total.percentile(share) for share in (0.0, 0.5, 0.95, 1.0)] == [10.0, 20.0, 30.0, 30.0]
    assert Usage().percentile(0.5) == 0.0


def spend(store: SessionStore, tokens: int, cost: float) -> None:
    """A call that broke the cache, and an answer that has its price."""
    store.append_llm_call(LLMCallEntry("p", "m", tokens, latency_ms=5, cache_break=CacheBreakInfo(drop_absolute=tokens)))
    store.append_message(json.dumps({"role": "assistant", "content": [], "usage": {"model": "m", "cost": {"total": cost}}}).encode())


class Family:
    """Sessions in two projects of one home, and what is told of them, with an index and without."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(str(folder))
        self.index = SessionIndex(self.home)
        self.here, self.there = (SessionManager(os.path.join(self.home.projects, name), durability=PROCESS) for name in ("-here", "-there"))

    def told(self, *managers: SessionManager, since: str | None = None) -> tuple[int, int, float, dict[str, int], list[int]]:
        """Calls, tokens, cost; tokens by session; tokens of cache breaks."""
        moment = None if since is None else times.parse_ns(since)
        sessions = [info for manager in managers for info in manager.list().sessions]
        read = gather_stats(sessions, since=moment)
        for info in sessions:
            os.utime(info.path, (1_000_000_000, 1_000_000_000 + len(info.path)))
        self.index.update(small=0)
        assert self.index.status().sessions >= len(sessions)
        known = gather_stats(sessions, since=moment, usage_of=self.index.usage_of({os.path.dirname(info.path) for info in sessions}))
        assert told(known) == told(read)
        for parts in (read.by_model, read.by_day):
            assert sum(usage.calls for usage in parts.values()) == read.total.calls
            assert sum(usage.cost for usage in parts.values()) == read.total.cost
        by_session = {name: usage.input_tokens for name, usage in read.by_session.items()}
        return read.total.calls, read.total.input_tokens, read.total.cost, by_session, [item.dropped_tokens for item in read.cache_breaks]


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path / "home")


def test_what_a_fork_holds_was_paid_for_once(family: Family) -> None:
    """A fork copies entries. Totals count them once; what is told of one session is all that it holds."""
    store = family.here.create("/here")
    spend(store, 100, 1.5)
    forks = [family.here.fork(store, "/here") for _ in range(2)]
    assert family.told(family.here) == (1, 100, 1.5, dict.fromkeys([store.session_id, *(fork.session_id for fork in forks)], 100), [100])
    spend(store, 20, 0.25)
    spend(forks[0], 3, 0.5)
    assert family.told(family.here)[:3] == (3, 123, 2.25)
    assert family.told(family.here)[3] == {store.session_id: 120, forks[0].session_id: 103, forks[1].session_id: 100}
    assert sorted(family.told(family.here)[4]) == [3, 20, 100]
    again = family.here.fork(forks[0], "/here")  # of a fork
    spend(again, 4000, 4.0)
    assert family.told(family.here)[:3] == (4, 4123, 6.25)
    assert family.told(family.here, since="2999-01-01T00:00:00Z") == (0, 0, 0.0, {}, [])
    assert family.told(family.here, since="2020-01-01T00:00:00Z")[:3] == (4, 4123, 6.25)


def test_what_was_forked_from_a_branch_that_was_left(family: Family) -> None:
    """What the fork's first call is stands in the midst of the other's log."""
    store = family.here.create("/here")
    first = store.append_message(b'{"role":"user"}').id
    spend(store, 1, 0.5)
    store.rewind(first)
    spend(store, 20, 0.25)
    fork = family.here.fork(store, "/here")
    spend(fork, 300, 1.0)
    assert family.told(family.here)[:3] == (3, 321, 1.75)


def test_a_fork_in_another_project_counts_there_and_once_in_all(family: Family) -> None:
    store = family.here.create("/here")
    spend(store, 100, 1.5)
    fork = family.there.fork(store, "/there")
    spend(fork, 20, 0.25)
    assert family.told(family.here)[:3] == (1, 100, 1.5)
    assert family.told(family.there)[:3] == (2, 120, 1.75)
    for managers in ((family.here, family.there), (family.there, family.here)):
        assert family.told(*managers)[:3] == (2, 120, 1.75)


def test_what_was_paid_for_counts_as_long_as_a_fork_holds_it(family: Family) -> None:
    store = family.here.create("/here")
    spend(store, 100, 1.5)
    one, two = family.here.fork(store, "/here"), family.here.fork(store, "/here")
    spend(store, 20, 0.25)
    spend(two, 3, 0.5)
    assert family.told(family.here)[:3] == (3, 123, 2.25)
    os.unlink(store.path)
    assert family.told(family.here)[:3] == (2, 103, 2.0)
    os.unlink(one.path)
    assert family.told(family.here)[:3] == (2, 103, 2.0)


def test_calls_alike_in_sessions_that_are_not_akin_all_count(work: Work) -> None:
    """Of the same id at another time, and at the same time under another id."""
    work.create(1, call(1))
    work.create(2, call(1, "2026-03-01T00:00:01Z") + call(2))
    work.create(3, call(3))
    assert both(work).total.calls == 4


@pytest.mark.parametrize(
    ("costs", "total"),
    [
        ([0.1] * 10, 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([1e308, 1e308], sys.float_info.max),
        ([1e308, 1e308, -1e308], 1e308),
        ([10**400, 1], sys.float_info.max),
        ([-(10**400), 1], -sys.float_info.max),
        ([10**400, -(10**400)], 0.0),
        ([1e308, 1e308, 1, 2, 3], sys.float_info.max),
    ],
)
def test_costs_add_up_exactly(work: Work, costs: list[float], total: float) -> None:
    """In whichever order, and in however many updates of the index they came; what no float holds is the largest."""
    work.create(1, b"")
    for number, value in enumerate(costs):
        work.write(1, cost(number + 1, value))
        if number % 2:
            work.update()
    assert both(work).total.cost == total


finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(st.one_of(finite, st.sampled_from([0.1, 1e16, -1e16, 5e-324])), max_size=40))
def test_few_numbers_have_the_same_sum(costs: list[float]) -> None:
    counter = UsageCounter()
    for part in (costs[: len(costs) // 2], costs[len(costs) // 2 :]):
        for value in part:
            counter.see_line(cost(1, value))
        counter = UsageCounter(counter.compact())
    found = [value for portion in counter.usage.portions for value in portion.usage.costs]
    assert sum(map(Fraction, found)) == sum(map(Fraction, costs))
    assert len(found) <= max(len(costs), 1)


def test_who_stops_reading_half_way_gets_what_was_read(work: Work) -> None:
    work.create(1, b"".join(call(number) for number in range(1, 5001)))
    work.create(2, call(1))
    sessions = sorted(SessionManager(work.folder).list().sessions, key=lambda info: info.id)
    looks: list[int] = []

    def keep_going() -> bool:
        looks.append(0)
        return len(looks) < 3  # before the first log, and in it

    found = gather_stats(sessions, keep_going=keep_going)
    assert found.sessions == 1
    assert 0 < found.total.calls < 5000


def test_a_log_that_went_away_costs_nothing(work: Work) -> None:
    work.create(1, call(1))
    work.create(2, call(1))
    work.update()
    sessions = SessionManager(work.folder).list().sessions
    os.unlink(work.path(1))
    for usage_of in (lambda info: None, work.index.usage_of({work.folder})):
        found = gather_stats(sessions, usage_of=usage_of)
        assert (found.total.calls, list(found.by_session)) == (1, ["00000002"])
