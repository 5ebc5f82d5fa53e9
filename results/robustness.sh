#!/usr/bin/env bash
# Regenerates results/robustness: does the missing runs of results/robustness/sweep.toml into RUNS, one seed after the other, adds
# them to runs.csv, and makes table.md from it. Seeds that runs.csv has are not run again; a seed that was stopped resumes in RUNS.
# A seed takes half an hour on two cores with AVX-512 and 1.3 GB in RUNS.
#
#   results/robustness.sh RUNS [SEED…]      default: 1 2 3
#
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    echo "robustness.sh: name the folder of the runs: results/robustness.sh RUNS [SEED…]" >&2
    exit 2
fi
runs="$1"
shift
[ $# -gt 0 ] || set -- 1 2 3
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
mkdir -p "$runs"
for seed in "$@"; do
    if python3 results/robustness.py complete "$seed" results/robustness; then
        continue
    fi
    sed "s/^seed = .*/seed = [$seed]/" results/robustness/sweep.toml >"$runs/seed-$seed.toml"
    status=0
    "$fedtvd" sweep "$runs/seed-$seed.toml" --out "$runs/seed-$seed" --quiet || status=$?
    # Code 1 says that models collapsed, which is what the attacks are for, or that runs failed, which the table counts as not done.
    [ "$status" -le 1 ] || exit "$status"
    python3 results/robustness.py add "$runs/seed-$seed" results/robustness
done
