"""What is to be sent to the client: replies in full, notifications as far as the client keeps up.

A reply is owed, and is kept until it is taken. A notification tells of a state: while the client does not read, none is made, and
afterwards it tells what is the case by then (`low` says when).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crewlog.protocol.framing import encode_frame
from crewlog.server.pipes import Output

LOW = 128 << 10
"""Bytes not yet taken by the client up to which notifications are made."""
FULL = 8 << 20
"""Bytes not yet taken by the client beyond which no further request of it is begun."""


class Outbox:
    """Used by the event loop's thread only. What one turn of the loop sends is written together.

    `room` is called when the client has taken what there was after it had kept us waiting; `broken` once when it is gone.
    """

    def __init__(self, sink: int, room: Callable[[], None], broken: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._output = Output(sink, room, broken)
        self._flush_due = False
        self.held = False
        """While set, the one who set it calls `flush` when its batch is complete."""

    @property
    def size(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._output.size

    @property
    def low(self) -> bool:
        """Whether the client keeps up, so that it is told what is new."""
        return self._output.size <= LOW

    @property
    def full(self) -> bool:
        """Whether the client has to read before anything more is done for it."""
        return self._output.size > FULL

    def send(self, body: bytes) -> None:
        """Queues a whole message."""
        self._output.add(encode_frame(body))
        if not self._flush_due and not self.held:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Sends what the client takes now."""
        self._flush_due = False
        self._output.flush()

    async def drained(self, seconds: float) -> None:
        """Waits until the client has taken everything, at most `seconds`."""
        await self._output.drained(seconds)

    def close(self) -> None:
        """Nothing more is sent."""
        self._output.close()
