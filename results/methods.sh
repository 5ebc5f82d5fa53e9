#!/usr/bin/env bash
# Regenerates results/methods: does the missing runs of results/methods/sweep.toml and batch-norm.toml and writes table.md and
# cells.csv from those that are done. It resumes where it was stopped. All 870 runs take about an hour and a half on two cores.
#
#   results/methods.sh RUNS [OPTION…]      options of fedtvd sweep, such as --shard 0/100 for every hundredth run
#
# The sweeps are planned from tuning: results/tune_methods.sh TUNED; results/methods.py plan FEDTVD TUNED results/methods
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    echo "methods.sh: name the folder of the runs: results/methods.sh RUNS [OPTION…]" >&2
    exit 2
fi
runs="$1"
shift
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
for sweep in sweep batch-norm; do
    status=0
    "$fedtvd" sweep "results/methods/$sweep.toml" --out "$runs" "$@" || status=$?
    # Code 1 says that models collapsed, which is what the table is for, or that runs failed, which it counts as not done.
    [ "$status" -le 1 ] || exit "$status"
done
python3 results/methods.py table "$runs" results/methods
