"""The commands that read, on the home that codebot left: whatever stands in its files is shown, or refused in a sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.commandline import Crewlog
from crewlog.cli.commands import run

PROJECTS = ("/workspace/demo-app", "/home/dev/x.y z", "/tmp/broken")
Told = tuple[int, bytes, str]


@pytest.fixture
def home(shared: Path, tmp_path: Path) -> Path:
    shutil.copytree(shared / "golden/codebot", tmp_path / "home")
    for folder, _, files in os.walk(tmp_path / "home"):
        Path(folder).chmod(0o700)
        for name in files:
            Path(folder, name).chmod(0o600)
    return tmp_path / "home"


@pytest.fixture
def tell(home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Told]:
    """Runs a command in this process: there are a thousand of them. (exit code, output, complaint)."""
    monkeypatch.setenv("CREWLOG_HOME", str(home))

    def tell(*arguments: str) -> Told:
        try:
            code = run(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        told = capfdbinary.readouterr()
        return code, told.out, told.err.decode()

    return tell


def commands(home: Path) -> Iterator[tuple[str, ...]]:
    for path in sorted(home.glob("projects/*/*.jsonl")):
        session = path.stem.rpartition("_")[2]
        yield from (("sessions", "show", session, *more) for more in ((), ("--limit", "50"), ("--branches",)))
        yield from (("sessions", "export", session, "--format", format) for format in ("markdown", "html", "json"))
        yield "sessions", "stats", session
    for folder in sorted((home / "tasks").iterdir()):
        chosen = ("--list", folder.name)
        yield from ((*words, *chosen) for words in (("tasks", "list"), ("tasks", "graph"), ("team", "show"), ("watch", "--once")))
        yield "tasks", "graph", "--mermaid", *chosen
        yield from (("tasks", "show", path.stem, *chosen) for path in sorted(folder.glob("*.json")))
        yield from (("transcript", "show", path.stem, *chosen) for path in sorted(folder.glob("team/transcripts/*.jsonl")))
    yield from (("plans", "show", path.stem) for path in sorted((home / "plans").glob("*.md")))
    for project in PROJECTS:
        for words in (
            ("history", "list"),
            ("history", "search", "e"),
            ("sessions", "list"),
            ("sessions", "search", "one"),
            ("sessions", "stats"),
        ):
            yield *words, "--project", project


def test_everything_is_shown_or_refused_in_a_sentence(home: Path, tell: Callable[..., Told]) -> None:
    shown = 0
    for command in commands(home):
        code, out, complaint = tell(*command)
        as_json_code, document, as_json_complaint = tell(*command, "--json")
        assert as_json_code == code, (command, complaint, as_json_complaint)
        if code == 0:
            shown += 1
            assert complaint == "", command
            assert b"\x1b" not in out or "export" in command, command
            is_json(document)
        else:
            assert code == 1, command
            kind = json.loads(as_json_complaint)["error"]["data"]["kind"]
            assert complaint.startswith(f"crewlog: {kind}: "), command
            assert kind in ("sessionCorrupt", "unsupportedVersion", "taskNotFound"), command
    assert shown > 600


def is_json(document: bytes) -> None:
    try:
        json.loads(document)
    except RecursionError:
        pass  # as codebot allows it


def test_lines_of_the_history_that_have_little_of_what_they_should(home: Path, tell: Callable[..., Told]) -> None:
    with (home / "history.jsonl").open("a") as file:
        file.write('\n{"display":"odd session","sessionId":null,"project":"/workspace/demo-app"}\n')
    _, out, _ = tell("history", "list", "--project", "/workspace/demo-app")
    lines = out.decode().splitlines()
    assert [line for line in lines if line.endswith("  null pasted")]
    assert [line for line in lines if line.endswith("  odd session")]


def test_tasks_of_odd_shapes_are_shown(crewlog: Crewlog) -> None:
    folder = crewlog.home / "tasks/odd"
    folder.mkdir(parents=True, mode=0o700)
    shapes = [
        '"claim":"mine"',
        '"owner":"ada","claim":{"owner":5,"lapsed":true}',
        '"metadata":{"big":123456789012345678901234567890,"half":"\\ud800"}',
        '"description":null,"activeForm":null',
    ]
    for number, shape in enumerate(shapes, 1):
        record = f'{{"id":"{number}","subject":"task {number}","status":"pending","blocks":[],"blockedBy":[],{shape}}}'
        (folder / f"{number}.json").write_text(record)
    lines = crewlog.out("tasks", "list", "--list", "odd").splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["1", "2", "3", "4"]
    items = crewlog.json("tasks", "list", "--list", "odd")["items"]
    assert [("claim" in item, item.get("owner", "")) for item in items] == [(False, ""), (False, "ada"), (False, ""), (False, "")]
    assert crewlog.refused("tasks", "claim", "2", "--owner", "grace", "--list", "odd") == "alreadyClaimed"
    for number in range(1, 5):
        assert f"#{number} task {number}" in crewlog.out("tasks", "show", str(number), "--list", "odd")
        assert f"task {number}" in crewlog.out("tasks", "graph", "--list", "odd")
    assert json.loads((folder / "1.json").read_text())["claim"] == "mine"
