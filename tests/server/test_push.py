"""Is a client told of what others do, once, in order, with the right final state?"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from server.rawclient import RawClient, serving

TASK = '{"id": "%s", "subject": "%s", "status": "pending", "blocks": [], "blockedBy": []}'


class Board:
    """The task list as a client that applies every notification has it."""

    def __init__(self, client: RawClient, list_id: str, state: dict[str, Any]) -> None:
        self._client = client
        self._list_id = list_id
        self.tasks = {task["id"]: task for task in state["items"]}
        self.revision = state["revision"]
        self.counts = state["counts"]
        self.told = 0
        self._seen = 0

    def update(self) -> None:
        told = [p for p in self._client.notifications("task/didChange") if p["listId"] == self._list_id]
        for params in told[self._seen :]:
            if params["revision"] <= self.revision and self.told == 0:
                continue
            assert params["revision"] == self.revision + 1, "a notification is missing, or came twice"
            assert params["changed"] or params["removed"], "told of nothing"
            self.revision = params["revision"]
            self.told += 1
            for task in params["changed"]:
                self.tasks[task["id"]] = task
            for id in params["removed"]:
                self.tasks.pop(id)
            self.counts = params["counts"]
        self._seen = len(told)

    def subjects(self) -> dict[str, str]:
        self.update()
        return {id: task["subject"] for id, task in sorted(self.tasks.items())}

    def wait(self, subjects: dict[str, str]) -> None:
        self._client.wait_until(lambda: self.subjects() == subjects)
        assert self.counts["total"] == len(self.tasks)


@pytest.fixture
def watcher(home: Path, tmp_path: Path) -> Iterator[RawClient]:
    (tmp_path / "watching").mkdir()
    with serving(home, {"cwd": str(tmp_path / "watching")}) as client:
        yield client


def watch(client: RawClient, list_id: str = "x") -> Board:
    state = client.request("subscribe", {"topics": ["task"], "listIds": [list_id]})["tasks"][0]
    assert state["listId"] == list_id
    return Board(client, list_id, state)


def test_subscribe_gives_the_present_state_and_what_comes_after_it(client: RawClient, watcher: RawClient) -> None:
    client.request("task/create", {"listId": "x", "subject": "one"})
    client.request("roster/setTeam", {"listId": "x", "team": "team"})
    got = watcher.request("subscribe", {"topics": ["task", "roster"], "listIds": ["x", "empty"]})
    assert got["subscriptionId"]
    assert [(state["listId"], len(state["items"]), state["counts"]["total"]) for state in got["tasks"]] == [("x", 1, 1), ("empty", 0, 0)]
    assert [(state["listId"], state["roster"]["team"]) for state in got["rosters"]] == [("x", "team"), ("empty", "")]
    board = Board(watcher, "x", got["tasks"][0])
    client.request("task/create", {"listId": "x", "subject": "two"})
    board.wait({"1": "one", "2": "two"})
    assert watcher.request("task/list", {"listId": "x"})["revision"] == board.revision


def test_all_that_happens_to_a_task_is_told(client: RawClient, watcher: RawClient) -> None:
    board = watch(watcher)
    client.request("task/create", {"listId": "x", "subject": "one"})
    board.wait({"1": "one"})
    client.request("task/update", {"listId": "x", "id": "1", "subject": "changed", "metadata": {"k": 1}})
    board.wait({"1": "changed"})
    assert board.tasks["1"]["metadata"] == {"k": 1}
    client.request("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 60_000})
    watcher.wait_until(lambda: board.subjects() == {"1": "changed"} and board.tasks["1"].get("owner") == "a")
    assert board.tasks["1"]["claim"]["owner"] == "a"
    client.request("task/update", {"listId": "x", "id": "1", "status": "completed"})
    watcher.wait_until(lambda: bool(board.subjects()) and board.tasks["1"]["status"] == "completed")
    assert board.counts == {"pending": 0, "inProgress": 0, "completed": 1, "total": 1}
    client.request("task/delete", {"listId": "x", "id": "1"})
    board.wait({})
    client.request("task/create", {"listId": "x", "subject": "two"})
    board.wait({"2": "two"})
    client.request("task/reset", {"listId": "x"})
    board.wait({})


def test_the_other_side_of_a_dependency_is_told_too(client: RawClient, watcher: RawClient) -> None:
    for subject in ("one", "two"):
        client.request("task/create", {"listId": "x", "subject": subject})
    board = watch(watcher)
    client.request("task/update", {"listId": "x", "id": "1", "addBlocks": ["2"]})
    watcher.wait_until(lambda: bool(board.subjects()) and board.tasks["2"]["blockedBy"] == ["1"] and board.tasks["1"]["blocks"] == ["2"])
    client.request("task/delete", {"listId": "x", "id": "1"})
    board.wait({"2": "two"})
    assert board.tasks["2"]["blockedBy"] == []


def test_a_clients_own_change_is_told_once(client: RawClient) -> None:
    board = watch(client)
    for number in range(20):
        client.request("task/create", {"listId": "x", "subject": f"{number}"})
        client.wait_until(partial(lambda count: len(board.subjects()) == count, number + 1))
    time.sleep(0.3)
    board.update()
    assert board.told == 20


def test_a_renewal_is_no_change(client: RawClient, watcher: RawClient) -> None:
    board = watch(watcher)
    client.request("task/create", {"listId": "x", "subject": "one"})
    client.request("task/claim", {"listId": "x", "id": "1", "owner": "a", "leaseMs": 60_000, "autoRenew": False})
    watcher.wait_until(lambda: board.subjects() == {"1": "one"} and board.tasks["1"].get("owner") == "a")
    before = board.told
    for _ in range(5):
        client.request("task/renew", {"listId": "x", "id": "1", "owner": "a"})
    client.request("task/create", {"listId": "x", "subject": "two"})
    board.wait({"1": "one", "2": "two"})
    assert board.told == before + 1


def test_what_editors_and_programs_do_to_files_is_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    for subject in ("one", "two", "three"):
        client.request("task/create", {"listId": "x", "subject": subject})
    board = watch(watcher)
    folder = home / "tasks" / "x"
    (folder / "1.json").write_text(TASK % (1, "echo"))
    board.wait({"1": "echo", "2": "two", "3": "three"})
    with (folder / "2.json").open("r+") as file:
        file.write(TASK % (2, "in place"))
        file.truncate()
    board.wait({"1": "echo", "2": "in place", "3": "three"})
    (folder / "new").write_text(TASK % (3, "renamed over"))
    os.replace(folder / "new", folder / "3.json")
    board.wait({"1": "echo", "2": "in place", "3": "renamed over"})
    (folder / "4.json").write_text(TASK % (4, "by hand"))
    board.wait({"1": "echo", "2": "in place", "3": "renamed over", "4": "by hand"})
    (folder / "1.json").unlink()
    board.wait({"2": "in place", "3": "renamed over", "4": "by hand"})
    os.rename(folder / "4.json", folder / "4.json.bak")
    board.wait({"2": "in place", "3": "renamed over"})


def test_a_change_of_the_same_size_within_one_tick_is_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    client.request("task/create", {"listId": "x", "subject": "one"})
    board = watch(watcher)
    path = home / "tasks" / "x" / "1.json"
    for word in ("aaa", "bbb", "ccc", "ddd", "eee"):
        path.write_text(TASK % (1, word))
    board.wait({"1": "eee"})


def test_a_restored_backup_with_old_times_is_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    client.request("task/create", {"listId": "x", "subject": "old"})
    folder, backup = home / "tasks" / "x", home / "backup"
    shutil.copytree(folder, backup)
    os.utime(backup / "1.json", (1_000_000_000, 1_000_000_000))
    client.request("task/update", {"listId": "x", "id": "1", "subject": "new"})
    client.request("task/create", {"listId": "x", "subject": "second"})
    board = watch(watcher)
    for path in folder.iterdir():
        if path.suffix == ".json":
            path.unlink()
    shutil.copy2(backup / "1.json", folder / "1.json")
    board.wait({"1": "old"})


def test_a_folder_that_goes_and_comes_back_is_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    client.request("task/create", {"listId": "x", "subject": "one"})
    board = watch(watcher)
    for round in range(3):
        shutil.rmtree(home / "tasks" / "x")
        board.wait({})
        client.request("task/create", {"listId": "x", "subject": f"again {round}"})
        watcher.wait_until(partial(lambda subject: list(board.subjects().values()) == [subject], f"again {round}"))
        (home / "tasks" / "x" / "77.json").write_text(TASK % (77, "by hand"))
        watcher.wait_until(lambda: board.subjects().get("77") == "by hand")


def test_a_folder_put_in_place_by_a_rename_is_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    client.request("task/create", {"listId": "x", "subject": "one"})
    board = watch(watcher)
    os.rename(home / "tasks" / "x", home / "tasks" / "away")
    board.wait({})
    os.rename(home / "tasks" / "away", home / "tasks" / "x")
    board.wait({"1": "one"})
    shutil.rmtree(home)
    board.wait({})
    client.request("task/create", {"listId": "x", "subject": "new home"})
    watcher.wait_until(lambda: list(board.subjects().values()) == ["new home"])


def test_a_list_that_does_not_exist_yet_can_be_watched(client: RawClient, watcher: RawClient, home: Path) -> None:
    board = watch(watcher, "later")
    assert not home.exists()
    (home / "tasks" / "later").mkdir(parents=True)
    (home / "tasks" / "later" / "5.json").write_text(TASK % (5, "by hand"))
    board.wait({"5": "by hand"})
    client.request("task/create", {"listId": "later", "subject": "six"})
    board.wait({"5": "by hand", "6": "six"})


def test_a_half_written_file_is_neither_a_crash_nor_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    client.request("task/create", {"listId": "x", "subject": "one"})
    board = watch(watcher)
    path = home / "tasks" / "x" / "1.json"
    whole = TASK % (1, "slowly written")
    with path.open("w") as file:
        for at in range(0, len(whole), 9):
            file.write(whole[at : at + 9])
            file.flush()
            time.sleep(0.02)
    board.wait({"1": "slowly written"})
    told = [p for p in watcher.notifications("task/didChange") if p["listId"] == "x"]
    assert all(task["subject"] in ("one", "slowly written") for params in told for task in params["changed"])
    assert all(not params["removed"] for params in told)


def test_a_burst_is_merged_and_ends_in_the_right_state(client: RawClient, watcher: RawClient) -> None:
    board = watch(watcher)
    began = time.monotonic()
    ids = [client.start("task/create", {"listId": "x", "subject": f"{number}"}) for number in range(1000)]
    for id in ids:
        client.wait(id)
    seconds = time.monotonic() - began
    board.wait({str(n + 1): str(n) for n in range(1000)})
    assert board.told <= max(50, 50 * seconds), "on a machine that takes seconds for it, it is no burst"


def test_a_burst_of_ones_own_is_merged_too(client: RawClient) -> None:
    board = watch(client)
    ids = [client.start("task/create", {"listId": "x", "subject": f"{number}"}) for number in range(1000)]
    for id in ids:
        client.wait(id)
    board.wait({str(n + 1): str(n) for n in range(1000)})
    assert board.told <= 100


def test_a_burst_by_hand_that_overflows_the_systems_queue_ends_right(client: RawClient, watcher: RawClient, home: Path) -> None:
    """More events than the kernel keeps (16,384 by default), while the server is stopped and cannot take them."""
    import signal

    client.request("task/create", {"listId": "x", "subject": "one"})
    board = watch(watcher)
    folder = home / "tasks" / "x"
    limit = Path("/proc/sys/fs/inotify/max_queued_events")
    wanted = int(limit.read_text()) if limit.exists() else 16_384
    watcher.process.send_signal(signal.SIGSTOP)
    try:
        for round in range(wanted // 2 // 100 + 20):
            for number in range(100):
                (folder / f"{number + 1}.json").write_text(TASK % (number + 1, f"round {round}"))
    finally:
        watcher.process.send_signal(signal.SIGCONT)
    board.wait({str(n + 1): f"round {round}" for n in range(100)})


def test_rosters_are_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    watcher.request("subscribe", {"topics": ["roster"], "listIds": ["x"]})
    client.request("roster/setTeam", {"listId": "x", "team": "blue"})
    assert watcher.wait_notification("roster/didChange")["roster"] == {"team": "blue"}
    client.request("roster/upsertMember", {"listId": "x", "member": {"name": "ada", "agent_type": "coder", "extra": 1}})
    told = watcher.wait_notification("roster/didChange", lambda p: bool(p["roster"].get("members")))
    assert told["roster"]["members"] == [{"name": "ada", "agent_type": "coder", "extra": 1}]
    path = home / "tasks" / "x" / "team" / "roster.json"
    path.write_text('{"team": "by hand"}')
    watcher.wait_notification("roster/didChange", lambda p: p["roster"]["team"] == "by hand")
    client.request("roster/clear", {"listId": "x"})
    watcher.wait_notification("roster/didChange", lambda p: p["roster"] == {"team": ""})
    assert watcher.notifications("task/didChange") == []


@pytest.mark.parametrize("gone", ["tasks/x", "tasks", "."])
def test_what_moves_away_with_its_folders_is_told_to_who_never_named_it(client: RawClient, home: Path, tmp_path: Path, gone: str) -> None:
    client.request("task/create", {"listId": "x", "subject": "one"})
    client.request("roster/setTeam", {"listId": "x", "team": "blue"})
    with serving(home, {"cwd": str(tmp_path)}) as watcher:
        assert len(watcher.request("task/list", {"listId": "x"})["items"]) == 1
        wait_until_watching(watcher)
        os.rename(home / gone, tmp_path / "away")
        watcher.wait_notification("task/didChange", lambda p: p["listId"] == "x" and p["removed"] == ["1"])
        watcher.wait_notification("roster/didChange", lambda p: p["roster"] == {"team": ""})
        os.rename(tmp_path / "away", home / gone)
        watcher.wait_notification("task/didChange", lambda p: [task["subject"] for task in p["changed"]] == ["one"])
        watcher.wait_notification("roster/didChange", lambda p: p["roster"] == {"team": "blue"})


def wait_until_watching(client: RawClient) -> None:
    """Until a plan of its own is told of."""
    client.request("plan/save", {"name": "watching", "content": "c"})
    client.wait_notification("plan/didChange", lambda p: p["name"] == "watching")


@pytest.mark.parametrize("by", ["a server", "hand"])
def test_a_team_that_goes_is_told_also_where_nothing_was_told_of_it_before(client: RawClient, home: Path, tmp_path: Path, by: str) -> None:
    client.request("roster/setTeam", {"listId": "x", "team": "blue"})
    with serving(home, {"cwd": str(tmp_path)}) as watcher:
        wait_until_watching(watcher)
        if by == "hand":
            shutil.rmtree(home / "tasks" / "x" / "team")
        else:
            client.request("roster/clear", {"listId": "x"})
        watcher.wait_notification("roster/didChange", lambda p: p == {"listId": "x", "roster": {"team": ""}})


def about(list_id: str, params: dict[str, Any]) -> bool:
    return bool(params["listId"] == list_id and (params.get("changed") or params.get("roster") == {"team": "blue"}))


def test_what_happens_while_the_server_begins_to_watch_is_told(client: RawClient, home: Path, tmp_path: Path) -> None:
    for number in range(3):
        list_id = f"x{number}"
        with serving(home, {"cwd": str(tmp_path)}) as watcher:
            assert watcher.request("task/list", {"listId": list_id})["items"] == []
            client.request("task/create", {"listId": list_id, "subject": "s"})
            client.request("roster/setTeam", {"listId": list_id, "team": "blue"})
            watcher.wait_notification("task/didChange", partial(about, list_id))
            watcher.wait_notification("roster/didChange", partial(about, list_id))


@pytest.mark.parametrize("how", ["renamed over, same size", "in place, longer", "in place, same size"])
def test_a_session_that_was_replaced_before_anything_was_told_of_it_is_told_as_such(
    client: RawClient, home: Path, tmp_path: Path, how: str
) -> None:
    made = client.request("session/create")["session"]
    data = {"role": "user", "content": [{"type": "text", "text": "old"}]}
    client.request("session/append", {"sessionId": made["id"], "entries": [{"kind": "message", "data": data}] * 3})
    path = Path(made["path"])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with serving(home, {"cwd": str(tmp_path / "work")}) as watcher:
        wait_until_watching(watcher)
        content = path.read_bytes().replace(b"old", b"renewed" if "longer" in how else b"new")
        if how.startswith("renamed"):
            (tmp_path / "new").write_bytes(content)
            os.replace(tmp_path / "new", path)
        else:
            path.write_bytes(content)
        told = watcher.wait_notification("session/didChange", lambda p: p["session"]["firstMessage"] != "old")
        assert (told["change"], told["entries"]) == ("replaced", 3)


def test_plans_are_told(client: RawClient, watcher: RawClient, home: Path) -> None:
    watcher.request("subscribe", {"topics": ["plan"]})
    etag = client.request("plan/save", {"name": "p", "content": "one"})["etag"]
    assert watcher.wait_notification("plan/didChange") == {"name": "p", "change": "created", "etag": etag}
    (home / "plans" / "p.md").write_text("two")  # which empties the file first: that may be told, too
    after = client.request("plan/load", {"name": "p"})["etag"]
    assert after != etag
    watcher.wait_notification("plan/didChange", lambda p: p == {"name": "p", "change": "changed", "etag": after})
    (home / "plans" / "p.md").unlink()
    watcher.wait_notification("plan/didChange", lambda p: p == {"name": "p", "change": "deleted", "etag": ""})
    client.request("plan/save", {"name": "p", "content": "three"})
    watcher.wait_until(
        lambda: (
            list(dict.fromkeys(p["change"] for p in watcher.notifications("plan/didChange")[:-1])) == ["created", "changed", "deleted"]
            and watcher.notifications("plan/didChange")[-1]["change"] == "created"
        )
    )


def test_sessions_are_told(client: RawClient, home: Path, tmp_path: Path) -> None:
    work = str(tmp_path / "work")
    with serving(home, {"cwd": work}) as watcher:
        watcher.request("subscribe", {"topics": ["session"]})
        made = client.request("session/create", {"name": "mine"})
        session = made["session"]["id"]
        told = watcher.wait_notification("session/didChange", lambda p: p["change"] == "created")
        assert (told["session"]["id"], told["session"]["name"], told["leafId"]) == (session, "mine", made["leafId"])
        data = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
        leaf = client.request("session/append", {"sessionId": session, "entries": [{"kind": "message", "data": data}] * 3})["leafId"]
        watcher.wait_until(lambda: any(p["leafId"] == leaf for p in watcher.notifications("session/didChange")))
        appended = [p for p in watcher.notifications("session/didChange") if p["change"] == "appended"]
        assert sum(p["entries"] for p in appended) == 3
        assert appended[-1]["session"]["messageCount"] == 3
        assert appended[-1]["session"]["firstMessage"] == "hello"
        path = Path(made["session"]["path"])
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:2]))
        told = watcher.wait_notification("session/didChange", lambda p: p["change"] == "replaced")
        assert told["leafId"] == json.loads(lines[1])["id"]
        client.request("session/delete", {"sessionId": session})
        watcher.wait_notification("session/didChange", lambda p: p["change"] == "deleted" and p["session"]["id"] == session)


def test_without_subscribe_a_client_hears_of_its_own_project(home: Path, tmp_path: Path) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    with serving(home, {"cwd": here}) as watcher, serving(home, {"cwd": here}) as near, serving(home, {"cwd": there}) as far:
        watcher.ping()
        far_session = far.request("session/create", {"name": "far"})["session"]["id"]
        far.request("task/create", {"listId": far_session, "subject": "far"})
        near_session = near.request("session/create", {"name": "near"})["session"]["id"]
        near.request("task/create", {"listId": near_session, "subject": "near"})
        near.request("plan/save", {"name": "p", "content": "c"})
        watcher.wait_notification("session/didChange", lambda p: p["session"]["id"] == near_session)
        watcher.wait_notification("task/didChange", lambda p: p["listId"] == near_session)
        watcher.wait_notification("plan/didChange")
        assert all(p["session"]["id"] != far_session for p in watcher.notifications("session/didChange"))
        assert all(p["listId"] != far_session for p in watcher.notifications("task/didChange"))


def test_a_client_may_ask_for_silence(home: Path) -> None:
    with serving(home, {"subscribe": False}) as client:
        session = client.request("session/create")["session"]["id"]
        client.request("task/create", {"listId": session, "subject": "s"})
        time.sleep(0.3)
        client.ping()
        assert client.messages == []


def test_all_projects_can_be_asked_for(home: Path, tmp_path: Path) -> None:
    with serving(home, {"cwd": str(tmp_path / "a")}) as watcher, serving(home, {"cwd": str(tmp_path / "b")}) as other:
        watcher.request("subscribe", {"topics": ["session", "task"], "allProjects": True})
        session = other.request("session/create")["session"]["id"]
        other.request("task/create", {"listId": session, "subject": "s"})
        watcher.wait_notification("session/didChange", lambda p: p["session"]["id"] == session)
        watcher.wait_notification("task/didChange", lambda p: p["listId"] == session)


def test_one_session_can_be_asked_for(home: Path, tmp_path: Path) -> None:
    with serving(home, {"cwd": str(tmp_path / "a")}) as watcher, serving(home, {"cwd": str(tmp_path / "b")}) as other:
        one, two = (other.request("session/create")["session"]["id"] for _ in range(2))
        watcher.request("subscribe", {"topics": ["session"], "sessionIds": [one]})
        for session in (two, one):
            other.request("session/append", {"sessionId": session, "entries": [{"kind": "n"}]})
        watcher.wait_notification("session/didChange", lambda p: p["session"]["id"] == one and p["entries"] == 1)
        assert all(p["session"]["id"] != two for p in watcher.notifications("session/didChange"))


def test_after_unsubscribe_nothing_is_told(client: RawClient, watcher: RawClient) -> None:
    got = watcher.request("subscribe", {"topics": ["task"], "listIds": ["x"]})
    client.request("task/create", {"listId": "x", "subject": "one"})
    watcher.wait_notification("task/didChange")
    watcher.request("unsubscribe", {"subscriptionId": got["subscriptionId"]})
    before = len(watcher.messages)
    client.request("task/create", {"listId": "x", "subject": "two"})
    time.sleep(0.3)
    watcher.ping()
    assert len(watcher.messages) == before


def test_two_subscriptions_to_one_list_tell_once(client: RawClient, watcher: RawClient) -> None:
    board = watch(watcher)
    watcher.request("subscribe", {"topics": ["task"], "listIds": ["x", "y"]})
    client.request("task/create", {"listId": "x", "subject": "one"})
    board.wait({"1": "one"})
    time.sleep(0.2)
    board.update()
    assert board.told == 1


def test_many_lists_cost_no_threads_and_one_inotify_instance(home: Path) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the system does not tell of descriptors in /proc")
    for number in range(2000):
        folder = home / "tasks" / f"list{number}"
        folder.mkdir(parents=True)
        (folder / "1.json").write_text(TASK % (1, "s"))
    with serving(home) as watcher, serving(home) as client:
        watcher.request("subscribe", {"topics": ["task"], "listIds": [f"list{number}" for number in range(2000)]}, timeout=120)
        client.request("task/create", {"listId": "list1999", "subject": "told"})
        watcher.wait_notification("task/didChange", lambda p: p["listId"] == "list1999")
        process = Path(f"/proc/{watcher.process.pid}")
        links = [os.readlink(link) for link in (process / "fd").iterdir()]
        assert sum("inotify" in link for link in links) == 1
        assert len(list((process / "task").iterdir())) < 30
        assert len(links) < 500


def test_what_is_not_subscribed_to_is_not_watched(home: Path) -> None:
    """One watch set for what the client asked for, not for all of the home's history."""
    if not Path("/proc/self/fdinfo").is_dir():
        pytest.skip("the system does not tell of watches in /proc")
    for number in range(500):
        (home / "tasks" / f"list{number}" / "team" / "transcripts").mkdir(parents=True)
        (home / "projects" / f"-project-{number}").mkdir(parents=True)
    with serving(home) as watcher:
        watcher.request("subscribe", {"topics": ["task", "session", "plan", "roster"], "listIds": ["list1"]})
        watches = 0
        for info in Path(f"/proc/{watcher.process.pid}/fdinfo").iterdir():
            watches += info.read_text().count("inotify wd:")
        assert 0 < watches < 20
