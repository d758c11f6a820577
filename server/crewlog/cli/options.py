"""Options that many commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

P = ParamSpec("P")
T = TypeVar("T")
FOLDER = click.Path(file_okay=False)
"""Need not exist: shells complete it."""
Decorator = Callable[[Callable[P, T]], Callable[P, T]]


class Seconds(click.FloatRange):
    """A time. What is not a number lies in every range of click's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What `completing` offers under that name; imported when a shell asks."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from crewlog.cli import completing

        found: list[CompletionItem] = getattr(completing, name)(context, parameter, incomplete)
        return found

    return complete


def _root_home(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """`crewlog --home DIR tasks list` means the same as `crewlog tasks list --home DIR`."""
    top = context.find_root().params.get("home")
    return value if value is not None else top if isinstance(top, str) else None


def home_and_json(command: Callable[P, T]) -> Callable[P, T]:
    """`--home` and `--json`, which every command has."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON, with the records of the wire.")(command)
    return click.option(
        "--home", metavar="DIR", type=FOLDER, callback=_root_home, help="The home folder (default ~/.codebot; $CREWLOG_HOME overrides)."
    )(command)


def project(command: Callable[P, T]) -> Callable[P, T]:
    """`--project`, for commands that work in the sessions of one."""
    return click.option("--project", metavar="DIR", type=FOLDER, help="The project's folder (default: where you stand).")(command)


def task_list(command: Callable[P, T]) -> Callable[P, T]:
    """`--list`, and `--project` by which it is found."""
    named = click.option(
        "--list",
        "list_id",
        metavar="ID",
        shell_complete=completed_by("lists"),
        help="The task list (default: $CREWLOG_LIST, else that of the project's newest session, else the only one there is).",
    )
    return named(project(command))


owner = click.option(
    "--owner",
    required=True,
    metavar="NAME",
    envvar="CREWLOG_OWNER",
    show_envvar=True,
    shell_complete=completed_by("owners"),
    help="Who works on it.",
)
lease = click.option(
    "--lease", "lease_s", type=Seconds(min=0.001, max=86_400), metavar="SECONDS", help="The claim lapses unless renewed in time."
)


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))
