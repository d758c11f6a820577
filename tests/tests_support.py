"""Helpers for tests that must know at collection time."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def shared_folder() -> Path | None:
    """The folder with `golden/` and `cases/`: `$CREWLOG_SHARED`, else `shared` beside the repository; None where there is none."""
    folder = Path(os.environ.get("CREWLOG_SHARED") or ROOT.parent / "shared")
    return folder if (folder / "golden").is_dir() else None
