"""An LSP client that we did not write, as it is: pygls's own. Whatever editors use would meet the server as it does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

PATIENCE = 30.0


Told = asyncio.Queue[Any]
"""The notifications of tasks that came."""


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[tuple[LanguageClient, Told, types.InitializeResult]]:
    client = LanguageClient("an editor", "1")
    told: Told = asyncio.Queue()

    def on_tasks(params: Any) -> None:
        told.put_nowait(params)

    client.feature("task/didChange")(on_tasks)
    await client.start_io(sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-m", "crewlog.server")
    options = {"home": str(tmp_path / "home"), "cwd": str(tmp_path)}
    parameters = types.InitializeParams(capabilities=types.ClientCapabilities(), process_id=os.getpid(), initialization_options=options)
    result = await asyncio.wait_for(client.initialize_async(parameters), PATIENCE)
    client.initialized(types.InitializedParams())
    yield client, told, result
    await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
    client.exit(None)
    stop: Any = client.stop  # it has no types
    await stop()


async def ask(client: LanguageClient, method: str, **params: Any) -> Any:
    return await asyncio.wait_for(client.protocol.send_request_async(method, params), PATIENCE)


Started = tuple[LanguageClient, Told, types.InitializeResult]


async def test_it_is_told_what_the_server_can(client: Started, tmp_path: Path) -> None:
    _, _, result = client
    assert result.server_info is not None
    assert result.server_info.name == "crewlog"
    about: Any = result.capabilities.experimental
    crewlog = about["crewlog"] if isinstance(about, dict) else about.crewlog
    home = crewlog["home"] if isinstance(crewlog, dict) else crewlog.home
    assert home == str(tmp_path / "home")


async def test_it_works_on_a_board_and_hears_of_changes(client: Started) -> None:
    editor, told, _ = client
    await ask(editor, "subscribe", topics=["task"], listIds=["board"])
    task = await ask(editor, "task/create", listId="board", subject="from an editor", metadata={"a": [1, {"b": None}]})
    assert task.subject == "from an editor"
    change = await asyncio.wait_for(told.get(), PATIENCE)
    assert change.changed[0].id == task.id
    assert change.counts.pending == 1
    claimed = await ask(editor, "task/claimNext", listId="board", owner="me", leaseMs=60_000)
    assert claimed.claim.owner == "me"


async def test_it_gets_our_errors(client: Started) -> None:
    editor, _, _ = client
    with pytest.raises(JsonRpcException) as missing:
        await ask(editor, "task/claim", listId="board", id="7", owner="me")
    assert missing.value.code == 1101
    with pytest.raises(JsonRpcException) as wrong:
        await ask(editor, "task/claim", listId="board", id="7", owner="me", leaseMs=0)
    assert wrong.value.code == -32602
    assert "$.leaseMs" in wrong.value.message
    with pytest.raises(JsonRpcException) as unknown:
        await ask(editor, "no/such")
    assert unknown.value.code == -32601


async def test_it_may_send_what_editors_send(client: Started) -> None:
    editor, _, _ = client
    document = types.TextDocumentItem(uri="file:///x.py", language_id="python", version=1, text="x = 1\n")
    editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
    change = types.TextDocumentContentChangeWholeDocument(text="x = 2\n")
    versioned = types.VersionedTextDocumentIdentifier(version=2, uri="file:///x.py")
    editor.text_document_did_change(types.DidChangeTextDocumentParams(versioned, [change]))
    editor.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier("file:///x.py")))
    editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier("file:///x.py")))
    editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
    editor.set_trace(types.SetTraceParams(types.TraceValue.Verbose))
    assert (await ask(editor, "crewlog/status")).pid > 0


async def test_it_cancels_a_request_that_waits(client: Started) -> None:
    editor, _, _ = client
    params = {"listId": "board", "owner": "me", "waitMs": 60_000}
    waiting = editor.protocol.send_request("task/claimNext", params, msg_id="waits")
    await ask(editor, "task/list", listId="board")
    editor.cancel_request(types.CancelParams(id="waits"))
    with pytest.raises(JsonRpcException) as cancelled:
        await asyncio.wait_for(asyncio.wrap_future(waiting), PATIENCE)
    assert cancelled.value.code == -32800
    await ask(editor, "task/create", listId="board", subject="one")
    found = await ask(editor, "task/findClaimable", listId="board")
    assert found is not None, "a cancelled request has taken the task"
