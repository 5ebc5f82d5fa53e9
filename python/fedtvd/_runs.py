"""The subcommands as functions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ._call import call
from ._config import Config, Settings, arguments, grid_text
from ._data import Data, data_settings
from ._devices import registered
from ._results import Comparison, Report, Run, Sweep

_Path: TypeAlias = "str | os.PathLike[str]"


def run(
    config: Config = None,
    *,
    set: Settings | None = None,
    data: Data = None,
    classes: Sequence[str] | None = None,
    out: _Path | None = None,
    workers: int | None = None,
    data_dir: _Path | None = None,
    device: str | None = None,
    model: Callable[..., Any] | None = None,
    quiet: bool = False,
) -> Run:
    """Runs one experiment, as ``fedtvd run`` does.

    ``config`` is a TOML file or a dictionary of keys, ``set`` has further keys. ``data`` is a name or path, or four arrays
    ``(x_train, y_train, x_test, y_test)``, ``classes`` the names of their classes. Ctrl-C saves and stops after the current round;
    :func:`resume` continues.

    ``device`` is ``cuda``, ``cuda:1``, ``mps`` or ``cpu-torch``. ``model`` is a function that makes a ``torch.nn.Module``; it is registered
    under its name, as :func:`fedtvd.model` does.
    """
    chosen = {} if model is None else {"model.name": registered(model)}
    given = arguments(config, {**(set or {}), **data_settings(data, classes), **chosen})
    return Run(call(["run", *given, *_options(out, workers, data_dir, device)], quiet)["directory"])


def resume(
    directory: _Path,
    *,
    set: Settings | None = None,
    from_round: int | None = None,
    workers: int | None = None,
    data_dir: _Path | None = None,
    device: str | None = None,
    quiet: bool = False,
) -> Run:
    """Resumes a run with bit-identical results; from an earlier round, or longer with ``set={"rounds": …}``, if wanted."""
    back = [] if from_round is None else [f"--from={from_round}"]
    given = [os.fspath(directory), *arguments(set), *back, *_options(None, workers, data_dir, device)]
    call(["resume", *given], quiet)
    return Run(directory)


def verify(
    directory: _Path,
    *,
    workers: int | None = None,
    data_dir: _Path | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Recomputes a run and compares every bit; the answer is that of ``fedtvd verify --json``."""
    return dict(call(["verify", os.fspath(directory), *_options(None, workers, data_dir, device)], quiet=True))


def compare(
    config: Config = None,
    *,
    strategies: Sequence[str] = ("fedavg", "uniform", "fedtvd", "fedtvd+balanced"),
    seeds: int | Sequence[int] = 5,
    rounds: int | None = None,
    set: Settings | None = None,
    data: Data = None,
    classes: Sequence[str] | None = None,
    out: _Path | None = None,
    workers: int | None = None,
    data_dir: _Path | None = None,
    device: str | None = None,
    quiet: bool = False,
) -> Comparison:
    """Compares strategies over seeds, as ``fedtvd compare`` does; the same call again resumes.

    ``seeds`` is a number of seeds or a list of them.
    """
    given = arguments(config, {**(set or {}), **data_settings(data, classes)})
    words = str(seeds) if isinstance(seeds, int) else ",".join(map(str, seeds))
    if not isinstance(seeds, int) and len(seeds) == 1:
        # On the command line a single number is a number of seeds.
        given, words = [*given, "--set", f"seed={seeds[0]}"], "1"
    options = [f"--strategies={','.join(strategies)}", f"--seeds={words}"]
    options += [] if rounds is None else [f"--rounds={rounds}"]
    return Comparison(call(["compare", *given, *options, *_options(out, workers, data_dir, device)], quiet))


def sweep(
    config: Config = None,
    grid: Settings | None = None,
    *,
    set: Settings | None = None,
    data: Data = None,
    classes: Sequence[str] | None = None,
    out: _Path | None = None,
    workers: int | None = None,
    data_dir: _Path | None = None,
    device: str | None = None,
    quiet: bool = False,
) -> Sweep:
    """Runs all combinations of the lists in ``grid``, or in the file's table ``[sweep]``; the same call again resumes.

    >>> fedtvd.sweep({"rounds": 50}, {"strategy.name": ["fedavg", "fedtvd"], "seed": [1, 2, 3]})  # doctest: +SKIP
    """
    values = {**(set or {}), **data_settings(data, classes)}
    options = _options(out, workers, data_dir, device)
    if grid is None:
        return Sweep(call(["sweep", *arguments(config, values), *options], quiet))
    if config is not None and not isinstance(config, dict):
        text = Path(os.fspath(config)).read_text()  # type: ignore[arg-type]
    else:
        text, values = "", {**(config or {}), **values}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sweep.toml")
        path.write_text(text + grid_text(grid))
        return Sweep(call(["sweep", *arguments(path, values), *options], quiet))


def report(
    *directories: _Path,
    out: _Path | None = None,
    baseline: str | None = None,
    strategies: Sequence[str] = (),
    title: str | None = None,
) -> Report:
    """Tables, figures and a page from finished runs, as ``fedtvd report`` makes them."""
    options = [] if out is None else [f"--out={os.fspath(out)}"]
    options += [] if baseline is None else [f"--baseline={baseline}"]
    options += [f"--strategies={','.join(strategies)}"] if strategies else []
    options += [] if title is None else [f"--title={title}"]
    document = call(["report", *(os.fspath(directory) for directory in directories), *options])
    return Report(document, Path(out) if out is not None else Path(directories[0], "report"))


def strategies() -> list[dict[str, Any]]:
    """All strategies with their parameters, those registered in Python last."""
    return list(call(["strategies"], quiet=True))


def _options(out: _Path | None, workers: int | None, data_dir: _Path | None, device: str | None) -> list[str]:
    given = {"--out": out, "--workers": workers, "--data": data_dir, "--device": device}
    return [f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}" for name, value in given.items() if value is not None]
