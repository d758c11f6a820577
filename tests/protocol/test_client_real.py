"""Both clients against the server itself: everything an agent does in a day."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec import Raw

from crewlog.client import (
    AsyncClient,
    Client,
    InvalidParams,
    NewEntry,
    PlanDidChange,
    ResponseError,
    RosterDidChange,
    SessionDidChange,
    Subscribe,
    TaskDidChange,
    json_value,
)
from crewlog.storage import errors, rawjson

PATIENCE = 30.0


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(home=tmp_path / "home", cwd=tmp_path, durability="process", name="tester") as client:
        yield client


@pytest_asyncio.fixture
async def other(tmp_path: Path) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(home=tmp_path / "home", cwd=tmp_path, durability="process", name="other") as client:
        yield client


def test_the_server_is_ours_and_works_on_our_home(client: Client, tmp_path: Path) -> None:
    status = client.status()
    assert (status.pid, status.home, status.durability) == (client.pid, client.server.home, "process")
    assert Path(client.server.home) == tmp_path / "home"
    assert not (tmp_path / "home").exists(), "a reader leaves nothing behind"


def test_a_session_from_its_first_message_to_its_export(client: Client) -> None:
    session = client.session.create(name="work").session
    odd = Raw(b'{"role":"user","content":[{"type":"text","text":"hi \\ud800"}],"n":12345678901234567890123,"jsonrpc":{"id":1e400}}')
    added = client.session.append(session.id, [NewEntry("message", odd), NewEntry("model_change", {"provider": "p", "model": "m"})])
    assert [entry.parent_id for entry in added.entries] == ["h0", added.entries[0].id]
    page = client.session.entries(session.id, after="h0", limit=1)
    assert page.has_more
    assert rawjson.members(page.entries[0].raw)["data"] == bytes(odd)
    snapshot = client.session.snapshot(session.id)
    assert (snapshot.model, snapshot.name, snapshot.leaf_id) == ("m", "work", added.leaf_id)
    assert snapshot.messages[0].raw == bytes(odd)
    assert snapshot.messages[0].role == "user"
    assert snapshot.goal.status == "off"
    assert "hi" in client.session.export(session.id, "markdown").text
    assert client.session.list().sessions[0].message_count == 1
    with pytest.raises(errors.LeafMoved) as moved:
        client.session.append(session.id, [NewEntry("session_info", {})], expected_leaf_id="h0")
    assert moved.value.leaf_id == added.leaf_id
    fork = client.session.fork(session.id, entry_id=added.entries[0].id)
    assert client.session.snapshot(fork.session.id).model == ""
    assert client.session.delete(session.id).deleted
    with pytest.raises(errors.SessionNotFound) as missing:
        client.session.open(session_id=session.id)
    assert missing.value.session_id == session.id
    assert client.session.restore(session.id).session.id == session.id


@pytest.mark.parametrize(("cost", "told"), [(1e308, sys.float_info.max), (-1e308, -sys.float_info.max), (0.5, 1.5)])
def test_a_cost_is_a_number_however_much_it_is(client: Client, cost: float, told: float) -> None:
    session = client.session.create().session
    data = {"role": "assistant", "content": [], "usage": {"model": "m", "cost": {"total": cost}}}
    client.session.append(session.id, [NewEntry("message", data)] * 3)
    found = client.session.stats()
    assert {usage.cost for usage in (found.total, *found.by_model.values(), *found.by_day.values(), *found.by_session.values())} == {told}


def test_a_board_from_the_first_task_to_the_last(client: Client) -> None:
    first = client.task.create("l", "first", metadata={"big": 10**25, "nested": {"file-path": [None]}})
    second = client.task.create("l", "second", blocked_by=[first.id])
    assert first.metadata == {"big": 10**25, "nested": {"file-path": [None]}}
    with pytest.raises(errors.Blocked) as blocked:
        client.task.claim("l", second.id, "me")
    assert blocked.value.blocked_by == [first.id]
    claimed = client.task.claim_next("l", "me", lease_ms=60_000)
    assert claimed is not None
    assert claimed.claim is not None
    assert (claimed.id, claimed.owner, claimed.claim.owner) == (first.id, "me", "me")
    with pytest.raises(errors.AlreadyClaimed):
        client.task.claim("l", first.id, "you")
    with pytest.raises(errors.DependencyCycle):
        client.task.update("l", first.id, add_blocked_by=[second.id])
    done = client.task.update("l", first.id, status="completed", metadata={"nested": None})
    assert done is not None
    assert done.completed_at
    assert done.metadata == {"big": 10**25}
    found = client.task.find_claimable("l")
    assert found is not None
    assert found.id == second.id
    assert client.task.update("l", second.id, status="deleted") is None
    assert client.task.get("l", second.id) is None
    assert client.task.list("l").counts.completed == 1
    client.task.reset("l")
    assert client.task.create("l", "third").id == "3"


def test_papers(client: Client) -> None:
    assert client.plan.load("p").content == ""
    saved = client.plan.save("p", "# A plan\r\nwithout a last line end")
    with pytest.raises(errors.PlanChanged) as changed:
        client.plan.save("p", "over", if_match="stale")
    assert changed.value.etag == saved.etag
    assert client.plan.load("p").content == "# A plan\r\nwithout a last line end"
    assert [plan.name for plan in client.plan.list().plans] == ["p"]
    client.roster.set_team("l", "crew", description="d")
    team = client.roster.upsert_member("l", {"name": "ann", "agent_type": "coder", "newer": [1]})
    assert team.members[0].agent_type == "coder"
    assert team.members[0].value()["newer"] == [1]
    assert client.transcript.append("l", "ann", [{"role": "user", "content": []}]).count == 1
    assert client.transcript.load("l", "ann").messages[0].role == "user"
    client.history.add("one")
    client.history.add("two\nlines")
    line = client.history.get(0)
    assert line is not None
    assert line.display == "two\nlines"
    assert client.history.list().total == 2
    with pytest.raises(errors.InvalidName):
        client.plan.load("../p")


def test_wrong_arguments_are_told_by_field(client: Client) -> None:
    with pytest.raises(InvalidParams) as wrong:
        client.task.claim("l", "1", "me", lease_ms=0)
    assert wrong.value.field == "$.leaseMs"
    with pytest.raises(errors.InvalidArgument):
        client.request("session/append", {"sessionId": "s", "entries": [{"kind": 5}]})
    with pytest.raises(ResponseError) as unknown:
        client.request("no/such")
    assert unknown.value.code == -32601


def test_changes_of_another_process_are_told(client: Client, tmp_path: Path) -> None:
    client.subscribe(all_projects=True)
    with client.notifications() as stream, Client(home=tmp_path / "home", cwd=tmp_path, subscribe=False) as writer:
        writer.task.create("l", "one")
        writer.roster.set_team("l", "crew")
        writer.plan.save("p", "text")
        writer.session.create(name="s")
        kinds: set[type] = set()
        while kinds != {TaskDidChange, RosterDidChange, PlanDidChange, SessionDidChange}:
            change = stream.get(PATIENCE)
            assert change is not None, f"only {kinds} came"
            kinds.add(type(change))
            if isinstance(change, TaskDidChange):
                assert change.changed[0].subject == "one"


def test_subscribing_gives_the_present_state(tmp_path: Path) -> None:
    with Client(home=tmp_path / "home", subscribe=Subscribe(topics=["task"], list_ids=["l"])) as client:
        client.task.create("l", "one")
        state = client.subscribe(list_ids=["l"])
        assert [task.subject for task in state.tasks[0].items] == ["one"]
        assert state.rosters[0].roster.team == ""
        client.unsubscribe(state.subscription_id)


async def test_fifty_waiters_and_one_task(other: AsyncClient) -> None:
    waiters = [asyncio.create_task(other.task.claim_next("l", f"agent{number}", wait_ms=60_000)) for number in range(50)]
    assert (await other.task.list("l")).items == []
    await other.task.create("l", "one")
    done, waiting = await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
    assert len(done) == 1
    for waiter in waiting:
        waiter.cancel()
    assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*waiting, return_exceptions=True))
    task = done.pop().result()
    assert task is not None
    assert (await other.task.get("l", task.id)) == task
    await other.task.create("l", "two")
    found = await other.task.find_claimable("l")
    assert found is not None, "a cancelled waiter has taken it"


def test_threads_share_a_client_and_race_for_tasks(client: Client) -> None:
    for number in range(40):
        client.task.create("l", f"task {number}")
    taken: list[str] = []

    def work(owner: str) -> None:
        while (task := client.task.claim_next("l", owner)) is not None:
            taken.append(task.id)

    threads = [threading.Thread(target=work, args=(f"agent{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(taken, key=int) == [str(number + 1) for number in range(40)]


def test_the_holder_of_a_lease_that_dies_lets_go(tmp_path: Path) -> None:
    with Client(home=tmp_path / "home", subscribe=False) as client:
        client.task.create("l", "one")
        with Client(home=tmp_path / "home", subscribe=False) as mortal:
            assert mortal.task.claim_next("l", "first", lease_ms=300) is not None
            os.kill(mortal.pid, 9)
        again = client.task.claim_next("l", "second", wait_ms=20_000, timeout=PATIENCE)
        assert again is not None
        assert again.owner == "second"


def test_nothing_is_imported_from_the_folder_one_works_in(tmp_path: Path) -> None:
    for name in ("crewlog", "msgspec", "json", "crewlog.server"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the workspace')")
    (tmp_path / "crewlog").mkdir()
    (tmp_path / "crewlog" / "__init__.py").write_text("raise SystemExit('imported from the workspace')")
    script = (
        "import sys; sys.path[:1] = []\n"
        "from crewlog.client import Client\n"
        f"with Client(home={str(tmp_path / 'home')!r}) as client: print(client.status().project_id)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_start_for_python_without_the_safe_path_option(tmp_path: Path) -> None:
    from crewlog.client.launch import _WITHOUT_CURRENT_FOLDER

    (tmp_path / "msgspec.py").write_text("raise SystemExit('imported from the workspace')")
    log = tmp_path / "log"
    command = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {_WITHOUT_CURRENT_FOLDER}"]
    with Client(home=tmp_path / "home", command=command, stderr=log) as client:
        assert json_value(client.request("crewlog/status"))["pid"] == client.pid


def test_an_owner_that_is_half_a_surrogate_pair_is_refused_by_name(client: Client) -> None:
    client.task.create("l", "one")
    with pytest.raises(InvalidParams) as refused:
        client.task.claim("l", "1", "\ud800")
    assert refused.value.field == "$.owner"
    with pytest.raises(InvalidParams):
        client.task.claim_next("l", "a\udfff")
