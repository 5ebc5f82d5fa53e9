"""Strategies in Python that the tests use, also from the command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fedtvd


@fedtvd.strategy("my-tvd", asks="distance", ranges={"lambda": (0, 1), "temperature": (1e-3, math.inf)})
class MyTvd:
    """FedTVD in fifteen lines."""

    def __init__(self, lambda_: float = 0.5, temperature: float = 1.0) -> None:
        self.lambda_, self.temperature = lambda_, temperature

    def shares(self, profiles: fedtvd.Profiles) -> tuple[list[float], list[float]]:
        nearest = min(profiles.distance)
        powers = [math.exp((nearest - d) / self.temperature) for d in profiles.distance]
        power = size = 0.0
        for k in range(len(profiles)):  # the sum() of Python 3.12 compensates for rounding
            power, size = power + powers[k], size + float(profiles.size[k])
        quality = [own / power for own in powers]
        share = [float(n) / size for n in profiles.size]
        return [self.lambda_ * a + (1 - self.lambda_) * p for a, p in zip(quality, share)], quality


@fedtvd.strategy("my-balanced")
class MyBalanced:
    """Logits get the logarithm of the client's label shares, relative to the reference."""

    def offsets(self, counts: NDArray[np.uint64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = np.maximum(counts / counts.sum(), 1e-3)
        offsets: NDArray[np.float64] = np.log(shares / reference)
        return offsets


@fedtvd.strategy("my-mean", suggests="uniform")
class MyMean:
    """The weighted mean, with a plain sum in client order."""

    def combine(
        self, base: NDArray[np.float32], updates: NDArray[np.float32], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        total = np.zeros(len(base))
        for weight, update in zip(weights, updates):
            total += weight * update.astype(np.float64)
        return total


@fedtvd.strategy("my-momentum", ranges={"beta": (0, 0.99)})
class MyMomentum:
    """The server keeps a part of its last step."""

    def __init__(self, beta: float = 0.5, start: int = 0, nesterov: bool = False) -> None:
        self.beta, self.start, self.nesterov = beta, start, nesterov

    def step(
        self, base: NDArray[np.float32], aggregate: NDArray[np.float64], memory: dict[str, Any]
    ) -> NDArray[np.float64]:
        last = memory.get("step", np.zeros(len(base)))
        memory["step"] = self.beta * last + (aggregate - base)
        memory["count"] = np.uint64(memory.get("count", np.zeros(1))[0] + 1)
        return np.asarray(base + memory["step"])
