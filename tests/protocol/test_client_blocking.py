"""The blocking client against a server that misbehaves to order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crewlog.client import (
    Client,
    ConnectionLost,
    InvalidParams,
    NotStarted,
    RequestTimeout,
    ResponseError,
    Task,
    TaskDidChange,
    json_value,
)
from crewlog.client.backlog import LIMIT
from crewlog.storage.errors import AlreadyClaimed, Busy

FAKE = [sys.executable, str(Path(__file__).with_name("fake_server.py"))]
PATIENCE = 30.0


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(command=FAKE) as client:
        yield client


def ask(client: Client, method: str, timeout: float | None = PATIENCE, **params: Any) -> Any:
    return json_value(client.request(method, params, timeout=timeout))


def eventually(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def counts(total: int) -> dict[str, int]:
    return {"pending": total, "inProgress": 0, "completed": 0, "total": total}


def told_task(revision: int, list_id: str = "l", id: str = "1") -> dict[str, Any]:
    task = {"id": id, "subject": f"s{revision}", "status": "pending", "blocks": [], "blockedBy": []}
    params = {"listId": list_id, "revision": revision, "changed": [task], "removed": [], "counts": counts(1)}
    return {"method": "task/didChange", "params": params}


def test_the_handshake_says_who_we_are_and_what_we_want(tmp_path: Path) -> None:
    with Client(command=FAKE, home=tmp_path / "h", cwd=tmp_path, durability="process", subscribe=False, name="my agent") as client:
        first, second = ask(client, "x/log")[:2]
        assert (client.server.name, client.server.home, client.server.project_id) == ("fake", "/home", "-p")
    assert first["method"] == "initialize"
    assert first["params"]["processId"] == os.getpid()
    assert first["params"]["clientInfo"]["name"] == "my agent"
    given = first["params"]["initializationOptions"]
    assert given == {"home": str(tmp_path / "h"), "cwd": str(tmp_path), "durability": "process", "subscribe": False}
    assert second == {"jsonrpc": "2.0", "method": "initialized", "params": {}}


def test_params_that_are_none_are_left_out_and_names_are_those_of_the_wire(client: Client) -> None:
    task = client.task.claim_next("l", "me", wait_ms=5, match={"k": [1]}, timeout=0.05)
    assert task is not None
    assert task.claim is not None
    assert (task.id, task.claim.generation, task.blocked_by) == ("1", 41, [])
    sent = next(message for message in ask(client, "x/log") if message.get("method") == "task/claimNext")
    assert sent["params"] == {"listId": "l", "owner": "me", "autoRenew": True, "waitMs": 5, "match": {"k": [1]}}


@pytest.mark.parametrize(
    "value",
    [10**30, -(2**63), 1e300, "\ud800", "\u2028\x00é😀", {"jsonrpc": "2.0", "id": 1}, {"file-path": [{}]}, None, [[[]]], {"\udfff": 1}],
)
def test_any_json_goes_there_and_back(client: Client, value: object) -> None:
    assert ask(client, "x/echo", value=value) == {"value": value}


def test_a_reply_nested_deeper_than_python_could_decode_breaks_nothing(client: Client) -> None:
    deep = b"[" * 5_000 + b"]" * 5_000
    body = b'{"jsonrpc":"2.0","method":"x/unknown","params":{"deep":' + deep + b"}}"
    frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    assert ask(client, "x/write", hex=frame.hex()) is None
    assert ask(client, "x/echo", still="here") == {"still": "here"}


def test_noise_between_the_frames_is_passed_over(client: Client) -> None:
    for noise in (b"warning: something\n", b"Content-Length: 3\r\n\r\n{]!", b"\r\n\r\n\r\n", b"Content-Length: x\r\n\r\n"):
        assert ask(client, "x/write", hex=noise.hex()) is None
    assert ask(client, "x/echo", still="here") == {"still": "here"}


def test_answers_that_nobody_asked_for_are_nobodys(client: Client) -> None:
    odd: list[dict[str, Any]] = [{"id": 9_999, "result": 1}, {"id": None, "result": 1}, {"id": "a", "error": {}}, {"id": 1.5, "result": 1}]
    assert ask(client, "x/tell", messages=odd) is None
    assert ask(client, "x/echo", still="here") == {"still": "here"}


def test_errors_come_back_as_the_storage_exceptions_with_their_fields(client: Client) -> None:
    with pytest.raises(AlreadyClaimed) as claimed:
        ask(client, "x/error", code=1102, message="…", data={"kind": "alreadyClaimed", "id": "7", "owner": "ann"})
    assert (claimed.value.id, claimed.value.owner) == ("7", "ann")
    with pytest.raises(Busy) as busy:
        ask(client, "x/error", code=1302, message="…", data={"kind": "busy", "path": "/f", "holder": {"pid": 9, "host": "h"}})
    assert busy.value.holder == {"pid": 9, "host": "h"}
    with pytest.raises(InvalidParams) as invalid:
        ask(client, "x/error", code=-32602, message="$.a[0]: no", data={"kind": "invalidParams", "field": "$.a[0]"})
    assert (invalid.value.field, invalid.value.reason) == ("$.a[0]", "no")


@pytest.mark.parametrize("data", [None, [], "x", {"kind": "alreadyClaimed"}, {"kind": 5}, {"kind": "newKind", "n": 1}])
def test_an_error_of_another_version_is_told_in_general_form(client: Client, data: object) -> None:
    with pytest.raises(ResponseError) as error:
        ask(client, "x/error", code=1999, message="what it said", data=data)
    assert (error.value.code, error.value.message) == (1999, "what it said")


def test_many_threads_get_their_own_answers(client: Client) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(50):
            got = ask(client, "x/echo", who=[number, turn])
            if got != {"who": [number, turn]}:
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_a_request_is_withdrawn_when_its_time_is_up(client: Client) -> None:
    with pytest.raises(RequestTimeout, match="had no effect") as error:
        ask(client, "x/never", timeout=0.05)
    assert error.value.withdrawn
    assert isinstance(error.value, TimeoutError)
    assert ask(client, "x/log")[-2]["method"] == "$/cancelRequest"


def test_a_result_that_comes_while_it_is_withdrawn_is_given(client: Client) -> None:
    assert ask(client, "x/late", timeout=0.05, a=1) == {"a": 1}


def test_a_server_that_does_not_even_answer_the_withdrawal(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.client.blocking._WITHDRAW_TIMEOUT", 0.05)
    with pytest.raises(RequestTimeout, match="may have been carried out") as error:
        ask(client, "x/deaf", timeout=0.05)
    assert not error.value.withdrawn


def test_the_keyboards_interrupt_gives_a_task_back_that_was_claimed_meanwhile() -> None:
    script = """if True:
        import signal, sys, json
        from crewlog.client import Client, json_value
        with Client(command=sys.argv[1:]) as client:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                client.task.claim_next("l", "me", wait_ms=60_000)
            except KeyboardInterrupt:
                pass
            print(json.dumps(json_value(client.request("x/log"))))
    """
    done = subprocess.run([sys.executable, "-c", script, *FAKE], capture_output=True, text=True, timeout=PATIENCE, check=True)
    sent = json_value(done.stdout.encode())
    assert [message["method"] for message in sent[-3:]] == ["$/cancelRequest", "task/release", "x/log"]
    assert sent[-2]["params"] == {"listId": "l", "id": "1", "owner": "me", "generation": 41}


def test_a_server_that_reads_nothing_does_not_hold_up_the_time_limit(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.client.blocking._WITHDRAW_TIMEOUT", 0.05)
    ask(client, "x/doze", seconds=3)
    with pytest.raises(RequestTimeout):
        ask(client, "x/echo", timeout=0.1, big="x" * (8 << 20))
    assert ask(client, "x/echo", still="here") == {"still": "here"}


def test_a_large_message_goes_there_and_back(client: Client) -> None:
    big = "é" * (4 << 20)
    assert ask(client, "x/echo", big=big) == {"big": big}


def test_the_death_of_the_server_ends_all_requests_with_its_exit_code(client: Client) -> None:
    errors: list[ConnectionLost] = []

    def wait() -> None:
        with pytest.raises(ConnectionLost) as lost:
            ask(client, "x/never", timeout=None)
        errors.append(lost.value)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(message.get("method") == "x/never" for message in ask(client, "x/log")) == 8)
    with pytest.raises(ConnectionLost, match="7"):
        ask(client, "x/die", code=7)
    for thread in threads:
        thread.join(PATIENCE)
    assert [error.exit_code for error in errors] == [7] * 8
    with pytest.raises(ConnectionLost):
        ask(client, "x/echo")


def test_a_killed_server_is_told_by_its_signal(client: Client) -> None:
    os.kill(client.pid, signal.SIGKILL)
    with pytest.raises(ConnectionLost) as lost:
        ask(client, "x/never", timeout=None)
    assert lost.value.exit_code == -signal.SIGKILL


def test_closing_says_goodbye_and_leaves_nothing_behind() -> None:
    client = Client(command=FAKE).start()
    pid = client.pid
    threads = threading.active_count()
    client.close()
    client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert threading.active_count() < threads
    with pytest.raises(ConnectionLost, match="closed"):
        ask(client, "x/echo")


def test_a_stubborn_server_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.client.launch.END_TIMEOUT", 0.2)
    client = Client(command=[*FAKE, "--stubborn"]).start()
    pid = client.pid
    client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_starts_that_fail_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionLost, match="no-such-program"):
        Client(command=[str(tmp_path / "no-such-program")]).start()
    with pytest.raises(ConnectionLost, match="5"):
        Client(command=[sys.executable, "-c", "raise SystemExit(5)"]).start()
    with pytest.raises(ConnectionLost):
        Client(command=[sys.executable, "-c", "print('hello')"]).start()
    monkeypatch.setattr("crewlog.client.launch.START_TIMEOUT", 0.2)
    with pytest.raises(ConnectionLost, match="did not answer"):
        Client(command=[*FAKE, "--mute"]).start()


def test_a_client_that_is_not_started_or_was_forked_says_so(client: Client) -> None:
    with pytest.raises(NotStarted):
        Client(command=FAKE).task.get("l", "1")
    with pytest.raises(NotStarted):
        client.start()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            client.task.get("l", "1")
        except NotStarted:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ask(client, "x/echo", still="here") == {"still": "here"}


def test_a_request_of_the_server_is_refused_or_granted(client: Client) -> None:
    assert ask(client, "x/ask", asks="workspace/configuration")["error"]["code"] == -32601
    assert ask(client, "x/ask", asks="window/workDoneProgress/create")["result"] is None


def test_changes_reach_every_stream_and_callback_that_asked_for_them(client: Client) -> None:
    called: list[TaskDidChange] = []
    with client.notifications() as all_changes, client.notifications(TaskDidChange) as of_tasks:
        end = client.on(TaskDidChange, called.append)
        plan = {"method": "plan/didChange", "params": {"name": "p", "change": "created", "etag": "e"}}
        odd = [{"method": "task/didChange", "params": {"listId": 5}}, {"method": "new/didChange", "params": {}}]
        ask(client, "x/tell", messages=[told_task(1), plan, *odd, told_task(2)])
        revisions = [getattr(all_changes.get(PATIENCE), "revision", None) for _ in range(3)]
        assert revisions == [1, None, 2]
        first = of_tasks.get(PATIENCE)
        assert isinstance(first, TaskDidChange)
        assert isinstance(first.changed[0], Task)
        assert first.changed[0].subject == "s1"
        eventually(lambda: [change.revision for change in called] == [1, 2])
        end()
        assert all_changes.get(0) is None
        ask(client, "x/tell", messages=[told_task(3)])
        assert isinstance(all_changes.get(PATIENCE), TaskDidChange)
    assert len(called) == 2


def test_a_stream_that_nobody_reads_keeps_only_what_there_is_to_know(client: Client) -> None:
    stream = client.notifications()
    for start in range(0, 3 * LIMIT, 500):
        ask(client, "x/tell", messages=[told_task(start + step + 1, id=str(step % 3)) for step in range(500)])
    changes = []
    while (change := stream.get(0)) is not None:
        assert isinstance(change, TaskDidChange)
        changes.append(change)
    assert len(changes) <= LIMIT
    assert changes[-1].revision == 3 * LIMIT
    final = {task.id: task.subject for change in changes for task in change.changed}
    last = {str(step % 3): f"s{3 * LIMIT - 500 + step + 1}" for step in range(500)}
    assert final == last


def test_a_callback_may_ask_and_may_fail(client: Client) -> None:
    seen: list[Any] = []

    def call(change: TaskDidChange) -> None:
        seen.append(ask(client, "x/echo", revision=change.revision))
        raise RuntimeError("a fault of the callback")

    client.on(TaskDidChange, call)
    ask(client, "x/tell", messages=[told_task(1), told_task(2)])
    eventually(lambda: seen == [{"revision": 1}, {"revision": 2}])


def test_streams_end_with_the_server(client: Client) -> None:
    stream = client.notifications()
    ask(client, "x/tell", messages=[told_task(1)])
    with pytest.raises(ConnectionLost):
        ask(client, "x/die", code=0)
    assert [getattr(change, "revision", None) for change in stream] == [1]
    assert client.notifications().get() is None


def test_the_servers_log_can_go_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    script = "import sys, runpy; print('hello log', file=sys.stderr, flush=True); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])"
    with Client(command=[sys.executable, "-c", script, FAKE[1]], stderr=path) as client:
        ask(client, "x/echo")
    assert path.read_text() == "hello log\n"
    assert path.stat().st_mode & 0o777 == 0o600
