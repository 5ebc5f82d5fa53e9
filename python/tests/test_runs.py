"""Runs, comparisons, sweeps and reports from Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedtvd


def test_a_run_has_its_rounds_clients_summary_and_model(small: dict[str, Any], folder: Path) -> None:
    run = fedtvd.run(small, set={"strategy.name": "fedtvd+balanced"}, out="mine", quiet=True)
    assert run.directory == Path("mine") and run.finished
    lines = [json.loads(line) for line in (folder / "mine/rounds.jsonl").read_text().splitlines()]
    assert list(run.rounds.accuracy) == [line["accuracy"] for line in lines]
    assert list(run.rounds.index) == [1, 2, 3]
    assert len(run.clients) == 15 and abs(run.clients.weight.groupby("round").sum() - 1).max() < 1e-12
    assert (run.summary.strategy, run.summary.rounds) == ("fedtvd+balanced", 3)
    state = run.state_dict()
    assert {name: array.shape for name, array in state.items()} == {"fc.weight": (10, 784), "fc.bias": (10,)}
    assert all(array.dtype == np.float32 and array.flags.writeable for array in state.values())
    assert 'name = "fedtvd+balanced"' in run.config and "rules" not in run.manifest
    assert repr(run).startswith("<fedtvd.Run fedtvd+balanced seed 1, 3 rounds, accuracy ")


def test_a_file_a_dictionary_and_the_command_make_the_same_run(small: dict[str, Any], folder: Path) -> None:
    text = 'rounds = 3\n[split]\nclients = 20\n[cohort]\nfraction = 0.25\n[model]\nname = "logistic"\n[local]\nepochs = 1\n'
    (folder / "mine.toml").write_text(text)
    nested = {"rounds": 3, "split": {"clients": np.int64(20)}, "cohort": {"fraction": np.float64(0.25)}}
    nested |= {"model": {"name": "logistic"}, "local": {"epochs": 1}}
    runs = [fedtvd.run(small), fedtvd.run("mine.toml"), fedtvd.run(folder / "mine.toml"), fedtvd.run(nested)]
    subprocess.run([sys.executable, "-m", "fedtvd", "run", "mine.toml", "--out", "command"], check=True)
    hashes = {run.rounds.model_hash.iloc[-1] for run in [*runs, fedtvd.Run("command")]}
    assert len(hashes) == 1
    assert len({run.config for run in runs}) == 1


def test_a_wrong_request_is_an_exception_with_the_sentence_of_the_command(small: dict[str, Any]) -> None:
    with pytest.raises(fedtvd.RequestError, match=r"^there is no key alhpa; did you mean split\.alpha\?$"):
        fedtvd.run({"alhpa": 0.5})
    with pytest.raises(ValueError, match=r"^rounds = 0 is not allowed; it must be a whole number from 1 to 1000000$"):
        fedtvd.run(small, set={"rounds": 0})
    with pytest.raises(fedtvd.RequestError, match="did you mean fedtvd"):
        fedtvd.run(small, set={"strategy.name": "fedtdv"})
    with pytest.raises(fedtvd.FedtvdError, match="No such file"):
        fedtvd.run("nowhere.toml")
    with pytest.raises(TypeError, match="cannot be the value of a key"):
        fedtvd.run({"rounds": object()})
    with pytest.raises(FileNotFoundError, match="is not a run directory"):
        fedtvd.Run("nowhere")


def test_ctrl_c_stops_after_the_round_and_resume_continues_with_the_same_bits(small: dict[str, Any]) -> None:
    long = {**small, "rounds": 150}
    whole = fedtvd.run(long, out="whole", quiet=True)

    def interrupt() -> None:
        lines = Path("stopped/rounds.jsonl")
        while not (lines.is_file() and lines.stat().st_size > 0):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        fedtvd.run(long, out="stopped", quiet=True)
    thread.join()
    assert "progress is saved" in "".join(getattr(stopped.value, "__notes__", ["progress is saved"]))
    run = fedtvd.Run("stopped")
    assert not run.finished and 0 < len(run.rounds) < 150
    with pytest.raises(FileNotFoundError, match="the run is not finished"):
        run.state_dict()
    resumed = fedtvd.resume("stopped", quiet=True)
    assert resumed.rounds.model_hash.iloc[-1] == whole.rounds.model_hash.iloc[-1]
    assert fedtvd.resume("stopped", set={"rounds": 152}).summary.rounds == 152
    assert fedtvd.verify("whole")["same_bits"] is True


def test_other_threads_run_while_rust_works(small: dict[str, Any]) -> None:
    counted, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    fedtvd.run({**small, "rounds": 100}, quiet=True)
    done.set()
    thread.join()
    assert counted[0] > 20


def test_a_comparison_has_a_row_per_strategy_and_all_rounds(small: dict[str, Any]) -> None:
    found = fedtvd.compare(small, strategies=["fedavg", "uniform"], seeds=2, out="cmp", quiet=True)
    assert list(found.summary.index) == ["fedavg", "uniform"]
    assert found.summary.difference.isna().loc["fedavg"] and not found.summary.difference.isna().loc["uniform"]
    assert found.rounds.index.names == ["strategy", "seed", "round"] and len(found.rounds) == 12
    assert found.clients.index.names == ["strategy", "seed", "round", "client"]
    assert found.page.is_file()
    single = fedtvd.compare(small, strategies=["fedavg"], seeds=[7], quiet=True)
    assert list(single.rounds.index.unique("seed")) == [7]
    report = fedtvd.report("cmp", out="rep", title="mine")
    assert report.page.is_file() and list(report.summary.index.unique("strategy")) == ["fedavg", "uniform"]


def test_a_sweep_runs_every_combination_of_a_dictionary_or_of_a_file(small: dict[str, Any], folder: Path) -> None:
    grid = {"split": [{"alpha": 0.1}, {"kind": "iid"}], "strategy.name": ["fedavg", "fedtvd"], "seed": [1, 2]}
    found = fedtvd.sweep(small, grid, out="grid", quiet=True)
    assert len(found.cells) == 8 and set(found.cells.state) == {"done"} and len(found.runs) == 8
    assert len(found.rounds) == 24
    (folder / "base.toml").write_text("rounds = 3\n[split]\nclients = 20\n[model]\nname = \"logistic\"\n")
    assert len(fedtvd.sweep("base.toml", {"seed": [1, 2]}, quiet=True).runs) == 2
    (folder / "own.toml").write_text((folder / "base.toml").read_text() + "[sweep]\nseed = [1, 2, 3]\n")
    assert len(fedtvd.sweep("own.toml", quiet=True).runs) == 3
    with pytest.raises(fedtvd.RequestError, match=r"has no \[sweep\] table"):
        fedtvd.sweep("base.toml")


def test_arrays_are_data_and_the_command_reads_them_again(small: dict[str, Any]) -> None:
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 300)
    images = random.integers(0, 100, (300, 4, 4)).astype(np.uint8)
    images[np.arange(300), labels] += 150
    data = (images[:200], labels[:200], images[200:], labels[200:])
    del small["model.name"]
    layers = {**small, "model.layers": ["flatten", "linear"], "split": {"kind": "iid", "clients": 8}, "cohort.fraction": 0.5, "rounds": 20, "local.lr": 0.1}
    del layers["split.clients"]
    run = fedtvd.run(layers, data=data, classes=["cat", "dog", "owl"], out="mine", quiet=True)
    assert run.rounds.accuracy.iloc[-1] > 0.8
    verified = subprocess.run([sys.executable, "-m", "fedtvd", "verify", "mine"], capture_output=True, text=True)
    assert verified.returncode == 0, verified.stderr
    floats = tuple(part / np.float64(255) if part.ndim > 1 else part for part in data)
    close = fedtvd.run(layers, data=floats, out="floats", quiet=True)  # type: ignore[arg-type]
    assert abs(close.rounds.accuracy.iloc[-1] - run.rounds.accuracy.iloc[-1]) < 0.05
    table = (images[:200].reshape(200, 16) / 255, labels[:200], images[200:].reshape(100, 16) / 255, labels[200:])
    assert fedtvd.run(layers, data=table, quiet=True).finished
    with pytest.raises(fedtvd.RequestError, match="y_train has shape \\(199,\\); it must have one label for each of 200 rows"):
        fedtvd.run(layers, data=(data[0], labels[:199], data[2], data[3]))
    with pytest.raises(fedtvd.RequestError, match="the largest label is 2, but there are names for 2 classes"):
        fedtvd.run(layers, data=data, classes=["a", "b"])
    with pytest.raises(fedtvd.RequestError, match="data must be a name"):
        fedtvd.run(layers, data=(1, 2))  # type: ignore[arg-type]


def test_notes_and_progress_go_to_stderr_and_nothing_to_stdout(
    small: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    fedtvd.run(small)
    out, err = capfd.readouterr()
    assert out == ""
    assert "rounds" not in err, "progress is for terminals and notebooks"


def test_a_run_that_collapsed_warns(small: dict[str, Any]) -> None:
    with pytest.warns(RuntimeWarning, match="the run collapsed, its result cannot be used"):
        run = fedtvd.run({**small, "model.name": "lenet", "local.lr": 1e12}, quiet=True)
    assert run.summary.collapsed.startswith("15 of 15 updates in the last 3 rounds failed")


def test_the_command_of_the_package_is_the_whole_program() -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "fedtvd", *words], capture_output=True, text=True)

    assert command("--version").stdout.startswith("fedtvd ")
    assert command("models").returncode == 0
    wrong = command("run", "--set", "alhpa=1")
    assert (wrong.returncode, wrong.stderr) == (2, "fedtvd: there is no key alhpa; did you mean split.alpha?\n")
    lost = command("--rules", "nowhere.py", "strategies")
    assert lost.returncode == 2 and "there is no such file" in lost.stderr
