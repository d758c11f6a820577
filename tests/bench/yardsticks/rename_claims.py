"""The least that a claim of a task in codebot's files takes: the list's lock, and one small file written and renamed.

`rename_claims.py FOLDER OWNER COUNT`; prints "ready" when it may begin, and how long they took.
"""

import fcntl
import os
import sys
import time

folder, owner, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT)
content = f'{{"id":"1","subject":"task","status":"in_progress","owner":"{owner}"}}'.encode()
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter()
for number in range(count):
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.000_1)
    made = os.open(os.path.join(folder, f".{owner}.tmp"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(made, content)
    os.close(made)
    os.rename(os.path.join(folder, f".{owner}.tmp"), os.path.join(folder, f"{number}.json"))
    fcntl.flock(lock, fcntl.LOCK_UN)
print(time.perf_counter() - begun, flush=True)
