"""What every test shares: the folder of golden data, and a home of its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it runs in the background, and so would our children


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with `golden/` and `cases/`: `$CREWLOG_SHARED`, else `shared` beside the repository."""
    folder = Path(os.environ.get("CREWLOG_SHARED") or ROOT.parent / "shared")
    if not (folder / "golden").is_dir():
        pytest.skip(f"no golden data in {folder}: set CREWLOG_SHARED to a folder that has it")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
