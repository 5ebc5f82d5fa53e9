#!/usr/bin/env bash
# Memory of a federation's server: its peak with 200 TLS clients (each its own process, logistic regression) on this
# machine, and with two and with ten updates of 45 MB that arrive at the same time. About five minutes on two cores.
#
#   bench/federation.sh [--json] [--clients N] [--rounds N]
#
# FEDTVD and UPLOADS name binaries to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

json=false clients=200 rounds=5
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --clients) clients=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        *) echo "federation.sh: unknown option $1; expected --json, --clients N, --rounds N" >&2; exit 2 ;;
    esac
    shift
done
if [ -z "${FEDTVD:-}" ] || [ -z "${UPLOADS:-}" ]; then
    cargo build --quiet --release >&2
    cargo build --quiet --release -p fedtvd-net --example uploads >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
uploads="${UPLOADS:-${CARGO_TARGET_DIR:-target}/release/examples/uploads}"
# Nothing here takes longer unless it hangs.
limit=900

folder="$(mktemp -d)"
echo "min-samples = 1" >"$folder/site.toml"
processes=()
clean_up() {
    for process in "${processes[@]}"; do
        kill -9 "$process" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT

# say JSON TEXT
say() {
    if $json; then echo "$1"; else echo "$2"; fi
}

# field FILE NAME
field() {
    sed -n "s/^ *\"$2\": \([0-9.]*\),*$/\1/p" "$1"
}

# listening DIR SERVER
listening() {
    local tries=0
    while [ ! -s "$1/federation/address" ]; do
        kill -0 "$2" 2>/dev/null || { tail -n 3 "$1.log" >&2; exit 1; }
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "federation.sh: the server does not listen" >&2; exit 1; }
        sleep 0.1
    done
}

failures=0
crowd() {
    local out="$folder/crowd" names=() number name seconds
    for ((number = 0; number < clients; number++)); do
        names+=("$(printf 'client-%03d' "$number")")
    done
    local settings=(--set "split.clients=$clients" --set split.kind=iid --set split.holdout=0.1 --set model.name=logistic
        --set cohort.fraction=1 --set local.epochs=1 --set "rounds=$rounds")
    "$fedtvd" split "${settings[@]}" --export "$folder/sites" --out "$folder/split" --quiet >/dev/null
    "$fedtvd" certs init --certs "$folder/certs" >/dev/null
    "$fedtvd" certs issue --certs "$folder/certs" "${names[@]}" >/dev/null
    printf '%s\n' "${names[@]}" >"$folder/roster"
    timeout $limit "$fedtvd" serve "${settings[@]}" --out "$out" --certs "$folder/certs" --roster "$folder/roster" \
        --listen 127.0.0.1:0 >/dev/null 2>"$out.log" &
    local server=$!
    processes+=("$server")
    listening "$out" "$server"
    seconds=$(date +%s.%N)
    for name in "${names[@]}"; do
        timeout $limit "$fedtvd" join "@$out/federation/address" "$folder/sites/$name" \
            --identity "$folder/certs/clients/$name" --policy "$folder/site.toml" --quiet >/dev/null 2>>"$out.clients.log" &
        processes+=("$!")
    done
    wait "$server"
    seconds=$(echo "$(date +%s.%N) - $seconds" | bc)
    local memory refused
    memory=$(field "$out/summary.json" peak_memory_bytes)
    refused=$(grep -c '"refused"\|"handshake"' "$out/federation/log.jsonl" || true)
    [ "$memory" -lt 268435456 ] || failures=$((failures + 1))
    say "{\"clients\":$clients,\"rounds\":$rounds,\"server_memory_bytes\":$memory,\"seconds\":$seconds,\"refused\":$refused}" \
        "$(printf '%s TLS clients, %s rounds: server memory %s MB, %s s with joining, %s refusals' "$clients" "$rounds" $((memory / 1000000)) "$seconds" "$refused")"
}

# large N: memory of a server before N updates of 45 MB come at once, its peak while they come, and its peak over all.
large() {
    local out="$folder/large-$1" names=() number server figures
    for ((number = 0; number <= $1; number++)); do
        names+=("$(printf 'client-%03d' "$number")")
    done
    printf '%s\n' "${names[@]}" >"$folder/roster-$1"
    "$fedtvd" serve --set 'model.layers=["flatten", "linear 14000", "relu", "linear"]' --set cohort.fraction=1 \
        --set rounds=1 --no-test-set --out "$out" --certs "$folder/certs" --roster "$folder/roster-$1" --listen 127.0.0.1:0 \
        >/dev/null 2>"$out.log" &
    server=$!
    processes+=("$server")
    listening "$out" "$server"
    figures=$(timeout $limit "$uploads" "$out/federation/address" "$folder/certs" "$server" "${names[@]}" 2>"$out.uploads.log")
    wait "$server"
    echo "$figures $(field "$out/summary.json" peak_memory_bytes)"
}

crowd
rises=()
for count in 2 10; do
    read -r before peak whole < <(large "$count")
    rises+=($((peak - before)))
    say "{\"concurrent_uploads\":$count,\"before_bytes\":$before,\"peak_bytes\":$peak,\"rise_bytes\":$((peak - before)),\"whole_run_peak_bytes\":$whole}" \
        "$(printf '%2s updates of 45 MB at once: server memory rises by %s kB, from %s MB; peak of the whole run %s MB' \
            "$count" $(((peak - before) / 1000)) $((before / 1000000)) $((whole / 1000000)))"
done
# Eight more connections have their buffers, some kilobytes each.
[ $((rises[1] - rises[0])) -lt 500000 ] || failures=$((failures + 1))
if [ "$failures" -gt 0 ]; then
    say "{\"passed\":false,\"failures\":$failures}" "FAILED: $failures"
    exit 1
fi
say '{"passed":true,"failures":0}' "passed"
