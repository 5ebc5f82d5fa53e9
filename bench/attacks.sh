#!/usr/bin/env bash
# What one lying site does to a hardened federation: a server and 4 or 10 clients over TLS on loopback, each its own
# process, the embedded data at alpha 0.5, and client 0 lying in each of these ways. Beside each run stand the one in
# which the liar is absent, who was named, and how often. A quarter of an hour for each strategy.
#
#   bench/attacks.sh [--json] [--rounds N] [--clients N] [--screen X] [--attacks "A B…"] [STRATEGY…]
#
# Fails if a huge value, a NaN, a scaled update or a false claim costs more than 3 points against the absent liar. Flipped
# signs and labels stay within the bounds of hardened mode and are reported only: robust rules are for them.
# FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

json=false rounds=50 sizes=(4 10) screen="" strategies=()
attacks=(huge nan scale false-tvd false-histogram tiny-reach vast-reach sign-flip label-flip)
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --rounds) rounds=$2; shift ;;
        --clients) sizes=("$2"); shift ;;
        --screen) screen=$2; shift ;;
        --attacks) read -ra attacks <<<"$2"; shift ;;
        -*) echo "attacks.sh: unknown option $1; expected --json, --rounds N, --clients N, --screen X, --attacks LIST" >&2; exit 2 ;;
        *) strategies+=("$1") ;;
    esac
    shift
done
[ ${#strategies[@]} -gt 0 ] || strategies=(fedtvd+balanced fednova fedadam scaffold)
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
# Seconds that no run takes unless it hangs.
limit=900

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

# federation SITES OUT STRATEGY FIRST LIE…: runs a federation of the sites from number FIRST on; client 0 lies.
federation() {
    local sites=$1 out=$2 strategy=$3 first=$4 server number name status=0
    shift 4
    processes=()
    seq -f "client-%03g" "$first" $((clients - 1)) >"$out.roster"
    (exec timeout "$limit" "$fedtvd" serve "${settings[@]}" --set "strategy.name=$strategy" --out "$out" --certs "$sites/certs" \
        --roster "$out.roster" --listen 127.0.0.1:0 --farewell 5 --workers 1 >/dev/null 2>"$out.log") &
    server=$!
    processes+=("$server")
    for number in $(seq "$first" $((clients - 1))); do
        name=$(printf 'client-%03d' "$number")
        local lie=()
        [ "$number" -ne 0 ] || lie=("$@")
        (exec timeout "$limit" "$fedtvd" join "@$out/federation/address" "$sites/sites/$name" \
            --identity "$sites/certs/clients/$name" --policy "$folder/site.toml" --state "$out.state/$name" "${lie[@]}" >/dev/null 2>>"$out.clients") &
        processes+=("$!")
    done
    wait "$server" || status=$?
    for number in "${processes[@]}"; do
        kill -9 "$number" 2>/dev/null || true
        wait "$number" 2>/dev/null || true
    done
    processes=()
    # A collapsed run exits with 1 and has a summary; anything else is a failure of this script.
    if [ ! -e "$out/summary.json" ]; then
        echo "the server ended with status $status:" >&2
        tail -n 3 "$out.log" >&2
        exit 1
    fi
}

echo "min-samples = 1" >"$folder/site.toml"
for clients in "${sizes[@]}"; do
    settings=(--set "split.clients=$clients" --set split.alpha=0.5 --set "rounds=$rounds")
    [ -z "$screen" ] || settings+=(--set "strategy.screen=$screen")
    sites="$folder/$clients"
    mkdir "$sites"
    "$fedtvd" split "${settings[@]}" --export "$sites/sites" --out "$sites/split" --quiet >/dev/null
    "$fedtvd" certs init --certs "$sites/certs" >/dev/null
    seq -f "client-%03g" 0 $((clients - 1)) | xargs "$fedtvd" certs issue --certs "$sites/certs" >/dev/null
    for strategy in "${strategies[@]}"; do
        runs="$sites/$strategy"
        mkdir "$runs"
        federation "$sites" "$runs/absent" "$strategy" 1
        federation "$sites" "$runs/honest" "$strategy" 0
        for attack in "${attacks[@]}"; do
            federation "$sites" "$runs/$attack" "$strategy" 0 --attack "$attack"
        done
        python3 bench/attacks.py "$json" "$clients" "$strategy" "$runs" honest "${attacks[@]}" || failed=true
    done
done
[ "${failed:-false}" = false ] || { echo "attacks.sh: an attack cost more than 3 points" >&2; exit 1; }
