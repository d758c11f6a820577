"""The command `crewlog`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

HEAVY = ("pygls", "lsprotocol", "watchdog", "cattrs", "sqlite3")


def crewlog(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-I", "-m", "crewlog.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_version() -> None:
    assert crewlog("--version").stdout.strip() == f"crewlog {metadata.version('crewlog')}"


def test_help_names_the_commands_and_the_exit_codes() -> None:
    told = crewlog("--help").stdout
    for word in ("serve", "schema", "demo", "Exit codes"):
        assert word in told
    assert "--durability" in crewlog("serve", "--help").stdout


def test_schema_is_the_openrpc_document() -> None:
    document = json.loads(crewlog("schema").stdout)
    assert document["openrpc"].startswith("1.")
    assert {method["name"] for method in document["methods"]} >= {"session/append", "task/claimNext"}


@pytest.mark.parametrize("arguments", [["nope"], ["serve", "--durability", "maybe"], ["schema", "--nope"], ["demo", "extra"]])
def test_what_is_not_understood_exits_with_2(arguments: list[str]) -> None:
    done = crewlog(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Usage" in done.stderr or "usage" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["schema"]])
def test_simple_commands_import_nothing_heavy(arguments: list[str]) -> None:
    look = f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    code = f"import sys; from crewlog.cli.commands import run; run({arguments!r}); {look}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.strip() == "[]"


def test_a_folder_that_looks_like_ours_is_not_imported(tmp_path: Path) -> None:
    for name in ("crewlog", "msgspec"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported from the workspace')")
    if sys.version_info >= (3, 11):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "crewlog.server", "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_demonstration(tmp_path: Path) -> None:
    done = crewlog("demo", "--fast", "--home", str(tmp_path / "home"), env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr + done.stdout
    told = done.stdout
    for number in range(1, 8):
        assert told.count(f"takes #{number} ") == 1
        assert told.count(f"completes #{number}\n") == 1
    assert "watcher  is told: " in told
    assert "7/7 done" in told
    assert "\x1b[" not in told
    tasks = sorted((tmp_path / "home/tasks").glob("*/*.json"))
    assert [json.loads(path.read_text())["status"] for path in tasks] == ["completed"] * 7
    assert str(tmp_path / "home") in told


def test_home_may_stand_before_the_command(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CREWLOG_")}
    home = tmp_path / "home"
    assert crewlog("--home", str(home), "tasks", "add", "x", "--list", "l", env=environment).returncode == 0
    assert (home / "tasks/l/1.json").exists()
    told = crewlog("tasks", "list", "--list", "l", "--home", str(home), "--json", env=environment)
    assert json.loads(told.stdout)["counts"]["total"] == 1
    overridden = crewlog("tasks", "list", "--list", "l", "--home", str(home), env={**environment, "CREWLOG_HOME": str(tmp_path / "other")})
    assert "overrides --home" in overridden.stderr
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}})
    served = crewlog("--home", str(home), "serve", env=environment, input=f"Content-Length: {len(body)}\r\n\r\n{body}")
    assert str(home) in served.stdout


def test_no_colour_without_a_terminal_or_with_no_color(tmp_path: Path) -> None:
    import pty

    environment = {**os.environ, "CREWLOG_HOME": str(tmp_path / "home"), "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    crewlog("tasks", "add", "x", "--list", "l", env=environment)

    def seen(**more: str) -> bytes:
        reader, writer = pty.openpty()
        command = [sys.executable, "-m", "crewlog.cli", "tasks", "list", "--list", "l"]
        subprocess.run(command, env={**environment, **more}, stdout=writer, stdin=subprocess.DEVNULL, timeout=60, check=True)
        os.close(writer)
        return os.read(reader, 65536)

    assert b"\x1b[" in seen()
    assert b"\x1b[" not in seen(NO_COLOR="1")
    assert "\x1b[" not in crewlog("tasks", "list", "--list", "l", env=environment).stdout
