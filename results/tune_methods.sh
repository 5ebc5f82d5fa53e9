#!/usr/bin/env bash
# Tunes the main parameter of every method once, for results/methods.toml: embedded data, 100 clients, alpha 0.1, 100 rounds, one
# tuning seed (1001) that no result uses, judged on the clients' hold-outs. Prints one line per method: the label with its best value.
# It resumes where it was stopped; about a quarter of an hour on two quiet cores.
#
#   results/tune_methods.sh RUNS [METHOD…]
#
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    echo "tune_methods.sh: name the folder of the runs: results/tune_methods.sh RUNS [METHOD…]" >&2
    exit 2
fi
runs="$1"
shift
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"

# Method, parameter, values, and the network where it is not lenet. The default is among the values, and a factor of about three in
# both directions where papers tune on logarithmic grids.
grids=(
    "fedavg server_lr 0.5,1,1.5,2"
    "fedtvd temperature 0.03,0.1,0.3,1,3"
    "fedtvd-released lambda 0.1,0.25,0.5,0.75"
    "feddkw lambda 0.25,0.5,0.75,1"
    "joint rho 0.3,1,3,10"
    "balanced tau 0.3,0.5,0.7,0.85,1,1.2"
    "fedlc tau 0.3,1,3,10"
    "fedprox mu 0.001,0.01,0.1,1"
    "scaffold damping 0.25,0.5,0.75,1"
    "bn-scaffold damping 0.25,0.5,0.75,1 lenet-bn"
    "feddyn mu 0.01,0.03,0.1,0.3,1"
    "trimmed-mean trim 0.05,0.1,0.2,0.3"
    "krum byzantine 0.1,0.2,0.3"
    "multi-krum byzantine 0.1,0.2,0.3"
    "centred-clipping tau 0.25,0.5,1,2,4"
    "fedavgm lr 0.1,0.3,0.5,1"
    "fedadagrad lr 0.003,0.01,0.03,0.1"
    "fedadam lr 0.001,0.003,0.01,0.03,0.1"
    "fedyogi lr 0.001,0.003,0.01,0.03,0.1"
    "fedexp epsilon 0.01,0.1,1,10"
    "complete candidates 3,10,30"
)
for grid in "${grids[@]}"; do
    read -r method parameter values network <<<"$grid"
    if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qx "$method"; then
        continue
    fi
    "$fedtvd" tune --strategies "$method" --grid "strategy.$parameter=$values" --set split.alpha=0.1 --set split.clients=100 \
        --set model.name="${network:-lenet}" --set rounds=100 --tuning-seeds 1 --seeds 1 --out "$runs/tune-$method" --quiet --json \
        >"$runs/tune-$method.json"
    sed -n 's/^ *"label": "\(.*\)",$/\1/p' "$runs/tune-$method.json" | head -n 1
done
