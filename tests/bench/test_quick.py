"""The bench runs, every row of it: how fast is for a quiet machine to say, not for CI."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_every_row_is_measured(tmp_path: Path) -> None:
    report = tmp_path / "bench.json"
    command = [sys.executable, "-m", "tests.bench", "--quick", "--json", str(report)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
    assert len(rows) >= 45
    assert all(row["value"] >= 0 and row["name"] in done.stdout for row in rows)
    assert all(row["rivals"] or row["mark"] for row in rows)
