"""Rules in Python run in the same round as those of the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rules_of_tests
from numpy.typing import NDArray

import fedtvd
from fedtvd._rules import source_hash

RULES = Path(__file__).with_name("rules_of_tests.py")


def last_model(small: dict[str, Any], strategy: str, **keys: Any) -> str:
    run = fedtvd.run({**small, **keys, "strategy.name": strategy}, quiet=True)
    return str(run.rounds.model_hash.iloc[-1])


def test_fifteen_lines_of_fedtvd_give_the_bits_of_ours(small: dict[str, Any]) -> None:
    for suffix in ("", ":lambda=0.25:temperature=0.1", "+balanced+fedadam"):
        mine = fedtvd.run({**small, "strategy.name": "my-tvd" + suffix}, quiet=True)
        ours = fedtvd.run({**small, "strategy.name": "fedtvd" + suffix}, quiet=True)
        assert list(mine.rounds.model_hash) == list(ours.rounds.model_hash), suffix
        assert mine.clients.weight.equals(ours.clients.weight)
        assert mine.clients.quality_share.equals(ours.clients.quality_share)
    hardened = {"strategy.mode": "hardened"}
    assert last_model(small, "my-tvd", **hardened) == last_model(small, "fedtvd", **hardened)


def test_a_mean_in_python_gives_the_bits_of_ours(small: dict[str, Any]) -> None:
    assert last_model(small, "my-mean") == last_model(small, "uniform")
    assert last_model(small, "my-mean+fedtvd") == last_model(small, "fedtvd")


def test_offsets_and_steps_in_python_do_what_those_of_the_program_do(small: dict[str, Any]) -> None:
    def accuracy(strategy: str) -> float:
        run = fedtvd.run({**small, "rounds": 10, "strategy.name": strategy}, quiet=True)
        return float(run.rounds.loss.iloc[-1])

    assert abs(accuracy("my-balanced") - accuracy("balanced:floor=0.001")) < 1e-3
    assert abs(accuracy("my-momentum:beta=0.9") - accuracy("fedavgm:lr=1:beta=0.9")) < 1e-3


def test_every_rule_composes_with_every_strategy_or_is_refused_with_both_names(small: dict[str, Any]) -> None:
    counts = [[30, 30, 30], [20, 40, 40], [10, 30, 70]]
    names = [spec["name"] for spec in fedtvd.strategies()]
    assert {"fedtvd", "my-tvd", "my-balanced", "my-mean", "my-momentum"} <= set(names)
    composed = 0
    for mine in ("my-tvd", "my-balanced", "my-mean", "my-momentum"):
        for other in names:
            if other == mine:
                continue
            try:
                weights = fedtvd.weights(counts, f"{mine}+{other}")
            except fedtvd.RequestError as error:
                assert mine in str(error) and other in str(error), error
            else:
                composed += 1
                assert abs(weights.sum() - 1) < 1e-12
    assert composed > 50


def test_a_server_step_resumes_with_its_memory(small: dict[str, Any]) -> None:
    chosen = {**small, "strategy.name": "my-momentum+my-tvd"}
    whole = fedtvd.run({**chosen, "rounds": 4}, quiet=True)
    short = fedtvd.run({**chosen, "rounds": 2}, quiet=True)
    longer = fedtvd.resume(short.directory, set={"rounds": 4})
    assert longer.rounds.model_hash.iloc[-1] == whole.rounds.model_hash.iloc[-1]
    assert set(whole.manifest["rules"]) == {"my-momentum", "my-tvd"}


def test_resume_and_verify_want_the_source_that_the_manifest_names(small: dict[str, Any]) -> None:
    @fedtvd.strategy("changing")
    class First:
        """Equal weights."""

        def shares(self, profiles: fedtvd.Profiles) -> NDArray[np.float64]:
            return np.full(len(profiles), 1 / len(profiles))

    run = fedtvd.run({**small, "strategy.name": "changing"}, quiet=True)
    assert run.manifest["rules"] == {"changing": source_hash(First)}
    assert fedtvd.verify(run.directory)["same_bits"] is True

    @fedtvd.strategy("changing")
    class Second:
        """Equal weights, written in another way."""

        def shares(self, profiles: fedtvd.Profiles) -> NDArray[np.float64]:
            return np.ones(len(profiles)) / len(profiles)

    for again in (lambda: fedtvd.verify(run.directory), lambda: fedtvd.resume(run.directory, set={"rounds": 5})):
        with pytest.raises(fedtvd.FedtvdError, match="the source of the strategy changing changed since the run began"):
            again()


def test_the_command_has_the_rules_of_a_file(small: dict[str, Any]) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "fedtvd", *words], capture_output=True, text=True)

    run = fedtvd.run({**small, "strategy.name": "my-tvd"}, out="mine", quiet=True)
    listed = command("--rules", str(RULES), "strategies")
    assert "my-tvd            FedTVD in fifteen lines\n" in listed.stdout, listed
    verified = command(f"--rules={RULES}", "verify", "mine", "--json")
    assert json.loads(verified.stdout)["same_bits"] is True, verified
    without = command("verify", "mine")
    assert without.returncode == 2
    assert "was made with the strategy my-tvd, which is not one of fedtvd itself" in without.stderr
    assert command("report", "mine").returncode == 0, "a report needs no rules"
    assert run.manifest["rules"]["my-tvd"] == source_hash(rules_of_tests.MyTvd)


def test_an_exception_of_a_rule_stops_the_run_and_is_its_cause(small: dict[str, Any]) -> None:
    class Odd(Exception):
        pass

    switch = {"on": True}

    @fedtvd.strategy("odd")
    class Rule:
        """Fails when its switch is off."""

        def offsets(self, counts: NDArray[np.uint64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
            if not switch["on"]:
                raise Odd("not today")
            return np.zeros(len(counts))

    whole = fedtvd.run({**small, "rounds": 5, "strategy.name": "odd"}, quiet=True)
    short = fedtvd.run({**small, "strategy.name": "odd"}, quiet=True)
    switch["on"] = False
    with pytest.raises(fedtvd.WorkError, match="odd: Odd: not today") as raised:
        fedtvd.resume(short.directory, set={"rounds": 5})
    assert isinstance(raised.value.__cause__, Odd)
    switch["on"] = True
    assert fedtvd.resume(short.directory).rounds.model_hash.iloc[-1] == whole.rounds.model_hash.iloc[-1]


def test_answers_of_the_wrong_kind_are_refused_when_a_rule_is_registered() -> None:
    def refusal(rules: type[Any], **options: Any) -> str:
        with pytest.raises(fedtvd.RequestError) as refused:
            fedtvd.strategy("refused", **options)(rules)
        return str(refused.value)

    class Loose:
        def shares(self, profiles: fedtvd.Profiles) -> NDArray[np.float64]:
            return np.ones(len(profiles))

    class Short:
        def combine(self, base: Any, updates: Any, weights: Any) -> Any:
            return base[:1]

    class Moody:
        calls = 0

        def offsets(self, counts: Any, reference: Any) -> Any:
            Moody.calls += 1
            return np.arange(len(counts)) * Moody.calls

    class Nothing:
        pass

    class NoDefault(Loose):
        def __init__(self, power: float) -> None:
            pass

    failed = "refused cannot be registered: on a small example, refused: ValueError: "
    assert refusal(Loose) == failed + "shares must not be negative and must sum to 1, but are [1, 1, 1, 1] with a sum of 4"
    assert refusal(Short) == failed + "combine must be an array of 6 numbers for 6 parameters, not of shape (1,)"
    assert "the offsets differ when the rule is asked twice the same" in refusal(Moody)
    assert refusal(Nothing) == "Nothing has none of the methods shares, offsets, combine, step"
    assert "the parameter power needs a default that is a number, True or False" in refusal(NoDefault)
    assert refusal(Loose, asks="labels") == 'asks = "labels" is not allowed; it must be nothing, distance or counts'
    assert refusal(Loose, ranges={"power": (0, 1)}) == "Loose has no parameter power; it has none"
    with pytest.raises(fedtvd.RequestError, match="fedtvd is a strategy of fedtvd itself; choose another name"):
        fedtvd.strategy("fedtvd")(rules_of_tests.MyTvd)
    with pytest.raises(fedtvd.RequestError, match="cannot be the name of a strategy"):
        fedtvd.strategy("My Rule")(rules_of_tests.MyTvd)
    assert "refused" not in [spec["name"] for spec in fedtvd.strategies()]


def test_parameters_have_the_kinds_and_ranges_of_the_class() -> None:
    spec = next(spec for spec in fedtvd.strategies() if spec["name"] == "my-momentum")
    kinds = {param["name"]: (param["kind"], param["default"], param["min"], param["max"]) for param in spec["params"]}
    assert kinds["beta"] == ("number", 0.5, 0.0, 0.99)
    assert kinds["start"][:3] == ("whole", 0, 0.0)
    assert kinds["nesterov"][:2] == ("flag", False)
    with pytest.raises(fedtvd.RequestError, match=r"beta = 1 is not allowed; it must be 0 to 0\.99"):
        fedtvd.weights([[1, 2]], "my-momentum:beta=1")
