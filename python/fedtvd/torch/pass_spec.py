"""A pass as it arrives from the program: plain data, with vectors already on the device."""

from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor


@dataclass
class Optimizer:
    """An optimiser with its settings; ``name`` is sgd, adam or adamw."""

    name: str
    lr: float
    weight_decay: float
    momentum: float = 0.0
    nesterov: bool = False
    beta1: float = 0.0
    beta2: float = 0.0
    eps: float = 0.0


@dataclass
class Pass:
    """What a pass does between gradient and step, and what it draws."""

    first_epoch: int
    batch: int
    keep_state: bool
    optimizer: Optimizer
    clip: float | None
    mu: float
    anchor: Tensor | None
    push: Tensor | None
    offsets: Tensor | None
    class_weights: Tensor | None
    smoothing: float
    shift: Tensor | None
    floor: Tensor | None
    #: Ranges of the trainable parameters that move; ``None`` if all do.
    moving: list[tuple[int, int]] | None
    #: Names of buffers that do not move.
    still: frozenset[str]
    #: Rows in the order in which each epoch visits them.
    orders: Tensor
    #: Of each visit: shift down, shift right, mirrored; ``None`` without augmentation.
    draws: Tensor | None
    crop: int
    #: Seed of each epoch's dropout.
    seeds: list[int]


def read(spec: dict[str, Any], device: torch.device, double: torch.dtype) -> Pass:
    """Moves what arrived, NumPy arrays and plain numbers, to the device."""

    def vector(name: str) -> Tensor | None:
        own = spec.get(name)
        return None if own is None else torch.from_numpy(own).to(device)

    def classes(name: str) -> Tensor | None:
        own = vector(name)
        return None if own is None else own.to(double)

    def places(name: str) -> Tensor:
        return torch.from_numpy(spec[name].astype(numpy.int64)).to(device)

    seeds = list(spec["seeds"])
    return Pass(
        first_epoch=spec["first_epoch"],
        batch=spec["batch"],
        keep_state=spec["keep_state"],
        optimizer=Optimizer(**spec["optimizer"]),
        clip=spec.get("clip"),
        mu=spec.get("mu", 0.0),
        anchor=vector("anchor"),
        push=vector("push"),
        offsets=classes("offsets"),
        class_weights=classes("class_weights"),
        smoothing=spec["smoothing"],
        shift=vector("shift"),
        floor=vector("floor"),
        moving=spec.get("moving"),
        still=frozenset(spec.get("still", ())),
        orders=places("orders").view(len(seeds), -1),
        draws=places("draws").view(len(seeds), -1, 3) if spec.get("draws") is not None else None,
        crop=spec.get("crop", 0),
        seeds=seeds,
    )
