"""`crewlog doctor`."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable

import click

from crewlog.cli import options
from crewlog.cli.local import chosen_home
from crewlog.cli.output import complain, counted, say, say_json, sized, styled, table
from crewlog.storage.doctor import Finding, Report, examine, mend
from crewlog.storage.home import Home

_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}
_ENOUGH = 3
"""Files that others can get at are named so often; the rest are counted."""
_REDRAW = 0.1
"""Seconds between two states of the progress line."""


@click.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended; the original of every changed file is kept in .trash/.")
@click.option("--quiet", "-q", is_flag=True, help="Only what is wrong: no notes, no sizes.")
@options.home_and_json
def doctor(fix: bool, quiet: bool, home: str | None, as_json: bool) -> None:
    """Check a home as `git fsck` checks a repository.

    Unreadable lines, torn tails, broken chains, duplicate ids; tasks whose dependencies are one-sided, dangling or circular; lapsed
    leases; files that others can read; what a crash left behind; an index out of step or damaged; disk use.

    Without --fix nothing is changed. A finding that --fix can mend is marked with +. codebot takes no locks: end it before you use --fix.
    Refused as problemsFound where errors or warnings remain.
    """
    place = Home(chosen_home(home))
    before = examine(place, _progress())
    after = before
    if fix and any(finding.mendable for finding in before.findings):
        mend(place, before)
        after = examine(place, _progress())
    remaining = [finding for finding in after.findings if finding.severity != "note"]
    if as_json:
        say_json({"home": place.path, "findings": before.findings, "remaining": after.findings, "diskUse": after.usage})
    else:
        _tell(before, fix=fix, quiet=quiet)
        _sum_up(before, after, fix=fix)
        if not quiet:
            _tell_usage(after)
    if remaining:
        complain("problemsFound", f"{len(remaining)} in {place.path}", as_json=as_json)
        sys.exit(1)


def _progress() -> Callable[[int, int], None]:
    """A line that redraws itself where there is a terminal to see it."""
    if not sys.stderr.isatty():
        return lambda done, total: None
    shown = time.monotonic()

    def redraw(done: int, total: int) -> None:
        nonlocal shown
        if done >= total:
            click.echo("\r\x1b[K", nl=False, err=True)
        elif time.monotonic() - shown > _REDRAW:
            shown = time.monotonic()
            click.echo(f"\r\x1b[Klooking: {done * 100 // total} % of {sized(total)}", nl=False, err=True)

    return redraw


def _tell(report: Report, *, fix: bool, quiet: bool) -> None:
    told: Counter[str] = Counter()
    for finding in report.findings:
        told[finding.kind] += 1
        if (quiet and finding.severity == "note") or (finding.kind == "readableByOthers" and told[finding.kind] > _ENOUGH):
            continue
        _tell_one(report, finding, fix=fix)
    if told["readableByOthers"] > _ENOUGH:
        say(f"            … and {told['readableByOthers'] - _ENOUGH} more that others can get at (all of them with --json)")


def _tell_one(report: Report, finding: Finding, *, fix: bool) -> None:
    plus = "+" if finding.mendable and not fix else " "
    where = styled(os.path.relpath(finding.path, report.home))
    if finding.line:
        where += f":{finding.line} (byte {finding.byte})"
    say(f"{styled(finding.severity.ljust(7), _COLOURS[finding.severity])} {plus} {styled(finding.kind, bold=True)}  {where}")
    say(f"            {styled(finding.reason)}")
    if finding.mended:
        say(f"            {styled('mended:', 'green')} {styled(finding.mended)}{_original(finding)}")


def _original(finding: Finding) -> str:
    return f"; the original is {styled(finding.kept)}" if finding.kept else ""


def _sum_up(before: Report, after: Report, *, fix: bool) -> None:
    found = Counter(finding.severity for finding in before.findings)
    counts = ", ".join(counted(found[severity], severity) for severity in _COLOURS if found[severity])
    say(f"{styled('found', bold=True)} {counts}" if counts else styled("nothing is wrong", "green", bold=True))
    mendable = sum(finding.mendable for finding in before.findings)
    if fix:
        mended = sum(bool(finding.mended) for finding in before.findings)
        left = counted(len(after.findings), "finding")
        say(f"{styled('mended', 'green', bold=True)} {mended} of {mendable} that can be mended; {left} left")
    elif mendable:
        say(f"{mendable} of them (+) can be mended: crewlog doctor --fix")


def _tell_usage(report: Report) -> None:
    rows = [[kind, str(usage.files), sized(usage.bytes)] for kind, usage in sorted(report.usage.items())]
    if rows:
        say(table(rows, ["KIND", "FILES", "SIZE"]))
