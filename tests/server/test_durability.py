"""Does a reply wait for the device where it was promised to, and only there?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from server.rawclient import RawClient, serving

DEVICE_STANDS_STILL = """
import os, sys, time

def waits(function):
    def call(*arguments):
        while os.path.exists(sys.argv[1]):
            time.sleep(0.002)
        return function(*arguments)
    return call

os.fsync, os.fdatasync = waits(os.fsync), waits(os.fdatasync)
from crewlog.server import command
raise SystemExit(command.main([]))
"""


def every_kind(client: RawClient) -> list[tuple[str, dict[str, Any]]]:
    """A mutation of each kind, on resources that are there already; none waits for another's lane or lock."""

    def session() -> str:
        made: str = client.request("session/create")["session"]["id"]
        return made

    def task_list(name: str) -> dict[str, Any]:
        for subject in ("one", "two"):
            client.request("task/create", {"listId": name, "subject": subject})
        return {"listId": name}

    held = task_list("release")
    client.request("task/claim", {**held, "id": "1", "owner": "ada"})
    for name in ("delete", "clear"):
        client.request("plan/save", {"name": name, "content": "c"})
        client.request("roster/setTeam", {"listId": name, "team": "t"})
    return [
        ("session/append", {"sessionId": session(), "entries": [{"kind": "note"}]}),
        ("session/setName", {"sessionId": session(), "name": "n"}),
        ("session/rewind", {"sessionId": session(), "entryId": "h0"}),
        ("session/fork", {"sessionId": session()}),
        ("session/create", {}),
        ("session/delete", {"sessionId": session()}),
        ("history/add", {"text": "t"}),
        ("transcript/append", {"listId": "new", "agent": "a", "messages": [{"role": "user"}]}),
        ("roster/setTeam", {"listId": "new", "team": "t"}),
        ("roster/clear", {"listId": "clear"}),
        ("plan/save", {"name": "p", "content": "c"}),
        ("task/create", {"listId": "fresh", "subject": "s"}),
        ("task/update", {**task_list("update"), "id": "1", "subject": "s"}),
        ("task/update", {**task_list("link"), "id": "1", "addBlocks": ["2"]}),
        ("task/claim", {**task_list("claim"), "id": "1", "owner": "ada"}),
        ("task/claimNext", {**task_list("next"), "owner": "ada", "leaseMs": 60_000}),
        ("task/release", {**held, "id": "1", "owner": "ada"}),
        ("task/delete", {**task_list("gone"), "id": "1"}),
        ("task/reset", task_list("reset")),
    ]


@pytest.mark.parametrize("durability", ["power", "process"])
def test_a_reply_waits_for_the_device_with_power_and_not_with_process(home: Path, tmp_path: Path, durability: str) -> None:
    stands_still = tmp_path / "still"
    command = [sys.executable, "-P", "-c", DEVICE_STANDS_STILL, str(stands_still)]
    with serving(home, {"durability": durability, "subscribe": False}, command=command) as client:
        calls = every_kind(client)
        stands_still.touch()
        ids = [client.start(method, params) for method, params in calls]
        client.request("task/list", {"listId": "other"})  # other resources wait for nobody
        if durability == "process":
            for id in ids:
                client.wait(id)
            stands_still.unlink()
        else:
            for _ in range(20):
                client.ping()
            early = [call[0] for call, id in zip(calls, ids) if client.has_reply(id)]
            stands_still.unlink()
            for id in ids:
                client.wait(id)
            assert early == []
