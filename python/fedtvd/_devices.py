"""The devices of PyTorch, opened when one is asked for: importing PyTorch takes a second that most commands do not need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _native

_KINDS = ("cuda", "mps", "cpu-torch")


def _open(name: str) -> Any:
    """The device of this name; ``None`` if it is not one of PyTorch's."""
    if name.partition("+")[0].partition(":")[0] not in _KINDS:
        return None
    try:
        from fedtvd.torch import open_device
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError("it needs PyTorch, which is not installed: pip install torch") from error
    return open_device(name)


def install() -> None:
    """Makes the devices known to the program."""
    _native.register_devices(list(_KINDS), _open)


def model(name: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function below it as a model: it makes a ``torch.nn.Module``, given the shape of a sample (channels, height,
    width) and the number of classes, or without arguments. ``model.name`` is its name.

    >>> @fedtvd.model("two-layers")  # doctest: +SKIP
    ... def two_layers(shape, classes):
    ...     return nn.Sequential(nn.Linear(shape[0], 64), nn.ReLU(), nn.Linear(64, classes))
    """

    def decorated(make: Callable[..., Any]) -> Callable[..., Any]:
        registered(make, name)
        return make

    return decorated


def registered(make: Callable[..., Any], name: str | None = None) -> str:
    """Makes a module known, to the program and to the backend; returns its name."""
    from fedtvd.torch import models

    name = name or make.__name__.strip("<>")
    _native.register_module(name, models.define, models.initial)
    models.register(name, make)
    return name
