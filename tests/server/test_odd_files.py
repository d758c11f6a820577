"""What if something else stands where a record should be?"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from server.rawclient import COMMAND, TIMEOUT, RawClient, RpcError, frame, serving

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")


def refused(client: RawClient, method: str, params: dict[str, object]) -> str:
    with pytest.raises(RpcError) as caught:
        client.request(method, params, timeout=10)
    return caught.value.kind


def skipped_tasks(client: RawClient) -> set[str]:
    return {Path(skipped["path"]).name for skipped in client.request("task/list", {"listId": "x"}).get("skipped", [])}


def test_pipes_and_folders_in_the_home_make_nobody_wait(client: RawClient, home: Path) -> None:
    session = client.request("session/create")["session"]
    client.request("task/create", {"listId": "x", "subject": "good"})
    project = Path(session["path"]).parent
    for folder, names in {
        project: ("2026-01-01_deadbeef.jsonl", "2026-01-01_0badf00d.jsonl"),
        home / "tasks" / "x": ("8.json", "9.json"),
        home / "plans": ("pipe.md", "folder.md"),
        home / "tasks" / "y" / "team": ("roster.json", "unused"),
        home: ("history.jsonl", "unused"),
    }.items():
        folder.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / names[0])
        (folder / names[1]).mkdir()
    listed = client.request("session/list", {}, timeout=10)
    assert [info["id"] for info in listed["sessions"]] == [session["id"]]
    assert sorted(Path(skipped["path"]).name for skipped in listed["skipped"]) == ["2026-01-01_0badf00d.jsonl", "2026-01-01_deadbeef.jsonl"]
    assert refused(client, "session/open", {"sessionId": "deadbeef"}) == "storageFailed"
    assert refused(client, "session/open", {"path": str(project)}) == "storageFailed"
    assert [task["subject"] for task in client.request("task/list", {"listId": "x"}, timeout=10)["items"]] == ["good"]
    client.wait_until(lambda: skipped_tasks(client) == {"8.json", "9.json"})  # what is put there by hand is seen within a second
    assert refused(client, "plan/load", {"name": "pipe"}) == "storageFailed"
    assert refused(client, "plan/load", {"name": "folder"}) == "storageFailed"
    assert refused(client, "roster/get", {"listId": "y"}) == "storageFailed"
    assert refused(client, "history/list", {}) == "storageFailed"
    client.ping()


def test_without_a_home_folder_the_client_is_told(tmp_path: Path) -> None:
    """A user without an entry and without HOME: nothing is made in some folder named `~`."""
    script = "import os, pwd, sys\nos.environ.pop('HOME', None)\npwd.getpwuid = lambda uid: (_ for _ in ()).throw(KeyError(uid))\n"
    script += "import crewlog.server.__main__ as entry\nsys.exit(entry.main([]))\n"
    (tmp_path / "server.py").write_text(script)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None}}
    command = [COMMAND[0], "-P", str(tmp_path / "server.py")]
    done = subprocess.run(command, input=frame(asked), capture_output=True, timeout=TIMEOUT, cwd=tmp_path)
    assert b'"code":-32602' in done.stdout
    assert b"--home" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.py"]


def test_a_full_disk_is_told_and_passes(home: Path) -> None:
    """Writes that the system refuses change nothing; afterwards all goes on (cases, 27)."""
    with serving(home) as client:
        session = client.request("session/create")["session"]
        client.request("task/create", {"listId": "x", "subject": "one"})
        import resource

        soft, hard = resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE, (2000, hard))
        text = "x" * 5000
        entry = {"kind": "message", "data": {"role": "user", "content": [{"type": "text", "text": text}]}}
        before = Path(session["path"]).read_bytes()
        for method, params in [
            ("session/append", {"sessionId": session["id"], "entries": [entry]}),
            ("task/create", {"listId": "x", "subject": text}),
            ("task/update", {"listId": "x", "id": "1", "description": text}),
            ("plan/save", {"name": "p", "content": text}),
            ("history/add", {"text": text}),
            ("roster/setTeam", {"listId": "x", "team": text}),
            ("transcript/append", {"listId": "x", "agent": "a", "messages": [{"role": "user", "text": text}]}),
        ]:
            assert refused(client, method, params) == "storageFailed", method
        assert Path(session["path"]).read_bytes() == before
        assert [task["subject"] for task in client.request("task/list", {"listId": "x"})["items"]] == ["one"]
        resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        assert client.request("session/append", {"sessionId": session["id"], "entries": [entry]})["leafId"]
        assert client.request("task/create", {"listId": "x", "subject": text})["subject"] == text
        assert client.request("plan/save", {"name": "p", "content": text})["etag"]
        assert client.request("history/add", {"text": text})["length"] == 1
