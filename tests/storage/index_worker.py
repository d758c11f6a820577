"""`index_worker.py HOME [GO]`: brings the home's index up to date, again and again, until it is killed. Says "ready" before the first time.

With GO it begins when that file is there.
"""

from __future__ import annotations

import os
import sys
import time

from crewlog.storage.home import Home
from crewlog.storage.index import SessionIndex

home = Home(sys.argv[1])
print("ready", flush=True)
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
while True:
    SessionIndex(home).update(small=0)
