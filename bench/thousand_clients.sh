#!/usr/bin/env bash
# A thousand TLS clients of one server on this machine: they complete a number of rounds, the server is killed (kill -9)
# in the middle of one of them and started again, and all clients come back. Fails if the server needs 512 MB or more, if
# the clients need 30 s or more to come back, or if a round misses an update. A few minutes on two cores.
#
#   bench/thousand_clients.sh [--json] [--clients N] [--rounds N] [--down SECONDS]
#
# --down is the time between the kill and the new start. The clients are tasks of one process (crates/net/examples/crowd.rs):
# each has its own certificate and connection, trains nothing, and waits between attempts as a real client does.
# FEDTVD and CROWD name binaries to use in place of a new build. Each of the two processes needs one file descriptor per client and 300
# more; the script raises its soft limit, and fails if the hard limit (ulimit -Hn) is too low.
set -euo pipefail
cd "$(dirname "$0")/.."

json=false clients=1000 rounds=6 down=2
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --clients) clients=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --down) down=$2; shift ;;
        *) echo "thousand_clients.sh: unknown option $1; expected --json, --clients N, --rounds N, --down SECONDS" >&2; exit 2 ;;
    esac
    shift
done
[ "$rounds" -ge 3 ] || { echo "thousand_clients.sh: --rounds must be at least 3" >&2; exit 2; }
if ! ulimit -Sn $((clients + 300)); then
    echo "thousand_clients.sh: $((clients + 300)) open files are needed, and the hard limit is $(ulimit -Hn)" >&2
    exit 2
fi
if [ -z "${FEDTVD:-}" ] || [ -z "${CROWD:-}" ]; then
    cargo build --quiet --release >&2
    cargo build --quiet --release -p fedtvd-net --example crowd >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"
crowd="${CROWD:-${CARGO_TARGET_DIR:-target}/release/examples/crowd}"

