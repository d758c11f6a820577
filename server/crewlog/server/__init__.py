"""The server: JSON-RPC over stdio on top of the storage library and the table of methods.

The files in the order of the story: `stdio` and `pipes` (bytes), `outbox` (what is to be sent), `lanes`, `workers` and `group_sync` (who
may run when, where, and when it is durable), `dispatch` (from a frame to a handler), `lifecycle`, `handlers` and the files that it names
(what each method does), `stores` (what is open), `serve` (the process).
"""
