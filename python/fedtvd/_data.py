"""Data as arrays: written once into a folder that the program reads, so that a run can be resumed and verified by the command, too."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._errors import RequestError

Arrays: TypeAlias = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
Data: TypeAlias = "str | os.PathLike[str] | Arrays | None"


def data_settings(data: Data, classes: Sequence[str] | None) -> dict[str, Any]:
    """The keys that name some data: a set of the program, a path, or arrays ``(x_train, y_train, x_test, y_test)``."""
    if data is None:
        return {}
    if isinstance(data, (str, os.PathLike)):
        return {"data.set": os.fspath(data)}
    if not isinstance(data, tuple) or len(data) != 4:
        raise RequestError(
            "data must be a name such as \"fmnist-mini\", a path, or four arrays (x_train, y_train, x_test, y_test)"
        )
    return {"data.set": str(stored(data, classes))}


def stored(data: Arrays, classes: Sequence[str] | None) -> Path:
    """The folder of these arrays below ``runs``, named by what they hold."""
    x_train, x_test = _values("x_train", data[0]), _values("x_test", data[2])
    if x_train.dtype != x_test.dtype or x_train.shape[1:] != x_test.shape[1:]:
        raise RequestError(
            f"x_train has rows of shape {x_train.shape[1:]} and type {x_train.dtype}, "
            f"x_test {x_test.shape[1:]} and {x_test.dtype}; they must agree"
        )
    y_train, y_test = _labels("y_train", data[1], x_train), _labels("y_test", data[3], x_test)
    count = int(max(y_train.max(initial=0), y_test.max(initial=0))) + 1
    names = [str(name) for name in classes] if classes is not None else [str(k) for k in range(max(count, 2))]
    if count > len(names):
        raise RequestError(f"the largest label is {count - 1}, but there are names for {len(names)} classes")
    # Bytes are read as numbers from 0 to 1; a network that should see others gets them as floats.
    normal = [[0.0, 1.0]] * x_train.shape[1] if x_train.dtype == np.uint8 else []
    about = {"set": "arrays", "classes": names, "normal": normal}
    arrays = {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}
    content = hashlib.sha256(json.dumps(about).encode())
    for array in arrays.values():
        content.update(f"{array.shape} {array.dtype}".encode())
        content.update(np.ascontiguousarray(array).data)
    folder = Path("runs", f"data-{content.hexdigest()[:16]}").absolute()
    # `set.json` comes last: it marks the folder as complete.
    if not (folder / "set.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", np.ascontiguousarray(array))
        (folder / "set.json").write_text(json.dumps(about))
    return folder


def _values(name: str, values: ArrayLike) -> NDArray[Any]:
    """Rows, channels, height and width, of bytes or single precision."""
    given = np.asarray(values)
    if given.dtype != np.uint8:
        if not (np.issubdtype(given.dtype, np.number) or given.dtype == np.bool_):
            raise RequestError(f"{name} has type {given.dtype}; it must be numbers")
        given = given.astype("<f4")
        if not np.isfinite(given).all():
            raise RequestError(f"{name} has values that are NaN or infinite")
    if given.ndim == 2:
        # A row of a table is a sample of as many channels as columns.
        given = given[:, :, np.newaxis, np.newaxis]
    elif given.ndim == 3:
        given = given[:, np.newaxis]
    if given.ndim != 4:
        raise RequestError(
            f"{name} has shape {np.shape(values)}; it must be (rows, columns), (rows, height, width) or "
            "(rows, channels, height, width)"
        )
    return given


def _labels(name: str, labels: ArrayLike, values: NDArray[Any]) -> NDArray[np.int64]:
    given = np.asarray(labels)
    if given.shape != values.shape[:1]:
        raise RequestError(f"{name} has shape {given.shape}; it must have one label for each of {len(values)} rows")
    if not np.issubdtype(given.dtype, np.integer) or (given.size and given.min() < 0):
        raise RequestError(f"{name} has type {given.dtype}; labels must be whole numbers from 0")
    return given.astype("<i8")
