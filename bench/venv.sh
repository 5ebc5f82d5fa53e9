# Sourced by the benchmarks that need PyTorch: leaves in $venv the virtual environment that all of them share, bench/.venv
# or the folder that FEDTVD_VENV names, and makes it on first use.
venv="${FEDTVD_VENV:-bench/.venv}"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv" >&2
fi
if ! "$venv/bin/python" -c 'import torch, numpy, safetensors' 2>/dev/null; then
    "$venv/bin/pip" install --quiet torch numpy safetensors >&2
fi
