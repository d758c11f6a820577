"""Doctor under damage that nobody thought of: whatever was done to a home, --fix loses no byte, leaves nothing that it could mend, and
every store opens but those that it names.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crewlog.storage import (
    PROCESS,
    History,
    Home,
    NewEntry,
    PlanStore,
    RosterStore,
    SessionManager,
    StorageError,
    TaskStore,
    TaskUpdate,
    TranscriptStore,
)
from crewlog.storage.doctor import examine, mend

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"%d"}],"timestamp":"2026-03-01T09:30:00Z"}'
PIECES = (
    b"\n",
    b"\r\n",
    b"\xff\xfe",
    b"null\n",
    b"{}\n",
    b"[]\n",
    b'"x"\n',
    bytes(9),
    b'{"kind":"message","id":"h0"}\n',
    b"[" * 3000 + b"\n",
    b"half",
)


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with something of everything in it."""
    path = tmp_path_factory.mktemp("seed") / "home"
    home = Home(str(path))
    for count in (0, 3, 20):
        store = SessionManager(home.sessions("/p"), durability=PROCESS).create("/p")
        store.append([NewEntry("message", MESSAGE % number) for number in range(count)])
        store.close()
    tasks = TaskStore(durability=PROCESS)
    tasks.set_dir(home.task_list("work"))
    for subject in ("a", "b", "c"):
        tasks.create(subject)
    tasks.update("3", TaskUpdate(add_blocked_by=["1", "2"]))
    tasks.close()
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(home.team("work"))
    roster.set_team("crew")
    transcripts = TranscriptStore(home.transcripts("work"))
    transcripts.append("ada", [MESSAGE % 1, MESSAGE % 2])
    transcripts.close()
    PlanStore(home.plans).save("plan", "# Plan\n")
    history = History(home.history, "/p")
    history.add("typed")
    return path


def _lines(change: Callable[[list[bytes], int], object]) -> Callable[[Path, bytes, int, int], None]:
    def damage(path: Path, content: bytes, at: int, choice: int) -> None:
        lines = content.splitlines(keepends=True)
        if lines:
            change(lines, at % len(lines))
        path.write_bytes(b"".join(lines))

    return damage


def _beside(path: Path, name: str, content: bytes) -> None:
    other = path.parent / name
    if not other.is_dir():
        other.write_bytes(content)


def _link(path: Path, content: bytes, at: int, choice: int) -> None:
    link = path.with_name(f"2026-01-01_{at % 10**8:08}{path.suffix}")
    if not os.path.lexists(link):
        link.symlink_to((path, Path("/etc/passwd"), Path("nowhere"))[choice % 3])


DAMAGE: dict[str, Callable[[Path, bytes, int, int], object]] = {
    "flip": lambda path, content, at, choice: path.write_bytes(content[:at] + bytes([choice]) + content[at + 1 :]),
    "cut": lambda path, content, at, choice: path.write_bytes(content[:at]),
    "insert": lambda path, content, at, choice: path.write_bytes(content[:at] + PIECES[choice % len(PIECES)] + content[at:]),
    "twice": lambda path, content, at, choice: path.write_bytes(content + content),
    "glued": lambda path, content, at, choice: path.write_bytes(content.rstrip(b"\n") + content),
    "zeros": lambda path, content, at, choice: path.write_bytes(bytes(len(content))),
    "line twice": _lines(lambda lines, at: lines.append(lines[at])),
    "line gone": _lines(lambda lines, at: lines.pop(at)),
    "turned": _lines(lambda lines, at: lines.reverse()),
    "gone": lambda path, content, at, choice: path.unlink(),
    "mode": lambda path, content, at, choice: path.chmod((0o644, 0o777, 0o400)[choice % 3]),
    "link": _link,
    "copy": lambda path, content, at, choice: _beside(path, f"{choice % 12}{path.suffix}", content),
    "foreign": lambda path, content, at, choice: _beside(path, ("notes.txt", ".1.json.swp", "x.jsonl", "007.json")[choice % 4], b"hello"),
}

deeds = st.lists(
    st.tuples(st.sampled_from(sorted(DAMAGE)), st.integers(0, 30), st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=deeds)
def test_whatever_was_done_to_a_home_nothing_is_lost_and_all_opens(seed: Path, deeds: list[tuple[str, int, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "home")
        shutil.copytree(seed, place, symlinks=True)
        for name, which, at, choice in deeds:
            files = sorted(path for path in place.rglob("*") if path.is_file() and not path.is_symlink() and ".crewlog" not in path.parts)
            path = files[which % len(files)]
            content = path.read_bytes()
            DAMAGE[name](path, content, at % (len(content) + 1), choice)
        _check(place)


def _check(place: Path) -> None:
    before = _contents(place)
    home = Home(str(place))
    report = mend(home, examine(home), PROCESS)
    assert [finding for finding in report.findings if finding.mendable and not finding.mended] == []
    after = set(_contents(place).values())
    assert [path for path, content in before.items() if content not in after] == []
    second = examine(home)
    assert [finding for finding in second.findings if finding.mendable] == []
    named = {os.path.realpath(finding.path) for finding in second.findings if finding.severity != "note"}
    assert [problem for path, problem in _unusable(home) if os.path.realpath(path) not in named] == []
    assert _contents(place).keys() >= before.keys() - {finding.path for finding in report.findings if finding.mended}


def _contents(place: Path) -> dict[str, bytes]:
    files = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink() and ".crewlog" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


def _unusable(home: Home) -> list[tuple[str, str]]:
    """(path, why) of all that a store of the library cannot open, read and write."""
    found: list[tuple[str, str]] = []
    manager = SessionManager(home.sessions("/p"), durability=PROCESS, root=home.path)
    listed = manager.list()
    found += [(skipped.path, skipped.reason) for skipped in listed.skipped]
    for info in listed.sessions:
        try:
            session = manager.open_path(info.path)
            session.snapshot()
            session.append([NewEntry("message", MESSAGE % 7)])
            session.close()
        except StorageError as error:
            found.append((info.path, str(error)))
    tasks = TaskStore(durability=PROCESS, root=home.path)
    tasks.set_dir(home.task_list("work"))
    tasks.list()
    tasks.create("after")
    tasks.close()
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(home.team("work"))
    roster.set_team("after")
    transcripts = TranscriptStore(home.transcripts("work"), root=home.path)
    for path in Path(home.transcripts("work")).glob("*.jsonl"):
        try:
            transcripts.load(path.stem)
        except StorageError as error:
            found.append((str(path), str(error)))
    transcripts.close()
    return found
