"""`crewlog.storage` gives every public name, and imports no more than what is asked for."""

from __future__ import annotations

import subprocess
import sys

import crewlog.storage


def test_every_public_name_is_there() -> None:
    assert sorted(crewlog.storage._MODULE_OF) == sorted(crewlog.storage.__all__)
    for name in crewlog.storage.__all__:
        assert getattr(crewlog.storage, name) is not None
        assert name in dir(crewlog.storage)
    assert not hasattr(crewlog.storage, "NoSuchName")


def test_the_errors_alone_bring_no_store() -> None:
    code = "import sys, crewlog.storage.errors; print(sorted(name for name in sys.modules if name.startswith('crewlog.storage.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['crewlog.storage.errors']"
