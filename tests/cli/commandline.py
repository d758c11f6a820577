"""Runs `crewlog` as a user does: a process of its own on a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SAFE = ["-P"] if sys.version_info >= (3, 11) else []


class Crewlog:
    """`crewlog …` in `cwd`, on `home`."""

    def __init__(self, home: Path, cwd: Path) -> None:
        self.home = home
        self.cwd = cwd
        cwd.mkdir(parents=True, exist_ok=True)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("CREWLOG_")}
        self.environment.update(CREWLOG_HOME=str(home), PATH=str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"])
        for name in ("EDITOR", "VISUAL", "NO_COLOR"):
            self.environment.pop(name, None)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, *SAFE, "-m", "crewlog.cli", *arguments]

    def run(self, *arguments: str, code: int = 0, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Fails the test unless it ends with `code`."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.cwd,
            env={**self.environment, **environment},
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def out(self, *arguments: str, code: int = 0, **environment: str) -> str:
        return self.run(*arguments, code=code, **environment).stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.out(*arguments, "--json", code=code))

    def refused(self, *arguments: str) -> str:
        """The kind of the error."""
        done = self.run(*arguments, code=1)
        assert done.stderr.startswith("crewlog: "), done.stderr
        kind = done.stderr.removeprefix("crewlog: ").partition(":")[0]
        as_json = json.loads(self.run(*arguments, "--json", code=1).stderr)
        assert as_json["error"]["data"]["kind"] == kind
        return kind
