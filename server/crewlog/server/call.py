"""One request on its way: what it may know of the client, and what it changed, for those who are to be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

import msgspec

from crewlog.storage.records import Claim

TaskKey = tuple[str, str]
"""(list, task)."""


class ClaimChange(Enum):
    """What the client did with a claim."""

    TOOK = "took"
    RENEWED = "renewed"
    """What was agreed about renewing stays."""
    GAVE_BACK = "gave back"
    COMPLETED = "completed"
    """The task is done, under the claim; it may be opened again."""
    REOPENED = "reopened"


class ClaimEvent(msgspec.Struct):
    """A claim that this client took or changed; `claim` is None where there is none any more.

    `renew_ms`: the lease to be renewed, 0 for none.
    """

    change: ClaimChange
    key: TaskKey
    claim: Claim | None = None
    renew_ms: int = 0


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
        self.claims.append(ClaimEvent(ClaimChange.TOOK, (list_id, task_id), claim, renew_ms))

    def renewed(self, list_id: str, task_id: str, claim: Claim, lease_ms: int) -> None:
        self.claims.append(ClaimEvent(ClaimChange.RENEWED, (list_id, task_id), claim, lease_ms))

    def gave_back(self, list_id: str, task_id: str) -> None:
        self.claims.append(ClaimEvent(ClaimChange.GAVE_BACK, (list_id, task_id)))

    def completed(self, list_id: str, task_id: str) -> None:
        self.claims.append(ClaimEvent(ClaimChange.COMPLETED, (list_id, task_id)))

    def reopened(self, list_id: str, task_id: str, claim: Claim) -> None:
        self.claims.append(ClaimEvent(ClaimChange.REOPENED, (list_id, task_id), claim))

    def forget(self) -> None:
        """All that was noted has been acted on."""
        self.sessions, self.lists, self.rosters, self.plans, self.claims = [], [], [], [], []
