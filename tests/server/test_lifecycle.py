"""When does the server speak, when does it end, and with which code?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crewlog.storage.locks import TIMEOUT as LOCK_TIMEOUT
from server.rawclient import COMMAND, TIMEOUT, RawClient, RpcError, frame, serving


def refused(client: RawClient, method: str, params: object = None) -> RpcError:
    with pytest.raises(RpcError) as caught:
        client.request(method, params)
    return caught.value


def test_initialize_tells_what_the_server_is_and_can(home: Path, tmp_path: Path) -> None:
    with serving(home, {"cwd": str(tmp_path)}) as client:
        told = client.initialized["capabilities"]["experimental"]["crewlog"]
        assert told["protocolVersion"] == 1
        assert told["home"] == str(home)
        assert told["projectId"] == "".join(c if c.isalnum() and c.isascii() else "-" for c in str(tmp_path.resolve())).replace("--", "-")
        assert {"session/append", "task/claimNext", "subscribe", "crewlog/status"} <= set(told["methods"])
        assert set(told["notifications"]) == {"task/didChange", "roster/didChange", "plan/didChange", "session/didChange"}
        assert client.initialized["serverInfo"]["name"] == "crewlog"
        assert client.initialized["serverInfo"]["version"]


def test_every_method_told_is_there(client: RawClient) -> None:
    """Asked without params, a method answers or names what it misses; none is unknown."""
    for method in client.initialized["capabilities"]["experimental"]["crewlog"]["methods"]:
        reply = client.wait_reply(client.start(method, {"waitMs": 0}))
        assert "result" in reply or reply["error"]["code"] != -32601, method
        assert "result" in reply or reply["error"]["code"] != -32603, reply


def test_requests_before_initialize_are_refused(home: Path) -> None:
    client = RawClient(home, initialize=False)
    error = refused(client, "task/list", {"listId": "x"})
    assert (error.code, error.kind) == (-32002, "serverNotInitialized")
    assert refused(client, "shutdown").code == -32002
    client.notify("task/create", {"listId": "x", "subject": "x"})
    client.notify("initialized", {})
    assert refused(client, "no/such").code == -32002
    client.request("initialize", {"processId": None, "capabilities": {}, "initializationOptions": {"home": str(home)}})
    assert client.request("task/list", {"listId": "x"})["items"] == []
    assert client.close() == 0


def test_a_second_initialize_is_refused_and_changes_nothing(client: RawClient, tmp_path: Path) -> None:
    error = refused(client, "initialize", {"processId": None, "initializationOptions": {"home": str(tmp_path / "other")}})
    assert (error.code, error.kind) == (-32600, "invalidRequest")
    assert client.request("crewlog/status")["home"].endswith("home")


def test_a_subscription_that_is_being_made_does_not_hold_up_the_end(home: Path) -> None:
    """Somebody closes the editor at once: what was asked is answered, and the server ends long before it would give up on a lock."""
    client = RawClient(home, {"subscribe": False})
    asked = client.start("subscribe", {})
    began = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - began < LOCK_TIMEOUT
    assert client.wait_reply(asked)["result"]["subscriptionId"]


def test_who_subscribes_to_a_home_that_cannot_be_read_is_answered(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(tmp_path / "file", {"subscribe": False}) as client:
        client.wait_reply(client.start("subscribe", {}))
        assert "Not a directory" in refused(client, "task/lists").message


def test_after_shutdown_only_exit_is_left(client: RawClient) -> None:
    assert client.request("shutdown") is None
    error = refused(client, "task/list", {"listId": "x"})
    assert (error.code, error.kind) == (-32600, "invalidRequest")
    assert refused(client, "shutdown").code == -32600
    assert refused(client, "initialize", {"processId": None}).code == -32600
    client.notify("exit")
    assert client.wait_exit() == 0


def test_exit_without_shutdown_ends_with_one(home: Path) -> None:
    client = RawClient(home)
    client.notify("exit")
    assert client.wait_exit() == 1


def test_exit_before_initialize_ends_with_one(home: Path) -> None:
    client = RawClient(home, initialize=False)
    client.notify("exit")
    assert client.wait_exit() == 1
    assert not home.exists()


def test_the_server_ends_when_its_input_ends(home: Path) -> None:
    client = RawClient(home)
    client.end()
    assert client.garbage == b""


def test_what_was_asked_before_the_input_ended_is_answered(home: Path, tmp_path: Path) -> None:
    """`printf … | crewlog serve > replies` is a client too."""
    asked: list[dict[str, object]] = [{"method": "initialize", "params": {"processId": None, "initializationOptions": {"home": str(home)}}}]
    asked += [{"method": "task/create", "params": {"listId": "x", "subject": f"{number}"}} for number in range(50)]
    asked += [{"method": "session/list", "params": {}}, {"method": "task/list", "params": {"listId": "x"}}]
    messages = b"".join(frame({"jsonrpc": "2.0", "id": id, **message}) for id, message in enumerate(asked))
    done = subprocess.run(COMMAND, input=messages, capture_output=True, timeout=TIMEOUT, cwd=tmp_path)
    bodies = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in done.stdout.split(b"Content-Length: ")[1:]]
    assert sorted(body["id"] for body in bodies) == list(range(len(asked)))
    assert all("result" in body for body in bodies)
    listed = next(body for body in bodies if body["id"] == len(asked) - 1)
    assert listed["result"]["counts"]["total"] == 50


def test_input_and_output_may_be_files(home: Path, tmp_path: Path) -> None:
    """What an event loop cannot wait for is read and written all the same."""
    asked = [{"method": "initialize", "params": {"processId": None, "initializationOptions": {"home": str(home)}}}]
    asked += [{"method": "task/create", "params": {"listId": "x", "subject": "y"}}, {"method": "shutdown"}]
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(
        b"".join(frame({"jsonrpc": "2.0", "id": id, **message}) for id, message in enumerate(asked))
        + frame({"jsonrpc": "2.0", "method": "exit"})
    )
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        assert subprocess.run(COMMAND, stdin=stdin, stdout=stdout, timeout=TIMEOUT, cwd=tmp_path).returncode == 0
    assert sink.read_bytes().count(b'"result"') == 3


def test_the_server_ends_when_the_process_it_serves_is_gone(home: Path) -> None:
    """The client dies without a word, and a child of its own keeps the server's input open (cases, 22)."""
    boss = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    client = RawClient(home, initialize=False)
    client.request("initialize", {"processId": boss.pid, "capabilities": {}, "initializationOptions": {"home": str(home)}})
    client.request("crewlog/status")
    assert client.process.poll() is None
    boss.kill()
    boss.wait()
    client.wait_exit()


