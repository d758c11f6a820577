"""A log cut off at every single byte: nothing before the cut is lost, and the next append is well-formed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crewlog.storage import PROCESS, SessionCorrupt, SessionManager
from crewlog.storage.sessions import SessionStore

LOGS = ["plain_chat", "states", "compaction_two", "escapes", "usage_cost", "torn_tail_utf8", "crlf"]
NEXT = b'{"role":"user","content":[{"type":"text","text":"next"}]}'


def lines_of(content: bytes) -> list[bytes]:
    return [line for line in content.split(b"\n") if line.strip()]


@pytest.mark.parametrize("name", LOGS)
def test_cut_anywhere(shared: Path, tmp_path: Path, name: str) -> None:
    expected = json.loads((shared / f"golden/expected/sessions/{name}.json").read_bytes())
    whole = (shared / "golden" / expected["file"]).read_bytes()[:6000]
    path = tmp_path / "2026-08-20_0000cafe.jsonl"
    header_end = len(whole[: whole.index(b"\n")].rstrip())
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        if cut < header_end:
            with pytest.raises(SessionCorrupt):
                opened(path)
            assert path.read_bytes() == whole[:cut]  # a file that is no session yet is never changed
            continue
        kept = [line for line in lines_of(whole[:cut]) if is_json(line)]
        store = opened(path)
        assert store.entry_count == len({json.loads(line)["id"] for line in kept})
        parent = store.leaf_id
        assert parent == json.loads(kept[-1])["id"]
        done = store.append_message(NEXT)
        after = lines_of(path.read_bytes())
        assert after[:-1] == kept
        assert path.read_bytes().endswith(b"\n")
        last = json.loads(after[-1])
        assert (last["id"], last["parent_id"]) == (done.id, parent)
        store.close()


def opened(path: Path) -> SessionStore:
    return SessionManager(str(path.parent), durability=PROCESS).open_path(str(path))


def is_json(line: bytes) -> bool:
    try:
        json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return False
    return True


def test_a_tail_of_nuls(tmp_path: Path) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    store.append_message(NEXT)
    good = Path(store.path).read_bytes()
    Path(store.path).write_bytes(good + b'{"kind":"mess' + b"\0" * 4096)
    again = opened(Path(store.path))
    assert again.recovered is not None
    assert again.recovered.size == 13 + 4096
    assert len(again.snapshot().messages) == 1
    again.append_message(NEXT)
    assert Path(store.path).read_bytes().startswith(good)
    assert b"\0" not in Path(store.path).read_bytes()


def test_a_record_glued_to_half_a_record_is_named_by_its_line(tmp_path: Path) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    store.append_message(NEXT)
    lines = Path(store.path).read_bytes().splitlines(keepends=True)
    Path(store.path).write_bytes(lines[0] + b'{"kind":"message","id":"aa' + lines[1])
    with pytest.raises(SessionCorrupt) as caught:
        opened(Path(store.path))
    assert caught.value.line == 2


def test_what_is_glued_to_an_unterminated_record_is_seen_as_one_line(tmp_path: Path) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    store.append_message(NEXT)
    path = Path(store.path)
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip(b"\n"))
    reader = opened(path)
    with path.open("ab") as file:
        file.write(b'{"kind":"message","id":"zz","parent_id":"h0","data":{}}\n')
    with pytest.raises(SessionCorrupt) as caught:
        reader.refresh()
    assert caught.value.line == 2


def test_a_viewer_never_cuts_the_line_of_a_live_writer(tmp_path: Path) -> None:
    store = SessionManager(str(tmp_path), durability=PROCESS).create("/x")
    path = Path(store.path)
    line = b'{"kind":"message","id":"11111111","parent_id":"h0","timestamp":"2026-01-01T00:00:00Z","data":{"role":"user"}}'
    viewer = opened(path)
    with path.open("ab", buffering=0) as file:
        for at in range(len(line)):
            file.write(line[at : at + 1])
            viewer.refresh()
            assert viewer.leaf_id == ("h0" if at < len(line) - 1 else "11111111")
        file.write(b"\n")
    assert viewer.refresh() is None
    assert viewer.append_message(NEXT).parent_id == "11111111"
    assert len(opened(path).snapshot().messages) == 2
