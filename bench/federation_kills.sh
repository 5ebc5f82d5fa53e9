#!/usr/bin/env bash
# Exactness of a federation under kill -9: ten clients and a server over TLS on loopback, each its own process. Server and
# clients are killed at random moments, half of the kills each, and started again; every run must end with the model of an
# undisturbed simulation to the byte, and every update that a client got a receipt for must be among its round's answers.
# A run that ends before all kills are used up is compared, and another one begins. A few minutes per strategy.
#
#   bench/federation_kills.sh [--json] [--kills N] [--runs N] [--seed N] [--rounds N] [STRATEGY…]
#
# --kills is the number for the server and again for the clients, of each strategy; 67 of the three default ones are more than 200
# and 200 in all. Runs are independent, so that several calls with other seeds count as one. With --runs the script fails if it
# compared fewer runs. FEDTVD names a binary to use in place of a new build.
set -euo pipefail
cd "$(dirname "$0")/.."

json=false kills=20 least_runs=1 seed=$(($(date +%s) % 32768)) rounds=20 strategies=()
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --kills) kills=$2; shift ;;
        --runs) least_runs=$2; shift ;;
        --seed) seed=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        -*) echo "federation_kills.sh: unknown option $1; expected --json, --kills N, --runs N, --seed N, --rounds N" >&2; exit 2 ;;
        *) strategies+=("$1") ;;
    esac
    shift
