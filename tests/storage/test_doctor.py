"""Doctor: finds what was done to a home, and mends it without losing a byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crewlog.storage import PROCESS, Home, NewEntry, RosterStore, SessionManager, StorageFailed, TaskStore, TaskUpdate, TranscriptStore
from crewlog.storage.doctor import Finding, Report, examine, mend
from crewlog.storage.views import entry_page

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"%d"}],"timestamp":"2026-03-01T09:30:00Z"}'


def session(home: Path, count: int = 6) -> Path:
    """A session log with so many messages."""
    store = SessionManager(Home(str(home)).sessions("/p"), durability=PROCESS).create("/p")
    store.append([NewEntry("message", MESSAGE % number) for number in range(count)])
    store.close()
    return Path(store.path)


def board(home: Path) -> TaskStore:
    store = TaskStore(durability=PROCESS)
    store.set_dir(Home(str(home)).task_list("work"))
    return store


def examined(home: Path) -> Report:
    return examine(Home(str(home)))


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def mended(home: Path) -> Report:
    """After mending; every original that was rewritten must be in the trash, byte for byte."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    report = mend(Home(str(home)), examined(home), PROCESS)
    for finding in report.findings:
        if finding.kept:
            assert Path(finding.kept).read_bytes() == before[Path(finding.path)]
    for path, content in before.items():
        if path.name.endswith((".jsonl", ".json")) and (not path.exists() or path.read_bytes() != content):
            assert any(Path(finding.path) == path and finding.kept for finding in report.findings) or path.suffix == ".json"
    return report


def texts(log: Path) -> list[str]:
    """What is said on the chain from the header to the leaf."""
    store = SessionManager(str(log.parent)).open_path(str(log))
    page = entry_page(store, limit=10_000)
    assert page.broken is None
    store.close()
    return [json.loads(entry)["data"]["content"][0]["text"] for entry in page.entries if json.loads(entry)["kind"] == "message"]


def only(report: Report, kind: str) -> Finding:
    (found,) = [finding for finding in report.findings if finding.kind == kind]
    return found


def test_a_good_home_has_nothing_wrong_and_is_not_touched(home: Path) -> None:
    session(home)
    store = board(home)
    store.create("one")
    store.create("two", blocked_by=["1"])
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    report = examined(home)
    assert report.findings == []
    assert report.usage["sessions"].files == 1
    assert report.usage["tasks"].bytes > 0
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_a_bad_line_in_the_middle_is_named_and_kept_beside(home: Path) -> None:
    log = session(home)
    lines = log.read_bytes().split(b"\n")
    bad = b'{"kind":"message","id":"aa'
    lines[3] = bad
    log.write_bytes(b"\n".join(lines))
    found = only(examined(home), "unreadableLine")
    assert (found.line, found.byte) == (4, len(b"\n".join(lines[:3])) + 1)
    done = only(mended(home), "unreadableLine")
    assert "1 unreadable lines" in done.mended
    assert texts(log) == ["0", "1", "3", "4", "5"]
    assert Path(f"{log}.unreadable").read_bytes() == bad + b"\n"
    assert examined(home).findings == []


def test_a_record_glued_to_the_half_of_another_is_saved(home: Path) -> None:
    log = session(home)
    lines = log.read_bytes().split(b"\n")
    lines[3:5] = [lines[3][:25] + lines[4]]
    log.write_bytes(b"\n".join(lines))
    mended(home)
    assert texts(log) == ["0", "1", "3", "4", "5"]


def test_a_record_behind_the_nul_bytes_of_a_power_cut_is_saved(home: Path) -> None:
    log = session(home)
    lines = log.read_bytes().split(b"\n")
    lines[4] = b"\0" * 4096 + lines[4]
    log.write_bytes(b"\n".join(lines))
    mended(home)
    assert texts(log) == ["0", "1", "2", "3", "4", "5"]


def test_a_torn_tail_is_cut_and_kept(home: Path) -> None:
    log = session(home)
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"kind":"mess' + b"\0" * 100)
    assert only(examined(home), "tornTail").severity == "warning"
    mended(home)
    assert log.read_bytes() == whole
    assert Path(f"{log}.unreadable").read_bytes() == b'{"kind":"mess' + b"\0" * 100 + b"\n"


