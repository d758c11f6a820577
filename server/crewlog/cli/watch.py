"""`crewlog watch`: a project live in the terminal. What changed is told by a server of its own; what is shown is read from the files."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import click
import msgspec

from crewlog.cli import options
from crewlog.cli.local import Local
from crewlog.cli.output import colours, counted, read_record, read_shown, say, say_json
from crewlog.cli.tasks import read_task
from crewlog.cli.team import read_member
from crewlog.cli.watch_frame import Said, View, frame, message_text, plain
from crewlog.client import Client, PlanDidChange, RosterDidChange, SessionDidChange, TaskDidChange
from crewlog.client.errors import ConnectionLost
from crewlog.protocol import records
from crewlog.protocol import results as r
from crewlog.protocol.records import Counts
from crewlog.storage.errors import StorageError

_ROUND = 5.0
"""Seconds after which the picture is drawn anew though nothing changed: it shows how long ago things were."""
_SAID = 12
_SERVER_GONE = "the server that tells of changes is gone"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""A terminal that knows them shows what is between them at once; others pass over them."""


@click.command()
@click.option("--once", is_flag=True, help="Show the present state once, and end.")
@options.task_list
@options.home_and_json
def watch(once: bool, list_id: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Watch a project live: tasks, team, latest messages. q quits.

    Without a terminal each change is told on a line; with --json as the notification that the protocol has for it, one a line.
    """
    local = Local(home, project)
    if once:
        _show_once(local, list_id, as_json)
        return
    signal.signal(signal.SIGTERM, lambda number, stack: sys.exit(0))
    quiet = subprocess.DEVNULL  # a log line in the middle of the picture would help nobody
    with (
        contextlib.suppress(KeyboardInterrupt),
        Client(home=local.ws.home.path, cwd=local.ws.cwd, name="crewlog watch", stderr=quiet) as client,
    ):
        if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _tell_changes(client, as_json)
        else:
            _Screen(local, list_id, client).run()


def _show_once(local: Local, list_id: str | None, as_json: bool) -> None:
    if as_json:
        say_json(look(local, list_id, ""))
        return
    size = shutil.get_terminal_size()
    say(plain(frame(look(local, list_id, ""), size.columns, size.lines if colours() else 200)))


def look(local: Local, list_id: str | None, note: str) -> View:
    """The present state of the project. A file that cannot be read at this moment is told in place of `note`."""
    view = View(local.ws.cwd, None, "", [], Counts(pending=0, in_progress=0, completed=0, total=0), [], [], note)
    try:
        recent = local.ask("session/mostRecent", r.OneSession)
        view.session = recent.session if recent is not None else None
        with contextlib.suppress(click.UsageError):  # there is no list yet
            view.list_id = local.list_id(list_id)
        if view.list_id:
            found = local.ask("task/list", r.TaskListResult, list_id=view.list_id)
            view.tasks, view.counts = [read_task(item) for item in found.items], found.counts
            roster = read_shown(local.ask("roster/get", msgspec.Raw, list_id=view.list_id), records.RosterRecord)
            view.members = [read_member(member) for member in roster.members]
        if view.session is not None:
            view.said = list(_latest(local, view.session.id))
    except (StorageError, msgspec.MsgspecError) as error:
        view.note = str(error)
    return view


def _latest(local: Local, session_id: str) -> Iterator[Said]:
    page = local.ask("session/entries", r.EntriesResult, session_id=session_id, limit=_SAID, kinds=["message"], max_bytes=1 << 20)
    for raw in page.entries:
        try:
            entry = read_record(raw, records.EntryRecord)
            message = read_record(entry.data, records.Message)
        except msgspec.MsgspecError:
            continue  # too large for the page, or of a shape of its own: there is no line to show of it
        text = message_text(message)
        if text:
            yield Said(message.role, entry.timestamp, text)


def _tell_changes(client: Client, as_json: bool) -> None:
    """Until a signal ends it. Raises `ConnectionLost`."""
    for change in client.notifications():
        if as_json:
            say_json({"method": _METHODS[type(change)], "params": change})
        else:
            say(_line(change))
        sys.stdout.flush()
    raise ConnectionLost(_SERVER_GONE)


_METHODS: dict[type, str] = {
    TaskDidChange: "task/didChange",
    RosterDidChange: "roster/didChange",
    PlanDidChange: "plan/didChange",
    SessionDidChange: "session/didChange",
}


def _line(change: TaskDidChange | RosterDidChange | PlanDidChange | SessionDidChange) -> str:
    if isinstance(change, TaskDidChange):
        words = [f"#{task.id} {task.status}{' by ' + task.owner if task.owner else ''}" for task in change.changed]
        words += [f"#{id} deleted" for id in change.removed]
        return f"task {change.list_id}: {', '.join(words)} [{change.counts.completed}/{change.counts.total} done]"
    if isinstance(change, PlanDidChange):
        return f"plan {change.name}: {change.change}"
    if isinstance(change, SessionDidChange):
        return f"session {change.session.id}: {change.change}, {counted(change.entries, 'entry', 'entries')}"
    return f"team {change.list_id}: changed"


class _Screen:
    """The terminal while it is watched. One thread waits for changes and wakes the other, which draws."""

    def __init__(self, local: Local, list_id: str | None, client: Client) -> None:
        self._local = local
        self._list_id = list_id
        self._client = client
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        self._gone = False

    def run(self) -> None:
        """Returns when the user quits. Raises `ConnectionLost`. The terminal is as it was, whatever happens."""
        threading.Thread(target=self._listen, daemon=True).start()
        with _own_terminal(self._wake), _resized(self._wake_writer):
            while not self._gone:
                self._draw()
                if self._user_quits():
                    return
        raise ConnectionLost(_SERVER_GONE)

    def _listen(self) -> None:
        for _ in self._client.notifications():
            self._wake()
        self._gone = True
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._wake_writer, b"x")

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        lines = frame(look(self._local, self._list_id, "q quits"), size.columns, size.lines)
        picture = (_CLEAR_LINE + "\r\n").join(lines)
        sys.stdout.write(_BEGIN + _HOME + picture + _CLEAR_LINE + _CLEAR_BELOW + _END)
        sys.stdout.flush()

    def _user_quits(self) -> bool:
        """Waits for a key, a change, or the end of the round."""
        ready, _, _ = select.select([sys.stdin, self._wake_reader], [], [], _ROUND)
        if self._wake_reader in ready:
            os.read(self._wake_reader, 4096)
        if sys.stdin not in ready:
            return False
        keys = os.read(sys.stdin.fileno(), 32)
        return not keys or (not keys.startswith(b"\x1b") and any(key in b"qQ\x03\x04" for key in keys))


@contextlib.contextmanager
def _own_terminal(wake: Callable[[], None]) -> Iterator[None]:
    """Another screen without cursor, keys as they are typed; afterwards all as before."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)

    def enter() -> None:
        sys.stdout.write("\x1b[?1049h\x1b[?25l")
        tty.setcbreak(sys.stdin)

    def leave() -> None:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()

    def stop(number: int, stack: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its terminal as it was; `fg` draws the picture anew."""
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()
        wake()

    stopping = signal.signal(signal.SIGTSTP, stop)
    enter()
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, stopping)
        leave()


@contextlib.contextmanager
def _resized(wake: int) -> Iterator[None]:
    """A new size of the terminal wakes the drawing."""
    before = signal.signal(signal.SIGWINCH, lambda number, stack: None)
    woken = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGWINCH, before)
