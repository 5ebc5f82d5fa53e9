#!/usr/bin/env bash
# Cost of a simulation: every figure is the best of several repetitions, and runs that are compared alternate. Parts:
#   workers  two workers against two one-worker processes at the same time (target: at least 0.95), and against one worker
#   kernels  fraction of the time inside the trainers (target: at least 0.90)
#   torch    a round against a bare PyTorch loop in two processes of one thread (target: at least 3, goal 5)
#   tiny     milliseconds per client of a round of 1,000 clients with one sample each and logistic (target: less than 2)
#   memory   peak of resnet18 with 100 of 1,000 clients, and of 10,000 clients; only when named or with --memory: minutes
# The load of the first three: lenet, Dirichlet 0.1, 100 clients, 10 per round, 4 epochs, batch 32, on Fashion-MNIST if
# it is on this machine (FEDTVD_DATA), otherwise on the embedded images.
#
#   bench/simulation.sh [--json] [--repeat N] [--rounds N] [--memory] [PART…]
#
# PyTorch is in a virtual environment that all benchmarks share: bench/.venv, or FEDTVD_VENV.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/venv.sh
cargo build --quiet --release >&2
cargo build --quiet --release -p fedtvd-run --example inside >&2
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$venv/bin/python" bench/simulation.py "${CARGO_TARGET_DIR:-target}/release" "$folder" "$@"
