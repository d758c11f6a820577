"""Every session file that the Go program wrote, or that was damaged by hand, gives the result that the Go program gives.

`DIFFERENCES` names the files for which golden/README.md, "Where Crewlog differs on purpose", allows another result, by its number.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crewlog.storage import rawjson, times
from crewlog.storage.errors import StorageError
from crewlog.storage.manager import SessionManager
from crewlog.storage.messages import INTERRUPTED, MISSING
from crewlog.storage.sessions import SessionStore

Json = dict[str, Any]

UNREADABLE_TIME = {f"timestamp_{n:02d}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 11, 14, 16)}  # 6
APPENDED = b'{"role":"user","content":[{"type":"text","text":"appended after open"}],"timestamp":"2026-09-01T00:00:00Z"}'


def golden(shared: Path) -> list[Json]:
    return [json.loads(path.read_bytes()) for path in sorted((shared / "golden/expected/sessions").glob("*.json"))]


def copy_of(shared: Path, expected: Json, folder: Path) -> Path:
    source = shared / "golden" / expected["file"]
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(source, folder / source.name))


def opened(path: Path) -> SessionStore:
    return SessionManager(str(path.parent)).open_path(str(path))


def lenient(raw: bytes | msgspec.Raw) -> Any:
    return json.loads(rawjson.decode_utf8(bytes(raw)))


def as_go_sees(message: Json) -> Json:
    """Our message with what Go makes of it: absent fields as zero values, numbers through float64, unknown fields dropped."""
    known = ("role", "content", "stop_reason", "usage", "metadata", "timestamp")
    out = {key: message[key] for key in known if message.get(key) is not None}
    out.setdefault("role", "")
    out.setdefault("timestamp", times.ZERO)
    out["content"] = None if message.get("content") is None else [block_as_go_sees(block) for block in message["content"]]
    if not out.get("metadata"):
        out.pop("metadata", None)
    if not out.get("stop_reason"):
        out.pop("stop_reason", None)
    if "usage" in out:
        zeros = dict.fromkeys(("input", "output", "cache_read", "cache_write", "total_tokens"), 0)
        out["usage"] = zeros | {k: v for k, v in out["usage"].items() if not k.startswith("x_")}
    return out


def block_as_go_sees(block: Json | None) -> Json:
    block = block or {}
    out = {key: value for key, value in block.items() if value not in ("", None) and not key.startswith("x_")}
    out["type"] = block.get("type", "")
    if "tool_call" in out:
        call = {k: v for k, v in out["tool_call"].items() if k in CALL_FIELDS and v not in ("", False)} if out["tool_call"] else {}
        call["id"] = block["tool_call"].get("id", "")
        call["name"] = block["tool_call"].get("name", "")
        call["args"] = block["tool_call"].get("args")
        out["tool_call"] = call
    return out


CALL_FIELDS = ("id", "name", "args", "args_invalid", "args_raw_text", "args_parse_error", "thought_signature")


def same(ours: Any, theirs: Any, path: str = "$") -> None:
    if isinstance(theirs, dict) and theirs.get("__long_string"):
        assert len(ours.encode()) == theirs["bytes"], path
        return
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), path
        assert ours.keys() == theirs.keys(), path
        for key, value in theirs.items():
            same(ours[key], value, f"{path}.{key}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), path
        assert len(ours) == len(theirs), path
        for index, value in enumerate(theirs):
            same(ours[index], value, f"{path}[{index}]")
    elif isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        assert float(ours) == float(theirs), path
    elif theirs == "<now>":
        assert times.parse_ns(ours) is not None, path
    elif isinstance(theirs, str) and times.parse_ns(theirs) is not None:
        assert times.parse_ns(ours) == times.parse_ns(theirs), path  # Go drops trailing zeros, Crewlog keeps the text
    elif isinstance(theirs, str):
        assert isinstance(ours, str), path
        assert ours.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == theirs, path
    else:
        assert ours == theirs, path


def same_messages(ours: list[Json], theirs: list[Json]) -> None:
    for index, message in enumerate(ours):
        if (message.get("metadata") or {}).get("type") == "context_summary":
            assert index == 0
            assert theirs[0]["__type"] == "context_summary"
            assert message["role"] == "user"
            assert message["content"] == [{"type": "text", "text": theirs[0]["summary"]}]
            same(message["timestamp"], theirs[0]["timestamp"])
            ours, theirs = ours[1:], theirs[1:]
    same([as_go_sees(message) for message in ours], theirs)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        from tests_support import shared_folder

        folder = shared_folder()
        names = [path.stem for path in sorted((folder / "golden/expected/sessions").glob("*.json"))] if folder else []
        metafunc.parametrize("name", names)


@pytest.fixture
def expected(shared: Path, name: str) -> Json:
    return json.loads((shared / f"golden/expected/sessions/{name}.json").read_bytes())  # type: ignore[no-any-return]


def test_open(shared: Path, expected: Json, name: str, tmp_path: Path) -> None:
    path = copy_of(shared, expected, tmp_path)
    before = path.read_bytes()
    theirs = expected["open"]
    if name == "case_insensitive_keys":  # 3
        return
    if not theirs["ok"] and name not in UNREADABLE_TIME | {"dup_h0_message"}:  # 6, 5
        with pytest.raises(StorageError) as caught:
            opened(path)
        line = next((word for word in theirs["error"].replace(":", "").split() if word.isdigit()), None)
        if "JSONL line" in theirs["error"]:
            assert f"line {line}" in str(caught.value)
        elif "version" in theirs["error"]:
            assert theirs["error"].removeprefix("scan session: ") in str(caught.value)
        assert path.read_bytes() == before
        return
    store = opened(path)
    assert path.read_bytes() == before  # 1
    assert store.recovered is None or theirs["file_action"] == "truncated"
    if "leaf_id" in expected and name not in ("dup_h0_second_header", "dup_h0_message"):  # 5
        assert store.leaf_id == expected["leaf_id"]
        assert store.entry_count == expected["distinct_ids"]
        if name != "case_insensitive_keys":  # 3
            same({k: v for k, v in msgspec.to_builtins(store.header).items() if k != "name" or v}, expected["header_after_open"])
    store.close()


def test_snapshot(shared: Path, expected: Json, name: str, tmp_path: Path) -> None:
    if "snapshot" not in expected or name == "case_insensitive_keys":  # 3
        return
    store = opened(copy_of(shared, expected, tmp_path))
    theirs = expected["snapshot"]
    if name == "dup_h0_second_header":  # 5: the history is not hidden
        assert len(store.snapshot().messages) == 3
        return
    if not theirs["ok"]:
        with pytest.raises(
            StorageError, match=theirs["error"].replace("entry ", "entry '?").split(" not found")[0].replace("nope", "nope'?")
        ):
            store.snapshot()
        return
    ours = store.snapshot()
    messages = [lenient(raw) for raw in ours.messages] if name != "depth_ok" else []
    if name == "number_overflow":  # 2: the number is kept, and with it the message
        assert b"1e400" in bytes(ours.messages[1])
        messages.pop()
    if name == "reused_call_id":  # 4: the real result stays, the call without one gets the text
        results = [m for m in messages if m["role"] == "tool"]
        assert "real result of first use" in results[0]["content"][0]["text"]
        assert results[1]["metadata"] == {"tool_call_id": "R1", "is_error": True, "interrupted": True, "result_unknown": True}
    elif name == "depth_ok":
        assert len(ours.messages) == theirs["message_count"]
    else:
        same_messages(messages, theirs["messages"] or [])
    assert (ours.provider, ours.model) == (theirs["provider"], theirs["model"])
    assert (ours.plan_slug, ours.plan_phase, ours.plan_pre_mode) == (theirs["plan_slug"], theirs["plan_phase"], theirs["plan_pre_mode"])
    if name not in ("bad_payloads", "unknown_kind"):  # 3: {"Level": …}; 7
        assert ours.reasoning_effort == theirs["reasoning_effort"]
    same(lenient(ours.goal), theirs["goal"])
    after = {k: v for k, v in msgspec.to_builtins(store.header).items() if k != "name" or v}
    same(after, expected["header_after_snapshot"])
    verbatim = [args for args in theirs["args_verbatim"] if "text" in args]
    kept = b"".join(bytes(raw) for raw in ours.messages)
    for args in verbatim:
        assert args["text"].encode() in kept
    store.close()


def test_list(shared: Path, expected: Json, name: str, tmp_path: Path) -> None:
    path = copy_of(shared, expected, tmp_path)
    found = SessionManager(str(tmp_path)).list()
    theirs = expected["list"]
    if not theirs["ok"] and name != "blank_lines":  # 8
        assert found.sessions == []
        assert [skipped.path for skipped in found.skipped] == [str(path)]
        return
    (ours,) = found.sessions
    if name in ("blank_lines", "case_insensitive_keys", *UNREADABLE_TIME):  # 8, 3, 6
        return
    info = theirs["info"]
    if name == "long_line_1_1mib":  # 8: Go's scan ends there
        assert (ours.name, ours.message_count) == ("named after the long line", 5)
        return
    assert (ours.id, ours.name, ours.cwd, ours.created) == (info["id"], info["name"], info["cwd"], info["created"])
    assert ours.message_count == info["message_count"], info
    first = bytes.fromhex(info["first_message_hex"]).decode("utf-8", "replace")
    if name == "first_thinking_text_key":  # 8: an injected message is not the first
        assert ours.first_message == "<reminder>prepended</reminder>"
    elif first.endswith("..."):  # 8: cut by characters
        assert len(ours.first_message) <= 80
        assert ours.first_message.startswith(first[:-3].rstrip("\ufffd")[:70])
    elif len(first.encode()) > 79:
        assert ours.first_message.startswith(first[:70])
    else:
        assert ours.first_message == first
    assert times.parse_ns(ours.updated) == times.parse_ns(info["updated"])


def test_append_after_open(shared: Path, expected: Json, name: str, tmp_path: Path) -> None:
    if "append_after_open" not in expected or name == "case_insensitive_keys":  # 3
        return
    path = copy_of(shared, expected, tmp_path)
    store = opened(path)
    before = path.read_bytes()
    theirs = expected["append_after_open"]
    entry = store.append_message(APPENDED)
    after = path.read_bytes()
    assert len(after) > expected["open"]["size_after"]
    kept = before[: expected["open"]["size_after"]]
    assert after.startswith(kept)
    line = after[expected["open"]["size_after"] :]
    assert line.count(b"\n") == 1
    same_line, their_line = json.loads(line), json.loads(theirs["line"])
    assert list(same_line) == list(their_line)
    assert same_line["data"] == their_line["data"]
    if name != "dup_h0_second_header":  # 5
        assert same_line["parent_id"] == their_line["parent_id"]
    assert entry.id == same_line["id"] == store.leaf_id
    again = opened(path)
    assert again.leaf_id == entry.id
    if theirs["snapshot_error"] is None and name not in (
        "case_insensitive_keys",
        "number_overflow",
        "dup_h0_second_header",
        "reused_call_id",
    ):
        assert len(again.snapshot().messages) == theirs["snapshot_message_count"]


def test_list_of_whole_projects(shared: Path) -> None:
    projects = json.loads((shared / "golden/expected/list.json").read_bytes())
    del projects["__note"]
    for project, theirs in projects.items():
        found = SessionManager(str(shared / "golden/codebot/projects" / project)).list()
        ours = {info.id: info for info in found.sessions}
        for info in theirs["sessions"]:
            assert info["id"] in ours
        newest = [times.parse_ns(info.updated) or 0 for info in found.sessions]
        assert newest == sorted(newest, reverse=True)
        assert len(found.sessions) + len(found.skipped) == len(list((shared / "golden/codebot/projects" / project).iterdir()))


def test_fuzzed_sessions(shared: Path, tmp_path: Path) -> None:
    for row in (shared / "golden/expected/fuzz.jsonl").read_bytes().splitlines():
        theirs = json.loads(row)
        path = tmp_path / f"2026-08-22_{theirs['n']:08d}.jsonl"
        path.write_bytes(theirs["content"].encode())
        assert theirs["open_error"] is None
        store = opened(path)
        assert store.leaf_id == theirs["leaf_id"], theirs["n"]
        snapshot = theirs["snapshot"]
        if snapshot["error"] is not None:
            with pytest.raises(StorageError):
                store.snapshot()
            continue
        ours = store.snapshot()
        same_messages_except_overwritten([lenient(raw) for raw in ours.messages], snapshot["messages"] or [])
        same({key: value for key, value in lenient(ours.goal).items() if value or key == "status"}, snapshot["goal"])
        for field in ("provider", "model", "plan_slug", "plan_phase", "plan_pre_mode", "reasoning_effort"):
            assert getattr(ours, field) == snapshot[field], (theirs["n"], field)
        store.append_message(APPENDED)
        assert path.read_bytes()[: theirs["size_after"]] == theirs["content"].encode()[: theirs["size_after"]].ljust(
            theirs["size_after"], b"\n"
        )


def test_list_of_fuzzed_sessions(shared: Path, tmp_path: Path) -> None:
    """`updated` is the newest time among the entries, the header's line included, also where the header's `created` is later."""
    for row in (shared / "golden/expected/fuzz.jsonl").read_bytes().splitlines():
        theirs = json.loads(row)
        (tmp_path / f"2026-08-22_{theirs['n']:08d}.jsonl").write_bytes(theirs["content"].encode())
    found = SessionManager(str(tmp_path)).list()
    ours = {info.path: info for info in found.sessions}
    for row in (shared / "golden/expected/fuzz.jsonl").read_bytes().splitlines():
        theirs = json.loads(row)
        info = ours.pop(str(tmp_path / f"2026-08-22_{theirs['n']:08d}.jsonl"))
        for field in ("id", "name", "message_count", "first_message", "updated"):
            same(getattr(info, field), theirs["list"][field], f"{theirs['n']}.{field}")
    assert ours == {}
    assert found.skipped == []


SYNTHETIC = {json.dumps(INTERRUPTED), json.dumps(MISSING)}


def is_synthetic(message: Json) -> bool:
    content = message.get("content") or []
    return message.get("role") == "tool" and len(content) == 1 and content[0].get("text") in SYNTHETIC


def same_messages_except_overwritten(ours: list[Json], theirs: list[Json]) -> None:
    """4: where Go wrote its text over a real result (which came before its call, or answers another call of that id), ours is the
    real one, and the call without a result got the text that Go had used up.
    """
    assert len(ours) == len(theirs)
    overwritten = any(is_synthetic(their) and not is_synthetic(our) for our, their in zip(ours, theirs))
    if not overwritten:
        same_messages(ours, theirs)
        return
    for our, their in zip(ours, theirs):
        if is_synthetic(their):
            assert our["role"] == "tool"
            assert our["metadata"].get("tool_call_id", "") == their["metadata"]["tool_call_id"]
        else:
            same_messages([our], [their])


def test_every_golden_line_is_json_here(shared: Path) -> None:
    for path in (shared / "golden/codebot/projects/-workspace-demo-app").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            assert rawjson.is_valid(line)
