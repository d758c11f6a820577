"""Every exported name of the Go package has the counterpart that the table in storage/README.md says."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import crewlog.storage as storage
from tests_support import ROOT, shared_folder

TABLE = dict(re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", (ROOT / "storage/README.md").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("go", TABLE)
def test_counterpart_exists(go: str) -> None:
    name, _, member = TABLE[go].partition(".")
    found = getattr(storage, name)
    assert name in storage.__all__
    if not member:
        return
    if hasattr(found, member):
        assert getattr(found, member) is not None
    else:
        assert member in vars(made(found))


def made(store: type) -> object:
    return store("x") if store is storage.SessionStore else store()


def test_table_is_complete() -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("the page of the Go package is not here: set CREWLOG_SHARED")
    page = Path(shared / "reference/storage-api.txt").read_text("utf-8")
    functions = re.findall(r"^func (\w+)", page, re.MULTILINE)
    methods = re.findall(r"^func \(\w+ \*?(\w+)\) (\w+)", page, re.MULTILINE)
    types = re.findall(r"^type (\w+)", page, re.MULTILINE)
    values = re.findall(r"^\t((?:Err|Entry|Task)[A-Z]\w+)\s+(?:=|EntryKind|TaskStatus)", page, re.MULTILINE)
    names = {*functions, *types, *values, *(f"{type_}.{method}" for type_, method in methods)}
    assert len(names) > 90
    assert names <= TABLE.keys(), names - TABLE.keys()


@pytest.mark.parametrize(
    ("go", "fields"),
    [
        ("Header", "version session_id name cwd created"),
        ("Entry", "kind id parent_id timestamp data"),
        ("ModelChange", "provider model"),
        ("Compaction", "summary messages"),
        ("PlanStateEntry", "phase slug pre_mode"),
        ("RosterMember", "name agent_type color initial_prompt description depth kind"),
        ("ContextSnapshot", "messages provider model reasoning_effort plan_slug plan_phase plan_pre_mode goal"),
        ("SessionInfo", "id name path cwd created updated message_count first_message"),
        ("TaskSnapshot", "items pending in_progress completed total"),
        ("TaskUpdateOpts", "status subject description active_form owner metadata add_blocks add_blocked_by"),
        ("Task", "id subject description active_form status owner blocks blocked_by metadata completed_at"),
        ("PlanFile", "name mod_time"),
        ("HistoryEntry", "display pasted_contents timestamp project session_id"),
    ],
)
def test_records_have_the_fields(go: str, fields: str) -> None:
    record = getattr(storage, TABLE[go])
    assert set(fields.split()) <= {field.name for field in msgspec.structs.fields(record)}
