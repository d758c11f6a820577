"""Writes every file that is derived from the table of methods: `python -m crewlog.protocol.generate [--check]`.

For developers, in a checkout with the development tools installed. With `--check` nothing is written, and stale files end it with 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from crewlog.protocol.generators import luacats, python_client, reference, typescript
from crewlog.protocol.schema import openrpc_json

ROOT = Path(__file__).resolve().parents[3]

FILES: dict[str, Callable[[], str]] = {
    "protocol/openrpc.json": openrpc_json,
    "protocol/crewlog/client/results.py": lambda: _formatted(python_client.results_module()),
    "protocol/crewlog/client/_blocking_api.py": lambda: _formatted(python_client.api_module(asynchronous=False)),
    "protocol/crewlog/client/_async_api.py": lambda: _formatted(python_client.api_module(asynchronous=True)),
    "editors/vscode/src/protocol.ts": typescript.typescript_module,
    "editors/neovim/lua/crewlog/types.lua": luacats.lua_module,
    "docs/protocol.md": reference.reference_page,
}


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 1 when `--check` finds a stale file."""
    parser = argparse.ArgumentParser(prog="python -m crewlog.protocol.generate", description="Writes what is derived from the table.")
    parser.add_argument("--check", action="store_true", help="write nothing; name stale files and end with 1")
    options = parser.parse_args(arguments)
    stale = stale_files()
    for name, text in stale.items():
        if options.check:
            sys.stderr.write(f"{name} is stale: run `python -m crewlog.protocol.generate`\n")
        else:
            path = ROOT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            sys.stderr.write(f"wrote {name}\n")
    return 1 if stale and options.check else 0


def stale_files() -> dict[str, str]:
    """What should stand in each file that does not say it, or is not there."""
    wanted = {name: write() for name, write in FILES.items()}
    return {name: text for name, text in wanted.items() if _present(ROOT / name) != text}


def _present(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _formatted(source: str) -> str:
    """The source as the project's formatter wants it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(ROOT / "protocol" / "generated.py"), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, encoding="utf-8").stdout


if __name__ == "__main__":
    sys.exit(main())
