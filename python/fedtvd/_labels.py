"""What labels say: distances, weights and splits, on NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._call import call
from ._config import settings, toml
from ._errors import RequestError


def tvd(counts: ArrayLike, reference: Sequence[float] | None = None) -> NDArray[np.float64]:
    """The total variation distance, ½ Σ |P − Q|, of labels P to the reference Q, the uniform distribution unless given.

    ``counts`` has a number per class, or a row of them per client; the answer has no dimension, or one number per client.
    """
    checked = _counts(counts)
    try:
        distances = _native.tvd(checked, None if reference is None else [float(q) for q in reference])
    except ValueError as error:
        raise RequestError(str(error)) from None
    return distances.reshape(np.shape(counts)[:-1])


def weights(
    counts: ArrayLike, strategy: str = "fedtvd", set: dict[str, Any] | None = None
) -> NDArray[np.float64]:
    """The weight of each client, given a row of label counts per client, under a strategy of any name.

    ``set`` has parameters of the strategy, ``labels.reference`` or ``strategy.mode``.
    """
    checked = _counts(counts)
    text = ";".join(",".join(map(str, row)) for row in checked.tolist())
    arguments = ["weights", f"--counts={text}", f"--strategy={strategy}", *settings(set or {})]
    answer = call(arguments, quiet=True)
    return np.array([client["weight"] for client in answer["clients"]])


def split(labels: ArrayLike, **options: Any) -> list[NDArray[np.int64]]:
    """The rows of each client, for one label per row.

    ``options`` are those of the table ``[split]``: ``kind`` ("dirichlet", "hsu", "shards", "labels", "quantity", "correlated",
    "iid"), ``clients``, ``alpha``, ``seed`` and so on, with the same defaults.
    """
    given = np.asarray(labels)
    if given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer) or given.min() < 0:
        raise RequestError(
            f"labels of shape {given.shape} and type {given.dtype} cannot be split; "
            "they must be whole numbers from 0, one per row"
        )
    classes = max(int(given.max()) + 1, 2)
    chosen = [f"split.{name}={toml(value)}" for name, value in options.items()]
    try:
        clients, notes = _native.split(given.astype(np.uint32), classes, chosen)
    except ValueError as error:
        raise RequestError(str(error)) from None
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return clients


def _counts(counts: ArrayLike) -> NDArray[np.uint64]:
    """Label counts as rows."""
    given = np.asarray(counts)
    rows = given[np.newaxis] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.shape[1] < 2 or rows.shape[0] == 0:
        raise RequestError(
            f"counts of shape {given.shape} are not label counts; they must have a row per client and a column per class"
        )
    if not np.issubdtype(rows.dtype, np.number) or (rows < 0).any() or (rows != np.floor(rows)).any():
        raise RequestError("label counts must be whole numbers from 0")
    if (rows.sum(axis=1) == 0).any():
        empty = int(np.flatnonzero(rows.sum(axis=1) == 0)[0])
        raise RequestError(f"client {empty} has no samples; each client must have at least one")
    return np.ascontiguousarray(rows, dtype=np.uint64)
