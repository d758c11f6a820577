"""Rosters, transcripts, plans and history: what callers are told, and what becomes of odd input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crewlog.storage import (
    PROCESS,
    History,
    InvalidArgument,
    InvalidName,
    PlanStore,
    RosterMember,
    RosterStore,
    SessionCorrupt,
    StorageFailed,
    TranscriptStore,
    generate_name,
    history,
)
from crewlog.storage.files import require_inside, temporary_name
from crewlog.storage.plan_words import ADJECTIVES, GERUNDS, NOUNS

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"hello"}]}'


# --- history ---


def prompts(tmp_path: Path, project: str = "/p") -> History:
    return History(str(tmp_path / "history.jsonl"), project, durability=PROCESS)


def test_each_project_sees_its_own(tmp_path: Path) -> None:
    one, other = prompts(tmp_path, "/one"), prompts(tmp_path, "/other")
    assert one.add("a") == 1
    other.add("b")
    assert one.add("c\nsecond line") == 2
    assert one.add("   \n\t") == 2
    assert one.add("a") == 2  # moves to its newest place
    assert [line.display for line in one.list()[0]] == ["a", "c\nsecond line"]
    assert [line.display for line in prompts(tmp_path, "/other").list()[0]] == ["b"]
    assert json.loads(one.get(0).raw)["project"] == "/one"  # type: ignore[union-attr]


def test_what_others_add_is_seen(tmp_path: Path) -> None:
    one, other = prompts(tmp_path), prompts(tmp_path)
    one.add("first")
    assert len(other) == 1
    for number in range(5):
        one.add(f"n{number}")
        assert other.get(0).display == f"n{number}"  # type: ignore[union-attr]
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert len(other) == 6
    one.add("after the line end was lost")
    assert [line.display for line in other.list(0, 2)[0]] == ["after the line end was lost", "n4"]
    path.write_text("")
    assert len(other) == 0
    path.unlink()
    assert other.get(0) is None


def test_odd_prompts(tmp_path: Path) -> None:
    one = prompts(tmp_path)
    for text in ("with \0 NUL", "x\u2028\u0085\x0b\x0c", "😀 中文", "x" * (2 << 20)):
        one.add(text)
        assert prompts(tmp_path).get(0).display == text  # type: ignore[union-attr]
    with pytest.raises(InvalidArgument, match="text"):
        one.add("\ud800")
    for key in ("", "a", "1.5", " 1", "9" * 30):  # a line with such a key is read by nobody
        with pytest.raises(InvalidArgument, match="pastedContents"):
            one.add("text", {"1": "body", key: "body"})
    assert len((tmp_path / "history.jsonl").read_bytes().split(b"\n")) == 5


def test_navigating(tmp_path: Path) -> None:
    one = prompts(tmp_path)
    for text in ("git log", "ls", "git add"):
        one.add(text)

    def go(direction: str, index: int | None, prefix: str = "") -> tuple[int, str] | None:
        found = one.navigate(direction, index, prefix)
        return None if found is None else (found[0], found[1].display)

    assert go("older", None) == (0, "git add")
    assert go("older", 0) == (1, "ls")
    assert go("older", 0, "git") == (2, "git log")
    assert go("older", 2) is None
    assert go("newer", 2, "git") == (0, "git add")
    assert go("newer", 0) is None
    assert go("newer", None) is None
    assert go("newer", 99) == (2, "git log")
    with pytest.raises(InvalidArgument, match="direction"):
        one.navigate("sideways")
    assert one.list(query="GIT")[1] == 2


def test_session_ids(tmp_path: Path) -> None:
    one = prompts(tmp_path)
    one.set_session_id("s1")
    one.add("a")
    one.add("b", session_id="s2")
    one.set_session_id("")
    one.add("c", {"1": "pasted"})
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_bytes().splitlines()]
    assert [line.get("sessionId") for line in lines] == ["s1", "s2", None]
    assert lines[2]["pastedContents"] == {"1": "pasted"}
    one.close()


def test_lines_from_the_end_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    for content in (b"", b"a", b"a\n", b"\n\n", b"one\ntwo\nthree", b"long" * 50 + b"\nx\n" + b"y" * 99):
        path.write_bytes(content)
        for block in (1, 2, 3, 7, 1000):
            monkeypatch.setattr(history, "_BLOCK", block)
            found = list(history.lines_from_end(str(path), len(content)))
            assert found[::-1] == (content.split(b"\n") if content else [b""])


def test_a_history_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").mkdir()
    with pytest.raises(StorageFailed):
        prompts(tmp_path).add("a")
    with pytest.raises(StorageFailed):
        len(prompts(tmp_path))


# --- plans ---


def test_generated_names_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adjective, gerund, noun = generate_name().split("-")
    assert (adjective in ADJECTIVES, gerund in GERUNDS, noun in NOUNS) == (True, True, True)
    plans = PlanStore(str(tmp_path / "plans"), durability=PROCESS)
    names = iter(["taken-taking-take", "taken-taking-take", "free-freeing-fee"])
    monkeypatch.setattr("crewlog.storage.plans.generate_name", lambda: next(names))
    plans.save("taken-taking-take", "x")
    assert plans.generate_name() == "free-freeing-fee"
    assert plans.path("p") == str(tmp_path / "plans" / "p.md")
    assert plans.dir == str(tmp_path / "plans")


def test_plans_are_text_to_the_byte(tmp_path: Path) -> None:
    plans = PlanStore(str(tmp_path / "plans"), durability=PROCESS)
    for text in ("", "a\r\nb", "no end", "\ufeffbom", "中\u2028文\n", "\0"):
        etag = plans.save("p", text)
        assert (tmp_path / "plans/p.md").read_bytes() == text.encode()
        found = plans.load("p")
        assert (found.content, found.etag) == (text, etag)
    (tmp_path / "plans/p.md").write_bytes(b"\xff\xfe")
    assert plans.load("p").content == "\ufffd\ufffd"
    assert plans.save("p", "text", if_match=plans.load("p").etag)
    with pytest.raises(InvalidArgument, match="content"):
        plans.save("p", "\ud800")
    plans.close()


def test_plans_that_are_links(tmp_path: Path) -> None:
    home = tmp_path / "home"
    plans = PlanStore(str(home / "plans"), durability=PROCESS, root=str(home))
    plans.save("p", "x")
    (home / "shared.md").write_text("inside")
    (home / "plans/inside.md").symlink_to(home / "shared.md")
    plans.save("inside", "changed")
    assert (home / "shared.md").read_text() == "changed"
    assert (home / "plans/inside.md").is_symlink()
    (tmp_path / "victim.md").write_text("outside")
    (home / "plans/outside.md").symlink_to(tmp_path / "victim.md")
    with pytest.raises(StorageFailed, match="leads out of"):
        plans.save("outside", "changed")
    assert (tmp_path / "victim.md").read_text() == "outside"
    assert plans.delete("outside")
    assert (tmp_path / "victim.md").exists()


# --- rosters and transcripts ---


@pytest.mark.parametrize("bad", ["../../x", "a/b", "x" * 300, "ends ", "nul", ".hidden", "a\nb"])
def test_members_whose_name_cannot_name_a_transcript(tmp_path: Path, bad: str) -> None:
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(str(tmp_path / "team"))
    with pytest.raises(InvalidName):
        roster.upsert_member(RosterMember(bad, "x"))
    with pytest.raises(InvalidName):
        TranscriptStore(str(tmp_path / "t"), durability=PROCESS).append(bad, [MESSAGE])
    roster.upsert_member(RosterMember("😀", "x"))
    roster.upsert_member(RosterMember("A", "x"))
    roster.upsert_member(RosterMember("a", "x"))
    assert [member.name for member in roster.snapshot().member_records()] == ["😀", "A", "a"]


def test_members_that_are_no_records(tmp_path: Path) -> None:
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(str(tmp_path / "team"))
    for bad in (b'{"name":5}', b"[]", b'{"name":"a","depth":"deep"}', b"{"):
        with pytest.raises(InvalidArgument, match="member"):
            roster.upsert_member(bad)
    with pytest.raises(InvalidName):
        roster.upsert_member(b'{"agent_type":"x"}')
    assert not (tmp_path / "team").exists()
    assert roster.remove_member("a") is False
    roster.clear()
    assert not (tmp_path / "team").exists()


def test_a_file_system_that_ignores_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crewlog.storage.roster._ignores_case", lambda folder: True)
    roster = RosterStore(durability=PROCESS)
    roster.set_dir(str(tmp_path / "team"))
    roster.upsert_member(RosterMember("A", "x"))
    with pytest.raises(InvalidName, match="'A'"):
        roster.upsert_member(RosterMember("a", "x"))


def test_transcripts_by_pages(tmp_path: Path) -> None:
    store = TranscriptStore(str(tmp_path / "t"), durability=PROCESS)
    assert store.agents() == []
    for number in range(5):
        assert store.append("ada", [MESSAGE.replace(b"hello", b"%d" % number)]) == number + 1
    assert store.append("ada", []) == 5
    assert [json.loads(raw)["content"][0]["text"] for raw in store.page("ada", 1, 2)] == ["1", "2"]
    assert store.page("ada", 9) == []
    store.append("grace", [MESSAGE, b'{"role":"assistant",\n"content":[]}'])
    assert store.agents() == [("ada", 5), ("grace", 2)]
    for bad in (b"[1]", b"{", b'"x"'):
        with pytest.raises(InvalidArgument, match=r"messages\[1\]"):
            store.append("ada", [MESSAGE, bad])
    assert store.count("ada") == 5
    with (tmp_path / "t/grace.jsonl").open("ab") as file:
        file.write(b"not json\n")
    with pytest.raises(SessionCorrupt) as caught:
        store.load("grace")
    assert caught.value.line == 3
    with pytest.raises(SessionCorrupt):
        store.append("grace", [MESSAGE])
    assert store.agents() == [("ada", 5), ("grace", 2)]
    store.close()
    assert len(store.load("ada")) == 5


# --- files ---


def test_links_that_lead_out(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (home / "in").symlink_to(home)
    (home / "out").symlink_to(outside)
    (tmp_path / "alias").symlink_to(home)
    require_inside(str(home / "in" / "x"), str(home))
    require_inside(str(tmp_path / "alias" / "x"), str(tmp_path / "alias"))
    with pytest.raises(StorageFailed):
        require_inside(str(home / "out" / "x"), str(home))
    with pytest.raises(StorageFailed):
        require_inside(str(tmp_path / "home2"), str(home))
    assert temporary_name("/a/b.json") != temporary_name("/a/b.json")


def test_a_file_where_a_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("")
    with pytest.raises(StorageFailed):
        PlanStore(str(tmp_path / "plans"), durability=PROCESS).save("p", "x")


@pytest.mark.parametrize("edited", ["as long", "longer", "shorter"])
def test_a_history_that_was_edited_in_place_is_read_anew(tmp_path: Path, edited: str) -> None:
    path = tmp_path / "history.jsonl"
    history = History(str(path), "/w", durability=PROCESS)
    for text in ("one", "a secret", "three"):
        history.add(text)
    assert [line.display for line in history.list()[0]] == ["three", "a secret", "one"]
    new = {"as long": b"nothing.", "longer": b"nothing to see", "shorter": b"-"}[edited]
    with path.open("r+b") as file:
        content = file.read().replace(b"a secret", new)
        file.seek(0)
        file.write(content)
        file.truncate()
    assert [line.display for line in history.list()[0]] == ["three", new.decode(), "one"]
    if edited == "longer":  # and something was added behind it before the next look
        with path.open("r+b") as file:
            content = file.read().replace(new, b"something else") + content.splitlines(True)[0].replace(b"one", b"four")
            file.seek(0)
            file.write(content)
        assert [line.display for line in history.list()[0]] == ["four", "three", "something else", "one"]
    assert history.add("five") == len(history)
