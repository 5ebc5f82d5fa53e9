#!/usr/bin/env bash
# PyTorch repeats fedtvd's rounds: three rounds of one epoch on the embedded images, each from fedtvd's global model before
# it, with our initial model, split, cohort, order of samples and weights. The new global models may differ by 1e-5 (L2,
# relative). Takes about ten seconds.
#
#   bench/repeat.sh [--json] [--seed N]
#
# PyTorch lives in a virtual environment that all benchmarks share: bench/.venv, or FEDTVD_VENV. FEDTVD names a binary to
# use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."
venv="${FEDTVD_VENV:-bench/.venv}"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv" >&2
fi
if ! "$venv/bin/python" -c 'import torch, numpy' 2>/dev/null; then
    "$venv/bin/pip" install --quiet torch numpy safetensors >&2
fi
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$venv/bin/python" bench/repeat.py "${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}" "$folder" "$@"