done
[ ${#strategies[@]} -gt 0 ] || strategies=(fedtvd+balanced scaffold fedadam)
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"

# The longest delay before a kill, and seconds that no run takes unless it hangs.
longest_ms=1500 limit=900
folder="$(mktemp -d)"
server="" clients=()
clean_up() {
    for process in $server "${clients[@]}"; do
        kill -9 "$process" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT

now_ms() {
    date +%s%3N
}

# say JSON TEXT
say() {
    if $json; then echo "$1"; else echo "$2"; fi
}

# Hardened, with a bound so low that many honest updates are scaled down or rejected.
settings=(--set split.clients=10 --set split.alpha=0.1 --set split.holdout=0.1 --set cohort.fraction=0.7
    --set strategy.mode=hardened --set strategy.screen=0.1 --set local.epochs=1 --set model.name=logistic --set "rounds=$rounds")
# Some of the sites have fewer samples than a site trains on by default, and some strategies need label counts.
printf '%s\n' 'min-samples = 1' 'statistics = ["distance", "released", "histogram"]' >"$folder/site.toml"
names=()
for number in 0 1 2 3 4 5 6 7 8 9; do
    names+=("client-00$number")
done
"$fedtvd" split "${settings[@]}" --export "$folder/sites" --out "$folder/split" --quiet >/dev/null
"$fedtvd" certs init --certs "$folder/certs" >/dev/null
"$fedtvd" certs issue --certs "$folder/certs" "${names[@]}" >/dev/null
printf '%s\n' "${names[@]}" >"$folder/roster"

# Each becomes the program, so that a kill hits it and not this shell.
start_server() {
    (exec "$fedtvd" serve "${settings[@]}" --set "strategy.name=$1" --out "$2" --certs "$folder/certs" \
        --roster "$folder/roster" --listen 127.0.0.1:0 >/dev/null 2>>"$2.log") &
    server=$!
}
# start_client NUMBER DIR
start_client() {
    local name=${names[$1]}
    (exec "$fedtvd" join "@$2/federation/address" "$folder/sites/$name" --identity "$folder/certs/clients/$name" \
        --policy "$folder/site.toml" --state "$2.state/$name" >/dev/null 2>>"$2.$name.log") &
    clients[$1]=$!
}

# receipts_of LOG: the rounds for which a client's update was acknowledged.
receipts_of() {
    sed -n 's/^round \([0-9]*\): update stored by the server$/\1/p' "$1"
}

# killed PROCESS: ends it. One that ended by itself before is a failure.
killed() {
    local status=0
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || status=$?
    if [ "$status" -ne 137 ] && [ ! -e "$directory/summary.json" ]; then
        echo "a process ended by itself with status $status:" >&2
        tail -qn 2 "$directory"*.log >&2
        failures=$((failures + 1))
    fi
}

failures=0 all_runs=0 all_server=0 all_clients=0 all_receipts=0 all_lost=0
# receipts DIR: how many there are, and how many were lost: not among their round's answers, or given a second time, for
# a server that has an update does not ask for it again.
receipts() {
    local lost=0 total=0 number round
    for number in 0 1 2 3 4 5 6 7 8 9; do
        while read -r round; do
            total=$((total + 1))
            grep -A2 "\"$number\": {" "$(printf '%s/federation/round-%06d/closed.json' "$1" $((round - 1)))" |
                grep -q '"update"' || lost=$((lost + 1))
        done < <(receipts_of "$1.${names[$number]}.log")
        lost=$((lost + $(receipts_of "$1.${names[$number]}.log" | sort | uniq -d | wc -l)))
    done
    echo "$total $lost"
}

# run_one STRATEGY: kills until the kills are used up, and compares every run that ends.
run_one() {
    local strategy=$1 of_server=0 of_clients=0 run=1 started victim directory total lost since=0
    while [ "$of_server" -lt "$kills" ] || [ "$of_clients" -lt "$kills" ]; do
        started=$(date +%s)
        directory="$folder/$strategy-$run"
        rm -rf "$directory"*
        mkdir -p "$directory"
        start_server "$strategy" "$directory"
        for victim in 0 1 2 3 4 5 6 7 8 9; do start_client "$victim" "$directory"; done
        since=0
        while [ ! -e "$directory/summary.json" ]; do
            if [ $(($(date +%s) - started)) -gt $limit ]; then
                echo "$strategy: no end after $limit s; $of_server and $of_clients kills so far" >&2
                tail -n 3 "$directory.log" >&2
                failures=$((failures + 1))
                return
            fi
            local until=$(($(now_ms) + 20 + (RANDOM * 32768 + RANDOM) % longest_ms))
            while [ "$(now_ms)" -lt "$until" ] && [ ! -e "$directory/summary.json" ]; do sleep 0.02; done
            [ ! -e "$directory/summary.json" ] || break
            # Half of the kills hit the server.
            if [ $((RANDOM % 2)) -eq 0 ] && [ "$of_server" -lt "$kills" ]; then
                killed "$server" && of_server=$((of_server + 1)) && since=$((since + 1))
                [ -e "$directory/summary.json" ] || start_server "$strategy" "$directory"
            elif [ "$of_clients" -lt "$kills" ]; then
                victim=$((RANDOM % 10))
                killed "${clients[$victim]}" && of_clients=$((of_clients + 1)) && since=$((since + 1))
                start_client "$victim" "$directory"
            fi
        done
        # Clients exit when they learn that the run is over; one that was just killed never does.
        local status=0
        wait "$server" 2>/dev/null || status=$?
        if [ "$status" -ne 0 ] && [ "$status" -ne 137 ]; then
            echo "the server ended with status $status" >&2
            failures=$((failures + 1))
        fi
        for victim in 0 1 2 3 4 5 6 7 8 9; do
            kill -9 "${clients[$victim]}" 2>/dev/null || true
            wait "${clients[$victim]}" 2>/dev/null || true
        done
        read -r total lost < <(receipts "$directory")
        local hash same=true word="the same"
        hash="$(sha256sum "$directory/model.safetensors" | cut -d ' ' -f 1)"
        # Without any receipt the check would pass whatever was lost.
        if [ "$hash" != "$expected" ] || [ "$lost" -gt 0 ] || [ "$total" -eq 0 ]; then
            same=false word="DIFFERENT"
            failures=$((failures + 1))
        fi
        say "{\"strategy\":\"$strategy\",\"run\":$run,\"kills\":$since,\"model\":\"$hash\",\"same\":$same,\"receipts\":$total,\"lost\":$lost}" \
            "$(printf '%-16s run %s, after %s kills  %s  %s; %s receipts, %s lost' "$strategy" "$run" "$since" "${hash:0:16}" "$word" "$total" "$lost")"
        run=$((run + 1)) all_runs=$((all_runs + 1)) all_receipts=$((all_receipts + total)) all_lost=$((all_lost + lost))
        rm -rf "$directory"*
    done
    all_server=$((all_server + of_server)) all_clients=$((all_clients + of_clients))
    say "{\"strategy\":\"$strategy\",\"server_kills\":$of_server,\"client_kills\":$of_clients}" \
        "$(printf '%-16s %s kills of the server, %s of clients' "$strategy" "$of_server" "$of_clients")"
}

RANDOM=$seed
say "{\"seed\":$seed,\"kills\":$kills,\"rounds\":$rounds}" "seed of the delays: $seed"
for strategy in "${strategies[@]}"; do
    "$fedtvd" run "${settings[@]}" --set "strategy.name=$strategy" --out "$folder/simulated" --quiet >/dev/null
    say "{\"strategy\":\"$strategy\",\"scaled_down_or_rejected\":$(grep -o '"factor"\|above this round' "$folder/simulated/rounds.jsonl" | wc -l)}" \
        "$strategy: $(grep -o '"factor"\|above this round' "$folder/simulated/rounds.jsonl" | wc -l) updates are scaled down or rejected in $rounds rounds"
    if ! grep -q '"factor"\|above this round' "$folder/simulated/rounds.jsonl"; then
        echo "$strategy: screening did nothing, so this would not test it" >&2
        failures=$((failures + 1))
    fi
    expected="$(sha256sum "$folder/simulated/model.safetensors" | cut -d ' ' -f 1)"
    rm -rf "$folder/simulated"
    run_one "$strategy"
done
say "{\"runs\":$all_runs,\"server_kills\":$all_server,\"client_kills\":$all_clients,\"receipts\":$all_receipts,\"lost\":$all_lost}" \
    "$all_runs runs, $all_server kills of the server, $all_clients of clients, $all_receipts receipts, $all_lost lost"
if [ "$all_runs" -lt "$least_runs" ]; then
    echo "only $all_runs runs were compared; --runs asks for $least_runs" >&2
    failures=$((failures + 1))
fi
if [ "$failures" -gt 0 ]; then
    say "{\"passed\":false,\"failures\":$failures}" "FAILED: $failures"
    exit 1
fi
say '{"passed":true,"failures":0}' "passed: the same bytes in every run, no receipt lost"
