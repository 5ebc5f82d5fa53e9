#!/usr/bin/env bash
# PyTorch repeats fedtvd's rounds: three rounds of one epoch on the embedded images, each from fedtvd's global model before
# it, with our initial model, split, cohort, order of samples and weights. The new global models may differ by 1e-5 (L2,
# relative). Takes about ten seconds.
#
#   bench/repeat.sh [--json] [--seed N]
#
# PyTorch is in a virtual environment that all benchmarks share: bench/.venv, or FEDTVD_VENV. FEDTVD names a binary to
# use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/venv.sh
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$venv/bin/python" bench/repeat.py "${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}" "$folder" "$@"
