"""Distances, weights and splits on arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import fedtvd

PAPER = np.array([[30, 30, 30], [20, 40, 40], [10, 30, 70]])


def test_the_papers_three_clients_have_distances_0_and_2_15ths_and_10_33rds() -> None:
    assert np.allclose(fedtvd.tvd(PAPER), [0, 2 / 15, 10 / 33], atol=1e-15)
    assert fedtvd.tvd(PAPER[1]) == fedtvd.tvd(PAPER)[1]
    assert np.allclose(fedtvd.tvd(PAPER, reference=[0.2, 0.4, 0.4])[1], 0)


def test_weights_are_those_of_the_formula() -> None:
    powers = np.exp(-fedtvd.tvd(PAPER))
    expected = 0.5 * powers / powers.sum() + 0.5 * PAPER.sum(axis=1) / PAPER.sum()
    assert np.allclose(fedtvd.weights(PAPER), expected, rtol=1e-14)
    assert np.allclose(fedtvd.weights(PAPER, "uniform"), 1 / 3)
    alone = fedtvd.weights(PAPER, "fedtvd", set={"lambda": 1.0, "strategy.temperature": 0.5})
    assert np.allclose(alone, (powers**2) / (powers**2).sum(), rtol=1e-14)


def test_a_split_deals_every_row_once_by_the_same_rules_as_the_command() -> None:
    labels = np.random.default_rng(3).integers(0, 10, 2000)
    clients = fedtvd.split(labels, clients=20, alpha=0.1, seed=4)
    assert len(clients) == 20 and clients[0].dtype == np.int64
    assert np.array_equal(np.sort(np.concatenate(clients)), np.arange(2000))
    again = fedtvd.split(labels, clients=20, alpha=0.1, seed=4)
    assert all(np.array_equal(one, other) for one, other in zip(clients, again, strict=True))
    even = fedtvd.split(labels, kind="iid", clients=20)

    def skew(clients: list[NDArray[np.int64]]) -> float:
        return float(np.mean(fedtvd.tvd([np.bincount(labels[rows], minlength=10) for rows in clients])))

    assert skew(clients) > 0.5 > 0.2 > skew(even)


def test_wrong_arrays_are_refused_with_what_they_must_be() -> None:
    with pytest.raises(fedtvd.RequestError, match="client 1 has no samples"):
        fedtvd.tvd([[1, 2], [0, 0]])
    with pytest.raises(fedtvd.RequestError, match="must be whole numbers from 0"):
        fedtvd.weights([[1.5, 2.0]])
    with pytest.raises(fedtvd.RequestError, match="counts of shape"):
        fedtvd.tvd([3])
    with pytest.raises(fedtvd.RequestError, match="the reference sums to 1.1; it must sum to 1"):
        fedtvd.tvd([1, 2], reference=[0.5, 0.6])
    with pytest.raises(fedtvd.RequestError, match="cannot be split"):
        fedtvd.split([0.5, 1.0])
    with pytest.raises(fedtvd.RequestError, match="there is no key split.alhpa; did you mean split.alpha"):
        fedtvd.split([0, 1, 2], alhpa=1)
    with pytest.raises(fedtvd.RequestError, match="clients"):
        fedtvd.split([0, 1, 2], clients=50)
    with pytest.raises(fedtvd.RequestError, match="did you mean uniform"):
        fedtvd.weights(PAPER, "unifrom")
