"""Do claims, leases and waiting for work hold between processes?"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crewlog.server.call import ClaimChange, ClaimEvent
from crewlog.server.renewal import LOST_KEPT, Renewal
from crewlog.storage.records import Claim
from server.rawclient import RawClient, RpcError, held, serving

TASK = '{"id": "%s", "subject": "%s", "status": "pending", "blocks": [], "blockedBy": []}'


def create(client: RawClient, subject: str = "s", **more: Any) -> str:
    id: str = client.request("task/create", {"listId": "x", "subject": subject, **more})["id"]
    return id


def claim_next(client: RawClient, owner: str = "a", **more: Any) -> Any:
    return client.request("task/claimNext", {"listId": "x", "owner": owner, **more})


def wait_for_work(client: RawClient, owner: str, wait_ms: int = 60_000, **more: Any) -> Any:
    """A request that waits; it is known to have arrived when this returns."""
    id = client.start("task/claimNext", {"listId": "x", "owner": owner, "waitMs": wait_ms, **more})
    client.ping()
    return id


def refused(client: RawClient, method: str, params: dict[str, Any]) -> RpcError:
    with pytest.raises(RpcError) as caught:
        client.request(method, {"listId": "x", **params})
    return caught.value


@pytest.fixture
def other(home: Path) -> Any:
    with serving(home) as client:
        yield client


def test_claim_next_takes_the_lowest_and_null_when_there_is_none(client: RawClient) -> None:
    assert claim_next(client) is None
    for subject in ("one", "two"):
        create(client, subject)
    assert claim_next(client)["id"] == "1"
    assert claim_next(client, "b")["id"] == "2"
    assert claim_next(client, "c") is None


def test_two_clients_that_race_never_get_the_same(client: RawClient, other: RawClient) -> None:
    """`claimNext` in the same millisecond, 500 times over (cases, 11)."""
    count = 500
    ids = [client.start("task/create", {"listId": "x", "subject": "s"}) for _ in range(count)]
    for id in ids:
        client.wait(id)
    started = [
        (c, c.start("task/claimNext", {"listId": "x", "owner": name}))
        for _ in range(count // 2 + 5)
        for c, name in ((client, "a"), (other, "b"))
    ]
    taken = [task["id"] for c, id in started if (task := c.wait(id)) is not None]
    assert sorted(map(int, taken)) == list(range(1, count + 1))


def test_waiting_ends_with_the_work_that_appears_in_any_process(client: RawClient, other: RawClient, home: Path) -> None:
    waiting = wait_for_work(client, "a")
    assert not client.has_reply(waiting)
    create(client, "own")
    assert client.wait(waiting)["subject"] == "own"
    waiting = wait_for_work(client, "a")
    create(other, "other's")
    assert client.wait(waiting)["subject"] == "other's"
    waiting = wait_for_work(client, "a")
    (home / "tasks" / "x" / "9.json").write_text(TASK % (9, "by hand"))
    assert client.wait(waiting)["subject"] == "by hand"


def test_waiting_before_there_is_a_list(client: RawClient, other: RawClient, home: Path) -> None:
    waiting = wait_for_work(client, "a")
    assert not home.exists()
    create(other)
    assert client.wait(waiting)["owner"] == "a"


def test_waiting_ends_when_a_blocker_is_completed_or_deleted(client: RawClient, other: RawClient) -> None:
    for number in range(2):
        create(client, f"blocker {number}")
    create(client, "blocked", blockedBy=["1", "2"])
    for owner in ("a", "b"):
        claim_next(other, owner)
    waiting = wait_for_work(client, "c")
    other.request("task/update", {"listId": "x", "id": "1", "status": "completed"})
    client.ping()
    assert not client.has_reply(waiting)
    other.request("task/delete", {"listId": "x", "id": "2"})
    assert client.wait(waiting)["subject"] == "blocked"


def test_waiting_ends_when_a_task_is_released(client: RawClient, other: RawClient) -> None:
    create(client)
    claim_next(other, "b")
    waiting = wait_for_work(client, "a")
    other.request("task/release", {"listId": "x", "id": "1", "owner": "b"})
    assert client.wait(waiting)["owner"] == "a"


def test_waiting_ends_with_null_after_its_time(client: RawClient) -> None:
    assert claim_next(client, "a", waitMs=50) is None


def test_only_a_task_that_matches_is_waited_for(client: RawClient, other: RawClient) -> None:
    waiting = wait_for_work(client, "a", match={"skill": "rust", "size": {"max": 5}})
    create(other, "no metadata")
    create(other, "half", metadata={"skill": "rust"})
    create(other, "wrong", metadata={"skill": "go", "size": {"max": 5}})
    client.ping()
    assert not client.has_reply(waiting)
    create(other, "right", metadata={"skill": "rust", "size": {"max": 5}, "more": 1})
    assert client.wait(waiting)["subject"] == "right"
    assert claim_next(other, "b")["subject"] == "no metadata"


def test_fifty_wait_and_one_task_comes(client: RawClient, other: RawClient, home: Path) -> None:
    with serving(home) as third:
        clients = [client, other, third]
        waiting = [
            (c, c.start("task/claimNext", {"listId": "x", "owner": f"agent {n}", "waitMs": 60_000})) for n, c in enumerate(clients * 17)
        ]
        for c in clients:
            c.ping()
        for round in range(3):
            id = create(third, f"round {round}")
            third.wait_until(lambda: any(c.has_reply(w) for c, w in waiting))
            time.sleep(0.15)
            served = [(c, w) for c, w in waiting if c.has_reply(w)]
            assert len(served) == 1
            assert served[0][0].wait(served[0][1])["id"] == id
            waiting.remove(served[0])
        for c, w in waiting:
            c.cancel(w)
        for c, w in waiting:
            assert c.wait_reply(w)["error"]["code"] == -32800
        create(third, "left")
        assert claim_next(third, "z")["subject"] == "left"


def test_those_who_wait_longest_are_served_first(client: RawClient) -> None:
    waiting = [wait_for_work(client, f"agent {number}") for number in range(5)]
    for number in range(5):
        create(client, f"{number}")
    assert [client.wait(id)["owner"] for id in waiting] == [f"agent {number}" for number in range(5)]


def test_a_cancelled_wait_takes_nothing(client: RawClient) -> None:
    waiting = wait_for_work(client, "a")
    client.cancel(waiting)
    assert client.wait_reply(waiting)["error"]["code"] == -32800
    create(client)
    assert claim_next(client, "b")["owner"] == "b"


def test_a_client_that_goes_while_it_waits_takes_nothing(client: RawClient, home: Path) -> None:
    leaving = RawClient(home, {"durability": "process"})
    wait_for_work(leaving, "gone")
    assert leaving.process.stdin is not None
    leaving.process.stdin.close()
    assert leaving.wait_exit() in (0, 1)
    killed = RawClient(home, {"durability": "process"})
    wait_for_work(killed, "killed")
    killed.kill()
    create(client)
    time.sleep(0.2)
    assert claim_next(client, "a")["owner"] == "a"


def test_shutdown_ends_the_waiting(home: Path) -> None:
    client = RawClient(home)
    waiting = wait_for_work(client, "a")
    assert client.request("shutdown") is None
    assert client.wait_reply(waiting)["error"]["code"] == -32800
    client.notify("exit")
    assert client.wait_exit() == 0


@pytest.mark.parametrize("ends", ["cancel", "shutdown"])
def test_who_is_withdrawn_before_he_waits_does_not_begin_to(client: RawClient, home: Path, ends: str) -> None:
    """The first try is under way, in a thread, when the client says that it wants no task any more; it finds none."""
    create(client)
    leaving = RawClient(home, {"durability": "process"})
    path, lock = home / "tasks/x/1.json", home / "tasks/x/.crewlog/folder.lock"
    with held(lock):
        waiting = wait_for_work(leaving, "gone")  # it has seen the task, and waits for the lock
        if ends == "cancel":
            leaving.cancel(waiting)
            leaving.ping()
        else:
            leaving.request("shutdown")
        taken = path.with_suffix(".new")
        taken.write_text(path.read_text().replace('"status"', '"owner": "somebody", "status"'))
        taken.replace(path)
    assert leaving.wait_reply(waiting)["error"]["code"] == -32800
    create(client)
    assert claim_next(client, "b")["owner"] == "b"
    leaving.notify("exit")
    leaving.wait_exit()


PAUSED_AFTER_CLAIMING = """
import pathlib, sys, time
from crewlog.server import board_methods, command
claim_next = board_methods.HANDLERS["task/claimNext"]

