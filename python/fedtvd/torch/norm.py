"""Batch norms that can be shifted by constants, that say what they measured, and that take a batch of one value."""

from types import MethodType

import torch
from torch import Tensor, nn

BatchNorm = nn.modules.batchnorm._BatchNorm


class Shift:
    """Constants added to a batch's mean and variance, the least variance, and where measured statistics are summed."""

    def __init__(self, mean: Tensor, variance: Tensor, floor: Tensor, sums: tuple[Tensor, Tensor]) -> None:
        self.mean, self.variance, self.floor, self.sums = mean, variance, floor, sums
        #: Whether it changes nothing, so that the bits are those without it.
        self.idle = not bool(mean.any() or variance.any() or floor.any())


def prepare(module: nn.Module) -> dict[str, BatchNorm]:
    """Replaces how the batch norms of a module train; returns them by name."""
    found: dict[str, BatchNorm] = {}
    for name, own in module.named_modules():
        if isinstance(own, BatchNorm) and not isinstance(own, nn.SyncBatchNorm):
            own.forward = MethodType(_forward, own)  # type: ignore[method-assign]
            own.shift = None  # type: ignore[assignment]
            own.still = False  # type: ignore[assignment]
            found[name] = own
    return found


def _forward(self: BatchNorm, x: Tensor) -> Tensor:
    shift: Shift | None = getattr(self, "shift", None)
    tracked = self.running_mean is not None and self.running_var is not None
    # Frozen statistics normalise as in evaluation.
    if tracked and (not self.training or getattr(self, "still", False)):
        return torch.batch_norm(
            x, self.weight, self.bias, self.running_mean, self.running_var, False, 0.0, self.eps, True
        )
    momentum = 0.0 if self.momentum is None else self.momentum
    values = x.numel() // x.shape[1]
    if shift is not None and shift.idle:
        variance, mean = torch.var_mean(x.detach().float(), [0, *range(2, x.dim())], correction=0)
        shift.sums[0].add_(mean)
        shift.sums[1].add_(variance)
        shift = None
    if shift is None and values > 1:
        return torch.batch_norm(
            x, self.weight, self.bias, self.running_mean, self.running_var, True, momentum, self.eps, True
        )
    dims = [0, *range(2, x.dim())]
    wide = x.float()
    variance, mean = torch.var_mean(wide, dims, correction=0)
    if tracked and self.training:
        with torch.no_grad():
            assert self.running_mean is not None and self.running_var is not None
            self.running_mean.lerp_(mean.detach(), momentum)
            if values > 1:
                self.running_var.lerp_(variance.detach() * (values / (values - 1)), momentum)
    if shift is not None:
        shift.sums[0].add_(mean.detach())
        shift.sums[1].add_(variance.detach())
        # A variance at its floor has no gradient.
        mean, variance = mean + shift.mean, torch.maximum(variance + shift.variance, shift.floor)
    sides = [1, -1, *[1] * (x.dim() - 2)]
    scaled = (wide - mean.view(sides)) * torch.rsqrt(variance + self.eps).view(sides)
    if self.weight is not None:
        scaled = scaled * self.weight.view(sides)
    if self.bias is not None:
        scaled = scaled + self.bias.view(sides)
    return scaled.to(x.dtype)
