"""Does a bad name reach the disk through any method that takes one?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from server.rawclient import RawClient, RpcError

BAD = [
    "",
    ".",
    "..",
    "../x",
    "../../etc/passwd",
    ".hidden",
    "a/b",
    "/absolute",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\x1bb",
    "a\x7fb",
    "a\x85b",
    "x" * 201,
    "é" * 101,
    "dot.",
    "space ",
    "con",
    "CON",
    "nul.txt",
    "com1",
    "LPT9.x",
    "\ud800",
]

TAKING_A_NAME: list[tuple[str, str, dict[str, Any]]] = [
    ("session/open", "sessionId", {}),
    ("session/append", "sessionId", {"entries": [{"kind": "message", "data": {"role": "user"}}]}),
    ("session/snapshot", "sessionId", {}),
    ("session/entries", "sessionId", {}),
    ("session/setName", "sessionId", {"name": "n"}),
    ("session/rewind", "sessionId", {"entryId": "e"}),
    ("session/fork", "sessionId", {}),
    ("session/branches", "sessionId", {}),
    ("session/delete", "sessionId", {}),
    ("session/restore", "sessionId", {}),
    ("session/export", "sessionId", {"format": "json"}),
    ("session/stats", "sessionId", {}),
    ("plan/load", "name", {}),
    ("plan/save", "name", {"content": "c"}),
    ("plan/delete", "name", {}),
    ("plan/path", "name", {}),
    ("task/create", "listId", {"subject": "s"}),
    ("task/get", "listId", {"id": "1"}),
    ("task/delete", "listId", {"id": "1"}),
    ("task/list", "listId", {}),
    ("task/update", "listId", {"id": "1"}),
    ("task/claim", "listId", {"id": "1", "owner": "a"}),
    ("task/findClaimable", "listId", {}),
    ("task/claimNext", "listId", {"owner": "a", "waitMs": 1000}),
    ("task/renew", "listId", {"id": "1", "owner": "a"}),
    ("task/release", "listId", {"id": "1", "owner": "a"}),
    ("task/reset", "listId", {}),
    ("roster/get", "listId", {}),
    ("roster/setTeam", "listId", {"team": "t"}),
    ("roster/upsertMember", "listId", {"member": {"name": "n", "agent_type": "t"}}),
    ("roster/removeMember", "listId", {"name": "n"}),
    ("roster/clear", "listId", {}),
    ("transcript/append", "listId", {"agent": "a", "messages": []}),
    ("transcript/append", "agent", {"listId": "l", "messages": [{"role": "user"}]}),
    ("transcript/load", "listId", {"agent": "a"}),
    ("transcript/load", "agent", {"listId": "l"}),
    ("transcript/list", "listId", {}),
]


@pytest.mark.parametrize(("method", "field", "rest"), TAKING_A_NAME, ids=[f"{method}-{field}" for method, field, _ in TAKING_A_NAME])
def test_a_bad_name_is_refused_before_anything_touches_the_disk(
    client: RawClient, home: Path, method: str, field: str, rest: dict[str, Any]
) -> None:
    for name in BAD:
        with pytest.raises(RpcError) as caught:
            client.request(method, {field: name, **rest})
        error = caught.value
        assert (error.code, error.kind) == (1201, "invalidName"), name
        assert error.data["field"] == field
        assert error.data["reason"]
        assert len(error.message) < 500
    assert not home.exists()


@pytest.mark.parametrize("name", [name for name in BAD if name != ""])
def test_a_member_that_could_not_have_a_transcript_is_refused(client: RawClient, home: Path, name: str) -> None:
    with pytest.raises(RpcError) as caught:
        client.request("roster/upsertMember", {"listId": "l", "member": {"name": name, "agent_type": "t"}})
    assert caught.value.kind == "invalidName"
    assert not home.exists()


@pytest.mark.parametrize("field", ["listIds", "sessionIds"])
def test_names_to_subscribe_to_are_checked(client: RawClient, home: Path, field: str) -> None:
    for name in BAD:
        with pytest.raises(RpcError) as caught:
            client.request("subscribe", {field: ["good", name]})
        assert caught.value.kind == "invalidName"
    assert not home.exists()


def test_every_method_that_takes_a_name_is_tested_here(client: RawClient) -> None:
    from crewlog.protocol.methods import METHODS

    named = {"session_id", "list_id", "agent"}
    taking = {(name, field) for name, method in METHODS.items() for field in method.params.__struct_fields__ if field in named}
    taking |= {(name, "name") for name in METHODS if name.startswith("plan/") and "name" in METHODS[name].params.__struct_fields__}
    tested = {(method, {"sessionId": "session_id", "listId": "list_id"}.get(field, field)) for method, field, _ in TAKING_A_NAME}
    optional = {("history/add", "session_id")}  # a text in a line, never a file name
    assert taking - optional == tested


@pytest.mark.parametrize("name", ["ok", "UPPER", "with space inside", "ünï-😀", "a.b", "-dash", "~tilde", "con2", "x" * 200, "comx"])
def test_a_good_name_is_taken(client: RawClient, home: Path, name: str) -> None:
    assert client.request("task/create", {"listId": name, "subject": "s"})["id"] == "1"
    assert (home / "tasks" / name / "1.json").is_file()
    client.request("plan/save", {"name": name, "content": "c"})
    assert (home / "plans" / f"{name}.md").read_text() == "c"
    assert client.request("transcript/append", {"listId": name, "agent": name, "messages": [{"role": "user"}]})["count"] == 1


def test_everything_made_is_private(client: RawClient, home: Path) -> None:
    session = client.request("session/create")["session"]["id"]
    client.request("session/append", {"sessionId": session, "entries": [{"kind": "message", "data": {"role": "user"}}]})
    client.request("task/create", {"listId": session, "subject": "s"})
    client.request("task/claim", {"listId": session, "id": "1", "owner": "a", "leaseMs": 60_000})
    client.request("roster/setTeam", {"listId": session, "team": "t"})
    client.request("transcript/append", {"listId": session, "agent": "a", "messages": [{"role": "user"}]})
    client.request("history/add", {"text": "hello"})
    client.request("plan/save", {"name": "p", "content": "c"})
    client.request("session/list", {})
    client.request("session/search", {"query": "x"})
    client.request("session/delete", {"sessionId": session})
    seen = 0
    for path in [home, *home.rglob("*")]:
        seen += 1
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))
    assert seen > 10


def test_a_link_inside_the_home_never_leads_a_write_outside(client: RawClient, home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (home / "tasks").mkdir(parents=True, mode=0o700)
    (home / "tasks" / "evil").symlink_to(outside)
    (home / "plans").mkdir()
    (outside / "victim.md").write_text("theirs")
    (home / "plans" / "evil.md").symlink_to(outside / "victim.md")
    (home / "history.jsonl").symlink_to(outside / "history.jsonl")
    for method, params in [
        ("task/create", {"listId": "evil", "subject": "s"}),
        ("roster/setTeam", {"listId": "evil", "team": "t"}),
        ("transcript/append", {"listId": "evil", "agent": "a", "messages": [{"role": "user"}]}),
        ("plan/save", {"name": "evil", "content": "mine"}),
        ("history/add", {"text": "t"}),
    ]:
        with pytest.raises(RpcError) as caught:
            client.request(method, params)
        assert caught.value.kind == "storageFailed", method
    assert sorted(path.name for path in outside.iterdir()) == ["victim.md"]
    assert (outside / "victim.md").read_text() == "theirs"


def test_a_home_that_is_a_link_itself_works(tmp_path: Path) -> None:
    from server.rawclient import serving

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with serving(tmp_path / "link") as client:
        assert client.request("task/create", {"listId": "x", "subject": "s"})["id"] == "1"
        with serving(tmp_path / "real") as other:
            assert other.request("task/create", {"listId": "x", "subject": "s"})["id"] == "2"
        assert client.request("task/list", {"listId": "x"})["counts"]["total"] == 2
