"""Runs the command of `tasks next --exec` as a shell runs a job: all of it is one process group.

Signals reach whatever the command has started, not only its shell. On a terminal the group has the keyboard (Ctrl-C, Ctrl-Z), as any
command in the foreground. And should this process be killed in a way that it cannot answer (`kill -9`), the group ends too: its task will
be somebody else's when the lease lapses, and two must not work on one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from types import FrameType

PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_TERMINAL = 0
_GUARD = "trap '' HUP INT QUIT TERM TSTP; read gone; kill -CONT 0; kill -TERM 0; sleep 10; kill -KILL 0"
"""For sh: waits until the other end of its standard input is closed, which the kernel does for whoever dies."""


def run_command(command: str, environment: Mapping[bytes, bytes]) -> int:
    """The exit code of a shell command, negative for a signal. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to it; the second of them
    is passed on as SIGKILL. Raises `OSError` where there is no shell.
    """
    if os.name == "nt":
        named = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        return subprocess.run(command, shell=True, env=named, check=False).returncode  # noqa: S602  # what the user typed
    return _Job(command, environment).run()


if sys.platform != "win32":

    class _Job:
        """A command and its guard, in one process group whose leader is the guard."""

        def __init__(self, command: str, environment: Mapping[bytes, bytes]) -> None:
            self._command = command
            self._environment = environment
            self._received = 0
            self._group = 0
            self._foreground = _has_terminal()

        def run(self) -> int:
            with self._signals():
                guard = _start(["/bin/sh", "-c", _GUARD], 0, stdin=subprocess.PIPE)
                try:
                    return self._run_in(guard.pid)
                finally:
                    guard.kill()
                    guard.communicate()

        def _run_in(self, group: int) -> int:
            process = _start(self._command.encode("utf-8", "surrogateescape"), group, environment=self._environment)
            self._group = group
            if self._received:  # before there was anybody to pass it on to
                os.killpg(group, signal.SIGTERM)
            with self._terminal_of(group):
                process.returncode = self._wait(process.pid)
            return process.returncode

        def _wait(self, pid: int) -> int:
            while True:
                _, status = os.waitpid(pid, os.WUNTRACED)
                if not os.WIFSTOPPED(status):
                    return os.waitstatus_to_exitcode(status)
                if os.isatty(_TERMINAL):
                    self._stop()

        def _stop(self) -> None:
            """Ctrl-Z, or a command in the background that would read from the terminal: the user's shell must see that its job has
            stopped. It goes on with `fg` or `bg`. The lease is renewed meanwhile.
            """
            if self._foreground:
                _give_terminal(os.getpgrp())
            os.kill(os.getpid(), signal.SIGSTOP)
            self._foreground = _has_terminal()
            if self._foreground:
                _give_terminal(self._group)
            os.killpg(self._group, signal.SIGCONT)

        @contextlib.contextmanager
        def _terminal_of(self, group: int) -> Iterator[None]:
            if not self._foreground:
                yield
                return
            _give_terminal(group)
            try:
                yield
            finally:
                if self._foreground:
                    _give_terminal(os.getpgrp())

        @contextlib.contextmanager
        def _signals(self) -> Iterator[None]:
            """Until the end of the block they go to the command."""
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {number: signal.signal(number, self._pass_on) for name in PASSED_ON if (number := getattr(signal, name, None))}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        def _pass_on(self, number: int, frame: FrameType | None) -> None:
            self._received += 1
            if self._group:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._group, number if self._received == 1 else signal.SIGKILL)

    def _start(
        command: bytes | list[str], group: int, *, stdin: int | None = None, environment: Mapping[bytes, bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        """`command`: a text for the shell, or arguments; `group`: the process group to join, 0 for one of its own."""
        shell = isinstance(command, bytes)
        if sys.version_info >= (3, 11):
            return subprocess.Popen(command, shell=shell, stdin=stdin, env=environment, process_group=group)  # what the user typed
        return subprocess.Popen(command, shell=shell, stdin=stdin, env=environment, preexec_fn=lambda: os.setpgid(0, group))

    def _has_terminal() -> bool:
        """Whether this process is in the foreground of the terminal that is its standard input."""
        try:
            return os.isatty(_TERMINAL) and os.tcgetpgrp(_TERMINAL) == os.getpgrp()
        except OSError:
            return False

    def _give_terminal(group: int) -> None:
        """The keyboard goes to that group. A process in the background that does so is stopped, unless it ignores SIGTTOU."""
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with contextlib.suppress(OSError):  # the terminal is gone, or the group is
                os.tcsetpgrp(_TERMINAL, group)
        finally:
            signal.signal(signal.SIGTTOU, before)
