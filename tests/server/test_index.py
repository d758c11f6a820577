"""What a client sees of the index: quick first pages, progress, cancelling, a word in the status; never anything the files do not hold."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.rawclient import RawClient, serving


def line(number: int, said: str, moment: str = "2026-03-01T00:00:00Z", kind: str = "message") -> bytes:
    data: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": said}]}
    if kind == "llm_call":
        data = {"model": "sonata-2", "input_tokens": 10, "output_tokens": 1, "latency_ms": 5}
    entry = {
        "kind": kind,
        "id": f"{number:08x}",
        "parent_id": f"{number - 1:08x}" if number > 1 else "h0",
        "timestamp": moment,
        "data": data,
    }
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def write_session(folder: Path, number: int, lines: bytes, created: str = "2026-03-01T00:00:00Z") -> Path:
    """A log that was written a while ago."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"version": 3, "session_id": f"{number:08x}", "cwd": "/x", "created": created}
    header = {"kind": "header", "id": "h0", "timestamp": created, "data": data}
    path = folder / f"2026-03-01_{number:08x}.jsonl"
    path.write_bytes(json.dumps(header, separators=(",", ":")).encode() + b"\n" + lines)
    settle(path)
    return path


def settle(path: Path) -> None:
    then = time.time_ns() - 5_000_000_000 + random.randrange(1_000_000_000)
    os.utime(path, ns=(then, then))


