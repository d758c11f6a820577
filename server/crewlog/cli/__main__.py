"""`python -m crewlog.cli`: the same as `crewlog`."""

from __future__ import annotations

import sys

from crewlog.cli import main

if __name__ == "__main__":
    sys.exit(main())
