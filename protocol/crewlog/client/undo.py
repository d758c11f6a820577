"""What to do about a request that was withdrawn too late."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from crewlog.client import results


class Undo(msgspec.Struct):
    """A request that takes an effect back."""

    method: str
    params: dict[str, object]


def undo(method: str, params: Mapping[str, object], result: Raw) -> Undo | None:
    """The request that takes back what nobody knows of: a task that was claimed for a caller who no longer waits for it.

    Without it the server would renew that claim for as long as the client lives. Other effects stay: their caller named them.
    """
    if method != "task/claimNext":
        return None
    task = results.TASK_CLAIM_NEXT(result)
    if task is None or task.claim is None:
        return None
    release = {"listId": params["listId"], "id": task.id, "owner": params["owner"], "generation": task.claim.generation}
    return Undo("task/release", release)
