"""`python -m tests.bench [--quick] [--only WORD] [--json FILE]`: every row beside its rivals, from the repository's root."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import msgspec

from . import indexing, library, wire
from .harness import Measured, table


def main() -> int:
    """Ends with 1 when a mark was missed and --strict was given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measures Crewlog beside its rivals, in one run.")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: whether it runs, not how fast it is")
    parser.add_argument("--only", default="", help="only rows whose function's name holds this")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a mark is missed")
    options = parser.parse_args()
    found: list[Measured] = []
    for row in [*wire.rows(), *library.rows(), *indexing.rows()]:
        if options.only in row.__name__:
            sys.stderr.write(f"{row.__name__} …\n")
            with tempfile.TemporaryDirectory(prefix="crewlog-bench-") as folder:
                found += row(Path(folder), options.quick)
            if options.json is not None:
                write(options.json, found)  # at once: a long run may be ended before its end
    print(table(found))
    return 1 if options.strict and any(row.met is False for row in found) else 0


def write(path: Path, rows: list[Measured]) -> None:
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    path.write_text(json.dumps({"machine": machine, "rows": msgspec.to_builtins(rows)}, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
