#!/usr/bin/env bash
# Regenerates the findings: for each sweep configuration beside this script, does the missing runs and writes table, figures,
# page and accuracy per round into a folder of the same name. It resumes where it was stopped, and sweeps share the runs that they
# have in common; all of them take about ten hours on two cores.
#
#   FEDTVD_DATA=DIR results/make.sh RUNS [NAME…]
#
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    echo "make.sh: name the folder of the runs: results/make.sh RUNS [NAME…]" >&2
    exit 2
fi
runs="$1"
shift
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for config in results/*.toml; do names+=("$(basename "$config" .toml)"); done
fi
for name in "${names[@]}"; do
    "$fedtvd" sweep "results/$name.toml" --out "$runs"
    mapfile -t done < <("$fedtvd" sweep "results/$name.toml" --out "$runs" --json --quiet |
        sed -n 's/^ *"directory": "\(.*-seed[0-9].*\)",$/\1/p')
    # Replaced as a whole, so that nothing of an earlier report stays.
    rm -rf "results/.$name"
    "$fedtvd" report "${done[@]}" --out "results/.$name" --title "$name" --no-timing --quiet
    rm -rf "results/$name"
    mv "results/.$name" "results/$name"
done
