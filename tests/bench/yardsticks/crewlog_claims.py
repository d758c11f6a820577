"""Claims from a task list: `crewlog_claims.py FOLDER OWNER COUNT`; prints "ready" when it may begin, and how long they took."""

import sys
import time

from crewlog.storage import PROCESS, TaskStore

folder, owner, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = TaskStore(durability=PROCESS)
store.set_dir(folder)
store.find_claimable()
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter()
for _ in range(count):
    if store.claim_next(owner) is None:
        raise SystemExit("there was nothing to claim")
print(time.perf_counter() - begun, flush=True)
