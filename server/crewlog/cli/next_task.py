"""`crewlog tasks next --wait … --exec …`: waits for work, runs a command for it, and completes it or gives it back by its exit code.

While the command runs, this process's server renews the lease. Were this process killed, the server and the command would end with it, the
lease would lapse, and the task could be taken.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from crewlog.cli.output import complain, say, say_json
from crewlog.cli.runner import run_command
from crewlog.cli.tasks import describe, read_task
from crewlog.client import Client, Task
from crewlog.client.errors import ClientError
from crewlog.storage.errors import LeaseLost, StorageError

DEFAULT_LEASE_MS = 60_000
"""With --exec there is always a lease: who dies must not keep the task."""
LONGEST_VARIABLE = 100 * 1024
"""Bytes. Linux takes 128 KiB with the name, and all of them together with the command line in some MiB; macOS 1 MiB altogether."""


class Taking(msgspec.Struct):
    """What is wanted, by whom, and for how long."""

    home: str
    cwd: str
    list_id: str
    owner: str
    lease_ms: int | None
    wait_ms: int | None
    match: dict[str, msgspec.Raw] | None


def take_next(taking: Taking, command: str | None, *, as_json: bool) -> int:
    """The exit code of the command line."""
    lease_ms = taking.lease_ms if taking.lease_ms is not None or command is None else DEFAULT_LEASE_MS
    with Client(home=taking.home, cwd=taking.cwd, name=f"crewlog tasks next ({taking.owner})", subscribe=False) as client:
        task = client.task.claim_next(
            taking.list_id,
            taking.owner,
            lease_ms=lease_ms,
            auto_renew=command is not None,
            wait_ms=taking.wait_ms or 0,
            match=taking.match,
        )
        if task is None:
            complain("noTask", f"nothing could be claimed in {taking.list_id}", as_json=as_json)
            return 1
        if command is None:
            _tell(task, as_json)
            return 0
        return _work(client, taking, task, command, as_json)


def _tell(task: Task, as_json: bool) -> None:
    if as_json:
        say_json(msgspec.Raw(task.raw))
    else:
        say(describe(read_task(task.raw)))


def _work(client: Client, taking: Taking, task: Task, command: str, as_json: bool) -> int:
    try:
        client.task.update(taking.list_id, task.id, status="in_progress")
        code = run_command(command, _environment(taking, task))
    except BaseException:  # it could not be started, or Ctrl-C came before it was: nobody works on it
        with contextlib.suppress(StorageError, ClientError):
            client.task.update(taking.list_id, task.id, status="pending", owner="")
        raise
    try:
        if code == 0:
            done = client.task.update(taking.list_id, task.id, status="completed")
            if done is not None:
                _tell(done, as_json)
            return 0
        client.task.update(taking.list_id, task.id, status="pending", owner="")
    except LeaseLost as error:
        complain("leaseLost", str(error), as_json=as_json)
        return 1
    what = f"signal {-code}" if code < 0 else f"exit code {code}"
    complain("commandFailed", f"{what}; task {task.id} is given back", as_json=as_json)
    return 1


def _environment(taking: Taking, task: Task) -> dict[bytes, bytes]:
    """What the command finds: in UTF-8, whatever the locale. Text that an environment cannot hold (NUL) is left out of it."""
    record = read_task(task.raw)
    told = {
        "CREWLOG_HOME": taking.home,
        "CREWLOG_LIST": taking.list_id,
        "CREWLOG_OWNER": taking.owner,
        "CREWLOG_TASK": bytes(task.raw).decode("utf-8", "replace"),
        "CREWLOG_TASK_ID": record.id,
        "CREWLOG_TASK_SUBJECT": record.subject,
        "CREWLOG_TASK_DESCRIPTION": record.description,
    }
    environment = {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    for name, value in told.items():
        content = os.fsencode(value) if name == "CREWLOG_HOME" else value.encode("utf-8", "replace").replace(b"\0", b"")
        if len(content) <= LONGEST_VARIABLE:
            environment[name.encode()] = content
            continue
        environment.pop(name.encode(), None)
        complain("tooLarge", f'{name} is left out, too large for a variable; see `crewlog tasks show "$CREWLOG_TASK_ID" --json`')
    return environment