def test_an_entry_whose_parent_is_missing_follows_what_stands_before_it(home: Path) -> None:
    log = session(home, 500)
    lines = log.read_bytes().split(b"\n")
    del lines[250]
    log.write_bytes(b"\n".join(lines))
    assert only(examined(home), "brokenChain").line == 251
    mended(home)
    assert texts(log) == [str(number) for number in range(500) if number != 249]


def test_two_entries_of_one_id_are_told_apart(home: Path) -> None:
    log = session(home, 4)
    lines = log.read_bytes().split(b"\n")
    second, fourth = json.loads(lines[2]), json.loads(lines[4])
    lines[4] = lines[4].replace(fourth["id"].encode(), second["id"].encode())
    log.write_bytes(b"\n".join(lines))
    assert "duplicateId" in kinds(examined(home))
    mended(home)
    assert texts(log) == ["0", "1", "2", "3"]
    assert examined(home).findings == []


def test_a_circle_is_opened(home: Path) -> None:
    log = session(home, 4)
    lines = log.read_bytes().split(b"\n")
    first, third = json.loads(lines[1]), json.loads(lines[3])
    lines[1] = lines[1].replace(b'"parent_id":"h0"', b'"parent_id":"%b"' % third["id"].encode())
    log.write_bytes(b"\n".join(lines))
    assert first["parent_id"] == "h0"
    assert only(examined(home), "cycle").line == 2
    mended(home)
    assert texts(log) == ["0", "1", "2", "3"]


def test_a_lost_header_is_made_anew(home: Path) -> None:
    log = session(home)
    other = session(home)
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join(lines[1:]))
    mended(home)
    assert texts(log) == ["0", "1", "2", "3", "4", "5"]
    store = SessionManager(str(log.parent)).open_path(str(log))
    assert store.header.cwd == "/p"
    assert log.name.endswith(f"_{store.session_id}.jsonl")
    assert texts(other) == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize("content", [b"", b"hello, I am notes\nof two lines\n", b'{"my":"notes"}\n{"id":"x"}\n', b"torn"])
def test_what_is_no_session_is_left_alone(home: Path, content: bytes) -> None:
    log = session(home).with_name("2026-03-01_0badc0de.jsonl")
    log.write_bytes(content)
    log.chmod(0o600)
    report = mended(home)
    assert not any(finding.mended for finding in report.findings)
    assert "noHeader" in kinds(report)
    assert log.read_bytes() == content


def test_another_version_is_left_alone(home: Path) -> None:
    log = session(home)
    log.write_bytes(log.read_bytes().replace(b'"version":3', b'"version":4') + b"{torn")
    content = log.read_bytes()
    assert "unsupportedVersion" in kinds(mended(home))
    assert log.read_bytes() == content


