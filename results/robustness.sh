#!/usr/bin/env bash
# Regenerates results/robustness: does the missing runs of results/robustness/sweep.toml and writes table.md and cells.csv from
# those that are done. It resumes where it was stopped. All 1344 runs take about three hours on two idle cores, and 4 GB in RUNS.
#
#   results/robustness.sh RUNS [OPTION…]      options of fedtvd sweep, such as --shard 0/100 for every hundredth run
#
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    echo "robustness.sh: name the folder of the runs: results/robustness.sh RUNS [OPTION…]" >&2
    exit 2
fi
runs="$1"
shift
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
status=0
"$fedtvd" sweep results/robustness/sweep.toml --out "$runs" "$@" || status=$?
# Code 1 says that models collapsed, which is what the attacks are for, or that runs failed, which the table counts as not done.
[ "$status" -le 1 ] || exit "$status"
python3 results/robustness.py "$runs" results/robustness
