"""One request on its way: what it may know of the client, and what it changed, for those who are to be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from crewlog.storage.records import Claim

TaskKey = tuple[str, str]
"""(list, task)."""


class ClaimEvent(msgspec.Struct):
    """A task that this client took, or gave back (`claim` is None then). `renew_ms`: the lease to be renewed for it, 0 for none.

    `again`: the client only renewed it, so that what was agreed about renewing stays.
    """

    key: TaskKey
    claim: Claim | None
    renew_ms: int = 0
    again: bool = False


def _nothing(done: int, total: int) -> None:
    """Nobody asked for progress."""


class Call:
    """Handed to a handler, which may run in any thread: it only notes; what follows from it is done afterwards, on the loop.

    `held`: the leased claims of this client; `revisions`: the number of the last notification of each task list.
    """

    __slots__ = ("_held", "_revisions", "cancelled", "claims", "lists", "plans", "progress", "rosters", "sessions")

    def __init__(self, held: Mapping[TaskKey, Claim], revisions: Mapping[str, int]) -> None:
        self._held = held
        self._revisions = revisions
        self.cancelled = False
        self.progress: Callable[[int, int], None] = _nothing
        """To be told how much of how much is done, by what may take long."""
        self.sessions: list[str] = []
        self.lists: list[str] = []
        self.rosters: list[str] = []
        self.plans: list[str] = []
        self.claims: list[ClaimEvent] = []

    def session_changed(self, path: str) -> None:
        self.sessions.append(path)

    def list_changed(self, list_id: str) -> None:
        self.lists.append(list_id)

    def roster_changed(self, list_id: str) -> None:
        self.rosters.append(list_id)

    def plan_changed(self, name: str) -> None:
        self.plans.append(name)

    def revision_of(self, list_id: str) -> int:
        return self._revisions.get(list_id, 0)

    def held_claim(self, list_id: str, task_id: str) -> Claim | None:
        """The leased claim under which this client took the task, as long as it did not give it back; it may have lapsed since."""
        return self._held.get((list_id, task_id))

    def took(self, list_id: str, task_id: str, claim: Claim, renew_ms: int) -> None:
        self.claims.append(ClaimEvent((list_id, task_id), claim, renew_ms))

    def renewed(self, list_id: str, task_id: str, claim: Claim, lease_ms: int) -> None:
        self.claims.append(ClaimEvent((list_id, task_id), claim, lease_ms, again=True))

    def gave_back(self, list_id: str, task_id: str) -> None:
        self.claims.append(ClaimEvent((list_id, task_id), None))

    def forget(self) -> None:
        """All that was noted has been acted on."""
        self.sessions, self.lists, self.rosters, self.plans, self.claims = [], [], [], [], []
