"""The asyncio client against a server that misbehaves to order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from crewlog.client import AsyncClient, ConnectionLost, NotStarted, RequestTimeout, TaskDidChange, json_value
from crewlog.storage.errors import LeaseLost

FAKE = [sys.executable, str(Path(__file__).with_name("fake_server.py"))]
PATIENCE = 30.0


@pytest_asyncio.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(command=FAKE) as client:
        yield client


async def ask(client: AsyncClient, method: str, timeout: float | None = PATIENCE, **params: Any) -> Any:
    return json_value(await client.request(method, params, timeout=timeout))


def told_task(revision: int) -> dict[str, Any]:
    counts = {"pending": 0, "inProgress": 0, "completed": 0, "total": 0}
    return {"method": "task/didChange", "params": {"listId": "l", "revision": revision, "changed": [], "removed": [], "counts": counts}}


async def test_requests_are_answered_each_to_its_own(client: AsyncClient) -> None:
    assert client.server.name == "fake"
    answers = await asyncio.gather(*(ask(client, "x/echo", number=number) for number in range(500)))
    assert answers == [{"number": number} for number in range(500)]


@pytest.mark.parametrize("value", [10**30, "\ud800", "\u2028\x00é😀", {"jsonrpc": "2.0"}, None])
async def test_any_json_goes_there_and_back(client: AsyncClient, value: object) -> None:
    assert await ask(client, "x/echo", value=value) == {"value": value}


async def test_errors_come_back_as_the_storage_exceptions(client: AsyncClient) -> None:
    with pytest.raises(LeaseLost) as lost:
        await ask(client, "x/error", code=1106, message="…", data={"kind": "leaseLost", "id": "7", "owner": "ann"})
    assert (lost.value.id, lost.value.owner) == ("7", "ann")


async def test_cancelling_withdraws_and_waits_for_the_end(client: AsyncClient) -> None:
    task = asyncio.create_task(ask(client, "x/never", timeout=None))
    await ask(client, "x/echo")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    methods = [message["method"] for message in await ask(client, "x/log")]
    assert methods[-4:] == ["x/echo", "x/never", "$/cancelRequest", "x/log"]


async def test_a_task_claimed_while_the_request_was_cancelled_is_given_back(client: AsyncClient) -> None:
    task = asyncio.create_task(client.task.claim_next("l", "me", wait_ms=60_000))
    await ask(client, "x/echo")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    sent = await ask(client, "x/log")
    assert [message["method"] for message in sent[-3:]] == ["$/cancelRequest", "task/release", "x/log"]
    assert sent[-2]["params"] == {"listId": "l", "id": "1", "owner": "me", "generation": 41}


async def test_a_task_is_given_back_though_the_cancelled_one_is_cancelled_again(client: AsyncClient) -> None:
    task = asyncio.create_task(client.task.claim_next("l", "me", wait_ms=60_000))
    await ask(client, "x/echo")
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def released() -> None:
        while "task/release" not in [message.get("method") for message in await ask(client, "x/log")]:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(released(), PATIENCE)


async def test_a_request_is_withdrawn_when_its_time_is_up(client: AsyncClient) -> None:
    with pytest.raises(RequestTimeout, match="had no effect"):
        await ask(client, "x/never", timeout=0.05)
    assert await ask(client, "x/late", timeout=0.05, a=1) == {"a": 1}


async def test_wait_for_works_as_with_any_coroutine(client: AsyncClient) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(ask(client, "x/never", timeout=None), 0.05)
    assert await ask(client, "x/echo", still="here") == {"still": "here"}


async def test_a_server_that_reads_nothing_does_not_hold_up_the_loop(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.client.aio._WITHDRAW_TIMEOUT", 0.05)
    await ask(client, "x/doze", seconds=2)
    with pytest.raises(RequestTimeout, match="may have been"):
        await ask(client, "x/echo", timeout=0.1, big="x" * (8 << 20))
    assert await ask(client, "x/echo", still="here") == {"still": "here"}


async def test_the_death_of_the_server_ends_all_requests(client: AsyncClient) -> None:
    waiting = [asyncio.create_task(ask(client, "x/never", timeout=None)) for _ in range(8)]
    await ask(client, "x/echo")
    with pytest.raises(ConnectionLost):
        await ask(client, "x/die", code=7)
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [error.exit_code for error in errors if isinstance(error, ConnectionLost)] == [7] * 8
    with pytest.raises(ConnectionLost):
        await ask(client, "x/echo")


async def test_a_killed_server_is_told_by_its_signal(client: AsyncClient) -> None:
    os.kill(client.pid, signal.SIGKILL)
    with pytest.raises(ConnectionLost) as lost:
        await ask(client, "x/never", timeout=None)
    assert lost.value.exit_code == -signal.SIGKILL


async def test_closing_leaves_nothing_behind() -> None:
    client = await AsyncClient(command=FAKE).start()
    pid = client.pid
    waiting = asyncio.create_task(ask(client, "x/deaf", timeout=None))
    await ask(client, "x/echo")
    await client.close()
    await client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_stubborn_server_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.client.launch.END_TIMEOUT", 0.2)
    monkeypatch.setattr("crewlog.client.aio._WITHDRAW_TIMEOUT", 0.05)
    client = await AsyncClient(command=[*FAKE, "--stubborn"]).start()
    pid = client.pid
    await client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_starts_that_fail_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionLost, match="no-such-program"):
        await AsyncClient(command=[str(tmp_path / "no-such-program")]).start()
    with pytest.raises(ConnectionLost, match="5"):
        await AsyncClient(command=[sys.executable, "-c", "raise SystemExit(5)"]).start()
    monkeypatch.setattr("crewlog.client.launch.START_TIMEOUT", 0.2)
    with pytest.raises(ConnectionLost, match="did not answer"):
        await AsyncClient(command=[*FAKE, "--mute"]).start()


async def test_a_client_that_is_not_started_says_so(client: AsyncClient) -> None:
    with pytest.raises(NotStarted):
        await AsyncClient(command=FAKE).task.get("l", "1")
    with pytest.raises(NotStarted):
        await client.start()


async def test_changes_reach_streams_and_callbacks(client: AsyncClient) -> None:
    called: list[int] = []
    end = client.on(TaskDidChange, lambda change: called.append(change.revision))
    client.on(TaskDidChange, lambda change: 1 // 0)
    stream = client.notifications(TaskDidChange)
    plan = {"method": "plan/didChange", "params": {"name": "p", "change": "created", "etag": "e"}}
    await ask(client, "x/tell", messages=[told_task(1), plan, told_task(2)])
    end()
    await ask(client, "x/tell", messages=[told_task(3)])
    assert called == [1, 2]
    with pytest.raises(ConnectionLost):
        await ask(client, "x/die", code=0)
    assert [getattr(change, "revision", None) async for change in stream] == [1, 2, 3]


async def test_a_waiting_reader_is_woken(client: AsyncClient) -> None:
    with client.notifications() as stream:
        reader = asyncio.create_task(stream.get())
        await ask(client, "x/tell", messages=[told_task(1)])
        change = await asyncio.wait_for(reader, PATIENCE)
        assert isinstance(change, TaskDidChange)
        reader = asyncio.create_task(stream.get())
        await asyncio.sleep(0)
    assert await asyncio.wait_for(reader, PATIENCE) is None
