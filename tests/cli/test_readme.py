"""What the README shows works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests_support import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def blocks(mark: str) -> list[str]:
    return re.findall(rf"<!-- {re.escape(mark)} -->\n```python\n(.*?)```", README, re.DOTALL)


def run(code: str, folder: Path, *arguments: str) -> str:
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": scripts + os.pathsep + os.environ["PATH"], "CREWLOG_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_agent_in_python(tmp_path: Path) -> None:
    (code,) = blocks("run")
    assert run(code, tmp_path).splitlines() == ["1 Reproduce the failure", "2 Fix it", "1 message"]


def test_the_client_of_fifty_lines(tmp_path: Path) -> None:
    (code,) = blocks("run: fifty lines")
    assert len([line for line in code.splitlines() if line.strip()]) <= 50
    assert "crewlog." not in code
    first, second = run(code, tmp_path, "--durability", "process").splitlines()
    assert first.startswith("claimed 1 Write it down generation ")
    assert "'completed': 1" in second
    assert (tmp_path / "home/tasks/board/1.json").exists()


def test_every_file_that_the_documents_name_is_there() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "storage/README.md"):
        for link in re.findall(r"\]\((?!http)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / link).exists(), (document.name, link)


def test_the_commands_are_there() -> None:
    for script in ("demo", "test", "check", "install"):
        assert os.access(ROOT / "scripts" / script, os.X_OK)
    assert "scripts/test" in (ROOT / ".ci/run").read_text()
