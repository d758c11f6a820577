"""What a client wants to hear of."""

from __future__ import annotations

import msgspec

from crewlog.protocol.params import Subscribe
from crewlog.storage.names import check_name

TOPICS = frozenset({"session", "task", "roster", "plan"})


class Subscription(msgspec.Struct, frozen=True, rename="camel"):
    """`list_ids` and `session_ids` None: those of the client's own project (a list that is no session's is of every project)."""

    topics: frozenset[str]
    list_ids: frozenset[str] | None
    session_ids: frozenset[str] | None
    all_projects: bool


def check_subscribe(params: Subscribe) -> None:
    """Raises `InvalidName`."""
    for list_id in params.list_ids or ():
        check_name(list_id, "listIds")
    for session_id in params.session_ids or ():
        check_name(session_id, "sessionIds")


def subscription_of(params: Subscribe) -> Subscription:
    """Topics that are not named are all of them; naming lists narrows tasks and rosters to them, naming sessions the sessions."""
    return Subscription(
        frozenset(params.topics) if params.topics is not None else TOPICS,
        None if params.list_ids is None else frozenset(params.list_ids),
        None if params.session_ids is None else frozenset(params.session_ids),
        params.all_projects,
    )


OWN_PROJECT = Subscription(TOPICS, None, None, False)


class Subscriptions:
    """Those of one client. Until it subscribes it hears of its own project."""

    def __init__(self) -> None:
        self._by_id: dict[str, Subscription] = {"default": OWN_PROJECT}
        self._next = 1

    def add(self, subscription: Subscription) -> str:
        self._by_id.pop("default", None)
        name = str(self._next)
        self._next += 1
        self._by_id[name] = subscription
        return name

    def remove(self, name: str) -> bool:
        return self._by_id.pop(name, None) is not None

    def mute(self) -> None:
        """No notifications until the client subscribes."""
        self._by_id.clear()

    def all(self) -> list[tuple[str, Subscription]]:
        return list(self._by_id.items())

    def wants(self, topic: str) -> bool:
        return any(topic in subscription.topics for subscription in self._by_id.values())

    def wants_list(self, topic: str, list_id: str, *, own: bool) -> bool:
        """`topic`: task or roster; `own`: it is of the client's project, or of none."""
        return any(
            topic in s.topics and (s.all_projects or (list_id in s.list_ids if s.list_ids is not None else own))
            for s in self._by_id.values()
        )

    def wants_any_own_list(self) -> bool:
        """Whether some subscription asks for lists without naming them."""
        return any(s.topics & {"task", "roster"} and (s.list_ids is None or s.all_projects) for s in self._by_id.values())

    def wants_session(self, session_id: str, *, own: bool) -> bool:
        """`own`: it is of the client's project."""
        return any(
            "session" in s.topics and (s.all_projects or (session_id in s.session_ids if s.session_ids is not None else own))
            for s in self._by_id.values()
        )

    def wants_own_sessions(self) -> bool:
        """Whether some subscription asks for the sessions of the client's own project as such."""
        return any("session" in s.topics and s.session_ids is None for s in self._by_id.values())

    def named_lists(self) -> set[str]:
        return {list_id for s in self._by_id.values() for list_id in s.list_ids or ()}

    def named_sessions(self) -> set[str]:
        return {session_id for s in self._by_id.values() for session_id in s.session_ids or ()}

    @property
    def all_projects(self) -> bool:
        return any(s.all_projects for s in self._by_id.values())
