#!/usr/bin/env python3
"""A run's split with a few rows left out, for `split.kind=file`.

    results/scaffold/without_rows.py RUN/partition.json OUT.json CLIENT      the last row of one client
    results/scaffold/without_rows.py RUN/partition.json OUT.json all         of every client what does not fill a batch of 32
"""
import hashlib, json, struct, sys

source, target, which = sys.argv[1:]
split = json.load(open(source))
clients = split["clients"]
if which == "all":
    clients = [rows[: len(rows) // 32 * 32 or len(rows)] for rows in clients]
else:
    clients[int(which)].pop()
lists = b"".join(struct.pack(f"<Q{len(rows)}I", len(rows), *rows) for rows in clients)
start = b"fedtvd partition 1\n" + struct.pack("<Q", len(clients))
split |= {"clients": clients, "hash": hashlib.sha256(start + lists).hexdigest()}
json.dump(split, open(target, "w"))
