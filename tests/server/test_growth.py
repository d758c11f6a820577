"""Does a server that works for long stay as small as it was?"""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from server.rawclient import RawClient, serving

REQUESTS = 100_000
FOREIGN = 10_000
TASK = '{"id": "%s", "subject": "%s", "status": "pending", "blocks": [], "blockedBy": []}'

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell a process's memory in /proc")


def memory(client: RawClient) -> int:
    """Resident bytes."""
    text = Path(f"/proc/{client.process.pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def descriptors(client: RawClient) -> int:
    return len(os.listdir(f"/proc/{client.process.pid}/fd"))


def work(client: RawClient, count: int, session: str) -> None:
    """`count` requests of many kinds, pipelined a hundred at a time."""
    kinds = [
        ("task/update", {"listId": "x", "id": "1", "subject": "again"}),
        ("task/get", {"listId": "x", "id": "1"}),
        ("task/list", {"listId": "x"}),
        ("task/claim", {"listId": "x", "id": "2", "owner": "a", "leaseMs": 60_000}),
        ("task/renew", {"listId": "x", "id": "2", "owner": "a"}),
        ("task/release", {"listId": "x", "id": "2", "owner": "a"}),
        ("session/snapshot", {"sessionId": session}),
        ("session/entries", {"sessionId": session, "limit": 1}),
        ("plan/load", {"name": "p"}),
        ("roster/get", {"listId": "x"}),
        ("history/get", {"index": 0}),
        ("crewlog/status", {}),
        ("task/get", {"listId": "..", "id": "1"}),
        ("no/such", {}),
    ]
    for start in range(0, count, 98):
        for id in [client.start(*kinds[number % len(kinds)]) for number in range(start, min(start + 98, count))]:
            client.wait_reply(id)
        client.messages.clear()


def tells(subject: str, params: dict[str, Any]) -> bool:
    return any(task["subject"] == subject for task in params["changed"])


def edit_by_hand(client: RawClient, home: Path, count: int) -> None:
    """`count` changes by another program, and proof that the last was heard of."""
    for number in range(count):
        (home / "tasks" / "x" / "1.json").write_text(TASK % (1, f"by hand {number}"))
        if number % 1000 == 999:
            client.wait_notification("task/didChange", partial(tells, f"by hand {number}"))
            client.messages.clear()


def test_a_server_does_not_grow(home: Path) -> None:
    with serving(home) as client:
        session = client.request("session/create")["session"]["id"]
        client.request("session/append", {"sessionId": session, "entries": [{"kind": "message", "data": {"role": "user"}}]})
        for subject in ("one", "two", "three"):
            client.request("task/create", {"listId": "x", "subject": subject})
        client.request("plan/save", {"name": "p", "content": "c"})
        client.request("history/add", {"text": "t"})
        client.request("subscribe", {"topics": ["task", "session"], "listIds": ["x"]})
        work(client, REQUESTS // 10, session)
        edit_by_hand(client, home, FOREIGN // 10)
        gc.collect()
        before, open_before = memory(client), descriptors(client)
        work(client, REQUESTS, session)
        edit_by_hand(client, home, FOREIGN)
        assert memory(client) - before < 10_000_000
        assert descriptors(client) <= open_before


def test_many_of_everything_stay_within_bounds(home: Path) -> None:
    """A thousand sessions and lists touched once each leave neither descriptors nor memory behind."""
    with serving(home, {"subscribe": False}) as client:

        def touch(name: str) -> None:
            session = client.request("session/create")["session"]["id"]
            client.request("session/append", {"sessionId": session, "entries": [{"kind": "message", "data": {"role": "user"}}]})
            client.request("task/create", {"listId": name, "subject": "s"})
            client.request("roster/setTeam", {"listId": name, "team": "t"})
            client.request("transcript/append", {"listId": name, "agent": "a", "messages": [{"role": "user"}]})

        for number in range(150):
            touch(f"warm{number}")
        before, open_before = memory(client), descriptors(client)
        for number in range(700):
            touch(f"list{number}")
        assert descriptors(client) <= open_before + 5
        assert memory(client) - before < 10_000_000


def test_tasks_taken_and_given_back_for_hours_leave_nothing_behind(home: Path) -> None:
    """Neither a time to renew nor an end of a lease is kept for longer than the claim, however long the lease."""
    with serving(home, {"subscribe": False}) as client:
        client.request("task/create", {"listId": "x", "subject": "s"})
        task = {"listId": "x", "id": "1", "owner": "a"}
        turn = [("task/claim", {**task, "leaseMs": 3_600_000}), ("task/renew", task), ("task/release", task)]

        def take_turns(count: int) -> None:
            for _ in range(count // 50):
                for id in [client.start(*request) for request in turn * 50]:
                    client.wait_reply(id)

        take_turns(3000)
        before = memory(client)
        take_turns(8000)
        assert memory(client) - before < 1_500_000


def test_what_a_client_hears_of_costs_no_descriptors(home: Path) -> None:
    """Lists and members by the hundred, each worked on once, all of which the client is told of."""
    with serving(home) as client:

        def touch(number: int) -> None:
            client.request("task/create", {"listId": f"list{number}", "subject": "s"})
            client.request("roster/setTeam", {"listId": f"list{number}", "team": "t"})
            client.request("transcript/append", {"listId": "x", "agent": f"member{number}", "messages": [{"role": "user"}]})

        for number in range(100):
            touch(number)
        open_before = descriptors(client)
        for number in range(100, 500):
            touch(number)
        assert descriptors(client) <= open_before + 20
        for number in range(500):  # those that were closed go on as if they had not been
            assert client.request("task/create", {"listId": f"list{number}", "subject": "s"})["id"] == "2"
        more = {"agent": "member0", "messages": [{"role": "user"}]}
        assert client.request("transcript/append", {"listId": "x", **more})["count"] == 2
        assert len(client.request("transcript/list", {"listId": "x"})["agents"]) == 500
        assert descriptors(client) <= open_before + 20
        client.wait_notification("task/didChange", lambda params: params["listId"] == "list0" and params["counts"]["total"] == 2)


def test_names_of_what_is_not_there_are_not_kept(home: Path, tmp_path: Path) -> None:
    with serving(home, {"subscribe": False}) as client:

        def ask(first: int, last: int) -> None:
            for number in range(first, last):
                requests = [
                    ("task/list", {"listId": f"list{number}"}),
                    ("roster/get", {"listId": f"list{number}"}),
                    ("transcript/load", {"listId": "x", "agent": f"agent{number}"}),
                    ("plan/load", {"name": f"plan{number}"}),
                    ("history/get", {"index": 0, "cwd": str(tmp_path / f"work{number}")}),
                    ("session/mostRecent", {"cwd": str(tmp_path / f"work{number}")}),
                    ("session/open", {"sessionId": f"{number:08x}"}),
                ]
                for id in [client.start(*request) for request in requests]:
                    client.wait_reply(id)

        ask(0, 3000)  # what a server prepares in the background after its start is there by then
        before = memory(client)
        ask(3000, 7500)
        assert memory(client) - before < 2_000_000
        assert not home.exists() or not list(home.iterdir())
