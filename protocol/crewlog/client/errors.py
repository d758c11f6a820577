"""What may go wrong between a client and its server, beside the storage errors that the server itself gives."""

from __future__ import annotations


class ClientError(Exception):
    """Base of the errors below."""


class ConnectionLost(ClientError):
    """The server is gone, or was never there. Requests that were on their way may or may not have been carried out.

    `exit_code`: that of its process, negative for a signal; None while it is not known.
    """

    def __init__(self, reason: str, exit_code: int | None = None) -> None:
        self.exit_code = exit_code
        how = "" if exit_code is None else f" (its process ended with {exit_code})"
        super().__init__(f"{reason}{how}")


class NotStarted(ClientError):
    """The client was used before `start`, or after `close`, or in a forked child of the process that started it."""


class RequestTimeout(ClientError, TimeoutError):
    """No answer in time. The request was withdrawn; whether it had an effect tells `withdrawn`: False when no answer to that came."""

    def __init__(self, method: str, timeout: float, *, withdrawn: bool) -> None:
        self.withdrawn = withdrawn
        effect = "it was withdrawn and had no effect" if withdrawn else "it may have been carried out"
        super().__init__(f"{method} was not answered within {timeout:g} s; {effect}")
