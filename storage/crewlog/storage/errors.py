"""Every error the storage library raises on purpose. Each carries its facts as fields, so that a caller can branch on them
and a server can map them to its own codes without reading a sentence."""

from __future__ import annotations

import errno as _errno
import os


class StorageError(Exception):
    """Base of all errors below. `str()` of one is a whole sentence: what was wrong, where, and what to do."""


class InvalidArgument(StorageError):
    """A value from the caller that no state of the disk could make right. `field` is its name as the caller gave it."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


class InvalidName(InvalidArgument):
    """A name that must not become a file name (see `names.check_name`)."""

    def __init__(self, name: str, reason: str, field: str = "name") -> None:
        super().__init__(field, reason)
        self.name = name

    def __str__(self) -> str:
        return f"{self.field} {self.name[:80]!r} cannot be used as a file name: {self.reason}"


class StoreClosed(StorageError):
    """The store was closed; open the session again."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: this store was closed; open the session again to go on")


class SessionNotFound(StorageError):
    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id!r} not found; session/list shows the ones there are")


class SessionCorrupt(StorageError):
    """A line of a log (session or transcript) that cannot be used. `line` counts from 1; 0 when no single line is to blame."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {reason}; nothing was changed, 'crewlog doctor' tells more")


class UnsupportedVersion(StorageError):
    def __init__(self, path: str, found: int, expected: int) -> None:
        self.path = path
        self.found = found
        self.expected = expected
        super().__init__(f"{path}: unsupported session version: got {found}, expected {expected}")


class LeafMoved(StorageError):
    """The session's leaf is not the one the caller expected: somebody appended in between."""

    def __init__(self, leaf_id: str) -> None:
        self.leaf_id = leaf_id
        super().__init__(f"the session's leaf is now {leaf_id!r}; read what was added, then append again")


class EntryNotFound(StorageError):
    def __init__(self, entry_id: str, path: str = "") -> None:
        self.entry_id = entry_id
        self.path = path
        super().__init__(f"entry {entry_id!r} not found in session log{' ' + path if path else ''}")


class TaskNotFound(StorageError):
    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"task {id!r} not found")


class AlreadyClaimed(StorageError):
    def __init__(self, id: str, owner: str) -> None:
        self.id = id
        self.owner = owner
        super().__init__(f"task {id} is already claimed by {owner!r}")


class AlreadyResolved(StorageError):
    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"task {id} is already completed")


class Blocked(StorageError):
    """`blocked_by` names the blockers that are still open."""

    def __init__(self, id: str, blocked_by: list[str]) -> None:
        self.id = id
        self.blocked_by = blocked_by
        super().__init__(f"task {id} waits for {', '.join(blocked_by)}")


class DependencyCycle(StorageError):
    """`path` is the cycle as ids, the first one again at its end."""

    def __init__(self, path: list[str]) -> None:
        self.path = path
        super().__init__(f"tasks would block each other: {' -> '.join(path)}")


class LeaseLost(StorageError):
    """`owner` held the task once and holds it no longer."""

    def __init__(self, id: str, owner: str) -> None:
        self.id = id
        self.owner = owner
        super().__init__(f"{owner!r} no longer holds task {id}; claim it again before working on it")


class PlanChanged(StorageError):
    """`etag` is the plan's present one, empty when the plan is gone."""

    def __init__(self, name: str, etag: str) -> None:
        self.name = name
        self.etag = etag
        super().__init__(f"plan {name!r} was changed since it was read; load it, merge, and save with its new etag")


class StorageFailed(StorageError):
    """The system refused a read or a write. Nothing was changed, in memory or on disk."""

    def __init__(self, path: str, errno_name: str, reason: str) -> None:
        self.path = path
        self.errno_name = errno_name
        self.reason = reason
        super().__init__(f"{path}: {reason} ({errno_name})")

    @classmethod
    def from_os(cls, error: OSError, path: str | None = None) -> StorageFailed:
        number = error.errno or 0
        named = path or os.fsdecode(error.filename or "")
        return cls(named, _errno.errorcode.get(number, "EUNKNOWN"), os.strerror(number) if number else str(error))


class Busy(StorageError):
    """A lock was not to be had in time. `holder` tells who has it: pid, client, host, since (RFC 3339); empty when unknown."""

    def __init__(self, path: str, holder: dict[str, str | int]) -> None:
        self.path = path
        self.holder = holder
        who = f"process {holder['pid']} on {holder.get('host', '?')}" if "pid" in holder else "another process"
        super().__init__(f"{path} is locked by {who}; try again, or look at what that process is doing")


class WouldBlock(StorageError):
    """Raised only inside `locks.without_waiting()`: the call would have waited or worked for long. It has had no effect."""


class TooLarge(StorageError):
    """`limit` is in bytes."""

    def __init__(self, limit: int, what: str = "message") -> None:
        self.limit = limit
        super().__init__(f"the {what} is larger than the limit of {limit} bytes")
