"""Reads the runs of bench/attacks.sh: accuracy with and without the liar, and who was named in the record.

usage: attacks.py JSON CLIENTS STRATEGY RUNS NAME...
"""

import collections
import json
import pathlib
import sys

BOUNDED = {"huge", "nan", "scale", "false-tvd", "false-histogram", "tiny-reach", "vast-reach"}
POINTS = 3.0


def read(run):
    """Final accuracy in per cent, rounds in which each client was scaled down or rejected, alarms, collapse."""
    summary = json.loads((run / "summary.json").read_text())
    named, weight, alarms = collections.Counter(), 0.0, 0
    for line in (run / "rounds.jsonl").read_text().splitlines():
        record = json.loads(line)
        alarms += record["alarm"] is not None
        for client in record["clients"]:
            named[client["client"]] += bool(client["screened"] or client["failure"])
            if client["client"] == 0:
                weight = max(weight, client["weight"] or 0.0)
    return 100 * summary["last10_accuracy"], +named, weight, alarms, summary["collapsed"]


def main():
    as_json, clients, strategy, runs, *names = sys.argv[1:]
    runs, failed = pathlib.Path(runs), False
    absent = read(runs / "absent")[0]
    for name in names:
        accuracy, named, weight, alarms, collapsed = read(runs / name)
        difference = accuracy - absent
        missed = name in BOUNDED and difference < -POINTS
        failed |= missed
        row = {
            "clients": int(clients), "strategy": strategy, "attack": name, "accuracy": round(accuracy, 2),
            "absent": round(absent, 2), "difference": round(difference, 2), "weight": round(weight, 3),
            "named": dict(named), "alarms": alarms, "collapsed": collapsed,
        }
        if as_json == "true":
            print(json.dumps(row), flush=True)
            continue
        who = ", ".join(f"client {client}: {count}" for client, count in named.most_common(3)) or "nobody"
        print(
            f"{clients:>2} clients  {strategy:<16} {name:<16} {accuracy:5.1f} %  absent {absent:5.1f} %  {difference:+5.1f}"
            f"  weight {weight:.2f}  named: {who}  alarms: {alarms}{'  COLLAPSED' if collapsed else ''}{'  MISSED' if missed else ''}",
            flush=True,
        )
    sys.exit(failed)


main()
