"""Claims from a table in SQLite (WAL, BEGIN IMMEDIATE, no sync): `sqlite_claims.py FILE OWNER COUNT`.

Prints "ready" when it may begin, and how long they took.
"""

import sqlite3
import sys
import time

path, owner, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = sqlite3.connect(path, isolation_level=None, timeout=60)
db.execute("PRAGMA synchronous=OFF")
print("ready", flush=True)
sys.stdin.readline()
begun = time.perf_counter()
for _ in range(count):
    db.execute("BEGIN IMMEDIATE")
    row = db.execute("SELECT id FROM tasks WHERE owner IS NULL ORDER BY id LIMIT 1").fetchone()
    db.execute("UPDATE tasks SET owner = ?, status = 'in_progress' WHERE id = ?", (owner, row[0]))
    db.execute("COMMIT")
print(time.perf_counter() - begun, flush=True)
