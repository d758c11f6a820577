"""What is to be sent to the client: replies in full, notifications as far as the client keeps up.

A reply is owed and is kept until it is taken. A notification tells of a state; while the client does not read, the states of one
subject are not stacked up: it is rendered when there is room for it, and tells then what is the case by then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from crewlog.protocol.framing import encode_frame
from crewlog.server.pipes import Output

NOTIFY_BELOW = 128 << 10
"""Bytes not yet taken by the client above which no notification is rendered."""
FULL = 8 << 20
"""Bytes not yet taken by the client above which no further request of it is begun."""

Render = Callable[[], bytes | None]


class Outbox:
    """Used by the event loop's thread only. `room` is called when the client has caught up after the outbox was full."""

    def __init__(self, sink: int, room: Callable[[], None], broken: Callable[[], None]) -> None:
        self._output = Output(sink, self._drained, broken)
        self._due: dict[Hashable, Render] = {}
        self._room = room
        self._was_full = False

    @property
    def size(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._output.size

    @property
    def due(self) -> int:
        """Subjects of which a notification is due."""
        return len(self._due)

    def full(self) -> bool:
        """Whether the client should read before it asks for more; if so, `room` is called when it has."""
        if self._output.size > FULL:
            self._was_full = True
        return self._was_full

    def send(self, body: bytes) -> None:
        """Queues a whole message; `flush` sends it."""
        self._output.add(encode_frame(body))

    def announce(self, subject: Hashable, render: Render) -> None:
        """A notification about `subject` is due. `render` gives its body when there is room for it, None when there is nothing to tell.

        Of several calls for one subject before that, the last one counts.
        """
        self._due[subject] = render

    def flush(self) -> None:
        """Sends what the client takes now."""
        while self._due and self._output.size < NOTIFY_BELOW:
            subject = next(iter(self._due))
            body = self._due.pop(subject)()
            if body is not None:
                self.send(body)
            if self._output.size >= NOTIFY_BELOW:
                self._output.flush()
        self._output.flush()

    def close(self) -> None:
        """Nothing more is sent."""
        self._due.clear()
        self._output.close()

    def _drained(self) -> None:
        self.flush()
        if self._was_full and self._output.size <= FULL:
            self._was_full = False
            self._room()
