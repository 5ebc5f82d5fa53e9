#!/usr/bin/env bash
# Regenerates results/personal: does the missing runs of results/personal/sweep.toml into RUNS, one seed and split after the other,
# adds them to runs.csv, and makes table.md from it. What runs.csv has completely is not run again; what was stopped resumes in RUNS.
# A seed and split, 11 runs, take about ten minutes on two cores with AVX-512: by the CPU time of single rounds.
#
#   FEDTVD_DATA=DIR results/personal.sh RUNS [SEED…]      default: 1 2 3
#
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    echo "personal.sh: name the folder of the runs: results/personal.sh RUNS [SEED…]" >&2
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
    for split in dirichlet labels; do
        if python3 results/personal.py complete "$seed" "$split" results/personal; then
            continue
        fi
        slice="$runs/seed-$seed-$split"
        python3 results/personal.py slice "$seed" "$split" results/personal >"$slice.toml"
        status=0
        "$fedtvd" sweep "$slice.toml" --out "$slice" --quiet || status=$?
        # Code 1 says that models collapsed or runs failed, which the table counts as not done.
        [ "$status" -le 1 ] || exit "$status"
        python3 results/personal.py add "$slice" results/personal
    done
done
