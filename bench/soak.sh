#!/usr/bin/env bash
# Whether a federation's server grows: a server and four clients (fedtvd join, logistic regression, as many short rounds as there is
# time for), a fifth client that is killed and started again every few seconds, and a status, a health and a metrics request every few
# seconds. Samples the server's anonymous memory (RssAnon). Fails if it grows by more than 1 MB per hour after a warm-up.
#
#   bench/soak.sh [--json] [--minutes N] [--warm-up MINUTES]
#
# The growth is the slope of the least-squares line through all samples after the warm-up: a leak is a line, and unlike the difference of two
# samples the slope depends on all of them, so that an allocator that takes or returns a page does not decide. The difference
# between the medians of the last and the first tenth of the samples is printed beside it.
# FEDTVD names a binary to use in place of a new build; SAMPLES a file for the samples (seconds, kB, rounds).
set -euo pipefail
cd "$(dirname "$0")/.."

json=false minutes=60 warm_up=10
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --minutes) minutes=$2; shift ;;
        --warm-up) warm_up=$2; shift ;;
        *) echo "soak.sh: unknown option $1; expected --json, --minutes N, --warm-up MINUTES" >&2; exit 2 ;;
    esac
    shift
done
[ "$minutes" -gt "$warm_up" ] || { echo "soak.sh: --minutes must be more than --warm-up, $warm_up" >&2; exit 2; }
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"

# Bytes per hour, and seconds between samples.
most=1000000 every=5
folder="$(mktemp -d)"
out="$folder/run" samples="${SAMPLES:-$folder/samples}" server="" clients=()
clean_up() {
    for process in $server "${clients[@]}"; do
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

stop() {
    echo "soak.sh: $1" >&2
    tail -n 3 "$folder/server.log" >&2
    exit 1
}

names=(client-000 client-001 client-002 client-003 client-004)
settings=(--set split.clients=5 --set split.kind=iid --set split.holdout=0.1 --set model.name=logistic --set cohort.fraction=1
    --set local.epochs=1 --set rounds=1000000)
"$fedtvd" split "${settings[@]}" --export "$folder/sites" --out "$folder/split" --quiet >/dev/null
"$fedtvd" certs init --certs "$folder/certs" >/dev/null
"$fedtvd" certs issue --certs "$folder/certs" "${names[@]}" >/dev/null
printf '%s\n' "${names[@]}" >"$folder/roster"
echo "rounds-per-day = 1000000000" >"$folder/site.toml"

(exec "$fedtvd" serve "${settings[@]}" --out "$out" --certs "$folder/certs" --roster "$folder/roster" --listen 127.0.0.1:0 \
    --metrics 127.0.0.1:0 --quiet >/dev/null 2>"$folder/server.log") &
server=$!
# start_client NUMBER
start_client() {
    local name=${names[$1]}
    (exec "$fedtvd" join "@$out/federation/address" "$folder/sites/$name" --identity "$folder/certs/clients/$name" \
        --policy "$folder/site.toml" --quiet >/dev/null 2>>"$folder/$name.log") &
    clients[$1]=$!
}
for number in 0 1 2 3 4; do start_client "$number"; done

# get PATH: the status line of an answer of the monitoring port.
get() {
    local line
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' "$1" >&3
    read -r line <&3
    cat <&3 >/dev/null
    exec 3>&-
    echo "${line%$'\r'}"
}

for _ in $(seq 200); do
    port=$(sed -n 's|.*metrics and health at http://127.0.0.1:\([0-9]*\).*|\1|p' "$out/federation/log.jsonl" 2>/dev/null | tail -n 1 || true)
    [ -z "$port" ] || break
    sleep 0.1
done
[ -n "${port:-}" ] || stop "the server does not listen"

# Rows of rounds.jsonl are counted from where the last count ended.
counted=0 rounds=0
count_rounds() {
    local size
    size=$(stat -c %s "$out/rounds.jsonl" 2>/dev/null || echo 0)
    rounds=$((rounds + $(tail -c "+$((counted + 1))" "$out/rounds.jsonl" 2>/dev/null | head -c $((size - counted)) | wc -l || true)))
    counted=$size
}

requests=0 reconnects=0 refused=0
: >"$samples"
SECONDS=0
while [ $SECONDS -lt $((minutes * 60)) ]; do
    sleep "$every"
    kill -0 "$server" 2>/dev/null || stop "the server ended after $SECONDS s"
    for number in 0 1 2 3; do
        kill -0 "${clients[$number]}" 2>/dev/null || stop "$(tail -n 1 "$folder/${names[$number]}.log")"
    done
    kill -9 "${clients[4]}" 2>/dev/null || stop "$(tail -n 1 "$folder/${names[4]}.log")"
    wait "${clients[4]}" 2>/dev/null || true
    start_client 4
    reconnects=$((reconnects + 1))
    "$fedtvd" serve --status --out "$out" --certs "$folder/certs" --json >/dev/null || stop "no status"
    [ "$(get /metrics)" = "HTTP/1.1 200 OK" ] || stop "no metrics"
    [ "$(get /health)" = "HTTP/1.1 200 OK" ] || refused=$((refused + 1))
    requests=$((requests + 3))
    count_rounds
    echo "$SECONDS $(awk '/^RssAnon/ { print $2 }' "/proc/$server/status") $rounds" >>"$samples"
done
kill -TERM "$server"
status=0
wait "$server" || status=$?
server=""
[ "$status" -eq 0 ] || stop "the server ended with status $status when it was asked to stop"
[ "$refused" -eq 0 ] || stop "$refused health checks failed"
[ "$rounds" -gt 0 ] || stop "no round was completed"

read -r slope difference first last <<<"$(awk -v from=$((warm_up * 60)) '
    $1 >= from { n++; x[n] = $1 / 3600; y[n] = $2 * 1024; sx += x[n]; sy += y[n] }
    function median(a, b,   i, j, k, t, m) {
        m = 0
        for (i = a; i <= b; i++) t[++m] = y[i]
        for (i = 2; i <= m; i++) for (j = i; j > 1 && t[j] < t[j - 1]; j--) { k = t[j]; t[j] = t[j - 1]; t[j - 1] = k }
        return t[int((m + 1) / 2)]
    }
    END {
        for (i = 1; i <= n; i++) { sxx += (x[i] - sx / n) ^ 2; sxy += (x[i] - sx / n) * (y[i] - sy / n) }
        tenth = int((n + 9) / 10)
        one = median(1, tenth); two = median(n - tenth + 1, n)
        printf "%d %d %d %d\n", sxy / sxx, two - one, one, two
    }' "$samples")"
passed=true word="passed"
if [ "$slope" -gt $most ]; then passed=false word="FAILED: more than $most bytes per hour"; fi
say "{\"minutes\":$minutes,\"warm_up_minutes\":$warm_up,\"rounds\":$rounds,\"reconnects\":$reconnects,\"requests\":$requests,\"bytes_per_hour\":$slope,\"first_median_bytes\":$first,\"last_median_bytes\":$last,\"passed\":$passed}" \
    "$minutes min, $rounds rounds, $reconnects reconnects, $requests requests: memory changes by $slope bytes per hour after $warm_up min (medians $first and $last, difference $difference)
$word"
$passed
