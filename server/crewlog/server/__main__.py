"""`python -P -m crewlog.server`: the same as `crewlog serve`."""

from __future__ import annotations

import sys

from crewlog.server.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