def test_a_process_that_was_never_there_is_gone_too(home: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    client = RawClient(home, initialize=False)
    client.start("initialize", {"processId": child.pid, "capabilities": {}, "initializationOptions": {"home": str(home)}})
    client.wait_exit()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_after_what_it_is_doing(home: Path, which: int) -> None:
    client = RawClient(home, {"durability": "process"})
    ids = [client.start("task/create", {"listId": "x", "subject": f"{number}"}) for number in range(200)]
    client.wait(ids[0])
    client.process.send_signal(which)
    client.wait_exit()
    assert client.garbage == b""
    answered = sum(client.has_reply(id) for id in ids) + 1
    files = [path for path in (home / "tasks" / "x").iterdir() if path.suffix == ".json"]
    assert len(files) >= answered
    assert all(json.loads(path.read_bytes())["subject"] for path in files)


def test_an_interrupt_from_the_terminal_is_meant_for_the_client(client: RawClient) -> None:
    """Ctrl-C goes to the whole group of processes; the server ends when its client does."""
    client.process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    assert client.request("task/list", {"listId": "x"})["items"] == []


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"processId": "one"}, "$.processId"),
        ({"processId": 1.5}, "$.processId"),
        ({"rootUri": 7}, "$.rootUri"),
        ({"initializationOptions": {"durability": "most"}}, "$.initializationOptions.durability"),
        ({"initializationOptions": {"home": 7}}, "$.initializationOptions.home"),
        ({"initializationOptions": {"home": ""}}, "$.initializationOptions.home"),
        ({"initializationOptions": {"cwd": ""}}, "$.initializationOptions.cwd"),
        ({"initializationOptions": {"cwd": "not/absolute"}}, "$.initializationOptions.cwd"),
        ({"initializationOptions": {"home": "/a\0b"}}, "$.initializationOptions.home"),
        ({"initializationOptions": {"subscribe": {"topics": ["weather"]}}}, "$.initializationOptions.subscribe.topics[0]"),
        ({"initializationOptions": "all"}, "$.initializationOptions"),
        ([1, 2], "$"),
    ],
)
def test_wrong_initialize_params_are_named_and_can_be_mended(home: Path, params: object, field: str) -> None:
    client = RawClient(home, initialize=False)
    error = refused(client, "initialize", params)
    assert (error.code, error.kind) == (-32602, "invalidParams")
    assert error.data["field"].startswith(field)
    client.request("initialize", {"processId": None, "initializationOptions": {"home": str(home)}})
    assert client.request("crewlog/status")["home"] == str(home)
    assert client.close() == 0


