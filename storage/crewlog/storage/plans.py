"""Plans: Markdown files in one folder, replaced whole, known by an etag so that nobody's words are overwritten unseen."""

from __future__ import annotations

import hashlib
import os
import random
import stat

import msgspec

from crewlog.storage import times
from crewlog.storage.errors import InvalidArgument, PlanChanged, StorageFailed
from crewlog.storage.files import POWER, Durability, make_folder, remove_file, replace_file, require_inside
from crewlog.storage.locks import ResourceLock, require_waiting
from crewlog.storage.names import check_name
from crewlog.storage.plan_words import ADJECTIVES, GERUNDS, NOUNS
from crewlog.storage.records import PlanFile

SUFFIX = ".md"


class Plan(msgspec.Struct):
    """`etag` is "" for a plan that does not exist; its content is then empty."""

    content: str
    etag: str


def generate_name() -> str:
    """A random name: adjective-gerund-noun. Go: GenerateName."""
    return f"{random.choice(ADJECTIVES)}-{random.choice(GERUNDS)}-{random.choice(NOUNS)}"


def etag_of(content: bytes) -> str:
    """Names a content: equal contents have equal etags."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class PlanStore:
    """The plans in the folder `dir`. Thread-safe. Go: PlanStore.

    Names are checked (`InvalidName`). Raises `StorageFailed`, `Busy`.
    """

    def __init__(self, dir: str, *, durability: Durability = POWER, root: str | None = None) -> None:
        self._dir = dir
        self._durability = durability
        self._root = root or dir
        self._lock = ResourceLock(dir, folder=True, root=self._root)

    @property
    def dir(self) -> str:
        """The folder of the plans."""
        return self._dir

    def path(self, name: str) -> str:
        """The file of a plan, whether it exists or not."""
        return os.path.join(self._dir, check_name(name) + SUFFIX)

    def list(self) -> list[PlanFile]:
        """All plans, the last changed first; etags are left empty. A folder that is not there holds none."""
        found: list[tuple[int, PlanFile]] = []
        try:
            with os.scandir(self._dir) as entries:
                for entry in entries:
                    if not entry.name.endswith(SUFFIX) or entry.name.startswith(".") or not entry.is_file():
                        continue
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue  # deleted since it was listed; the others must be seen all the same
                    modified = times.format_ns(status.st_mtime_ns)
                    name = entry.name[: -len(SUFFIX)]
                    found.append((status.st_mtime_ns, PlanFile(name, int(status.st_mtime), modified, status.st_size)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed.from_os(error, self._dir) from error
        found.sort(key=lambda item: (-item[0], item[1].name))
        return [plan for _, plan in found]

    def load(self, name: str) -> Plan:
        """A plan; a missing one is empty. Bytes that are not UTF-8 read as U+FFFD (the etag is still that of the file)."""
        content = self._read(self.path(name))
        return Plan("", "") if content is None else Plan(content.decode("utf-8", "replace"), etag_of(content))

    def save(self, name: str, content: str, *, if_match: str | None = None) -> str:
        """Saves the text as it is and returns its etag.

        With `if_match`, the etag that the caller read ("" for a plan that must not exist yet), raises `PlanChanged` where the file is
        another by now; nothing is written then.
        """
        path = self.path(name)
        try:
            raw = content.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidArgument("content", "it holds half of a surrogate pair, which no file in UTF-8 can") from None
        if self._durability.replacing_waits:
            require_waiting()
        if if_match:
            self._require(path, name, if_match)  # before a folder is made for a plan that is not there
        require_inside(self._dir, self._root)
        make_folder(self._dir, self._durability)
        with self._lock:
            if if_match is not None:
                self._require(path, name, if_match)
            require_inside(path, self._root)
            replace_file(self._real(path), raw, self._durability)
        return etag_of(raw)

    def delete(self, name: str, *, if_match: str | None = None) -> bool:
        """Whether there was such a plan."""
        path = self.path(name)
        if not os.path.lexists(path):
            return False
        if self._durability.replacing_waits:
            require_waiting()
        with self._lock:
            if if_match is not None:
                self._require(path, name, if_match)
            return remove_file(path, self._durability)

    def generate_name(self) -> str:
        """A generated name that no plan has."""
        while True:
            name = generate_name()
            if not os.path.lexists(self.path(name)):
                return name

    def close(self) -> None:
        self._lock.close()

    def _require(self, path: str, name: str, if_match: str) -> None:
        content = self._read(path)
        etag = "" if content is None else etag_of(content)
        if etag != if_match:
            raise PlanChanged(name, etag)

    def _read(self, path: str) -> bytes | None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise StorageFailed(path, "EINVAL", "it is no regular file")  # to open a pipe would wait for its other end
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed.from_os(error, path) from error

    def _real(self, path: str) -> str:
        """Where a plan is a link to another file inside the root, that file is saved and the link stays, as editors do it."""
        return os.path.realpath(path) if os.path.islink(path) else path
