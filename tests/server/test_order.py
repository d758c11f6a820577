"""In which order are requests carried out, what waits for what, and what does a cancelled one leave behind?"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server.rawclient import RawClient, RpcError, held, serving


def make_list(client: RawClient, home: Path, name: str) -> Path:
    """The lock of a new task list."""
    client.request("task/create", {"listId": name, "subject": "first"})
    return home / "tasks" / name / ".crewlog" / "folder.lock"


def test_effects_on_one_resource_come_in_the_order_of_their_requests(client: RawClient) -> None:
    session = client.request("session/create")["session"]["id"]
    ids = []
    for number in range(300):
        entry = {"kind": "note", "data": {"n": number}}
        ids.append(client.start("session/append", {"sessionId": session, "entries": [entry]}))
        ids.append(client.start("task/create", {"listId": "x", "subject": f"{number}"}))
    for id in ids:
        client.wait(id)
    entries = client.request("session/entries", {"sessionId": session, "limit": 1000})["entries"]
    assert [entry["data"]["n"] for entry in entries[1:]] == list(range(300))
    assert [task["subject"] for task in client.request("task/list", {"listId": "x"})["items"]] == [str(n) for n in range(300)]


@pytest.mark.parametrize("durability", ["power", "process"])
def test_a_read_sees_the_writes_sent_before_it(home: Path, durability: str) -> None:
    with serving(home, {"durability": durability}) as client:
        session = client.request("session/create")["session"]["id"]
        for number in range(30):
            client.start("session/append", {"sessionId": session, "entries": [{"kind": "note", "data": {"n": number}}]})
            read = client.start("session/entries", {"sessionId": session, "limit": 1})
            client.start("task/create", {"listId": "x", "subject": f"{number}"})
            listed = client.start("task/list", {"listId": "x"})
            assert client.wait(read)["entries"][-1]["data"]["n"] == number
            assert client.wait(listed)["counts"]["total"] == number + 1


def test_order_holds_while_a_lock_is_waited_for(client: RawClient, home: Path) -> None:
    lock = make_list(client, home, "x")
    with held(lock):
        ids = [client.start("task/update", {"listId": "x", "id": "1", "subject": f"{number}"}) for number in range(20)]
        client.ping()
        assert not any(client.has_reply(id) for id in ids)
    subjects = [client.wait(id)["subject"] for id in ids]
    assert subjects == [str(number) for number in range(20)]


def test_a_stuck_resource_holds_up_no_other(client: RawClient, home: Path) -> None:
    """Fifty task lists, a session, a roster and a plan folder are locked by others; all else goes on."""
    locks = [make_list(client, home, f"stuck{number}") for number in range(50)]
    with contextlib.ExitStack() as stack:
        for lock in locks:
            stack.enter_context(held(lock))
        stuck = [client.start("task/update", {"listId": f"stuck{number}", "id": "1", "subject": "s"}) for number in range(50)]
        for number in range(30):
            client.request("task/create", {"listId": "free", "subject": f"{number}"}, timeout=5)
        session = client.request("session/create", timeout=5)["session"]["id"]
        client.request("session/append", {"sessionId": session, "entries": [{"kind": "n"}]}, timeout=5)
        client.request("session/list", {}, timeout=5)
        assert not any(client.has_reply(id) for id in stuck)
    for id in stuck:
        assert client.wait(id)["subject"] == "s"


STUCK_BEFORE_RESTING = """
import os, sys, threading, time
from crewlog.server import command, service
from crewlog.storage import TaskUpdate
rest = service.Service._next_lapse

def update(workspace, list_id):
    with workspace.tasks.use(list_id) as store:
        store.update("1", TaskUpdate(subject="late"))

def stuck_just_before(self, list_id):
    if os.path.exists(sys.argv[1]):
        os.unlink(sys.argv[1])
        threading.Thread(target=update, args=(self.workspace, list_id), daemon=True).start()
        time.sleep(0.3)
    return rest(self, list_id)