def test_what_stays_stays_to_the_byte(home: Path) -> None:
    log = session(home)
    odd = (
        rb'{"kind":"message","id":"0dd","parent_id":"h0","timestamp":"2026-03-01T09:30:00.123456789+08:00",'
        rb'"data":{"role":"user","n":1E400,"s":"\ud800\u2028"},"new":1}'
    )
    log.write_bytes(log.read_bytes() + odd + b"\nbad\n" + odd.replace(b"0dd", b"0ee").replace(b'"h0"', b'"gone"') + b"\n")
    mended(home)
    lines = log.read_bytes().split(b"\n")
    assert odd in lines
    assert any(b'"data":{"role":"user","n":1E400,"s":"\\ud800\\u2028"},"new":1}' in line and b"0ee" in line for line in lines)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["cut", "drop", "copy", "swap", "noise", "glue"]), st.integers(0, 11), st.integers(0, 11)), max_size=6
    )
)
def test_whatever_was_done_to_the_lines_the_rest_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[str, int, int]]
) -> None:
    """Property: after mending the log opens, its chain is whole, nothing more is found, and every undamaged message is in it."""
    home = tmp_path_factory.mktemp("doctor") / "home"
    log = session(home, 10)
    lines = log.read_bytes().split(b"\n")[:-1]
    whole = set(lines[1:])
    for what, at, other in damage:
        at, other = at % len(lines), other % len(lines)
        if what == "cut":
            lines[at] = lines[at][: len(lines[at]) // 2]
        elif what == "drop" and len(lines) > 2:
            del lines[at]
        elif what == "copy":
            lines.insert(other, lines[at])
        elif what == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif what == "noise":
            lines.insert(at, b"\0\xff noise")
        elif what == "glue" and at + 1 < len(lines):
            lines[at : at + 2] = [lines[at][:20] + lines[at + 1]]
    log.write_bytes(b"\n".join(lines) + b"\n")
    intact = [line for line in lines if line in whole]
    report = examined(home)
    if any(finding.kind == "noHeader" and not finding.mendable for finding in report.findings):
        return
    mended(home)
    left = [finding for finding in examined(home).findings if finding.severity != "note"]
    assert left == []
    store = SessionManager(str(log.parent)).open_path(str(log))
    page = entry_page(store, limit=10_000)
    assert page.broken is None
    content = log.read_bytes()
    for line in intact:
        assert line[line.index(b'"timestamp"') :] in content
    store.close()


def test_a_transcript_with_a_bad_line_becomes_readable(home: Path) -> None:
    place = Home(str(home)).transcripts("work")
    store = TranscriptStore(place, durability=PROCESS)
    store.append("ada", [MESSAGE % number for number in range(3)])
    log = Path(place, "ada.jsonl")
    lines = log.read_bytes().split(b"\n")
    lines[1] = b"[1]"
    log.write_bytes(b"\n".join(lines))
    assert only(examined(home), "unreadableLine").line == 2
    mended(home)
    assert len(TranscriptStore(place).load("ada")) == 2
    assert Path(f"{log}.unreadable").read_bytes() == b"[1]\n"


def test_a_line_of_the_history_that_nobody_can_read_is_told_and_left(home: Path) -> None:
    home.mkdir(mode=0o700)
    history = home / "history.jsonl"
    history.write_bytes(b'{"display":"x","project":"/p"}\nbad\n')
    history.chmod(0o600)
    found = only(mended(home), "unreadableLine")
    assert (found.line, found.mendable, found.severity) == (2, False, "warning")
    assert history.read_bytes().endswith(b"bad\n")


def rewrite(home: Path, id: str, **fields: object) -> None:
    path = home / f"tasks/work/{id}.json"
    record = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps(record, indent=2))
    path.chmod(0o600)


def test_dependencies_are_entered_on_both_sides_and_dangling_ones_taken_out(home: Path) -> None:
    store = board(home)
    for subject in ("a", "b", "c"):
        store.create(subject)
    rewrite(home, "1", blocks=["2"], unknown={"kept": 1})
    rewrite(home, "3", blockedBy=["2", "77"])
    assert sorted(kinds(examined(home))) == ["danglingId", "oneSidedDependency", "oneSidedDependency"]
    mended(home)
    assert examined(home).findings == []
    again = board(home)
    two = again.get("2")
    assert two is not None
    assert (two.blocked_by, two.blocks) == (["1"], ["3"])
    assert json.loads((home / "tasks/work/1.json").read_text())["unknown"] == {"kept": 1}


def test_a_circle_of_tasks_is_told_and_left_to_people(home: Path) -> None:
    store = board(home)
    for subject in ("a", "b", "c"):
        store.create(subject)
    rewrite(home, "1", blockedBy=["3"], blocks=["2"])
    rewrite(home, "2", blockedBy=["1"], blocks=["3"])
    rewrite(home, "3", blockedBy=["2"], blocks=["1"])
    found = only(mended(home), "dependencyCycle")
    assert "--unblock-by" in found.reason
    assert not found.mended
    assert kinds(examined(home)) == ["dependencyCycle"]


def test_a_circle_across_one_sided_dependencies_is_seen(home: Path) -> None:
    store = board(home)
    store.create("a")
    store.create("b")
    rewrite(home, "1", blockedBy=["2"])
    rewrite(home, "2", blockedBy=["1"])
    assert "dependencyCycle" in kinds(examined(home))


