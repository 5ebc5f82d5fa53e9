#!/usr/bin/env bash
# Federations under faults, in one process and without sockets: schedules of lost, late, repeated and reordered requests, lost
# answers, interrupted uploads, killed clients and servers, passing deadlines, failing disks and power cuts, each drawn from
# its seed. After each, every model must be the vector of its members' weights to the bit, every acknowledged update must
# count in its round, and the audit log must be unbroken (crates/net/src/fault_schedules/truth.rs). Some minutes on two cores.
#
#   bench/fault_schedules.sh [--json] [--count N] [--seed S]
#
# --seed is the first seed. A failing seed is printed; to run it alone, with a line for each thing that happens:
#
#   FEDTVD_FAULT_SEED=S cargo test -p fedtvd-net --lib fault_schedules::seeds -- --nocapture
set -euo pipefail
cd "$(dirname "$0")/.."

json=false count=10000 seed=0
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --count) count=$2; shift ;;
        --seed) seed=$2; shift ;;
        *) echo "fault_schedules.sh: unknown option $1; expected --json, --count N, --seed S" >&2; exit 2 ;;
    esac
    shift
done

output="$(mktemp)"
trap 'rm -f "$output"' EXIT
cargo test --quiet --release -p fedtvd-net --lib --no-run >&2
if ! FEDTVD_FAULT_FIRST=$seed FEDTVD_FAULT_COUNT=$count RUST_BACKTRACE=${RUST_BACKTRACE:-0} \
    cargo test --quiet --release -p fedtvd-net --lib fault_schedules::seeds -- --nocapture >"$output" 2>&1; then
    cat "$output" >&2
    exit 1
fi
# The test program may print its progress on the same line.
if ! result="$(grep -o '{"schedules":.*' "$output")"; then
    echo "fault_schedules.sh: the tests passed, but printed no result" >&2
    exit 1
fi
if $json; then
    echo "$result"
else
    echo "$result" | tr -d '{}"' | tr ',' '\n' | sed 's/:/ /; s/_/ /g'
fi
