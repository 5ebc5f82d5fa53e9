#!/usr/bin/env bash
# Loads a table of a million rows and forty columns: without a schema, with an open and with a complete one. The limits are 3 s and three
# times the size of the file. Needs a Rust toolchain and 1.5 GB in the folder for temporary files.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet -p fedtvd -p fedtvd-data --example load_table --bin fedtvd
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk -v rows="${1:-1000000}" 'BEGIN {
    srand(1)
    for (c = 1; c < 40; c++) printf "c%d,", c
    print "label"
    for (r = 0; r < rows; r++) {
        line = ""
        for (c = 1; c < 39; c++) line = line sprintf("%.4f,", 20 * rand() - 10)
        print line "town" int(5 * rand()) "," int(2 * rand())
    }
}' > "$folder/table.csv"
release="${CARGO_TARGET_DIR:-target}/release"
"$release/fedtvd" data schema "$folder/table.csv" > "$folder/open.toml"
"$release/fedtvd" data schema --fixed "$folder/table.csv" > "$folder/complete.toml"
"$release/examples/load_table" "$folder/table.csv"
"$release/examples/load_table" "$folder/table.csv" "$folder/open.toml"
"$release/examples/load_table" "$folder/table.csv" "$folder/complete.toml"
