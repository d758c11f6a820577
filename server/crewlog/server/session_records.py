"""Sessions as the wire shows them. Imports no store: task boards name sessions too, and a command for them must not wait for the rest."""

from __future__ import annotations

from crewlog.protocol import records
from crewlog.storage.records import SessionInfo


def info_record(info: SessionInfo) -> records.SessionInfo:
    return records.SessionInfo(
        id=info.id,
        name=info.name,
        path=info.path,
        cwd=info.cwd,
        created=info.created,
        updated=info.updated,
        message_count=info.message_count,
        first_message=info.first_message,
    )
