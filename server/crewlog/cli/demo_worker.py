"""One process of the demonstration: an agent that takes work from the board, or the watcher that shows what it is told."""

from __future__ import annotations

import os
import random
import sys
import time

import click

from crewlog.cli.demo import COLOURS
from crewlog.cli.demo_script import message, text
from crewlog.client import Client, PlanDidChange, RosterDidChange, SessionDidChange, TaskDidChange

LEASE_MS = 5_000


def say(who: str, words: str) -> None:
    colour = bool(os.environ.get("CREWLOG_DEMO_COLOUR"))
    click.echo(f"{click.style(who.rjust(8), fg=COLOURS[who], bold=True)}  {words}", color=colour)
    sys.stdout.flush()


def agent(name: str, client: Client, list_id: str, pace: float) -> None:
    """Takes work until the board is done. The claim is a lease: were this process killed, another agent could take the task over."""
    while True:
        task = client.task.claim_next(list_id, name, lease_ms=LEASE_MS, wait_ms=500)
        if task is None:
            counts = client.task.list(list_id).counts
            if counts.completed == counts.total:
                say(name, "finds the board done, and goes home")
                return
            continue
        say(name, f"takes #{task.id} {task.subject}")
        client.task.update(list_id, task.id, status="in_progress")
        client.transcript.append(list_id, name, [message("user", text(f"Task {task.id}: {task.subject}")).data])
        time.sleep(random.uniform(0.4, 1.2) * pace)
        client.transcript.append(list_id, name, [message("assistant", text(f"{task.subject}: done.")).data])
        client.task.update(list_id, task.id, status="completed")
        say(name, f"completes #{task.id}")


def watch(client: Client, list_id: str, ready: int) -> None:
    """Prints every notification until the board is done. It is told by its own server, which is told by the system that files changed."""
    changes = client.notifications()
    client.subscribe(list_ids=[list_id], topics=["task", "roster"])
    say("watcher", f"has a server of its own (process {client.pid}) and subscribes to the board")
    os.write(ready, b"x")
    for change in changes:
        if isinstance(change, TaskDidChange):
            counts = change.counts
            words = ", ".join(f"#{task.id} {task.status}{' by ' + task.owner if task.owner else ''}" for task in change.changed)
            say("watcher", f"is told: {words}   [{counts.completed}/{counts.total} done]")
            if counts.completed == counts.total:
                return
        elif isinstance(change, (RosterDidChange, PlanDidChange, SessionDidChange)):
            say("watcher", f"is told: {type(change).__name__}")


def main(arguments: list[str]) -> None:
    who, home, project, list_id, pace, ready = arguments
    if who == "watcher":
        with Client(home=home, cwd=project, name=who, subscribe=False) as client:
            watch(client, list_id, int(ready))
        return
    with Client(home=home, cwd=project, name=who, subscribe=False) as client:
        say(who, f"has a server of its own (process {client.pid}) and looks for work")
        agent(who, client, list_id, float(pace))


if __name__ == "__main__":
    main(sys.argv[1:])
