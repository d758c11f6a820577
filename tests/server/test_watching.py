"""What if the system cannot tell of changes?"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from server.rawclient import RawClient, serving

TASK = '{"id": "%s", "subject": "%s", "status": "pending", "blocks": [], "blockedBy": []}'
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

INJECT = """
import sys
from watchdog.observers import inotify_c
{damage}
import crewlog.server.__main__ as entry
sys.exit(entry.main([]))
"""
NO_INSTANCE = """
def refuse(*_):
    raise OSError(24, "inotify instance limit reached")
inotify_c.InotifyFD._create_inotify_fd = classmethod(refuse)
"""
NO_WATCHES = """
real, given = inotify_c.InotifyFD.add_callback, []
def scarce(self, path, *rest):
    given.append(path)
    if len(given) > 4:
        raise OSError(28, "inotify watch limit reached")
    return real(self, path, *rest)
inotify_c.InotifyFD.add_callback = scarce
"""


def hears_of_everything(client: RawClient, home: Path) -> None:
    """Whatever somebody does by hand is told within a second (and some patience for a slow machine)."""
    client.request("subscribe", {"topics": ["task", "roster"], "listIds": ["x"]})
    client.request("subscribe", {"topics": ["plan", "session"]})
    folder = home / "tasks" / "x"

    def heard(subject: str) -> None:
        began = time.monotonic()
        client.wait_notification("task/didChange", lambda p: any(task["subject"] == subject for task in p["changed"]))
        assert time.monotonic() - began < 5

    folder.mkdir(parents=True)
    (folder / "1.json").write_text(TASK % (1, "one"))
    heard("one")
    (folder / "1.json").write_text(TASK % (1, "two"))
    heard("two")
    (folder / "team").mkdir()
    (folder / "team" / "roster.json").write_text('{"team": "t"}')
    client.wait_notification("roster/didChange", lambda p: p["roster"]["team"] == "t")
    (home / "plans").mkdir()
    (home / "plans" / "p.md").write_text("plan")
    client.wait_notification("plan/didChange", lambda p: p["name"] == "p")
    shutil.rmtree(folder)
    client.wait_notification("task/didChange", lambda p: p["removed"] == ["1"])
    folder.mkdir()
    (folder / "2.json").write_text(TASK % (2, "three"))
    heard("three")


def watcher_of(client: RawClient) -> dict[str, str]:
    """The watcher, once the server has made up its mind."""
    client.wait_until(lambda: client.request("crewlog/status")["watcher"]["kind"] != "none")
    watcher: dict[str, str] = client.request("crewlog/status")["watcher"]
    return watcher


def warnings_of(client: RawClient) -> list[str]:
    return [params["message"] for params in client.notifications("window/logMessage")]


@LINUX
def test_the_systems_own_watcher_is_used_where_it_can_be(client: RawClient, home: Path) -> None:
    hears_of_everything(client, home)
    assert watcher_of(client)["kind"] == "inotify"
    assert warnings_of(client) == []


def test_looking_can_be_asked_for(home: Path) -> None:
    with serving(home, env={"CREWLOG_WATCHER": "polling"}) as client:
        hears_of_everything(client, home)
        assert watcher_of(client)["kind"] == "polling"


@LINUX
@pytest.mark.parametrize(("damage", "named"), [(NO_INSTANCE, "max_user_instances"), (NO_WATCHES, "max_user_watches")])
def test_without_inotify_the_server_looks_and_says_so_once(home: Path, tmp_path: Path, damage: str, named: str) -> None:
    script = tmp_path / "server.py"
    script.write_text(INJECT.format(damage=damage))
    with serving(home, command=[sys.executable, "-P", str(script)]) as client:
        hears_of_everything(client, home)
        watcher = watcher_of(client)
        assert watcher["kind"] == "polling"
        assert named in watcher["reason"]
        client.wait_notification("window/logMessage")
        time.sleep(0.5)
        assert len(warnings_of(client)) == 1
        assert named in warnings_of(client)[0]


@LINUX
def test_a_waiting_claim_is_woken_without_inotify(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(INJECT.format(damage=NO_INSTANCE))
    with serving(home, command=[sys.executable, "-P", str(script)]) as client, serving(home) as other:
        waiting = client.start("task/claimNext", {"listId": "x", "owner": "a", "waitMs": 60_000})
        watcher_of(client)
        other.request("task/create", {"listId": "x", "subject": "s"})
        assert client.wait(waiting)["subject"] == "s"


@LINUX
def test_a_network_file_system_is_known_by_its_mount() -> None:
    from crewlog.server.watching import _file_system

    assert _file_system("/proc/self") == "proc"
    assert _file_system("/no/such/folder/anywhere") == _file_system("/")


def test_a_list_that_has_two_names_is_told_of_under_both(client: RawClient, home: Path) -> None:
    """The system has one watch for a folder, whatever names lead to it."""
    client.request("task/create", {"listId": "real", "subject": "s"})
    (home / "tasks" / "alias").symlink_to("real")
    for name in ("real", "alias"):
        client.request("task/list", {"listId": name})
    client.request("subscribe", {"topics": ["task"], "listIds": ["real", "alias"]})
    path = home / "tasks" / "real" / "1.json"

    def told(name: str, subject: str) -> None:
        client.wait_notification(
            "task/didChange", lambda params: params["listId"] == name and any(task["subject"] == subject for task in params["changed"])
        )

    path.write_text(path.read_text().replace('"s"', '"by hand"'))
    told("alias", "by hand")
    told("real", "by hand")
    (home / "tasks" / "alias").unlink()
    path.write_text(path.read_text().replace('"by hand"', '"again"'))
    told("real", "again")
