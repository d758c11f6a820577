"""What the client says of itself in `initialize`, and what it is told."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, UnsetType

from crewlog.protocol.envelope import decode_params
from crewlog.protocol.errors import InvalidParams
from crewlog.protocol.params import InitializationOptions, Subscribe
from crewlog.server.uris import path_of
from crewlog.storage.errors import InvalidArgument
from crewlog.storage.home import resolve_home


class Options(msgspec.Struct):
    """From the command line; `initializationOptions` override. `max_message_bytes`: the largest message taken."""

    home: str | None = None
    durability: str = "power"
    max_message_bytes: int = 256 << 20


class Wishes(msgspec.Struct):
    """What was agreed with the client. `cwd` is absolute; `subscribe` None: its own project, False: nothing."""

    home: str
    cwd: str
    durability: str
    subscribe: Subscribe | bool | None
    process_id: int | None
    client: str


class _ClientInfo(msgspec.Struct):
    name: str = ""


class _Folder(msgspec.Struct):
    uri: str = ""


_Nothing = Annotated[list[Raw], Meta(max_length=0)]
"""How Lua writes an empty table."""


class _Initialize(msgspec.Struct, rename="camel"):
    process_id: int | None = None
    client_info: _ClientInfo | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[_Folder] | None = None
    initialization_options: InitializationOptions | _Nothing | None = None


def read_initialize(params: Raw | UnsetType, options: Options) -> Wishes:
    """Raises `InvalidParams` naming the field."""
    given = decode_params(params, msgspec.json.Decoder(_Initialize), _Initialize)
    assert isinstance(given, _Initialize)
    wanted = given.initialization_options
    if not isinstance(wanted, InitializationOptions):
        wanted = InitializationOptions()
    return Wishes(
        _home(options, wanted),
        _cwd(given, wanted),
        wanted.durability or options.durability,
        wanted.subscribe,
        given.process_id,
        given.client_info.name if given.client_info is not None else "",
    )


def _home(options: Options, wanted: InitializationOptions) -> str:
    field = "$.initializationOptions.home"
    if wanted.home is not None:
        check_path(wanted.home, field)
    try:
        return resolve_home(options.home, wanted.home)
    except InvalidArgument as error:
        raise InvalidParams(field, error.reason) from None


def _cwd(given: _Initialize, wanted: InitializationOptions) -> str:
    """`initializationOptions.cwd`, else the first workspace folder that is a folder here, else the root, else this process's folder."""
    if wanted.cwd is not None:
        return check_folder(wanted.cwd, "$.initializationOptions.cwd")
    uris = [folder.uri for folder in given.workspace_folders or ()] + [given.root_uri or ""]
    for path in map(path_of, uris):
        if path is not None:
            return path
    return given.root_path if given.root_path and os.path.isabs(given.root_path) else os.getcwd()


def check_folder(path: str, field: str) -> str:
    """The folder that a client names, absolute; `~` is its user's home. Raises `InvalidParams`."""
    expanded = os.path.expanduser(check_path(path, field))
    if not os.path.isabs(expanded):
        raise InvalidParams(field, f"give an absolute path: {path[:80]!r} could be anywhere")
    return expanded


def check_path(path: str, field: str) -> str:
    """Raises `InvalidParams` for what can be no path."""
    if not path:
        raise InvalidParams(field, "it is empty; leave it out for the default")
    if "\0" in path:
        raise InvalidParams(field, "a path cannot hold NUL")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidParams(field, "it holds half of a surrogate pair") from None
    return path
