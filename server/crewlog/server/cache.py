"""What is kept open, bounded in number and in size, and never closed while somebody works with it."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Generic, TypeVar

from crewlog.storage.errors import WouldBlock
from crewlog.storage.locks import without_waiting

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")


class _Entry(Generic[S]):
    """A store, and the context in which it is used: whoever was given it leaves it once."""

    __slots__ = ("dropped", "give_back", "store", "users", "weight")

    def __init__(self, store: S, give_back: Callable[[_Entry[S]], None]) -> None:
        self.store = store
        self.give_back = give_back
        self.users = 0
        self.weight = 0
        self.dropped = False

    def __enter__(self) -> S:
        return self.store

    def __exit__(self, *_: object) -> None:
        self.give_back(self)


class Cache(Generic[K, S]):
    """The stores used last, at most `limit` of them. Thread-safe.

    `make` opens a store, and may raise; `close` ends one. `weigh` tells the memory a store holds, in bytes; while all together hold more
    than `max_weight`, those that were not used for the longest time are closed.
    """

    def __init__(
        self,
        make: Callable[[K], S],
        close: Callable[[S], None],
        limit: int,
        *,
        weigh: Callable[[S], int] = lambda _: 0,
        max_weight: int = 0,
    ) -> None:
        self._make = make
        self._close = close
        self._limit = limit
        self._weigh = weigh
        self._max_weight = max_weight
        self._mutex = threading.Lock()
        self._entries: OrderedDict[K, _Entry[S]] = OrderedDict()
        self._open: OrderedDict[K, None] = OrderedDict()
        self._last: _Entry[S] | None = None
        self._weight = 0
        self.kept: frozenset[K] = frozenset()
        """Keys whose stores stay, however long they are not used; beyond `limit` they are closed too, and open again when they are used."""

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, key: K) -> AbstractContextManager[S]:
        """`with cache.use(key) as store`: the store stays open from the call to the end of the block. Raises what `make` raises."""
        with self._mutex:
            entry = self._entries.get(key)
            if entry is not None:
                self._begin_use(key, entry)
                return entry
        store = self._make(key)  # outside the mutex: it may take long
        with self._mutex:
            entry = self._entries.get(key)
            spare = None if entry is None else store
            if entry is None:
                entry = self._entries[key] = _Entry(store, self._give_back)
            self._begin_use(key, entry)
        if spare is not None:  # another thread was faster
            self._close(spare)
        return entry

    def peek(self, key: K) -> S | None:
        """The store, where it is open; not to be kept beyond a moment."""
        entry = self._entries.get(key)
        return None if entry is None else entry.store

    def drop(self, key: K) -> None:
        """Closes the store, once nobody uses it: the next use opens a new one."""
        with self._mutex:
            entry = self._entries.get(key)
            if entry is None:
                return
            self._take_out(key, entry)
            closes = not entry.users
        if closes:
            self._close(entry.store)

    def close(self) -> None:
        """Closes all, those in use when they are given back."""
        for key in list(self._entries):
            self.drop(key)

    def _begin_use(self, key: K, entry: _Entry[S]) -> None:
        entry.users += 1
        if entry is not self._last:
            self._last = entry
            self._entries.move_to_end(key)
            self._open[key] = None
            self._open.move_to_end(key)

    def _give_back(self, entry: _Entry[S]) -> None:
        closing: list[S] = []
        resting: list[S] = []
        weight = self._weigh(entry.store)
        with self._mutex:
            entry.users -= 1
            if not entry.dropped:
                self._weight += weight - entry.weight
                entry.weight = weight
                if len(self._entries) <= self._limit and self._weight <= self._max_weight:
                    return  # as nearly always
                closing = self._surplus()
                resting = self._to_rest()
            elif not entry.users:
                closing.append(entry.store)
        for store in closing:
            self._close(store)
        for store in resting:
            with contextlib.suppress(WouldBlock), without_waiting():  # it is used again already
                self._close(store)

    def _to_rest(self) -> list[S]:
        """Of those that stay, the ones beyond the limit that were not used for the longest time."""
        surplus = len(self._open) - self._limit
        keys = [key for key in islice(self._open, surplus) if not self._entries[key].users] if surplus > 0 else []
        for key in keys:
            del self._open[key]
        return [self._entries[key].store for key in keys]

    def _surplus(self) -> list[S]:
        """Takes out what is too much, the longest unused first, but never the one used last."""
        surplus: list[S] = []
        if not self._is_too_much():
            return surplus
        for key, entry in list(self._entries.items())[:-1]:
            if not self._is_too_much():
                break
            if not entry.users and key not in self.kept:
                self._take_out(key, entry)
                surplus.append(entry.store)
        return surplus

    def _is_too_much(self) -> bool:
        return len(self._entries) > self._limit + len(self.kept) or self._weight > self._max_weight

    def _take_out(self, key: K, entry: _Entry[S]) -> None:
        del self._entries[key]
        self._open.pop(key, None)
        entry.dropped = True
        if entry is self._last:
            self._last = None
        self._weight -= entry.weight
