"""What a client wants to hear of."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from crewlog.protocol.params import Subscribe

TOPICS = frozenset({"session", "task", "roster", "plan"})


class Subscription(msgspec.Struct, frozen=True):
    """`list_ids` and `session_ids` None: those of the client's own project."""

    topics: frozenset[str]
    list_ids: frozenset[str] | None
    session_ids: frozenset[str] | None
    all_projects: bool


def subscription_of(params: Subscribe) -> Subscription:
    """Naming lists or sessions narrows the subscription to them; topics not named are all of them."""
    topics = frozenset(params.topics) if params.topics is not None else TOPICS
    lists = None if params.list_ids is None else frozenset(params.list_ids)
    sessions = None if params.session_ids is None else frozenset(params.session_ids)
    if lists is not None and sessions is None and params.topics is None:
        topics = topics - {"session", "plan"}
    if sessions is not None and lists is None and params.topics is None:
        topics = topics - {"task", "roster", "plan"}
    return Subscription(topics, lists, sessions, params.all_projects)


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

    def wants_list(self, topic: str, list_id: str, own_lists: Iterable[str]) -> bool:
        """`topic`: task or roster; `own_lists`: the lists of the client's project."""
        return any(
            topic in s.topics and (s.all_projects or (list_id in s.list_ids if s.list_ids is not None else list_id in own_lists))
            for s in self._by_id.values()
        )

    def wants_session(self, session_id: str, *, own: bool) -> bool:
        """`own`: it is of the client's project."""
        return any(
            "session" in s.topics and (s.all_projects or (session_id in s.session_ids if s.session_ids is not None else own))
            for s in self._by_id.values()
        )

    def named_lists(self) -> set[str]:
        return {list_id for s in self._by_id.values() for list_id in s.list_ids or ()}

    def named_sessions(self) -> set[str]:
        return {session_id for s in self._by_id.values() for session_id in s.session_ids or ()}

    @property
    def all_projects(self) -> bool:
        return any(s.all_projects for s in self._by_id.values())
