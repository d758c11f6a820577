"""One request on its way: whether it was cancelled, and what it changed, for those who are to be told."""

from __future__ import annotations

import msgspec

from crewlog.storage.records import Claim


class SessionEvent(msgspec.Struct):
    """`change`: created, appended or deleted."""

    path: str
    change: str


class ClaimEvent(msgspec.Struct):
    """A task that this client took, renewed or gave back (`claim` is None then)."""

    list_id: str
    task_id: str
    claim: Claim | None
    lease_ms: int
    auto_renew: bool


class Call:
    """Handed to a handler, which may run in a thread: it only notes; the connection acts on it afterwards, on the loop."""

    def __init__(self, held: dict[tuple[str, str], Claim]) -> None:
        self.cancelled = False
        self.sessions: list[SessionEvent] = []
        self.lists: set[str] = set()
        self.rosters: set[str] = set()
        self.plans: set[str] = set()
        self.claims: list[ClaimEvent] = []
        self._held = held

    def session_changed(self, path: str, change: str, entries: int) -> None:
        self.sessions.append(SessionEvent(path, change))

    def list_changed(self, list_id: str) -> None:
        self.lists.add(list_id)

    def roster_changed(self, list_id: str) -> None:
        self.rosters.add(list_id)

    def plan_changed(self, name: str) -> None:
        self.plans.add(name)

    def held_claim(self, list_id: str, task_id: str) -> Claim | None:
        """The leased claim under which this client took the task, as long as it did not give it back."""
        return self._held.get((list_id, task_id))

    def claimed(self, list_id: str, task_id: str, claim: Claim | None, lease_ms: int = 0, auto_renew: bool = False) -> None:
        self.claims.append(ClaimEvent(list_id, task_id, claim, lease_ms, auto_renew))