# Bounds, and seconds that nothing here takes unless it hangs.
most_memory=536870912 longest_return=30 limit=900
folder="$(mktemp -d)"
out="$folder/run" log="$folder/run/federation/log.jsonl" server="" generator=""
clean_up() {
    for process in $server $generator; do
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

now() {
    date +%s.%N
}

# Becomes the program, so that a kill hits it and not this shell.
start_server() {
    (exec "$fedtvd" serve --set model.name=logistic --set cohort.fraction=1 --set "rounds=$rounds" --out "$out" \
        --certs "$folder/certs" --roster "$folder/roster" --listen 127.0.0.1:0 --quiet >/dev/null 2>>"$folder/server.log") &
    server=$!
}

memory=0
# watch: remembers the server's peak memory; fails if it ended by itself or nothing happens for too long.
watch() {
    local peak
    peak=$(awk '/^VmHWM/ { print $2 * 1024 }' "/proc/$server/status" 2>/dev/null || true)
    [ "${peak:-0}" -le "$memory" ] || memory=$peak
    if ! kill -0 "$server" 2>/dev/null || [ $SECONDS -gt $limit ]; then
        echo "thousand_clients.sh: the server ended, or the run took longer than $limit s" >&2
        tail -n 3 "$folder/server.log" "$folder/crowd.log" >&2
        exit 1
    fi
    sleep 0.05
}

# events KIND SINCE: the events of a kind in the log, after this line.
events() {
    tail -n "+$(($2 + 1))" "$log" 2>/dev/null | grep "\"event\":\"$1\"" || true
}

# last_time: the time of the last event.
last_time() {
    tail -n 1 | sed 's/.*"time":\([0-9.]*\).*/\1/'
}

# on_disk ROUND: the number of accepted updates in a round's folder.
on_disk() {
    find "$1" -name 'client-*-*' 2>/dev/null | wc -l || true
}

names=()
for ((number = 0; number < clients; number++)); do
    names+=("$(printf 'client-%04d' "$number")")
done
"$fedtvd" certs init --certs "$folder/certs" >/dev/null
"$fedtvd" certs issue --certs "$folder/certs" "${names[@]}" >/dev/null
printf '%s\n' "${names[@]}" >"$folder/roster"

start_server
while [ ! -s "$out/federation/address" ]; do watch; done
started=$(now)
(exec "$crowd" "$out/federation/address" "$folder/certs" "$folder/roster" >"$folder/crowd.json" 2>"$folder/crowd.log") &
generator=$!

# The middle of a round: a quarter of its updates is on disk. A round that closes before the kill is let go.
target=$(((rounds + 1) / 2 - 1)) stored=0
while :; do
    watch
    round="$(printf '%s/federation/round-%06d' "$out" $target)"
    stored=$(on_disk "$round")
    if [ -e "$round/closed.json" ]; then
        target=$((target + 1))
    elif [ "$stored" -ge $((clients / 4)) ]; then
        kill -9 "$server"
        wait "$server" 2>/dev/null || true
        [ -e "$round/closed.json" ] || break
        start_server
        target=$((target + 1))
    fi
    [ $target -lt $((rounds - 1)) ] || { echo "thousand_clients.sh: the rounds are too short to kill in the middle of one" >&2; exit 1; }
done
stored=$(on_disk "$round")
enrolled=$(events enrolled 0 | last_time)
sleep "$down"
lines=$(wc -l <"$log")
restarted=$(now)
start_server
until [ "$(events enrolled "$lines" | wc -l)" -eq "$clients" ] && events closed "$lines" | grep -q "\"round\":$((target + 1)),"; do
    watch
done
all_enrolled=$(events enrolled "$lines" | last_time)
closed=$(events closed "$lines" | grep "\"round\":$((target + 1))," | last_time)
while [ ! -e "$out/summary.json" ]; do watch; done
took=$(echo "$(now) - $started" | bc)
status=0
wait "$server" || status=$?
server=""
wait "$generator" || status=$?
generator=""

failures=0
fail() {
    echo "thousand_clients.sh: $1" >&2
    failures=$((failures + 1))
}
joining=$(printf '%.1f' "$(echo "$enrolled - $started" | bc)")
came_back=$(printf '%.1f' "$(echo "$all_enrolled - $restarted" | bc)")
went_on=$(printf '%.1f' "$(echo "$closed - $restarted" | bc)")
refused=$(grep -c '"event":"refused"\|"event":"handshake"' "$log" || true)
full=$(grep -c "\"accepted\":$clients," "$log" || true)
[ "$status" -eq 0 ] || fail "the server or the clients ended with status $status"
[ "$full" -eq "$rounds" ] || fail "$full of $rounds rounds have all updates"
[ "$memory" -lt $most_memory ] || fail "the server needed $memory bytes; fewer than $most_memory are allowed"
[ "$(echo "$came_back < $longest_return && $went_on < $longest_return" | bc)" -eq 1 ] ||
    fail "after $came_back s all clients were back, and after $went_on s the round was complete; $longest_return s are allowed"
say "{\"clients\":$clients,\"rounds\":$rounds,\"seconds\":$(printf '%.1f' "$took"),\"joining_seconds\":$joining,\"server_memory_bytes\":$memory,\"refused\":$refused}" \
    "$(printf '%s TLS clients: all joined after %s s, %s rounds in %.0f s, server memory %s MB, %s refusals' "$clients" "$joining" "$rounds" "$took" $((memory / 1000000)) "$refused")"
say "{\"killed_in_round\":$((target + 1)),\"updates_on_disk\":$stored,\"down_seconds\":$down,\"all_enrolled_seconds\":$came_back,\"round_complete_seconds\":$went_on}" \
    "killed in round $((target + 1)) with $stored updates on disk, started again after $down s: all clients back after $came_back s, round complete after $went_on s"
say "$(cat "$folder/crowd.json")" "clients: $(cat "$folder/crowd.json")"
if [ "$failures" -gt 0 ]; then
    say "{\"passed\":false,\"failures\":$failures}" "FAILED: $failures"
    exit 1
fi
say '{"passed":true,"failures":0}' "passed"
