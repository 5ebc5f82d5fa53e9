"""A module whose parameters lie in one flat vector, in the order of the program's layout."""

import json
from typing import Any

import torch
from torch import Tensor, nn


class Bound:
    """A module on a device; parameters and gradients are views of flat vectors, so that a step is a few operations."""

    def __init__(self, module: nn.Module, tensors: str, device: torch.device) -> None:
        self.tensors: list[dict[str, Any]] = json.loads(tensors)
        if any(own.is_meta for own in module.state_dict().values()):
            module = module.to_empty(device=device)
        self.module = module.to(device)
        state = self.module.state_dict(keep_vars=True)
        trainable = [one for one in self.tensors if one["role"] not in ("running-mean", "running-variance", "buffer")]
        buffers = self.tensors[len(trainable) :]
        length = sum(_numbers(one) for one in trainable)
        self.values = torch.zeros(length, device=device)
        self.gradient = torch.zeros(length, device=device)
        #: Start, number of values and tensor of each buffer, counted among the buffers.
        self.buffers: dict[str, tuple[int, int, Tensor]] = {}
        start = 0
        for one in trainable:
            own = state[one["name"]]
            end = start + _numbers(one)
            own.data = self.values[start:end].view(one["shape"])
            own.grad = self.gradient[start:end].view(one["shape"])
            start = end
        start = 0
        for one in buffers:
            self.buffers[one["name"]] = (start, _numbers(one), state[one["name"]])
            start += _numbers(one)
        self.buffer_length = start

    def load(self, values: Tensor) -> None:
        """Takes over the values of a model: trainable ones, then buffers."""
        trainable = self.values.numel()
        with torch.no_grad():
            self.values.copy_(values[:trainable])
            for start, numbers, own in self._current():
                part = values[trainable + start : trainable + start + numbers]
                own.copy_(part.view(own.shape))

    def store(self, values: Tensor) -> None:
        """Writes the model's values into a vector on the CPU."""
        trainable = self.values.numel()
        parts = [self.values, *(own.detach().flatten() for _, _, own in self._current())]
        with torch.no_grad():
            values.copy_(torch.cat(parts) if len(parts) > 1 else self.values)
        assert values.numel() == trainable + self.buffer_length

    def _current(self) -> list[tuple[int, int, Tensor]]:
        """The buffers as they are now: a module may have put others in their place."""
        state = self.module.state_dict(keep_vars=True)
        return [(start, numbers, state[name]) for name, (start, numbers, _) in self.buffers.items()]


def _numbers(one: dict[str, Any]) -> int:
    numbers = 1
    for side in one["shape"]:
        numbers *= int(side)
    return numbers
