#!/usr/bin/env bash
# Regenerates results/robustness: does the missing runs of results/robustness/sweep.toml into RUNS, one seed and skew after the
# other, adds them to runs.csv, and makes table.md from it. What runs.csv has completely is not run again; what was stopped resumes
# in RUNS. A seed and skew, 224 runs, take a quarter of an hour on two cores with AVX-512, and 0.7 GB in RUNS.
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
    for alpha in 0.1 0.5; do
        if python3 results/robustness.py complete "$seed" "$alpha" results/robustness; then
            continue
        fi
        slice="$runs/seed-$seed-alpha-$alpha"
        sed "s/^seed = .*/seed = [$seed]/; s/^split = .*/split = [{ alpha = $alpha }]/" results/robustness/sweep.toml >"$slice.toml"
        status=0
        "$fedtvd" sweep "$slice.toml" --out "$slice" --quiet || status=$?
        # Code 1 says that models collapsed, which is what the attacks are for, or that runs failed, which the table counts as not done.
        [ "$status" -le 1 ] || exit "$status"
        python3 results/robustness.py add "$slice" results/robustness
    done
done
