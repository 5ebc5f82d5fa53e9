#!/usr/bin/env bash
# Everything that must hold of the Python package, in an empty virtual environment: it installs, the README's example runs, tests, types
# and the lock file are right, and a wheel for old systems is made and works. Needs Python 3.10 or later, a Rust toolchain, a C compiler
# and packages from PyPI.
#
#   check.sh            all of it, optimised as users get it
#   check.sh --light    without PyTorch and the wheel for old systems, built without optimising what tests need little of: for .ci/run
#
# FEDTVD_CHECK_VENV keeps the virtual environment at a place, so that a second call need not fill it again.
set -euo pipefail
cd "$(dirname "$0")"
light=false
[ "${1:-}" = --light ] && light=true

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
venv=${FEDTVD_CHECK_VENV:-$scratch/venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

step() { printf '== %s\n' "$*"; }

step "pip install ./python"
if $light; then
    # Dependencies are shared with the program's own tests.
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/../target}
    pip install --config-settings=build-args=--profile=dev .
else
    pip install .
fi
pip install mypy pandas-stubs pytest
# Without PyTorch, the tests of its backend are skipped.
$light || pip install torch

step "the example of the README"
sed -n '/^## From Python/,/^## /{/^```python$/,/^```$/p}' ../README.md | sed '/^```/d' > "$scratch/example.py"
[ -s "$scratch/example.py" ] || { echo "the README has no Python example" >&2; exit 1; }
(cd "$scratch" && "$venv/bin/python" example.py)

step "formatting and lints of the extension module"
cargo fmt --check
# Checking all crates again for one small one costs a minute.
$light || cargo clippy --locked -- -D warnings

step "tests"
# From above, where the folder of the sources does not hide the installed package.
(cd .. && "$venv/bin/python" -m pytest -q -p no:cacheprovider python/tests)

step "types"
"$venv/bin/python" -m mypy --strict fedtvd tests
# The tests as a user's code, with the types of the installed package.
mkdir "$scratch/tests"
find tests -name '*.py' ! -name 'test_torch_*' -exec cp {} "$scratch/tests/" \;
(cd "$scratch" && "$venv/bin/python" -m mypy --strict tests)
$light || "$venv/bin/python" -m mypy --strict --config-file /dev/null -p fedtvd.torch

if ! $light; then
    step "a wheel for manylinux2014"
    pip install 'maturin>=1.9,<2' ziglang
    PYTHON=$venv/bin/python ./wheel.sh "$scratch/wheels"
    python3 -m venv "$scratch/other"
    "$scratch/other/bin/python" -m pip --quiet --disable-pip-version-check install "$scratch"/wheels/*manylinux2014*.whl
    (cd "$scratch" && "$scratch/other/bin/python" example.py > /dev/null && "$scratch/other/bin/fedtvd" --version)
fi
step "all is well"
