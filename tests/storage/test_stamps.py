"""Files that are replaced are known by their stamps: two contents must never bear the same one."""

from __future__ import annotations

import os
from pathlib import Path

from crewlog.storage import PROCESS
from crewlog.storage.files import stage


def test_files_made_within_a_tick_of_the_clock_bear_times_of_their_own(tmp_path: Path) -> None:
    """The number of a file that was replaced is given to the next but one: only the time tells them apart then."""
    made = [stage(str(tmp_path / "x"), b"%03d" % number, PROCESS) for number in range(200)]
    times = [os.stat(path).st_mtime_ns for path in made]
    assert len(set(times)) == len(times)
    assert times == sorted(times)
