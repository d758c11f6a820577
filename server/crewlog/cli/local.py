"""The methods of the protocol, called in this process: commands answer at once, without a server, with the records of the wire.

Only what waits for others (`tasks next --wait`, `watch`) starts a server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

import click
import msgspec

from crewlog.protocol.envelope import decode_params
from crewlog.protocol.methods import METHODS
from crewlog.protocol.wire_json import encode_json
from crewlog.server.call import Call
from crewlog.server.workspace import Workspace
from crewlog.storage import rawjson
from crewlog.storage.errors import SessionNotFound, StorageFailed
from crewlog.storage.files import POWER
from crewlog.storage.home import VARIABLE, resolve_home
from crewlog.storage.names import check_name

R = TypeVar("R")
_HANDLERS_IN = {"session": "session_methods", "task": "board_methods", "roster": "board_methods", "transcript": "board_methods"}
LIST_VARIABLE = "CREWLOG_LIST"


def chosen_home(option: str | None) -> str:
    """The home folder as formats.md orders it; says so where the environment overrules what was typed.

    Raises `StorageFailed` for something that is there and is no folder.
    """
    home = resolve_home(option)
    if option is not None and os.path.abspath(os.path.expanduser(option)) != home:
        click.echo(f"crewlog: ${VARIABLE} overrides --home: {home}", err=True)
    if os.path.lexists(home) and not os.path.isdir(home):
        raise StorageFailed(home, "ENOTDIR", "it is no folder, so that it cannot be a home")
    return home


def _project_folder(named: str | None) -> str:
    """The folder that names the project. Raises a usage error where one stands in a folder that was deleted."""
    try:
        return os.path.abspath(os.path.expanduser(named or os.getcwd()))
    except FileNotFoundError:
        raise click.UsageError("the folder you stand in is not there any more; name the project with --project") from None


def _encoded(name: str, value: object) -> bytes:
    """A param as JSON. Raises a usage error for text that came as bytes other than UTF-8: no reader would get it back as it was."""
    for text in (value, *value) if isinstance(value, list) else (value,):
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise click.UsageError(f"{name.replace('_', ' ')}: {text!a} is no UTF-8 text") from None
    return encode_json(value)


class Local:
    """One home, as a command works in it; `project` names the project (default: the folder one stands in)."""

    def __init__(self, home: str | None, project: str | None = None, *, quiet: bool = False) -> None:
        self.ws = Workspace(resolve_home(home) if quiet else chosen_home(home), _project_folder(project), POWER)

    def ask(self, method: str, type: type[R], **params: object) -> R:
        """The result of a method, as its server would give it. None among `params` stands for "left out".

        Raises what the method raises, `InvalidParams` for params that its table refuses.
        """
        type_ = METHODS[method].params
        document = rawjson.join_members({_camel(name): _encoded(name, value) for name, value in params.items() if value is not None})
        given = decode_params(msgspec.Raw(document), msgspec.json.Decoder(type_), type_)
        result: R = _handler(method)(self.ws, given, Call({}, {}))
        return result

    def list_id(self, named: str | None) -> str:
        """The task list that is meant: as named, else `$CREWLOG_LIST`, else that of the project's newest session that has one, else the
        only one there is. Raises a usage error where none of these tells.
        """
        chosen = named if named is not None else os.environ.get(LIST_VARIABLE) or None
        if chosen is not None:
            return check_name(chosen, "listId")  # an empty one may come of a variable that is not set: another list is not meant
        lists = self.ws.list_ids()
        sessions = [info for manager in self.ws.managers(None) for info in manager.list().sessions]
        for info in sessions:
            if info.id in lists:
                return info.id
        if len(lists) == 1:
            return lists[0]
        if sessions:
            return sessions[0].id
        there_are = f" There are {', '.join(lists[:8])}." if lists else ""
        raise click.UsageError(f"which task list? Name it with --list, or in ${LIST_VARIABLE}.{there_are}")

    def session_id(self, named: str) -> str:
        """A session as a command names it: its id, a beginning of it that fits one only, or `last` for the newest of the project."""
        sessions = [info for manager in self.ws.managers(None) for info in manager.list().sessions]
        if named == "last":
            if not sessions:
                raise SessionNotFound(named)
            return sessions[0].id
        fitting = {info.id for info in sessions if info.id.startswith(named)} if 3 <= len(named) < 8 else set()
        return fitting.pop() if len(fitting) == 1 else named


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _handler(method: str) -> Callable[..., R]:
    """Only the module that is needed is imported."""
    module = import_module(f"crewlog.server.{_HANDLERS_IN.get(method.partition('/')[0], 'paper_methods')}")
    handler: Callable[..., R] = module.HANDLERS[method]
    return handler


def edit_text(text: str, suffix: str) -> str | None:
    """What the user makes of it in `$VISUAL` or `$EDITOR`; None where it was left as it is."""
    if not (sys.stdin.isatty() or os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        raise click.UsageError("there is no terminal to edit in: set $EDITOR, or give the text on the command line")
    return click.edit(text, extension=suffix, require_save=True)
