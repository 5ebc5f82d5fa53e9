#!/usr/bin/env python3
"""The README's table of variates: medians over clients that had taken part before, from round 21 on. It needs Python 3 alone.

    results/scaffold/medians.py results/scaffold/torch-fedtvd-clients.csv
"""
import csv, statistics, sys

with open(sys.argv[1]) as lines:
    rows = [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(lines)]
rows = [row for row in rows if row["age"] > 0 and row["round"] > 20]
GROUPS = {
    "all": lambda row: True,
    "up to 20 steps": lambda row: row["steps"] <= 20,
    "more than 120 steps": lambda row: row["steps"] > 120,
    "c_k at most 5 rounds old": lambda row: row["age"] <= 5,
    "more than 15 rounds old": lambda row: row["age"] > 15,
}
MEASURES = {
    "gradient": lambda row: row["gradient"],
    "c_k": lambda row: row["norm_ck"],
    "error": lambda row: row["error"] / row["gradient"],
    "cosine": lambda row: row["cosine"],
    "moved": lambda row: row["moved"],
}
for name, chosen in GROUPS.items():
    group = [row for row in rows if chosen(row)]
    found = (f"{measure} {statistics.median(map(of, group)):.3g}" for measure, of in MEASURES.items())
    print(f"{name}, {len(group)}:", *found, sep="  ")
