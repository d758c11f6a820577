"""Can a language client that we did not write use the server?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

COMMAND = [sys.executable, "-P", "-m", "crewlog.server", "--durability", "process"]


class Client(LanguageClient):
    """pygls' own client, as it is."""

    def __init__(self) -> None:
        super().__init__("somebody's editor", "1")
        self.told: list[tuple[str, Any]] = []
        for name in ("task/didChange", "session/didChange"):
            self.feature(name)(lambda params, name=name: self.told.append((name, params)))

    async def call(self, method: str, **params: object) -> Any:
        return await self.protocol.send_request_async(method, params)


async def started(home: Path, **more: Any) -> tuple[Client, types.InitializeResult]:
    client = Client()
    await client.start_io(*COMMAND, "--home", str(home))
    result = await client.initialize_async(
        types.InitializeParams(capabilities=types.ClientCapabilities(), process_id=None, root_uri=home.parent.as_uri(), **more)
    )
    client.initialized(types.InitializedParams())
    return client, result


async def stopped(client: Client) -> None:
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()  # type: ignore[no-untyped-call]  # pygls leaves it untyped


async def test_an_unmodified_language_client_works(home: Path) -> None:
    client, result = await started(home)
    assert result.server_info is not None
    assert result.server_info.name == "crewlog"
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri="file:///x", language_id="text", version=1, text="hello"))
    )
    client.set_trace(types.SetTraceParams(types.TraceValue.Verbose))
    client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings={}))
    task = await client.call("task/create", listId="x", subject="from a language client")
    assert (task.id, task.subject) == ("1", "from a language client")
    listed = await client.call("task/list", listId="x")
    assert listed.counts.total == 1
    session = await client.call("session/create")
    await client.call("session/append", sessionId=session.session.id, entries=[{"kind": "message", "data": {"role": "user"}}])
    snapshot = await client.call("session/snapshot", sessionId=session.session.id)
    assert snapshot.messages[0].role == "user"
    with pytest.raises(Exception, match="not found"):
        await client.call("task/claim", listId="x", id="7", owner="a")
    await stopped(client)


async def test_it_is_told_of_changes_and_can_cancel(home: Path) -> None:
    import asyncio

    client, _ = await started(home)
    await client.call("subscribe", topics=["task"], listIds=["x"])
    waiting = client.protocol.send_request("task/claimNext", {"listId": "x", "owner": "a", "waitMs": 60_000}, msg_id="wait")
    client.cancel_request(types.CancelParams("wait"))
    with pytest.raises(Exception, match="cancelled"):
        await asyncio.wait_for(asyncio.wrap_future(waiting), 20)
    await client.call("task/create", listId="x", subject="s")
    for _ in range(400):
        if client.told:
            break
        await asyncio.sleep(0.05)
    name, params = client.told[0]
    assert name == "task/didChange"
    assert params.changed[0].subject == "s"
    await stopped(client)


async def test_pytest_lsp_can_drive_it(home: Path) -> None:
    import pytest_lsp

    client = pytest_lsp.make_test_lsp_client()
    await client.start_io(*COMMAND, "--home", str(home))
    result = await client.initialize_session(
        types.InitializeParams(
            capabilities=pytest_lsp.client_capabilities("visual-studio-code"),
            process_id=None,
            root_uri=home.parent.as_uri(),
            workspace_folders=[types.WorkspaceFolder(home.parent.as_uri(), "work")],
        )
    )
    assert result.capabilities.experimental is not None
    created = await client.protocol.send_request_async("session/create", {"name": "mine"})  # type: ignore[no-untyped-call]  # as above
    assert created.session.cwd == str(home.parent.resolve())
    await client.shutdown_session()


async def test_a_client_that_writes_an_empty_table_as_a_list(home: Path) -> None:
    """Lua cannot tell `{}` from `[]`: initializationOptions come as an empty list."""
    client, result = await started(home, initialization_options=[])
    assert result.capabilities.experimental is not None
    await stopped(client)