def paused(*arguments):
    found = claim_next(*arguments)
    if found is not None:
        pathlib.Path(sys.argv[1] + ".paused").touch()
        while not pathlib.Path(sys.argv[1] + ".go").exists():
            time.sleep(0.005)
    return found

board_methods.HANDLERS["task/claimNext"] = paused
raise SystemExit(command.main([]))
"""


def test_who_is_withdrawn_while_he_takes_a_task_never_had_it(client: RawClient, home: Path, tmp_path: Path) -> None:
    """The task is taken when the cancel comes, and the answer is not yet on its way."""
    signs = tmp_path / "sign"
    command = [sys.executable, "-P", "-c", PAUSED_AFTER_CLAIMING, str(signs)]
    with serving(home, {"durability": "power"}, command=command) as leaving:
        waiting = wait_for_work(leaving, "ada", leaseMs=2_000)
        create(client)
        leaving.wait_until(Path(f"{signs}.paused").exists)
        leaving.cancel(waiting)
        assert leaving.wait_reply(waiting)["error"]["code"] == -32800
        Path(f"{signs}.go").touch()
        client.wait_until(lambda: not client.request("task/get", {"listId": "x", "id": "1"}).get("owner"))
        assert leaving.request("crewlog/status")["counters"]["leases"] == 0
        changed = leaving.request("task/update", {"listId": "x", "id": "1", "subject": "still anybody's"})
        assert changed["subject"] == "still anybody's"


def test_waiting_burns_no_time(client: RawClient) -> None:
    def seconds() -> float:
        fields = Path(f"/proc/{client.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    if not Path("/proc").is_dir():
        pytest.skip("the system does not tell a process's time in /proc")
    for number in range(50):
        wait_for_work(client, f"agent {number}")
    time.sleep(0.5)
    before = seconds()
    time.sleep(3)
    assert seconds() - before < 0.3


def test_a_lease_lapses_when_its_holder_dies_and_a_waiter_is_woken(client: RawClient, home: Path) -> None:
    create(client)
    holder = RawClient(home, {"durability": "process"})
    taken = claim_next(holder, "mortal", leaseMs=1500)
    assert taken["claim"]["owner"] == "mortal"
    assert taken["claim"]["expiresAt"].endswith("Z")
    waiting = wait_for_work(client, "heir")
    time.sleep(2.5)
    assert not client.has_reply(waiting), "the holder's server renews while its client is there"
    holder.kill()
    died = time.monotonic()
    task = client.wait(waiting)
    assert time.monotonic() - died < 10
    assert task["owner"] == "heir"
    assert client.request("task/get", {"listId": "x", "id": "1"})["claim"]["generation"] > taken["claim"]["generation"]


def test_a_lease_is_renewed_however_busy_the_client(client: RawClient, other: RawClient) -> None:
    create(client)
    first = claim_next(client, "busy", leaseMs=1500)["claim"]
    time.sleep(3)
    assert claim_next(other, "vulture") is None
    task = client.request("task/get", {"listId": "x", "id": "1"})
    assert task["claim"]["generation"] == first["generation"]
    assert task["claim"]["expiresAt"] > first["expiresAt"]
    done = client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})
    assert done["status"] == "completed"


def test_without_auto_renew_the_client_must(client: RawClient, other: RawClient) -> None:
    create(client)
    claim_next(client, "a", leaseMs=2000, autoRenew=False)
    waiting = wait_for_work(other, "b")
    for _ in range(5):
        time.sleep(0.5)
        client.request("task/renew", {"listId": "x", "id": "1", "owner": "a"})
    assert not other.has_reply(waiting)
    assert other.wait(waiting)["owner"] == "b"
    for method, params in [
        ("task/renew", {"id": "1", "owner": "a"}),
        ("task/release", {"id": "1", "owner": "a"}),
        ("task/update", {"id": "1", "status": "completed"}),
        ("task/update", {"id": "1", "status": "deleted"}),
    ]:
        error = refused(client, method, params)
        assert (error.code, error.kind, error.data["id"]) == (1106, "leaseLost", "1"), method
    assert other.request("task/update", {"listId": "x", "id": "1", "status": "completed"})["owner"] == "b"


def test_a_lapsed_holder_is_refused_even_when_nobody_took_the_task(client: RawClient, other: RawClient) -> None:
    create(client)
    claim_next(client, "a", leaseMs=100, autoRenew=False)
    time.sleep(0.3)
    assert other.request("task/findClaimable", {"listId": "x"})["id"] == "1"
    assert refused(client, "task/update", {"id": "1", "status": "completed"}).kind == "leaseLost"
    assert refused(client, "task/renew", {"id": "1", "owner": "a"}).kind == "leaseLost"
    again = client.request("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 60_000})
    assert client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})["status"] == "completed"
    assert again["claim"]["owner"] == "a"


def test_a_holder_that_was_suspended_is_refused_also_under_its_own_name(client: RawClient, other: RawClient) -> None:
    """Stopped for longer than the lease, its name has claimed the task anew meanwhile (cases, 13)."""
    create(client)
    first = claim_next(client, "same name", leaseMs=500)["claim"]
    waiting = wait_for_work(other, "same name", leaseMs=60_000)
    client.process.send_signal(signal.SIGSTOP)
    try:
        second = other.wait(waiting)["claim"]
    finally:
        client.process.send_signal(signal.SIGCONT)
    assert second["generation"] > first["generation"]
    for method, params in [
        ("task/update", {"id": "1", "status": "completed"}),
        ("task/renew", {"id": "1", "owner": "same name"}),
        ("task/release", {"id": "1", "owner": "same name"}),
    ]:
        assert refused(client, method, params).kind == "leaseLost", method
    task = other.request("task/get", {"listId": "x", "id": "1"})
    assert (task["status"], task["claim"]["generation"]) == ("pending", second["generation"])
    assert other.request("task/update", {"listId": "x", "id": "1", "status": "completed"})["status"] == "completed"


def test_a_generation_can_be_given_by_hand(client: RawClient, other: RawClient) -> None:
    create(client)
    old = claim_next(client, "a", leaseMs=100, autoRenew=False)["claim"]["generation"]
    time.sleep(0.3)
    new = claim_next(other, "a", leaseMs=60_000)["claim"]["generation"]
    assert refused(other, "task/update", {"id": "1", "subject": "s", "generation": old}).kind == "leaseLost"
    assert refused(other, "task/release", {"id": "1", "owner": "a", "generation": old}).kind == "leaseLost"
    assert other.request("task/update", {"listId": "x", "id": "1", "subject": "mine", "generation": new})["subject"] == "mine"


def test_a_claim_without_a_lease_never_lapses_and_binds_nobody(client: RawClient, other: RawClient) -> None:
    create(client)
    taken = claim_next(client, "a")
    assert "expiresAt" not in taken["claim"]
    assert other.request("task/update", {"listId": "x", "id": "1", "description": "by a viewer"})["owner"] == "a"
    assert client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})["status"] == "completed"


def test_a_lease_stands_in_no_task_file(client: RawClient, home: Path) -> None:
    create(client)
    claim_next(client, "a", leaseMs=60_000)
    before = (home / "tasks" / "x" / "1.json").read_bytes()
    client.request("task/renew", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 50_000})
    assert (home / "tasks" / "x" / "1.json").read_bytes() == before
    assert b"lease" not in before
    assert b"claim" not in before


def test_a_lapse_is_told(client: RawClient, other: RawClient) -> None:
    create(client)
    other.request("subscribe", {"topics": ["task"], "listIds": ["x"]})
    claim_next(client, "a", leaseMs=300, autoRenew=False)
    other.wait_notification("task/didChange", lambda p: any(task.get("owner") == "a" for task in p["changed"]))
    other.wait_notification("task/didChange", lambda p: any((task.get("claim") or {}).get("lapsed") for task in p["changed"]), timeout=10)


def test_errors_say_who_and_what(client: RawClient) -> None:
    for number in range(2):
        create(client, f"{number}")
    create(client, "blocked", blockedBy=["1", "2"])
    client.request("task/claim", {"listId": "x", "id": "1", "owner": "a"})
    error = refused(client, "task/claim", {"id": "1", "owner": "b"})
    assert (error.code, error.kind, error.data["id"], error.data["owner"]) == (1102, "alreadyClaimed", "1", "a")
    error = refused(client, "task/claim", {"id": "3", "owner": "b"})
    assert (error.code, error.kind, error.data["blockedBy"]) == (1104, "blocked", ["1", "2"])
    error = refused(client, "task/claim", {"id": "77", "owner": "b"})
    assert (error.code, error.kind, error.data["id"]) == (1101, "taskNotFound", "77")
    client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})
    error = refused(client, "task/claim", {"id": "1", "owner": "a"})
    assert (error.code, error.kind, error.data["id"]) == (1103, "alreadyResolved", "1")
    error = refused(client, "task/update", {"id": "1", "addBlockedBy": ["3"]})
    assert (error.code, error.kind) == (1105, "dependencyCycle")
    assert error.data["path"][0] == error.data["path"][-1]
    assert refused(client, "task/update", {"id": "1", "addBlocks": ["1"]}).kind == "dependencyCycle"
    assert refused(client, "task/update", {"id": "1", "addBlocks": ["99"]}).kind == "taskNotFound"
    assert refused(client, "task/release", {"id": "2", "owner": "nobody"}).kind == "leaseLost"


def lapses_within(client: RawClient, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if client.request("task/findClaimable", {"listId": "x"}) is not None:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    "updates",
    [
        [{"owner": "a"}],
        [{"owner": "a", "subject": "new"}],
        [{"status": "completed"}, {"status": "in_progress"}],
        [{"status": "completed", "owner": "a"}, {"status": "pending", "owner": "a"}],
        [{"status": "completed"}, {"status": "completed"}, {"status": "pending"}, {"status": "in_progress"}],
    ],
)
def test_a_holder_that_says_so_again_or_opens_its_task_again_still_holds_it(
    client: RawClient, other: RawClient, updates: list[dict[str, str]]
) -> None:
    create(client)
    taken = claim_next(client, "a", leaseMs=900)["claim"]
    for update in updates:
        task = client.request("task/update", {"listId": "x", "id": "1", **update})
        assert task["claim"]["generation"] == taken["generation"]
    assert not lapses_within(other, 2), "its server renews while the client is there"
    client.process.send_signal(signal.SIGSTOP)
    try:
        assert lapses_within(other, 10)
        claim_next(other, "b", leaseMs=60_000)
    finally:
        client.process.send_signal(signal.SIGCONT)
    assert refused(client, "task/update", {"id": "1", "subject": "over the next holder's"}).kind == "leaseLost"


def test_a_task_given_to_somebody_else_is_held_no_more(client: RawClient, other: RawClient) -> None:
    create(client)
    claim_next(client, "a", leaseMs=500)
    given = client.request("task/update", {"listId": "x", "id": "1", "owner": "b"})
    assert given["claim"]["owner"] == "b"
    assert client.request("crewlog/status")["counters"]["leases"] == 0
    assert client.request("task/update", {"listId": "x", "id": "1", "subject": "by anybody"})["subject"] == "by anybody"
    assert not lapses_within(other, 1)


def test_a_completed_task_is_renewed_no_more_and_whoever_opens_it_may_take_it(client: RawClient, other: RawClient) -> None:
    create(client)
    claim_next(client, "a", leaseMs=300)
    client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})
    assert client.request("crewlog/status")["counters"]["leases"] == 0
    time.sleep(0.6)
    other.request("task/update", {"listId": "x", "id": "1", "status": "pending"})
    assert claim_next(other, "b", leaseMs=60_000)["id"] == "1"
    assert client.request("crewlog/status")["counters"]["leases"] == 0


@pytest.mark.parametrize("status", ["completed", "deleted"])
def test_a_task_that_somebody_else_ends_is_renewed_no_more(client: RawClient, other: RawClient, home: Path, status: str) -> None:
    create(client)
    claim_next(client, "a", leaseMs=3_000)
    assert client.request("crewlog/status")["counters"]["leases"] == 1
    other.request("task/update", {"listId": "x", "id": "1", "status": status})
    client.wait_until(lambda: client.request("crewlog/status")["counters"]["leases"] == 0)
    if status == "completed":
        client.request("task/update", {"listId": "x", "id": "1", "status": "in_progress"})  # the claim goes on, as when it had ended it
        assert client.request("crewlog/status")["counters"]["leases"] == 1


def test_of_claims_that_were_lost_only_the_last_are_known() -> None:
    renewal = Renewal(lambda *_: True)
    for number in range(LOST_KEPT + 2_000):
        event = ClaimEvent(ClaimChange.TOOK, ("x", str(number)), Claim("a", number), 60_000 if number < 5 else 0)
        renewal.note(event)
    assert len(renewal.held) <= LOST_KEPT + 5
    assert {("x", str(number)) for number in range(5)} <= renewal.held.keys()  # those that are renewed
    assert ("x", str(LOST_KEPT + 1_999)) in renewal.held
    assert ("x", "5") not in renewal.held
    renewal.end()


def test_a_second_client_of_the_same_name_shortens_no_lease(client: RawClient, other: RawClient, home: Path) -> None:
    create(client)
    first = claim_next(client, "a", leaseMs=60_000)["claim"]
    with serving(home) as second:
        again = second.request("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 300})["claim"]
        assert again["generation"] == first["generation"]
        time.sleep(0.5)
    assert not lapses_within(other, 1)
    assert client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})["status"] == "completed"
