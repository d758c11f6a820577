"""Every command that the documents show is run, in order, in a shell of its own; and what is derived from the commands is up to date."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commandline import Crewlog
from tests_support import ROOT

PAGES = [path for folder in (ROOT, ROOT / "docs", ROOT / "storage") for path in sorted(folder.glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The lines that begin with `$ ` in its console blocks."""
    lines = [line for block in BLOCK.findall(page.read_text("utf-8")) for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_work_in_order(page: Path, crewlog: Crewlog) -> None:
    script = "\n".join(f"echo '>>> {number}' >&2; {command}" for number, command in enumerate(commands(page)))
    environment = {name: value for name, value in crewlog.environment.items() if name != "CREWLOG_HOME"} | {"HOME": str(crewlog.cwd)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=crewlog.cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    numbers = re.findall(r"^>>> (\d+)$", done.stderr, re.MULTILINE)
    assert done.returncode == 0, (commands(page)[int(numbers[-1])], done.stdout[-500:], done.stderr[-1000:])
    assert len(numbers) == len(commands(page))


def test_every_command_that_a_page_names_exists() -> None:
    """Also in sentences and in blocks that are not run: `crewlog xyz` must be a command."""
    from crewlog.cli.reference import commands as known

    names = {name for name, _, _ in known()}
    for page in PAGES:
        if page.name == "cli.md":
            continue
        for named in re.findall(r"\bcrewlog((?: [a-z][a-z-]+){1,2})", "\n".join(re.findall(r"`[^`\n]+`", page.read_text("utf-8")))):
            words = named.split()
            group = f"crewlog {words[0]}"
            assert group in names, (page.name, named)
            if any(name.startswith(f"{group} ") for name in names) and len(words) > 1:
                assert f"{group} {words[1]}" in names, (page.name, named)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), (page.name, link)


def test_the_modules_that_a_page_names_are_there() -> None:
    sources = {path.name for folder in ("storage", "protocol", "server", "tests") for path in (ROOT / folder).rglob("*.py")}
    for page in PAGES:
        for named in re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")):
            assert (ROOT / named).exists() if "/" in named else named in sources, (page.name, named)


def test_what_the_pages_say_of_the_editors_is_there() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    manifest = json.loads((ROOT / "editors/vscode/package.json").read_text("utf-8"))
    for script in re.findall(r"^npm run (\w+)", readme, re.MULTILINE):
        assert script in manifest["scripts"]
    for setting in re.findall(r"`(crewlog\.server\.\w+)`", readme):
        assert setting in manifest["contributes"]["configuration"]["properties"]
    command = (ROOT / "editors/neovim/lua/crewlog/command.lua").read_text("utf-8")
    words = re.findall(r"`:Crewlog (\w+)`", readme)
    assert len(words) >= 4
    for word in words:
        assert f'define("{word}"' in command, word
    for path in re.findall(r"`(editors/[\w/.]+)`", readme):
        assert (ROOT / path).exists(), path


def test_the_reference_and_the_man_page_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crewlog.cli.reference", "--check"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout


def test_every_kind_of_refusal_is_told_of() -> None:
    from crewlog.cli.reference import KINDS

    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "server/crewlog/cli").glob("*.py"))
    assert set(re.findall(r'complain\(\s*"(\w+)"', source)) - {"leaseLost"} | {"connectionLost"} == {kind for kind, _ in KINDS}


def test_the_man_page_is_well_formed(crewlog: Crewlog) -> None:
    page = crewlog.out("man")
    assert page == (ROOT / "docs/crewlog.1").read_text("utf-8")
    assert page.startswith(".TH CREWLOG 1")
    assert all(f"crewlog {name}" in page.replace("\\-", "-") for name in ("tasks next", "doctor", "import codex", "sessions export"))


def test_the_conversation_on_the_protocol_page_is_what_a_server_says(crewlog: Crewlog) -> None:
    """Its lines are sent as they stand there, framed as the page tells; the replies that it shows whole are the replies."""
    lines = re.search(r"```text\n(→.*?)```", (ROOT / "docs/protocol.md").read_text("utf-8"), re.DOTALL)
    assert lines is not None
    shown = [line[2:] for line in lines[1].splitlines() if line[2:3] == "{" and line.startswith("→")]
    answers = [line[2:] for line in lines[1].splitlines() if line.startswith("←")]
    assert re.search(r"Content-Length: (\d+)", lines[1])[1] == str(len(shown[0]))  # type: ignore[index]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(line.encode()), line.encode()) for line in shown)
    sent = sent.replace(b'{"home":"/tmp/a-home"}', b"{}" + b" " * len('{"home":"/tmp/a-home"}'[2:]))
    done = subprocess.run(
        crewlog.command("serve"), input=sent, cwd=crewlog.cwd, env=crewlog.environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    bodies = [json.loads(body) for body in re.split(rb"(?:^|(?<=\}))Content-Length: \d+\r\n(?:[^\r\n]+\r\n)*\r\n", done.stdout) if body]
    replies = {body["id"]: body for body in bodies if "id" in body}
    assert len(replies) == len(answers)
    for answer in answers:
        if "…" not in answer:
            told = json.loads(answer)
            assert replies[told["id"]] == told