def test_a_mark_below_a_file_is_raised(home: Path) -> None:
    store = board(home)
    for subject in ("a", "b", "c"):
        store.create(subject)
    mark = home / "tasks/work/.highwatermark"
    mark.write_text("1")
    assert kinds(examined(home)) == ["lowHighWaterMark"]
    mended(home)
    assert mark.read_text().strip() == "3"


def test_lapsed_leases_are_told_and_given_back(home: Path) -> None:
    store = board(home)
    store.create("a")
    store.claim("1", "dead", lease_ms=1)
    time.sleep(0.01)
    found = only(examined(home), "lapsedLease")
    assert found.severity == "note"
    assert "dead" in found.reason
    mended(home)
    assert "owner" not in json.loads((home / "tasks/work/1.json").read_text())
    assert examined(home).findings == []


def test_two_logs_of_one_id_are_told(home: Path) -> None:
    log = session(home, 2)
    twin = log.with_name("1999-01-01_" + log.name.rpartition("_")[2])
    twin.write_bytes(log.read_bytes())
    twin.chmod(0o600)
    found = only(examined(home), "duplicateSession")
    assert {found.path, str(home / found.reason.split()[0])} == {str(log), str(twin)}
    assert (found.severity, found.mendable) == ("warning", False)


def test_who_did_a_task_is_no_lapsed_lease(home: Path) -> None:
    store = board(home)
    store.create("a")
    store.claim("1", "ada", lease_ms=1)
    store.update("1", TaskUpdate(status="completed"))
    time.sleep(0.01)
    mended(home)
    assert examined(home).findings == []
    assert json.loads((home / "tasks/work/1.json").read_text())["owner"] == "ada"


def test_task_files_that_are_none(home: Path) -> None:
    store = board(home)
    store.create("a")
    folder = home / "tasks/work"
    for name, content in (
        ("2.json", "{"),
        ("007.json", '{"id":"007"}'),
        ("5.json", '{"id":"6","status":"pending"}'),
        ("1 (copy).json", '{"id":"1"}'),
    ):
        (folder / name).write_text(content)
        (folder / name).chmod(0o600)
    rewrite(home, "1", status="paused")
    found = {(Path(finding.path).name, finding.kind) for finding in examined(home).findings}
    assert found >= {
        ("2.json", "unreadableTask"),
        ("007.json", "misnamedTask"),
        ("5.json", "misnamedTask"),
        ("1 (copy).json", "strayFile"),
        ("1.json", "badStatus"),
    }


def test_a_roster_that_is_none(home: Path) -> None:
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(Home(str(home)).team("work"))
    roster.set_team("x")
    path = Path(Home(str(home)).team("work"), "roster.json")
    path.write_text("[]")
    assert "unreadableRoster" in kinds(examined(home))
    mended(home)
    assert examined(home).findings == []
    assert Path(f"{path}.unreadable").read_text() == "[]\n"
    again = RosterStore(durability=PROCESS)
    again.set_dir(str(path.parent))
    again.set_team("y")


def test_what_waits_for_a_task_that_cannot_be_read_goes_on_waiting(home: Path) -> None:
    """Its file may be mended by hand: to take its number out of the others would set them free for ever."""
    store = board(home)
    store.create("a")
    store.create("b")
    rewrite(home, "1", blocks=["2"])
    rewrite(home, "2", blockedBy=["1", "99"])
    good = (home / "tasks/work/1.json").read_bytes()
    (home / "tasks/work/1.json").write_bytes(bytes(50))
    assert sorted(kinds(examined(home))) == ["danglingId", "unreadableTask"]
    assert "99" in only(examined(home), "danglingId").reason
    mended(home)
    assert kinds(examined(home)) == ["unreadableTask"]
    (home / "tasks/work/1.json").write_bytes(good)
    assert examined(home).findings == []
    two = board(home).get("2")
    assert two is not None
    assert two.blocked_by == ["1"]


def test_a_finding_names_the_file_that_a_task_is_in(home: Path) -> None:
    board(home).create("a")
    (home / "tasks/work/9.json").write_text("{}")
    assert only(examined(home), "badStatus").path == str(home / "tasks/work/9.json")


