#!/usr/bin/env bash
# A wheel for every Linux since 2014 (manylinux2014: glibc 2.17) and every CPython since 3.10, in python/target/wheels. Zig, which pip
# installs, compiles C and links for that glibc, so neither a container nor an old machine is needed.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
if ! "$python" -c 'import ziglang' 2> /dev/null || ! "$python" -m maturin --version > /dev/null 2>&1; then
    echo "wheel.sh needs maturin and ziglang: $python -m pip install maturin ziglang" >&2
    exit 1
fi
target=$(rustc -vV | sed -n 's/^host: //p')
"$python" -m maturin build --release --locked --zig --compatibility manylinux2014 --target "$target" \
    --out "${1:-target/wheels}"