def wait_for(client: RawClient, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The index's state, once it is as wanted."""
    deadline = time.monotonic() + 60
    while True:
        state: dict[str, Any] = client.request("crewlog/status")["index"]
        if holds(state):
            return state
        assert time.monotonic() < deadline, state
        time.sleep(0.05)


def search(client: RawClient, query: str, **more: Any) -> list[tuple[str, str]]:
    hits = client.request("session/search", {"query": query, "allProjects": True, **more})["hits"]
    return [(hit["session"]["id"], hit["entryId"]) for hit in hits]


@pytest.fixture
def project(home: Path) -> Path:
    """A home of 2 MB in 40 sessions."""
    folder = home / "projects" / "-x"
    for number in range(40):
        moment = f"2026-03-01T00:{number:02d}:00Z"
        filler = b"".join(line(entry, f"the parser said {number} " + "and so on " * 50, moment) for entry in range(1, 80))
        more = line(80, f"needle{number} 天气预报", moment) + line(81, "", moment, "llm_call")
        write_session(folder, number, filler + more, moment)
    return folder


def test_it_is_made_in_the_background_and_told_of(client: RawClient, project: Path) -> None:
    before = search(client, "needle7")
    state = wait_for(client, lambda state: state["state"] == "ready")
    assert state.get("sessions") == 40
    assert search(client, "needle7") == before == [(f"{7:08x}", f"{80:08x}")]
    assert len(search(client, "气预")) == 40
    assert client.request("session/stats", {"allProjects": True})["total"]["calls"] == 40
    assert len(client.request("session/list", {"allProjects": True})["sessions"]) == 40


def test_what_changes_is_seen_at_once(client: RawClient, project: Path) -> None:
    search(client, "x")
    wait_for(client, lambda state: state["state"] == "ready")
    seven = f"{7:08x}"
    client.request("session/append", {"sessionId": seven, "entries": [{"kind": "message", "data": said("needle7 again")}]})
    assert len(search(client, "needle7")) == 2
    client.request("session/delete", {"sessionId": seven})
    assert search(client, "needle7") == []
    assert seven not in [session["id"] for session in client.request("session/list", {"allProjects": True})["sessions"]]
    assert client.request("session/stats", {"allProjects": True})["total"]["calls"] == 39
    client.request("session/restore", {"sessionId": seven})
    assert len(search(client, "needle7")) == 2
    edited = next(project.glob("*00000008.jsonl"))
    edited.write_bytes(edited.read_bytes().replace(b"needle8 ", b"noodle8 "))
    assert search(client, "needle8") == []
    assert search(client, "noodle8") == [(f"{8:08x}", f"{80:08x}")]


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_no_query_is_an_error(client: RawClient, project: Path) -> None:
    search(client, "x")
    wait_for(client, lambda state: state["state"] == "ready")
    for query in (
        '"',
        "*",
        "NEAR(a b)",
        "a AND (b",
        "';--",
        "^x",
        "text:x",
        "-a",
        '""',
        "a OR",
        "天",
        "\x00",
        "{a}",
        "needle7 NOT x",
        "·k0",
        "%_",
    ):
        assert isinstance(search(client, query), list)


def test_another_server_starts_with_what_is_known(client: RawClient, home: Path, project: Path, tmp_path: Path) -> None:
    sessions = client.request("session/list", {"allProjects": True})
    wait_for(client, lambda state: state["state"] == "ready")
    with serving(home, {"cwd": str(tmp_path)}) as other:
        assert other.request("session/list", {"allProjects": True}) == sessions
        assert search(other, "needle9") == search(client, "needle9")
        wait_for(other, lambda state: state.get("sessions") == 40)


def test_a_server_killed_while_it_indexes_harms_nothing(home: Path, project: Path, tmp_path: Path) -> None:
    chance = random.Random(11)
    for _ in range(4):
        client = RawClient(home, {"cwd": str(tmp_path), "durability": "process"})
        client.request("session/list", {"allProjects": True, "limit": 1})
        time.sleep(0.2 + chance.random() * 0.3)  # it begins after 0.2 s
        client.process.send_signal(signal.SIGKILL)
        client.kill()
    with serving(home, {"cwd": str(tmp_path)}) as client:
        assert len(search(client, "needle11")) == 1
        wait_for(client, lambda state: state["state"] == "ready" and state.get("sessions") == 40)
        assert len(search(client, "needle11")) == 1


def test_without_a_place_for_it_the_client_is_told_and_served(client: RawClient, home: Path, project: Path) -> None:
    side = home / ".crewlog"
    shutil.rmtree(side, ignore_errors=True)
    side.write_bytes(b"in its place")
    assert len(search(client, "needle7")) == 1
    state = wait_for(client, lambda state: state["state"] == "off")
    assert state["reason"]
    assert len(search(client, "needle7")) == 1


def test_the_first_page_does_not_wait_for_the_rest(client: RawClient, project: Path) -> None:
    """60 sessions of 400 KB, of which the newest three are asked for: they come in order, and all others on the pages after."""
    block = b"".join(line(entry, "and so on " * 40) for entry in range(1, 800))
    for number in range(100, 160):
        write_session(project, number, block + line(800, "last", f"2026-03-02T00:{number - 100:02d}:00Z"))
    (project / "2026-03-01_bad.jsonl").write_bytes(b"no session\n")
    page = client.request("session/list", {"allProjects": True, "limit": 3})
    assert [item["path"] for item in page["skipped"]] == [str(project / "2026-03-01_bad.jsonl")]
    assert [session["messageCount"] for session in page["sessions"]] == [800] * 3
    seen = [session["id"] for session in all_pages(client, 3, 30)]
    assert seen == [f"{number:08x}" for number in [*range(159, 99, -1), *range(39, -1, -1)]]


def test_copies_of_a_log_are_on_pages_of_their_own(client: RawClient, project: Path) -> None:
    """They have one id and one time. One of them has a name that is no UTF-8."""
    log = write_session(project, 500, line(1, "copied"))
    for name in ("2026-03-02_000001f4.jsonl", os.fsdecode(b"copy \xff.jsonl")):
        shutil.copy2(log, project / name)
    paths = [session["path"] for session in client.request("session/list", {"allProjects": True})["sessions"]]
    assert len(set(paths)) == 43
    assert [session["path"] for session in all_pages(client, 1, 1)] == paths


def all_pages(client: RawClient, first: int, then: int) -> list[dict[str, Any]]:
    """The sessions on all pages: the first of so many, and those that follow."""
    page = client.request("session/list", {"allProjects": True, "limit": first})
    sessions: list[dict[str, Any]] = page["sessions"]
    while "nextCursor" in page:
        page = client.request("session/list", {"allProjects": True, "limit": then, "cursor": page["nextCursor"]})
        sessions += page["sessions"]
    return sessions


@pytest.fixture
def large(home: Path) -> Path:
    """120 MB in 150 sessions."""
    folder = home / "projects" / "-x"
    block = b"".join(line(entry, "and so on " * 40) for entry in range(1, 1500))
    for number in range(150):
        write_session(folder, number, block)
    return folder


def test_long_requests_tell_their_progress(client: RawClient, large: Path) -> None:
    asked = {"token 1": ("session/search", {"query": "≠≠ !="}), "token 2": ("session/stats", {}), "token 3": ("session/list", {})}
    for token, (method, params) in asked.items():
        client.request(method, {**params, "allProjects": True, "workDoneToken": token}, timeout=120)
    told = client.notifications("$/progress")
    first = [item["value"] for item in told if item["token"] == "token 1"]
    assert [value["kind"] for value in first] == ["begin", *["report"] * (len(first) - 2), "end"]
    assert first[0]["title"]
    assert first[0]["cancellable"] is True
    assert all(0 <= value["percentage"] <= 100 for value in first[:-1])
    for token in ("token 2", "token 3"):  # by now they may be quick
        kinds = [item["value"]["kind"] for item in told if item["token"] == token]
        assert not kinds or (kinds[0], kinds[-1]) == ("begin", "end")


def test_a_client_that_asked_for_no_progress_gets_none(client: RawClient, large: Path) -> None:
    client.request("session/search", {"query": "nowhere", "allProjects": True}, timeout=120)
    assert client.notifications("$/progress") == []


def test_long_requests_can_be_cancelled(client: RawClient, large: Path) -> None:
    for method, params in (("session/search", {"query": "!="}), ("session/stats", {}), ("session/list", {})):
        id = client.start(method, {**params, "allProjects": True})
        client.ping()
        client.cancel(id)
        reply = client.wait_reply(id)
        assert "result" in reply or reply["error"]["code"] == -32800
    id = client.start("session/search", {"query": "!=", "allProjects": True, "workDoneToken": 5})
    client.cancel(id)
    assert client.wait_reply(id)["error"]["code"] == -32800


def test_a_server_that_ends_while_it_indexes_ends_at_once(home: Path, large: Path, tmp_path: Path) -> None:
    with serving(home, {"cwd": str(tmp_path)}) as client:
        client.request("session/list", {"allProjects": True, "limit": 1})
        wait_for(client, lambda state: state["state"] == "reading")
        begun = time.monotonic()
    assert time.monotonic() - begun < 10
