"""`crewlog status`."""

from __future__ import annotations

import os

import click

from crewlog.cli import options
from crewlog.cli.local import Local
from crewlog.cli.output import one_line, say, say_json, sized, styled, table
from crewlog.storage.doctor_files import Usage, walk
from crewlog.storage.presence import Process, processes


@click.command()
@options.project
@options.home_and_json
def status(project: str | None, home: str | None, as_json: bool) -> None:
    """Who has servers on this home, how they watch it, and how large it is.

    There is no register of servers: this is read from the locks and, on Linux, from what the kernel tells. Elsewhere only processes
    that have written are seen.
    """
    local = Local(home, project)
    place = local.ws.home
    there = processes(place)
    usage: dict[str, Usage] = {}
    for found in walk(place):
        if not found.is_folder:
            kind = usage.setdefault(found.kind, Usage())
            kind.files += 1
            kind.bytes += found.size
    if as_json:
        exists = os.path.isdir(place.path)
        say_json({"home": place.path, "exists": exists, "projectId": local.ws.project_id, "processes": there, "diskUse": usage})
        return
    say(f"{styled('home', dim=True)}     {styled(place.path)}{'' if os.path.isdir(place.path) else '  (not there yet)'}")
    say(f"{styled('project', dim=True)}  {styled(local.ws.cwd)}  ({styled(local.ws.project_id)})")
    rows = [[styled(str(process.pid), "cyan"), _watching(process), styled(one_line(_who(process), 100))] for process in there]
    say("\n" + (table(rows, ["PROCESS", "", "STARTED BY"], flexible=2) if rows else "Nobody has this home open now."))
    sizes = [[kind, str(item.files), sized(item.bytes)] for kind, item in sorted(usage.items())]
    if sizes:
        say("\n" + table(sizes, ["KIND", "FILES", "SIZE"]))


def _watching(process: Process) -> str:
    return styled("watches", "green") if process.watches else "has files open" if process.open_files else "has written"


def _who(process: Process) -> str:
    return f"{process.client}: {process.parent or process.command}" if process.client else process.parent or process.command
