#!/usr/bin/env bash
# What a long line costs a round: four sites whose updates have 0.8 MB (`mlp`), directly and through a proxy that delays
# every byte by 200 ms in each direction. Two minutes on two cores.
#
#   bench/round_trips.sh [--json] [--delay MILLISECONDS] [--rounds N]
#
# Fails if the slower rounds take 3 s more. Prints the median over the rounds but the first, in which clients connect.
# FEDTVD and DELAY name binaries to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

json=false delay=200 rounds=9 clients=4
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --delay) delay=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        *) echo "round_trips.sh: unknown option $1; expected --json, --delay MILLISECONDS, --rounds N" >&2; exit 2 ;;
    esac
    shift
done
if [ -z "${FEDTVD:-}" ] || [ -z "${DELAY:-}" ]; then
    cargo build --quiet --release >&2
    cargo build --quiet --release -p fedtvd-net --example delay >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
proxy="${DELAY:-${CARGO_TARGET_DIR:-target}/release/examples/delay}"
# Seconds that no run takes unless it hangs.
limit=300

folder="$(mktemp -d)"
processes=()
clean_up() {
    for process in "${processes[@]}"; do
        kill -9 "$process" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT

settings=(--set "split.clients=$clients" --set model.name=mlp --set "rounds=$rounds")
"$fedtvd" split "${settings[@]}" --export "$folder/sites" --out "$folder/split" --quiet >/dev/null
"$fedtvd" certs init --certs "$folder/certs" >/dev/null
seq -f "client-%03g" 0 $((clients - 1)) | xargs "$fedtvd" certs issue --certs "$folder/certs" >/dev/null
seq -f "client-%03g" 0 $((clients - 1)) >"$folder/roster"

# federation OUT MILLISECONDS: runs a federation; with 0 without the proxy. Prints the median time of a round.
federation() {
    local out=$1 server address="$1/federation/address" tries=0
    (exec timeout "$limit" "$fedtvd" serve "${settings[@]}" --out "$out" --certs "$folder/certs" \
        --roster "$folder/roster" --listen 127.0.0.1:0 --farewell 5 --workers 1 >/dev/null 2>"$out.log") &
    server=$!
    processes+=("$server")
    until [ -s "$address" ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { tail -n 3 "$out.log" >&2; exit 1; }
        sleep 0.1
    done
    if [ "$2" -gt 0 ]; then
        (exec timeout "$limit" "$proxy" "$address" "$out.proxy" "$2") &
        processes+=("$!")
        until [ -s "$out.proxy" ]; do sleep 0.1; done
        address="$out.proxy"
    fi
    for number in $(seq 0 $((clients - 1))); do
        name=$(printf 'client-%03d' "$number")
        (exec timeout "$limit" "$fedtvd" join "@$address" "$folder/sites/$name" --identity "$folder/certs/clients/$name" \
            --state "$out.state/$name" >/dev/null 2>>"$out.clients") &
        processes+=("$!")
    done
    wait "$server" || { tail -n 3 "$out.log" >&2; exit 1; }
    sed -n 's/.*"seconds":\([0-9.e-]*\).*/\1/p' "$out/rounds.jsonl" | tail -n +2 | sort -g |
        awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }' >"$out.median"
}

federation "$folder/direct" 0
federation "$folder/delayed" "$delay"
cmp "$folder/direct/model.safetensors" "$folder/delayed/model.safetensors"
direct=$(cat "$folder/direct.median") delayed=$(cat "$folder/delayed.median")
extra=$(awk "BEGIN { print $delayed - $direct }")
if $json; then
    echo "{\"delay_ms\": $delay, \"direct_seconds\": $direct, \"delayed_seconds\": $delayed, \"extra_seconds\": $extra}"
else
    echo "a round: $direct s directly, $delayed s with $delay ms in each direction: $extra s more"
fi
awk "BEGIN { exit !($extra < 3) }" || { echo "round_trips.sh: a round takes $extra s more; at most 3 are expected" >&2; exit 1; }
