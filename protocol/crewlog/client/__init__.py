"""The Python client: `Client` blocks, `AsyncClient` is for asyncio; both start a server of their own and speak the whole protocol.

    from crewlog.client import Client

    with Client(home="/tmp/demo") as client:
        task = client.task.create("list", "write the report")
        client.task.claim("list", task.id, owner="me", lease_ms=30_000)

Errors are those of `crewlog.storage.errors`. Stored records (`Task`, `Entry`, `Message` …) have the fields known today as properties
and the JSON to the last byte as `raw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crewlog.client.blocking import Client, Notifications
from crewlog.client.errors import ClientError, ConnectionLost, NotStarted, RequestTimeout
from crewlog.client.exchange import Server
from crewlog.client.results import Entry, GoalState, HistoryLine, Message, Roster, RosterDidChange, RosterMember, Task, TaskDidChange
from crewlog.client.stored import Json, NewEntry, json_value
from crewlog.protocol.errors import InvalidParams, ResponseError
from crewlog.protocol.params import Subscribe
from crewlog.protocol.results import PlanDidChange, SessionDidChange

if TYPE_CHECKING:
    from crewlog.client.aio import AsyncClient, AsyncNotifications


def __getattr__(name: str) -> object:
    """asyncio is imported when it is asked for: it takes as long as all the rest."""
    if name in ("AsyncClient", "AsyncNotifications"):
        from crewlog.client import aio

        return getattr(aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AsyncClient",
    "AsyncNotifications",
    "Client",
    "ClientError",
    "ConnectionLost",
    "Entry",
    "GoalState",
    "HistoryLine",
    "InvalidParams",
    "Json",
    "Message",
    "NewEntry",
    "NotStarted",
    "Notifications",
    "PlanDidChange",
    "RequestTimeout",
    "ResponseError",
    "Roster",
    "RosterDidChange",
    "RosterMember",
    "Server",
    "SessionDidChange",
    "Subscribe",
    "Task",
    "TaskDidChange",
    "json_value",
]
