#!/usr/bin/env bash
# Generates the page of a comparison and that of a sweep, and tests both in a real browser.
# Needs Chromium and Python 3. Uses the program in FEDTVD, or a release build.
#   browser/run.sh [--pictures DIR]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
fedtvd=${FEDTVD:-}
if [ -z "$fedtvd" ]; then
    cargo build --release --locked
    fedtvd=${CARGO_TARGET_DIR:-target}/release/fedtvd
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$fedtvd" compare --quiet --rounds 30 --set model.name=logistic --set evaluation.details=true \
    --out "$work/compare" > "$work/compare.txt"
cat > "$work/grid.toml" << 'TOML'
name = "label skew on fmnist-mini"
rounds = 30
[model]
name = "logistic"
[evaluation]
details = true
[sweep]
"strategy.name" = ["fedavg", "fedprox", "feddkw", "uniform", "fedtvd", "fedtvd+balanced"]
seed = [1, 2, 3, 4, 5, 6]
split = [{ alpha = 0.1 }, { alpha = 1.0 }, { kind = "iid" }]
TOML
"$fedtvd" sweep "$work/grid.toml" --quiet --out "$work/sweep" > "$work/sweep.txt"
"$fedtvd" report "$work/sweep" --title "label skew on fmnist-mini" --quiet --no-timing > "$work/report.txt"
python3 "$here/pages.py" "compare=$work/compare/report.html" "sweep=$work/sweep/report/report.html" "$@"
