#!/usr/bin/env bash
# Milliseconds per batch of 32 in fedtvd's kernels and in PyTorch, one thread each, interleaved, smallest of several.
#
#   bench/kernels.sh [--json] [--repeat N] [MODEL…]     default: lenet lenet5 cnn resnet8 resnet18
#
# PyTorch is in a virtual environment that all benchmarks share: bench/.venv, or FEDTVD_VENV.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/venv.sh
cargo build --quiet --release -p fedtvd-nn --example kernels >&2
exec "$venv/bin/python" bench/kernels.py "${CARGO_TARGET_DIR:-target}/release/examples/kernels" "$@"
