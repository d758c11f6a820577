"""A server of its own for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.rawclient import RawClient, serving


@pytest.fixture
def client(home: Path, tmp_path: Path) -> Iterator[RawClient]:
    """A client of a server on a fresh home, working in a fresh folder."""
    work = tmp_path / "work"
    work.mkdir()
    with serving(home, {"cwd": str(work)}) as client:
        yield client