def test_the_home_is_the_clients_then_the_environments_then_the_options(tmp_path: Path) -> None:
    option, variable, client = (tmp_path / name for name in ("option", "variable", "client"))

    def home_of(*arguments: str, env: dict[str, str] | None = None, options: dict[str, object] | None = None) -> Path:
        server = RawClient(None, options, arguments=arguments, env={"HOME": str(tmp_path), **(env or {})})
        home = Path(server.request("crewlog/status")["home"])
        assert server.close() == 0
        return home

    assert home_of() == tmp_path / ".codebot"
    assert home_of("--home", str(option)) == option
    assert home_of("--home", str(option), env={"CREWLOG_HOME": str(variable)}) == variable
    assert home_of(env={"CREWLOG_HOME": str(variable)}, options={"home": str(client)}) == client
    assert home_of(options={"home": "~/mine"}) == tmp_path / "mine"
    assert [path.name for path in tmp_path.iterdir()] == []  # a reader leaves nothing behind


def test_the_project_is_the_first_folder_then_the_root_then_the_process_folder(home: Path, tmp_path: Path) -> None:
    odd, root, option = tmp_path / "über uns %41", tmp_path / "root", tmp_path / "option"
    for folder in (odd, root, option):
        folder.mkdir()

    def project(options: dict[str, Any] | None = None, **params: Any) -> str:
        server = RawClient(home, options, cwd=tmp_path, **params)
        created = server.request("session/create")
        assert server.close() == 0
        cwd: str = created["session"]["cwd"]
        return cwd

    folders = [{"uri": odd.as_uri(), "name": "odd"}, {"uri": root.as_uri(), "name": "root"}]
    assert project() == str(tmp_path)
    assert project(rootUri=root.as_uri()) == str(root)
    assert project(rootUri=root.as_uri(), workspaceFolders=folders) == str(odd)
    assert project(rootUri=root.as_uri(), workspaceFolders=[]) == str(root)
    assert project(rootUri=None, workspaceFolders=None) == str(tmp_path)
    assert project(rootUri="vscode-remote://ssh/root") == str(tmp_path)
    assert project({"cwd": str(option)}, rootUri=root.as_uri(), workspaceFolders=folders) == str(option)


def test_wrong_options_of_the_command_are_told(tmp_path: Path) -> None:
    for arguments in (["--durability", "most"], ["--log-level", "loud"], ["--nonsense"], ["--max-message-bytes", "-1"]):
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, timeout=TIMEOUT, cwd=tmp_path, stdin=subprocess.DEVNULL)
        assert done.returncode == 2
        assert done.stdout == b""
        assert arguments[0].encode() in done.stderr


def test_the_log_goes_to_a_private_file(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    client = RawClient(home, arguments=("--log-file", str(log), "--log-level", "debug"))
    client.send_raw(b"not a header at all\r\n\r\n")
    client.ping()
    assert client.close() == 0
    assert log.stat().st_mode & 0o077 == 0
    assert log.read_text()
    assert client.stderr == b""


def test_a_workspace_cannot_put_its_modules_in(home: Path, tmp_path: Path) -> None:
    """Started in a folder with a `msgspec.py` of its own, the server takes ours."""
    (tmp_path / "msgspec.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "crewlog").mkdir()
    (tmp_path / "crewlog" / "__init__.py").write_text("raise SystemExit('taken over')")
    client = RawClient(home, cwd=tmp_path)
    assert client.close() == 0