def test_links_to_nowhere_and_folders_in_the_place_of_files_are_told(home: Path) -> None:
    log = session(home)
    (log.parent / "2026-01-01_11111111.jsonl").symlink_to(home / "gone")
    (log.parent / "2026-01-01_22222222.jsonl").mkdir(mode=0o700)
    assert sorted(kinds(examined(home))) == ["brokenLink", "notAFile"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_what_others_can_read_is_made_private(home: Path) -> None:
    log = session(home)
    log.chmod(0o644)
    log.parent.chmod(0o755)
    assert kinds(examined(home)) == ["readableByOthers", "readableByOthers"]
    mended(home)
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_what_a_crash_left_is_moved_to_the_trash_and_what_is_in_use_is_not(home: Path) -> None:
    log = session(home)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    stale = log.parent / f".x.json.{ended.pid}-1-abcd.tmp"
    busy = log.parent / f".x.json.{os.getpid()}-1-abcd.tmp"
    for path in (stale, busy):
        path.write_bytes(b"half")
        path.chmod(0o600)
        os.utime(path, (time.time() - 60, time.time() - 60))
    found = only(examined(home), "staleTemporary")
    assert found.path == str(stale)
    done = only(mended(home), "staleTemporary")
    assert not stale.exists()
    assert Path(done.kept).read_bytes() == b"half"
    assert busy.exists()


def test_links_out_of_the_home_are_told(home: Path, tmp_path: Path) -> None:
    log = session(home)
    (log.parent / "2026-01-01_11111111.jsonl").symlink_to(tmp_path / "elsewhere")
    assert kinds(examined(home)) == ["linkOutside"]


def test_a_file_that_may_not_be_read_hides_no_other(home: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    log, other = session(home), session(home)
    log.chmod(0)
    other.write_bytes(other.read_bytes() + b"bad\n")
    assert sorted(kinds(examined(home))) == ["unreadableFile", "unreadableLine"]


def test_what_cannot_be_mended_now_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = session(home)
    content = log.read_bytes() + b"bad\nx"
    log.write_bytes(content)
    monkeypatch.setattr("crewlog.storage.files.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    found = only(mend(Home(str(home)), examined(home), PROCESS), "unreadableLine")
    assert "not mended" in found.reason
    assert "ENOSPC" in found.reason
    assert log.read_bytes() == content


def test_appends_go_on_after_mending(home: Path) -> None:
    """A store that was open before notices that its log was replaced."""
    log = session(home)
    store = SessionManager(str(log.parent), durability=PROCESS).open_path(str(log))
    log.write_bytes(log.read_bytes() + b"bad\n")
    mended(home)
    store.append([NewEntry("message", MESSAGE % 99)])
    assert texts(log)[-1] == "99"


def test_progress_is_told_up_to_the_end(home: Path) -> None:
    session(home)
    seen: list[tuple[int, int]] = []
    examine(Home(str(home)), lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def refusing(monkeypatch: pytest.MonkeyPatch, target: str, wanted: Path) -> None:
    """Lets the system refuse one file to whoever uses `target`, as it would refuse another user's."""
    module = target.rpartition(".")[0]
    real: Callable[..., object] = os.open if module.endswith(".os") else open

    def refuse(path: object, *arguments: object, **options: object) -> object:
        if str(path) == str(wanted):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(target, refuse, raising=False)


def test_files_that_the_system_refuses_are_named_and_hide_no_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, other = session(home), session(home)
    board(home).create("a")
    other.write_bytes(other.read_bytes() + b"bad\n")
    refusing(monkeypatch, "crewlog.storage.log.os.open", log)
    refusing(monkeypatch, "crewlog.storage.doctor.open", home / "tasks/work/1.json")
    report = examined(home)
    assert sorted(kinds(report)) == ["unreadableFile", "unreadableFile", "unreadableLine"]
    assert {Path(finding.path) for finding in report.findings} == {log, other, home / "tasks/work/1.json"}


def test_what_is_odd_but_harmless_is_only_noted(home: Path) -> None:
    log = session(home)
    lines = log.read_bytes().split(b"\n")
    moment = json.loads(lines[2])["timestamp"].encode()
    lines[2] = lines[2].replace(b'"timestamp":"' + moment, b'"timestamp":"yesterday')
    lines[4:4] = [lines[0], b" ", "\u2003".encode()]
    log.write_bytes(b"\n".join(lines))
    report = examined(home)
    assert [(finding.kind, finding.severity) for finding in report.findings] == [("badTimestamp", "note"), ("secondHeader", "note")]


def test_headers_that_do_not_fit(home: Path) -> None:
    misnamed, bad = session(home), session(home)
    misnamed.rename(misnamed.with_name("2026-03-01_0badcafe.jsonl"))
    bad.write_bytes(bad.read_bytes().replace(b'"cwd":"/p"', b'"cwd":[1]'))
    assert sorted(kinds(examined(home))) == ["badHeader", "misnamedSession"]


def test_something_that_only_bears_the_header_s_id_is_kept_under_another(home: Path) -> None:
    log = session(home)
    lines = log.read_bytes().split(b"\n")
    lines[0] = lines[1].replace(json.loads(lines[1])["id"].encode(), b"h0").replace(b'"parent_id":"h0",', b"")
    log.write_bytes(b"\n".join(lines))
    mended(home)
    assert texts(log) == ["0", "1", "2", "3", "4", "5"]
    assert log.read_bytes().count(b'"text":"0"') == 2
    assert examined(home).findings == []


def test_a_header_s_folder_is_asked_of_sessions_that_can_be_read(home: Path) -> None:
    log = session(home)
    log.write_bytes(b"\n".join(log.read_bytes().split(b"\n")[1:]))
    log.with_name("2000-01-01_00000000.jsonl").write_bytes(b"no session")
    mended(home)
    assert SessionManager(str(log.parent)).open_path(str(log)).header.cwd == ""


def test_what_somebody_else_mended_meanwhile_is_left(home: Path) -> None:
    store = board(home)
    store.create("a")
    store.create("b")
    rewrite(home, "1", blocks=["2"])
    report = examined(home)
    rewrite(home, "1", blocks=[])
    assert only(mend(Home(str(home)), report, PROCESS), "oneSidedDependency").mended == "already right"


def test_a_claim_that_cannot_be_looked_up_hides_no_fault(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = board(home)
    store.create("a")
    rewrite(home, "1", blocks=["9"])

    def refuse(*_: object) -> None:
        raise StorageFailed("x", "EIO", "broken")

    monkeypatch.setattr("crewlog.storage.doctor.TaskStore.set_dir", refuse)
    assert kinds(examined(home)) == ["danglingId"]


def test_a_torn_tail_of_a_transcript_is_kept_beside(home: Path) -> None:
    place = Home(str(home)).transcripts("work")
    TranscriptStore(place, durability=PROCESS).append("ada", [MESSAGE % 1])
    log = Path(place, "ada.jsonl")
    log.write_bytes(log.read_bytes() + b'{"role":"us')
    assert only(examined(home), "tornTail").line == 2
    mended(home)
    assert log.read_bytes().endswith(b"\n")
    assert Path(f"{log}.unreadable").read_bytes() == b'{"role":"us\n'


def test_temporary_files_of_others_have_an_hour(home: Path) -> None:
    log = session(home)
    young, old = log.parent / "young.tmp", log.parent / "old.tmp"
    for path, age in ((young, 60), (old, 7200)):
        path.write_bytes(b"")
        path.chmod(0o600)
        os.utime(path, (time.time() - age, time.time() - age))
    assert only(examined(home), "staleTemporary").path == str(old)


def test_folders_that_go_away_while_they_are_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = session(home)
    real = os.listdir

    def listdir(path: str) -> list[str]:
        if path == str(log.parent):
            raise FileNotFoundError(2, "gone", path)
        return [*real(path), "was-here"]

    monkeypatch.setattr("crewlog.storage.doctor_files.os.listdir", listdir)
    assert examined(home).findings == []


def test_a_pipe_is_told_and_not_waited_for(home: Path) -> None:
    log = session(home)
    os.mkfifo(log.with_name("2026-01-01_11111111.jsonl"), 0o600)
    assert kinds(examined(home)) == ["notAFile"]
