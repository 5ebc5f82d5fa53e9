"""Whole runs on a device of PyTorch, beside the program's own kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

import fedtvd  # noqa: E402
from fedtvd import _native  # noqa: E402

ONE = {"rounds": 1, "split.clients": 10, "cohort.fraction": 0.5, "local.epochs": 1, "model.name": "lenet"}


def vector(run: fedtvd.Run) -> numpy.ndarray[Any, Any]:
    return numpy.concatenate([own.ravel() for own in run.state_dict().values()])


def test_the_device_has_every_property_that_a_trainer_must_have() -> None:
    assert _native.conformance("cpu-torch") is None


@pytest.mark.parametrize("strategy", ["fedavg", "fedtvd+balanced", "scaffold", "fedprox", "feddyn", "fednova+fedadam"])
def test_a_round_is_that_of_the_programs_own_kernels(strategy: str) -> None:
    # Large batches: hundreds of steps would amplify the difference in rounding, to 5e-4 for fedavg in batches of 32.
    config = {**ONE, "strategy.name": strategy, "local.batch": 512}
    own = vector(fedtvd.run(config, out="own", quiet=True))
    found = vector(fedtvd.run(config, device="cpu-torch", out="torch", quiet=True))
    assert numpy.linalg.norm(found - own) < 1e-5 * numpy.linalg.norm(own)


def test_repeated_runs_have_the_same_bits_and_are_verified() -> None:
    config = {**ONE, "rounds": 2}
    runs = [fedtvd.run(config, device="cpu-torch", out=name, quiet=True) for name in ("first", "second")]
    assert vector(runs[0]).tobytes() == vector(runs[1]).tobytes()
    # On the device that the manifest names.
    assert fedtvd.verify("first")["same_bits"] is True
    elsewhere = fedtvd.verify("first", device="cpu")
    assert elsewhere["same_bits"] is None
    assert "cpu-torch" in elsewhere["difference"]


def small_module(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    """A recurrent network over the lines of an image: layers that the program does not know."""

    class Lines(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(shape[0] * shape[2], 16, batch_first=True)
            self.head = torch.nn.Linear(16, classes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out, _ = self.lstm(x.transpose(1, 2).flatten(2))
            found: torch.Tensor = self.head(out[:, -1])
            return found

    return Lines()


def test_any_module_trains_resumes_and_is_verified() -> None:
    config = {**ONE, "rounds": 2}
    whole = fedtvd.run(config, model=small_module, device="cpu-torch", out="whole", quiet=True)
    shorter = {**config, "rounds": 1}
    fedtvd.run(shorter, model=small_module, device="cpu-torch", out="parts", quiet=True)
    parts = fedtvd.resume("parts", set={"rounds": 2}, quiet=True)
    assert vector(whole).tobytes() == vector(parts).tobytes()
    assert fedtvd.verify("parts")["same_bits"] is True
    assert "lstm.weight_ih_l0" in whole.state_dict()


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    with pytest.raises(fedtvd.RequestError, match="no device is called tpu; known here: cpu, cuda, mps, cpu-torch"):
        fedtvd.run(ONE, device="tpu", quiet=True)
    with pytest.raises(fedtvd.RequestError, match="small_module is not made of this program's layers, and cpu"):
        fedtvd.run(ONE, model=small_module, quiet=True)
    with pytest.raises(fedtvd.RequestError, match="fedper keeps the last layers at each client"):
        fedtvd.run({**ONE, "strategy.name": "fedper"}, model=small_module, device="cpu-torch", quiet=True)


def test_bench_checks_and_times_a_device(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "fedtvd", "bench", "--device", "cpu-torch"], capture_output=True, text=True, cwd=tmp_path
    )
    assert answer.returncode == 0, answer.stderr
    assert "conformance: all properties hold" in answer.stdout
    assert "two passes: the same bits" in answer.stdout
