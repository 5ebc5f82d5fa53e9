"""Results of runs as data frames and arrays, read from run directories."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import pandas as pd
from numpy.typing import NDArray

from . import _safetensors

if TYPE_CHECKING:
    import torch


class Run:
    """A run directory: what a run was, and what came out of it."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        if not (self.directory / "manifest.json").is_file():
            raise FileNotFoundError(f"{self.directory} is not a run directory: it has no manifest.json")

    @property
    def finished(self) -> bool:
        """Whether all rounds are done."""
        return (self.directory / "summary.json").is_file()

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run was made with: versions, machine, data, and the hashes of rules in Python."""
        return dict(json.loads((self.directory / "manifest.json").read_text()))

    @property
    def config(self) -> str:
        """The complete configuration, as TOML."""
        return (self.directory / "config.toml").read_text()

    @property
    def summary(self) -> pd.Series[Any]:
        """The run in one row; of an unfinished run only the strategy."""
        if not self.finished:
            return pd.Series({"strategy": self.manifest["strategy"], "rounds": len(self._lines)})
        return pd.Series(json.loads((self.directory / "summary.json").read_text()))

    @property
    def _lines(self) -> list[dict[str, Any]]:
        path = self.directory / "rounds.jsonl"
        # The last line of a run in progress may be incomplete.
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]

    @property
    def rounds(self) -> pd.DataFrame:
        """A row per round: accuracy, loss, drift, alarms and so on, as in ``rounds.jsonl``."""
        lines = [{key: value for key, value in line.items() if key != "clients"} for line in self._lines]
        frame = pd.DataFrame(lines)
        return frame.set_index("round") if len(frame) else frame

    @property
    def clients(self) -> pd.DataFrame:
        """A row per round and client that was asked: size, TVD, weight, losses, failure."""
        rows = [{"round": line["round"], **client} for line in self._lines for client in line["clients"]]
        frame = pd.DataFrame(rows)
        return frame.set_index(["round", "client"]) if len(frame) else frame

    @overload
    def state_dict(self, kind: Literal["numpy"] = "numpy", *, best: bool = False) -> dict[str, NDArray[Any]]: ...
    @overload
    def state_dict(self, kind: Literal["torch"], *, best: bool = False) -> dict[str, torch.Tensor]: ...
    def state_dict(
        self, kind: Literal["numpy", "torch"] = "numpy", *, best: bool = False
    ) -> dict[str, NDArray[Any]] | dict[str, torch.Tensor]:
        """The final model's tensors by name, or those of the best round; names and layouts are PyTorch's."""
        path = self.directory / ("best.safetensors" if best else "model.safetensors")
        if not path.is_file():
            why = "the run did not choose a best round" if best else "the run is not finished"
            raise FileNotFoundError(f"{path} does not exist: {why}")
        arrays = _safetensors.read(path)
        if kind == "numpy":
            return arrays
        import torch

        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def __repr__(self) -> str:
        summary = self.summary
        if not self.finished:
            return f"<fedtvd.Run {summary.strategy}, {summary.rounds} rounds so far, {self.directory}>"
        accuracy = summary.accuracy
        reached = "no accuracy" if accuracy is None else f"accuracy {100 * accuracy:.2f} %"
        return f"<fedtvd.Run {summary.strategy} seed {summary.seed}, {summary.rounds} rounds, {reached}, {self.directory}>"


class _Runs:
    """Several runs."""

    runs: list[Run]

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """The rounds of all runs, by strategy, seed and round."""
        return _joined(self.runs, [run.rounds for run in self.runs])

    @cached_property
    def clients(self) -> pd.DataFrame:
        """The clients of all rounds of all runs, by strategy, seed, round and client."""
        return _joined(self.runs, [run.clients for run in self.runs])


class Comparison(_Runs):
    """Strategies over seeds, on the same splits, initial models and cohorts."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.runs = [Run(run["directory"]) for run in document["runs"]]
        #: The page with tables and figures.
        self.page = Path(document["report"])
        #: A row per strategy: mean accuracy, difference to the first strategy with its interval and so on.
        self.summary = pd.DataFrame(document["summary"]).set_index("strategy")

    def __repr__(self) -> str:
        return f"<fedtvd.Comparison of {', '.join(self.summary.index)}, {len(self.runs)} runs, {self.page}>"


class Sweep(_Runs):
    """The runs of a grid."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.directory = Path(document["directory"])
        #: A row per run: strategy, seed, setting, directory, state, accuracy.
        self.cells = pd.DataFrame(document["cells"])
        self.runs = [Run(cell["directory"]) for cell in document["cells"] if cell["state"] == "done"]

    def __repr__(self) -> str:
        done = f"{self.document['done']} of {len(self.cells)} runs"
        return f"<fedtvd.Sweep, {done}, {self.directory}>"


class Report:
    """Tables, figures and statistics of finished runs."""

    def __init__(self, document: dict[str, Any], directory: Path) -> None:
        self.document = document
        #: Where its files are; ``report.html`` has everything.
        self.directory = directory
        self.page = directory / "report.html"
        self.verdict: str = document["verdict"]
        rows = [
            {"setting": setting["title"], **row}
            for setting in document["settings"]
            for row in setting["strategies"]
        ]
        #: A row per setting and strategy.
        self.summary = pd.DataFrame(rows).set_index(["setting", "strategy"])

    def __repr__(self) -> str:
        return f"<fedtvd.Report {self.page}: {self.verdict}>"


def _joined(runs: Sequence[Run], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    if not runs:
        return pd.DataFrame()
    keys = [(run.summary.strategy, run.summary.seed) for run in runs]
    return pd.concat(list(frames), keys=keys, names=["strategy", "seed"])

