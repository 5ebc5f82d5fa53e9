"""The program and its core, compiled from Rust."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

def main(arguments: Sequence[str]) -> int: ...
def call(
    arguments: Sequence[str],
    note: Callable[[str], object],
    progress: Callable[[str, int, int, int, int, float | None], object],
) -> tuple[str, tuple[bool, str, BaseException | None] | None]: ...
def tvd(counts: NDArray[np.uint64], reference: Sequence[float] | None) -> NDArray[np.float64]: ...
def released_distance(
    counts: NDArray[np.uint64], reference: Sequence[float] | None
) -> NDArray[np.float64]: ...
def split(
    labels: NDArray[np.uint32], classes: int, settings: Sequence[str]
) -> tuple[list[NDArray[np.int64]], list[str]]: ...
def register(
    name: str,
    about: str,
    paper: str,
    asks: str,
    suggests: str | None,
    params: Sequence[tuple[str, bool | int | float, float, float, str]],
    source: str,
    rules: Sequence[str],
    make: Callable[[dict[str, bool | int | float]], object],
) -> None: ...
def register_devices(names: Sequence[str], open: Callable[[str], object]) -> None: ...
def register_module(
    name: str,
    define: Callable[[str, tuple[int, int, int], int], str],
    initial: Callable[[str, str, int], NDArray[np.float32]],
) -> None: ...
def conformance(device: str) -> str | None: ...
