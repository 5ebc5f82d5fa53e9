"""The command ``fedtvd``: the whole program, with the strategies of ``--rules FILE`` added."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence

from . import _native

_RULES = "--rules"


def load_rules(path: str) -> None:
    """Imports a file that registers strategies."""
    name = os.path.splitext(os.path.basename(path))[0]
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{_RULES} {path}: there is no such file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{_RULES} {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Classes are found in their module when their source is read.
    sys.modules[name] = module
    spec.loader.exec_module(module)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code. ``--rules FILE`` before the subcommand may be repeated."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    while words and (words[0] == _RULES or words[0].startswith(_RULES + "=")):
        word, _, path = words.pop(0).partition("=")
        if not path:
            if not words:
                print("fedtvd: --rules needs a Python file that registers strategies", file=sys.stderr)
                return 2
            path = words.pop(0)
        try:
            load_rules(path)
        except Exception as error:
            print(f"fedtvd: {path}: {type(error).__name__}: {error}", file=sys.stderr)
            return 2
    if words and words[0] == "bench":
        try:
            from fedtvd.torch import bench
        except ModuleNotFoundError as error:
            print(f"fedtvd: bench needs PyTorch: {error}", file=sys.stderr)
            return 2
        return bench.main(words[1:])
    return _native.main(words)


if __name__ == "__main__":
    sys.exit(main())
