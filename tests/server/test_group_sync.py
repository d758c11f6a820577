"""One sync for many requests: where it fails, each is told, and what they wrote is taken back."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from crewlog.server.group_sync import GroupSync
from crewlog.storage import PROCESS, History, SessionManager, SessionStore, StorageError, TranscriptStore

MESSAGE = b'{"role":"user","content":[{"type":"text","text":"hello"}]}'


class Answers:
    """What the waiters were told, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[OSError | None] = []
        self._condition = threading.Condition()
        self.fails = True
        self.sync = GroupSync(self._call)
        real = os.fdatasync

        def fdatasync(descriptor: int) -> None:
            if self.fails:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(descriptor)

        monkeypatch.setattr(os, "fdatasync", fdatasync)

    def _call(self, call: Callable[[], None]) -> None:
        with self._condition:
            call()
            self._condition.notify_all()

    def wait_for(self, work: Callable[[], object]) -> None:
        """Does the work as a request does it."""
        work()
        ticket = self.sync.take_ticket()
        assert ticket is not None
        self.sync.when_synced(ticket, self.told.append)

    def all(self, count: int) -> list[OSError | None]:
        self.sync.start()
        with self._condition:
            assert self._condition.wait_for(lambda: len(self.told) == count, 30)
        told, self.told = self.told, []
        return told


def test_appends_whose_sync_failed_are_gone_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = SessionManager(str(tmp_path), durability=PROCESS).create("/x").path
    before = Path(path).read_bytes()
    answers = Answers(monkeypatch)
    store = SessionManager(str(tmp_path), durability=answers.sync).open_path(path)
    for _ in range(3):
        answers.wait_for(lambda: store.append_message(MESSAGE))
    assert all(error is not None and error.errno == errno.EIO for error in answers.all(3))
    assert Path(path).read_bytes() == before
    assert store.snapshot().messages == []
    answers.fails = False
    answers.wait_for(lambda: store.append_message(MESSAGE))
    assert answers.all(1) == [None]
    assert len(SessionStore(path, durability=PROCESS).snapshot().messages) == 1


def test_what_others_wrote_behind_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = SessionManager(str(tmp_path), durability=PROCESS).create("/x").path
    answers = Answers(monkeypatch)
    store = SessionManager(str(tmp_path), durability=answers.sync).open_path(path)
    answers.wait_for(lambda: store.append_message(MESSAGE))
    SessionManager(str(tmp_path), durability=PROCESS).open_path(path).append_message(MESSAGE)
    assert answers.all(1) != [None]
    assert len(store.snapshot().messages) == 2


def test_files_that_were_made_for_a_failed_append_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    history = History(str(tmp_path / "history.jsonl"), "/p", durability=answers.sync)
    transcripts = TranscriptStore(str(tmp_path), durability=answers.sync)
    manager = SessionManager(str(tmp_path), durability=answers.sync)
    answers.wait_for(lambda: history.add("text"))
    answers.wait_for(lambda: transcripts.append("a", [MESSAGE]))
    answers.wait_for(lambda: manager.create("/x"))
    assert None not in answers.all(3)
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []
    assert len(history) == 0
    assert transcripts.agents() == []
    assert manager.list().sessions == []
    answers.fails = False
    answers.wait_for(lambda: history.add("text"))
    assert answers.all(1) == [None]
    assert len(history) == 1


def test_a_store_whose_log_is_gone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    made: list[SessionStore] = []
    answers.wait_for(lambda: made.append(SessionManager(str(tmp_path), durability=answers.sync).create("/x")))
    assert None not in answers.all(1)
    with pytest.raises(StorageError):
        made[0].append_message(MESSAGE)
