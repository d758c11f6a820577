"""Roster, transcripts, history and plans give what the Go program gives; where golden/README.md allows another result, it says which."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crewlog.storage import files, times
from crewlog.storage.errors import InvalidName, SessionCorrupt, StorageFailed
from crewlog.storage.history import History
from crewlog.storage.messages import INTERRUPTED
from crewlog.storage.plans import PlanStore
from crewlog.storage.records import RosterMember
from crewlog.storage.roster import RosterStore
from crewlog.storage.transcripts import TranscriptStore

Json = dict[str, Any]


def golden(shared: Path, name: str) -> Any:
    return json.loads((shared / f"golden/expected/{name}.json").read_bytes())


def roster_as_go_sees(store: RosterStore) -> Json:
    found = store.snapshot()
    out: Json = {"team": found.team}
    if found.description:
        out["description"] = found.description
    members = [msgspec.to_builtins(member) for member in found.member_records()]
    if members:
        out["members"] = [{k: v for k, v in member.items() if v or k in ("name", "agent_type")} for member in members]
    return out


def test_roster_steps(shared: Path, tmp_path: Path) -> None:
    store = RosterStore(durability=files.PROCESS)
    folder = tmp_path / "team"
    bob = RosterMember("bob", "coder", "red", "go\n<now>", "d", 2, "teammate")
    unknown = '{"team":"t","unknown":1,"members":[{"name":"z","agent_type":"a","future":true}],"description":null}'

    def load(content: str) -> None:
        (folder / "roster.json").write_text(content)
        store.set_dir(str(folder))

    actions = [
        lambda: store.upsert_member(RosterMember("mem-only", "x")),
        lambda: store.set_dir(str(folder)),
        lambda: store.set_team("alpha <team>", "does & things"),
        lambda: store.upsert_member(bob),
        lambda: store.upsert_member(RosterMember("carol", "reviewer")),
        lambda: store.upsert_member(RosterMember("bob", "tester")),
        lambda: store.upsert_member(RosterMember("")),
        lambda: store.remove_member("nobody"),
        lambda: store.remove_member("mem-only"),
        lambda: store.set_team(""),
        lambda: store.set_dir(str(folder)),
        lambda: load(unknown),
        lambda: store.upsert_member(RosterMember("y")),
        lambda: load('{"team":"torn'),
        lambda: store.remove_member("z"),
        lambda: store.remove_member("y"),
        store.clear,
        store.clear,
    ]
    steps = golden(shared, "roster")["steps"]
    assert len(steps) == len(actions)
    written: dict[str, str] = {}
    for step, action in zip(steps, actions):
        if step["value"]:
            with pytest.raises(StorageFailed):
                action()
        else:
            action()
        if not step["value"]:
            ours = roster_as_go_sees(store)
            assert ours == step["snapshot"], step["op"]
        written = step.get("files", written)
        if step["op"].startswith("load"):
            continue
        present = {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}
        assert present.keys() == written.keys(), step["op"]
        for name, content in written.items():
            if "unknown" in present[name]:  # 2: unknown fields are kept
                kept = json.loads(present[name])
                assert kept.pop("unknown") == 1
                for member in kept.get("members", []):
                    assert member.pop("future", True) is True
                assert kept == json.loads(content), step["op"]
            else:
                assert present[name] == content, step["op"]


def test_unknown_fields_of_a_roster_survive(tmp_path: Path) -> None:
    (tmp_path / "roster.json").write_text('{"team":"t","later":[1e400],"members":[{"name":"z","agent_type":"a","future":true}]}')
    store = RosterStore()
    store.set_dir(str(tmp_path))
    store.upsert_member(b'{"name":"y","agent_type":"","more":{"a-b":1}}')
    store.set_team("renamed")
    text = (tmp_path / "roster.json").read_text()
    assert '"future": true' in text
    assert '"more"' in text
    assert "1e400" in text


def test_a_roster_that_was_never_readable_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "roster.json").write_text('{"team":"torn')
    store = RosterStore()
    with pytest.raises(StorageFailed, match="no roster"):
        store.set_dir(str(tmp_path))
    with pytest.raises(StorageFailed):
        store.set_team("t")
    assert (tmp_path / "roster.json").read_text() == '{"team":"torn'


def test_transcripts(shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    shutil.copytree(shared / "golden/codebot/tasks/71264c27/team/transcripts", folder)
    store = TranscriptStore(str(folder))
    for key, theirs in golden(shared, "transcripts").items():
        if not key.startswith("agent:"):
            continue
        agent = key.removeprefix("agent:")
        if not agent:
            with pytest.raises(InvalidName):
                store.load(agent)
            continue
        path = folder / f"{agent}.jsonl"
        before = path.read_bytes() if path.exists() else b""
        if theirs["error"]:
            with pytest.raises(SessionCorrupt) as caught:
                store.load(agent)
            assert caught.value.line == int(theirs["error"].split("line ")[1].split(":")[0])
        else:
            ours = [json.loads(bytes(raw)) for raw in store.load(agent)]
            assert len(ours) == len(theirs["messages"]), agent
            for our, their in zip(ours, theirs["messages"]):
                assert our.get("role", "") == their["role"], agent
                if their["timestamp"] == "<now>":
                    assert our["content"][0]["text"] == json.dumps(INTERRUPTED)
                    assert our["metadata"] == their["metadata"]
                elif their["content"] is not None:
                    assert our["content"] == their["content"]
        assert (path.read_bytes() if path.exists() else b"") == before  # 1: reading never writes
        if not theirs["error"] and path.exists():
            store.append(agent, [b'{"role":"user","content":[]}'])
            assert path.read_bytes()[: theirs["size_after"]] == (before + b"\n")[: theirs["size_after"]]
            assert path.read_bytes().count(b"\n") == len(store.page(agent)) + (agent == "crlf_blank")


def test_without_a_folder_a_transcript_keeps_nothing(shared: Path) -> None:
    store = TranscriptStore("")
    assert store.append("a", [b'{"role":"user"}']) == 0
    assert store.load("a") == []


def history_lines(history: History) -> list[str]:
    return [line.display for line in history.list()[0]]


def test_history(shared: Path, tmp_path: Path) -> None:
    theirs = golden(shared, "history")
    path = tmp_path / "history.jsonl"
    shutil.copy(shared / "golden/codebot/history.jsonl", path)
    for key, project in (
        ("home_project_a", "/workspace/demo-app"),
        ("home_project_b", "/home/dev/我的 项目/x_y.z"),
        ("home_project_none", "/nowhere"),
        ("missing_file", ""),
    ):
        history = History(str(path) if key != "missing_file" else str(tmp_path / "none"), project, "s")
        wanted = [line["text"] for line in theirs[key]["newer"] or []]
        assert [text for text in history_lines(history) if text != "upper keys"] == [text for text in wanted if text != "upper keys"], (
            key
        )  # 3
        assert history.get(-1) is None
        assert history.get(len(wanted)) is None
    history = History(str(path), "/workspace/demo-app", "s", durability=files.PROCESS)
    history.add("added after unterminated")
    assert history_lines(history)[:2] == ["added after unterminated", "unterminated"]  # better: neither is lost
    ours = json.loads(path.read_bytes().splitlines()[-1])
    want = json.loads(theirs["add_after_unterminated"]["appended"])
    assert {**ours, "timestamp": 0} == {**want, "timestamp": 0}
    assert list(ours) == list(want)


def test_history_shows_at_most_500_and_each_text_once(shared: Path, tmp_path: Path) -> None:
    theirs = golden(shared, "history")["cap"]
    history = History(str(tmp_path / "h.jsonl"), "/p", durability=files.PROCESS)
    for number in range(theirs["added"]):
        history.add(f"entry {number % 520}")
    assert len(history) == 500
    again = History(str(tmp_path / "h.jsonl"), "/p")
    assert history_lines(again) == history_lines(history)
    assert history_lines(again)[0] == theirs["newest"]
    assert history_lines(again)[-1] == theirs["oldest"]


def test_long_lines_and_pastes(shared: Path, tmp_path: Path) -> None:
    history = History(str(tmp_path / "h.jsonl"), "/workspace/demo-app", "s", durability=files.PROCESS)
    history.add("before")
    history.add("x" * (2 << 20))
    history.add("after")
    assert [len(text) for text in history_lines(history)] == [5, 2 << 20, 6]
    history.add("big [Pasted text #1]", {"1": "y" * (1 << 20), "2": "z"})
    line = json.loads((tmp_path / "h.jsonl").read_bytes().splitlines()[-1])
    assert line["pastedContents"] == json.loads(golden(shared, "history")["oversized_paste_newer"]["line"])["pastedContents"]
    history.add("fits", {"1": "y" * (1 << 20)})
    assert len(json.loads((tmp_path / "h.jsonl").read_bytes().splitlines()[-1])["pastedContents"]["1"]) == 1 << 20


def test_plans(shared: Path, tmp_path: Path) -> None:
    theirs = golden(shared, "plans")
    folder = tmp_path / "plans"
    shutil.copytree(shared / "golden/codebot/plans", folder)
    store = PlanStore(str(folder))
    assert {plan.name for plan in store.list()} == {plan["Name"] for plan in theirs["list"]}
    assert store.load("absent").content == ""
    assert store.delete("absent") is False
    store.save("x", "text")
    assert (folder / "x.md").stat().st_mode & 0o777 == int(theirs["mode"], 8)
    assert store.list()[0].name == "x"
    for bad in ("../evil", "a/b", ""):
        with pytest.raises(InvalidName):
            store.save(bad, "text")
    (folder / "dir.md").mkdir()
    with pytest.raises(StorageFailed):
        store.load("dir")
    with pytest.raises(StorageFailed):
        store.save("dir", "text")
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".tmp") == []
    shutil.rmtree(folder)
    assert store.list() == []
    assert times.parse_ns(times.now()) is not None
