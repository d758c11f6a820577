"""Where everything lies under a home folder (formats.md, "Home")."""

from __future__ import annotations

import os

from crewlog.storage.errors import InvalidArgument
from crewlog.storage.names import check_name, project_id

DEFAULT = "~/.codebot"
VARIABLE = "CREWLOG_HOME"


def resolve_home(option: str | None = None, initialization: str | None = None) -> str:
    """The home folder: `~/.codebot`, overridden by `--home`, `$CREWLOG_HOME` and `initializationOptions.home`, in rising order.

    Raises `InvalidArgument` where `~` stands for nothing.
    """
    chosen = os.path.expanduser(initialization or os.environ.get(VARIABLE) or option or DEFAULT)
    if chosen.startswith("~"):
        raise InvalidArgument("home", f"{chosen!r} cannot be found: this user has no home folder; name one with --home or {VARIABLE}")
    return os.path.abspath(chosen)


def resolve_project_folder(cwd: str) -> str:
    """The working directory as the project's name is made of: absolute, links resolved, spelled as the file system spells it."""
    return os.path.realpath(os.path.expanduser(cwd))


class Home:
    """The paths under one home. Makes nothing, reads nothing; names from outside are checked (`InvalidName`)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.projects = os.path.join(path, "projects")
        self.plans = os.path.join(path, "plans")
        self.tasks = os.path.join(path, "tasks")
        self.history = os.path.join(path, "history.jsonl")
        self.trash = os.path.join(path, ".trash")

    def sessions(self, cwd: str) -> str:
        """The folder of a project's session logs; `cwd` as `resolve_project_folder` gives it."""
        return os.path.join(self.projects, project_id(cwd))

    def task_list(self, list_id: str) -> str:
        return os.path.join(self.tasks, check_name(list_id, "listId"))

    def team(self, list_id: str) -> str:
        return os.path.join(self.task_list(list_id), "team")

    def transcripts(self, list_id: str) -> str:
        return os.path.join(self.team(list_id), "transcripts")
