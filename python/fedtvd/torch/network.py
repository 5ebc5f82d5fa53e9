"""A network of fedtvd, which is a list of layers, as a module with the same names of tensors."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Network(nn.Module):
    """Runs the layers one after the other; its ``state_dict`` has the names of the network's tensors."""

    def __init__(self, definition: dict[str, Any]) -> None:
        super().__init__()
        channels, height, width = definition["input"]
        # Made without values: their numbers come from the program.
        with torch.device("meta"):
            sample = torch.empty(1, channels, height, width)
            self.steps, _ = self._build(definition["layers"], sample)

    def forward(self, x: Tensor) -> Tensor:
        """The logits of a batch of shape (samples, channels, height, width)."""
        return _run(self.steps, x).flatten(1)

    def _build(self, layers: list[dict[str, Any]], sample: Tensor) -> tuple["Steps", Tensor]:
        steps = Steps()
        for layer in layers:
            if layer["layer"] == "residual":
                body, out = self._build(layer["body"], sample)
                shortcut, _ = self._build(layer["shortcut"], sample)
                steps.append((body, shortcut))
                sample = out
                continue
            module = _module(layer, sample)
            # Those without tensors are registered, too: a module must know when it is trained.
            self._place(layer.get("name", f"layer_without_name_{len(self._modules)}"), module)
            steps.append(module)
            # Only shapes: nothing is computed on this device, and nothing is remembered while evaluating.
            with torch.no_grad():
                sample = module.eval()(sample)
        return steps, sample

    def _place(self, name: str, module: nn.Module) -> None:
        """Puts a module under a name with dots, such as ``layer1.0.conv1``."""
        *parents, own = name.split(".")
        place: nn.Module = self
        for parent in parents:
            if parent not in place._modules:
                place.add_module(parent, nn.Module())
            child = place._modules[parent]
            assert child is not None
            place = child
        place.add_module(own, module)


class Steps(list[Any]):
    """Modules in the order in which they run; a pair is a residual block. Not registered: names are the network's."""


def _run(steps: Steps, x: Tensor) -> Tensor:
    for step in steps:
        x = _run(step[0], x) + _run(step[1], x) if isinstance(step, tuple) else step(x)
    return x


class Linear(nn.Linear):
    """Takes samples of shape (channels, 1, 1) or flat ones."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(1))


class Dropout(nn.Module):
    """Drops values by a generator of the trainer, so that passes at the same time do not disturb each other."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        kept = torch.empty_like(x).bernoulli_(1.0 - self.rate, generator=self.generator)
        return x * kept.div_(1.0 - self.rate)


class GlobalPool(nn.Module):
    """The mean over height and width."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3), keepdim=True)


class AveragePool(nn.Module):
    """The mean of each window."""

    def __init__(self, size: int, stride: int) -> None:
        super().__init__()
        self.size, self.stride = size, stride

    def forward(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, self.size, self.stride)


class MaxPool(nn.Module):
    """The largest value of each window."""

    def __init__(self, size: int, stride: int) -> None:
        super().__init__()
        self.size, self.stride = size, stride

    def forward(self, x: Tensor) -> Tensor:
        return functional.max_pool2d(x, self.size, self.stride)


def _module(layer: dict[str, Any], sample: Tensor) -> nn.Module:
    channels = sample.shape[1]
    match layer["layer"]:
        case "conv":
            high, wide = layer["kernel"]
            stride, pad = layer["stride"], layer["pad"]
            return nn.Conv2d(channels, layer["out"], (high, wide), stride, pad, bias=layer["bias"])
        case "linear":
            return Linear(sample[0].numel(), layer["out"])
        case "relu":
            return nn.ReLU()
        case "max-pool":
            return MaxPool(layer["size"], layer["stride"])
        case "average-pool":
            return AveragePool(layer["size"], layer["stride"])
        case "global-pool":
            return GlobalPool()
        case "batch-norm":
            return nn.BatchNorm1d(channels) if sample.dim() == 2 else nn.BatchNorm2d(channels)
        case "group-norm":
            return nn.GroupNorm(layer["groups"], channels)
        case "dropout":
            return Dropout(layer["rate"])
        case "flatten":
            return nn.Flatten()
        case other:
            raise ValueError(f"layer {other} is not known to this version of the PyTorch backend")
