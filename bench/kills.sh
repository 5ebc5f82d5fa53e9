#!/usr/bin/env bash
# Exactness: one configuration gives the same model.safetensors to the byte with 1, 2 and 7 workers, with every update in
# memory and with every update spooled to a file, and after 20 kill -9 at random moments, each followed by fedtvd resume;
# for fedtvd+balanced, scaffold and fedadam. Every killed run resumes with a random number of workers and random spooling. A run that
# ends before all kills are used up is compared, and another one begins. About two minutes per strategy on two idle cores.
#
#   bench/kills.sh [--json] [--kills N] [--seed N] [--rounds N] [--longest MS] [STRATEGY…]
#
# A kill comes after a random delay of up to --longest milliseconds. The first checkpoint comes after three seconds or a
# tenth of the rounds, so a busy machine needs longer delays: if no kill came after a checkpoint, the script fails, since
# resuming from one was not tested.
# The seed of the delays is printed; with the same seed they are the same again. FEDTVD names a binary to use in place of a
# new build.
set -euo pipefail
cd "$(dirname "$0")/.."

json=false kills=20 seed=$(($(date +%s) % 32768)) rounds=30 longest_ms=5000 strategies=()
while [ $# -gt 0 ]; do
    case "$1" in
        --json) json=true ;;
        --kills) kills=$2; shift ;;
        --seed) seed=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --longest) longest_ms=$2; shift ;;
        -*) echo "kills.sh: unknown option $1; expected --json, --kills N, --seed N, --rounds N, --longest MS" >&2; exit 2 ;;
        *) strategies+=("$1") ;;
    esac
    shift
done
[ ${#strategies[@]} -gt 0 ] || strategies=(fedtvd+balanced scaffold fedadam)
if [ -z "${FEDTVD:-}" ]; then
    cargo build --quiet --release >&2
fi
fedtvd="${FEDTVD:-${CARGO_TARGET_DIR:-target}/release/fedtvd}"

# Nothing here takes longer, not even on a busy machine, unless it hangs.
limit=3600

folder="$(mktemp -d)"
running=""
clean_up() {
    if [ -n "$running" ]; then
        kill -9 "$running" 2>/dev/null || true
    fi
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

# start_or_resume STRATEGY DIR WORKERS MEGABYTES: becomes the program, so that a kill hits it and not this shell. A directory
# without a manifest holds no run yet, and a new one starts.
start_or_resume() {
    local options=(--quiet --json --workers "$3" --update-memory "$4")
    if [ -e "$2/manifest.json" ]; then
        exec "$fedtvd" resume "${options[@]}" "$2" >/dev/null
    fi
    rm -rf "$2"
    exec "$fedtvd" run "${options[@]}" --out "$2" --set "strategy.name=$1" --set "rounds=$rounds" \
        --set cohort.fraction=0.2 >/dev/null
}

hash_of() {
    sha256sum "$1/model.safetensors" | cut -d ' ' -f 1
}

failures=0
# compare STRATEGY WHAT DIR
compare() {
    local hash same=true word="the same"
    hash="$(hash_of "$3")"
    if [ "$hash" != "$expected" ]; then
        same=false word="DIFFERENT"
        failures=$((failures + 1))
    fi
    say "{\"strategy\":\"$1\",\"run\":\"$2\",\"model\":\"$hash\",\"same\":$same}" "$(printf '%-16s %-34s %s  %s' "$1" "$2" "${hash:0:16}" "$word")"
}

# killed STRATEGY: kills runs until the kills are used up, and compares every one that ends.
killed() {
    local strategy=$1 used=0 run=1 since=0 before_first=0 started
    local workers=(1 2 7) memory=(0 128)
    local directory="$folder/killed-$run"
    started=$(date +%s)
    while true; do
        if [ $(($(date +%s) - started)) -gt $limit ]; then
            echo "$strategy: no end after $limit s; $used kills so far" >&2
            failures=$((failures + 1))
            return
        fi
        # Drawn before the fork: a subshell would draw from a sequence of its own.
        local crew=${workers[RANDOM % 3]} megabytes=${memory[RANDOM % 2]}
        start_or_resume "$strategy" "$directory" "$crew" "$megabytes" &
        running=$!
        if [ "$used" -lt "$kills" ]; then
            # By the clock: on busy cores a short sleep takes much longer than it says.
            local until=$(($(now_ms) + 20 + (RANDOM * 32768 + RANDOM) % longest_ms))
            while [ "$(now_ms)" -lt "$until" ] && kill -0 "$running" 2>/dev/null; do
                sleep 0.02
            done
            if kill -9 "$running" 2>/dev/null; then
                wait "$running" 2>/dev/null || true
                running=""
                used=$((used + 1))
                since=$((since + 1))
                compgen -G "$directory/checkpoint/round-*" >/dev/null || before_first=$((before_first + 1))
                continue
            fi
        fi
        if ! wait "$running"; then
            running=""
            echo "$strategy: resume failed after $used kills" >&2
            failures=$((failures + 1))
            return
        fi
        running=""
        compare "$strategy" "run $run, after $since kills" "$directory"
        rm -rf "$directory"
        [ "$used" -lt "$kills" ] || break
        run=$((run + 1)) since=0 directory="$folder/killed-$run"
    done
    say "{\"strategy\":\"$strategy\",\"kills\":$used,\"before_the_first_checkpoint\":$before_first}" \
        "$(printf '%-16s %s kills, %s of them before the first checkpoint' "$strategy" "$used" "$before_first")"
    if [ "$used" -gt 0 ] && [ "$before_first" -eq "$used" ]; then
        echo "$strategy: no kill came after a checkpoint; give --longest more than $longest_ms ms" >&2
        failures=$((failures + 1))
    fi
}

RANDOM=$seed
say "{\"seed\":$seed,\"kills\":$kills,\"rounds\":$rounds}" "seed of the delays: $seed"
for strategy in "${strategies[@]}"; do
    (start_or_resume "$strategy" "$folder/1" 1 128)
    expected="$(hash_of "$folder/1")"
    compare "$strategy" "workers 1" "$folder/1"
    for workers in 2 7; do
        (start_or_resume "$strategy" "$folder/$workers" "$workers" 128)
        compare "$strategy" "workers $workers" "$folder/$workers"
    done
    for workers in 1 2; do
        (start_or_resume "$strategy" "$folder/spooled-$workers" "$workers" 0)
        compare "$strategy" "workers $workers, all updates spooled" "$folder/spooled-$workers"
    done
    killed "$strategy"
    rm -rf "${folder:?}"/*
done
if [ "$failures" -gt 0 ]; then
    say "{\"passed\":false,\"failures\":$failures}" "FAILED: $failures"
    exit 1
fi
say '{"passed":true,"failures":0}' "passed: the same bytes in every run"