service.Service._next_lapse = stuck_just_before
raise SystemExit(command.main([]))
"""


def test_a_list_that_is_stuck_while_somebody_waits_for_its_work_holds_up_no_other(home: Path, tmp_path: Path) -> None:
    """Another thread of the server begins to wait for the list's lock just when the waiting requests have tried in vain."""
    sign = tmp_path / "sign"
    with serving(home, command=[sys.executable, "-P", "-c", STUCK_BEFORE_RESTING, str(sign)]) as client:
        lock = make_list(client, home, "x")
        client.request("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 60_000})
        with held(lock):
            sign.touch()
            waiting = client.start("task/claimNext", {"listId": "x", "owner": "b", "waitMs": 60_000})
            client.wait_until(lambda: not sign.exists())
            client.request("task/create", {"listId": "free", "subject": "s"}, timeout=5)
        client.request("task/create", {"listId": "x", "subject": "s"})
        assert client.wait(waiting)["id"] == "2"


def test_a_lock_held_for_ten_seconds_is_busy_and_names_its_holder(client: RawClient, home: Path) -> None:
    """The holder is another server that was stopped in the middle."""
    make_list(client, home, "x")
    script = (
        "import os, signal, sys\n"
        "from crewlog.storage.locks import ResourceLock, name_client\n"
        "name_client('the stopped one')\n"
        "with ResourceLock(sys.argv[1], folder=True):\n"
        "    print('held', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    command = [sys.executable, "-c", script, str(home / "tasks" / "x")]
    # in a group of its own: one with a stopped process in it is woken and hung up on when its parent ends, as that of a test run may
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        waiting = client.start("task/create", {"listId": "x", "subject": "s"})
        behind = [client.start("task/create", {"listId": "x", "subject": f"{number}"}) for number in range(5)]
        read = client.start("task/get", {"listId": "x", "id": "1"})
        assert client.request("task/list", {"listId": "y"}, timeout=5)["items"] == []
        with pytest.raises(RpcError) as caught:
            client.wait(waiting, 30)
        assert (caught.value.code, caught.value.kind) == (1302, "busy")
        assert caught.value.data["holder"]["pid"] == holder.pid
        assert caught.value.data["holder"]["client"] == "the stopped one"
        assert caught.value.data["holder"]["host"]
        assert caught.value.data["path"] == str(home / "tasks" / "x")
        for id in behind:  # they have waited as long: not ten seconds more for each
            with pytest.raises(RpcError) as caught:
                client.wait(id, 5)
            assert (caught.value.kind, caught.value.data["holder"]["pid"]) == ("busy", holder.pid)
        assert client.wait(read, 5)["subject"] == "first"
    finally:
        holder.send_signal(signal.SIGCONT)
        holder.kill()
        holder.wait()
    assert client.request("task/create", {"listId": "x", "subject": "s"})["id"] == "2"
    assert len(client.request("task/list", {"listId": "x"})["items"]) == 2


def test_a_cancelled_request_that_was_not_begun_leaves_no_effect(client: RawClient, home: Path) -> None:
    lock = make_list(client, home, "x")
    with held(lock):
        first = client.start("task/create", {"listId": "x", "subject": "second"})
        dropped = client.start("task/create", {"listId": "x", "subject": "never"})
        last = client.start("task/create", {"listId": "x", "subject": "third"})
        client.cancel(dropped)
        reply = client.wait_reply(dropped)
        assert (reply["error"]["code"], reply["error"]["data"]["kind"]) == (-32800, "requestCancelled")
    client.wait(first)
    client.wait(last)
    assert [task["subject"] for task in client.request("task/list", {"listId": "x"})["items"]] == ["first", "second", "third"]


def test_a_cancel_that_comes_too_late_or_for_nothing_does_nothing(client: RawClient) -> None:
    id = client.start("task/create", {"listId": "x", "subject": "s"})
    client.cancel(id)
    reply = client.wait_reply(id)
    made = client.request("task/list", {"listId": "x"})["items"]
    assert ("result" in reply) == (len(made) == 1)
    client.cancel(id)
    client.cancel("never asked")
    client.cancel(None)
    client.ping()


def test_a_long_read_can_be_cancelled(client: RawClient, home: Path) -> None:
    _fill(client, home, sessions=300, entries=300)
    id = client.start("session/search", {"query": "nowhere to be found"})
    client.cancel(id)
    reply = client.wait_reply(id)
    assert reply["error"]["code"] == -32800


def test_small_requests_are_answered_while_long_ones_run(client: RawClient, home: Path) -> None:
    """Not a measurement: a small one is answered before the long ones are."""
    _fill(client, home, sessions=300, entries=300)
    long = [client.start("session/search", {"query": "nowhere"}), client.start("session/list", {}), client.start("session/stats", {})]
    for number in range(20):
        client.request("task/create", {"listId": "x", "subject": f"{number}"}, timeout=10)
        assert number or not all(client.has_reply(id) for id in long)
    for id in long:
        client.wait(id, 120)


def test_appends_that_wait_for_the_device_share_its_syncs(home: Path) -> None:
    """Durability "power": 500 pipelined appends do not cost 500 syncs."""
    with serving(home, {"durability": "power"}) as client:
        session = client.request("session/create")["session"]["id"]
        before = client.request("crewlog/status")["counters"]["syncs"]
        ids = [client.start("session/append", {"sessionId": session, "entries": [{"kind": "n", "data": {"n": n}}]}) for n in range(500)]
        for id in ids:
            client.wait(id)
        made = client.request("crewlog/status")["counters"]["syncs"] - before
        assert 1 <= made <= 250
        entries = client.request("session/entries", {"sessionId": session, "limit": 1000})["entries"]
        assert [entry["data"]["n"] for entry in entries[1:]] == list(range(500))


def test_what_was_begun_is_finished_when_the_client_goes(home: Path) -> None:
    client = RawClient(home, {"durability": "process"})
    lock = make_list(client, home, "x")
    with held(lock):
        client.start("task/create", {"listId": "x", "subject": "begun"})
        client.ping()
        assert client.process.stdin is not None
        client.process.stdin.close()
        time.sleep(0.2)
        assert client.process.poll() is None
    client.wait_exit()
    with serving(home) as other:
        assert [task["subject"] for task in other.request("task/list", {"listId": "x"})["items"]] == ["first", "begun"]


def test_the_home_may_vanish_and_come_back(client: RawClient, home: Path) -> None:
    """`rm -rf` of the home under a running server, then work goes on (cases, 28)."""
    import shutil

    for _ in range(3):
        session = client.request("session/create")["session"]["id"]
        entry = {"kind": "message", "data": {"role": "user", "content": []}}
        client.request("session/append", {"sessionId": session, "entries": [entry]})
        client.request("task/create", {"listId": "x", "subject": "s"})
        client.request("task/claim", {"listId": "x", "id": client.request("task/findClaimable", {"listId": "x"})["id"], "owner": "a"})
        client.request("roster/setTeam", {"listId": "x", "team": "t"})
        client.request("transcript/append", {"listId": "x", "agent": "a", "messages": [{"role": "user"}]})
        client.request("history/add", {"text": "t"})
        client.request("plan/save", {"name": "p", "content": "c"})
        shutil.rmtree(home)
        assert client.request("task/list", {"listId": "x"})["items"] == []
        assert client.request("session/list", {})["sessions"] == []
        assert client.request("history/list", {})["items"] == []
        assert client.request("plan/load", {"name": "p"})["content"] == ""
        assert client.request("roster/get", {"listId": "x"})["team"] == ""
        assert client.request("transcript/load", {"listId": "x", "agent": "a"})["messages"] == []
        with pytest.raises(RpcError) as caught:
            client.request("session/append", {"sessionId": session, "entries": [entry]})
        assert caught.value.kind == "sessionNotFound"
        assert not home.exists()


def test_a_read_only_home_refuses_writes_and_answers_reads(client: RawClient, home: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    client.request("task/create", {"listId": "x", "subject": "s"})
    os.chmod(home / "tasks" / "x", 0o500)
    try:
        with pytest.raises(RpcError) as caught:
            client.request("task/create", {"listId": "x", "subject": "s"})
        assert caught.value.kind == "storageFailed"
        assert len(client.request("task/list", {"listId": "x"})["items"]) == 1
    finally:
        os.chmod(home / "tasks" / "x", 0o700)
    assert client.request("task/create", {"listId": "x", "subject": "s"})["subject"] == "s"


def _fill(client: RawClient, home: Path, *, sessions: int, entries: int) -> None:
    """Many logs, written by hand, so that reading them takes a while."""
    first = client.request("session/create")["session"]
    folder = Path(first["path"]).parent
    header = json.loads(Path(first["path"]).read_text().splitlines()[0])
    for number in range(sessions):
        name = f"{number:08x}"
        header["data"]["session_id"] = name
        lines = [json.dumps(header)]
        parent = "h0"
        for at in range(entries):
            data = {"role": "user", "content": [{"type": "text", "text": f"message {at} " + "lorem ipsum " * 40}]}
            id = f"{at:08x}"
            entry = {"kind": "message", "id": id, "parent_id": parent, "timestamp": "2026-01-01T00:00:00Z", "data": data}
            lines.append(json.dumps(entry))
            parent = id
        (folder / f"2026-01-01_{name}.jsonl").write_text("\n".join(lines) + "\n")
