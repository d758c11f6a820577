"""`pip install .` in an empty environment is enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests_support import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a new environment with Crewlog, and nothing that its tests need."""
    place = tmp_path_factory.mktemp("install")
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True, timeout=120)
    scripts = place / "venv/bin"
    done = subprocess.run(
        [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode and any(
        sign in done.stderr for sign in ("Temporary failure", "ConnectionError", "No matching distribution", "timed out")
    ):
        pytest.skip("no package index can be reached to install what Crewlog depends on")
    assert done.returncode == 0, done.stderr
    return scripts


def test_the_demonstration_runs_there(installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["crewlog", "demo", "--fast"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "7/7 done" in done.stdout


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_finds_the_manual(installed: Path) -> None:
    """man looks beside each folder of PATH."""
    environment = {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["man", "-P", "cat", "crewlog"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "crewlog tasks next" in done.stdout


def test_nothing_is_put_into_other_people_s_namespaces(installed: Path) -> None:
    listed = subprocess.run(
        [str(installed / "python"), "-m", "pip", "show", "--files", "crewlog"], capture_output=True, text=True, timeout=60, check=True
    )
    files = [line.strip() for line in listed.stdout.partition("Files:")[2].splitlines() if line.strip()]
    assert files
    assert {name.split("/")[0] for name in files} <= {"crewlog", "..", f"crewlog-{_version(listed.stdout)}.dist-info"}
    assert "crewlog/storage/py.typed" in files
    assert not any("test" in name for name in files if not name.endswith(".pyc"))  # those may be kept in any place


def _version(shown: str) -> str:
    return next(line.partition(": ")[2] for line in shown.splitlines() if line.startswith("Version: "))
