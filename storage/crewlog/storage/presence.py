"""Which processes have a home open. Nobody signs in anywhere: it is read from the locks, and on Linux from what the kernel tells."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator

import msgspec

from crewlog.storage.files import SIDE_FOLDER
from crewlog.storage.home import Home
from crewlog.storage.locks import Holder, is_same_process

_WATCH = re.compile(r"inotify wd:\S+ ino:([0-9a-f]+) sdev:([0-9a-f]+)")
_LOCK_SIZE = 512


class Process(msgspec.Struct, rename="camel"):
    """A process that has the home open. `client`: as it named itself when it last took a lock; `parent`: the command that started it."""

    pid: int
    command: str
    parent: str = ""
    client: str = ""
    watches: bool = False
    open_files: int = 0


def processes(home: Home) -> list[Process]:
    """Those of this machine that can be seen, by pid; this process is left out."""
    found = {process.pid: process for process in _by_kernel(home)}
    for holder in _holders(home):
        process = found.get(holder.pid)
        if process is None:
            process = found.setdefault(holder.pid, Process(holder.pid, _command(holder.pid), _parent(holder.pid)))
        process.client = process.client or holder.client
    found.pop(os.getpid(), None)
    return [found[pid] for pid in sorted(found)]


def _holders(home: Home) -> Iterator[Holder]:
    """Living processes of this host that last took one of the home's locks."""
    host = socket.gethostname()
    for folder, names, files in os.walk(home.path):
        if os.path.basename(folder) != SIDE_FOLDER:
            names[:] = [name for name in names if not name.startswith(".") or name == SIDE_FOLDER]
            continue
        for name in files:
            if not name.endswith(".lock"):
                continue
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    holder = msgspec.json.decode(file.read(_LOCK_SIZE).rstrip(b"\0 \n"), type=Holder)
            except (OSError, msgspec.MsgspecError):
                continue  # never taken, or half written: it names nobody
            if holder.host == host and is_same_process(holder):
                yield holder


def _by_kernel(home: Home) -> Iterator[Process]:
    """Linux: processes that watch a folder of the home, or have a file in it open."""
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    watched = set(_folders(home))
    root = os.path.realpath(home.path).rstrip(os.sep) + os.sep
    for pid in pids:
        watches, open_files = _looks_at(pid, watched, root)
        if watches or open_files:
            yield Process(int(pid), _command(int(pid)), _parent(int(pid)), "", watches, open_files)


def _folders(home: Home) -> Iterator[tuple[int, int]]:
    """(inode, device) of the folders that a server watches."""
    for folder in (home.path, home.projects, home.tasks, home.plans):
        try:
            with os.scandir(folder) as entries:
                inside = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for path in (folder, *inside):
            try:
                status = os.stat(path)
            except OSError:
                continue
            yield status.st_ino, os.minor(status.st_dev) | (os.major(status.st_dev) << 20)


def _looks_at(pid: str, watched: set[tuple[int, int]], root: str) -> tuple[bool, int]:
    watches, open_files = False, 0
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False, 0  # somebody else's, or gone
    for descriptor in descriptors:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if target.startswith(root):
                open_files += 1
            elif target == "anon_inode:inotify":
                with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
                    watches = watches or any((int(ino, 16), int(dev, 16)) in watched for ino, dev in _WATCH.findall(file.read()))
        except OSError:
            continue
    return watches, open_files


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(400).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _parent(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return _command(int(fields[1]))
    except (OSError, IndexError, ValueError):
        return ""
