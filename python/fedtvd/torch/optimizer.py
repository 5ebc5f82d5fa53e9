"""One optimiser step on flat vectors, in the order of operations of the program's own step:

    u = gradient + mu (w - anchor)
    u = u min(1, clip / (|u| + 1e-6))
    g = u + weight_decay w + push                      (AdamW: u + push)
    SGD, Adam or AdamW with g
"""

import math

import torch
from torch import Tensor

from fedtvd.torch.pass_spec import Pass


class State:
    """What an optimiser keeps from step to step."""

    def __init__(self) -> None:
        self.first: Tensor | None = None
        self.second: Tensor | None = None
        self.powers = (1.0, 1.0)

    def begin(self, spec: Pass, values: Tensor) -> None:
        """Prepares for a pass: a new state, unless the pass keeps the last one."""
        adam = spec.optimizer.name != "sgd"
        if spec.keep_state and self.first is not None and (self.second is not None) == adam:
            return
        self.first = torch.zeros_like(values)
        self.second = torch.zeros_like(values) if adam else None
        self.powers = (1.0, 1.0)

    def step(self, spec: Pass, w: Tensor, gradient: Tensor, double: torch.dtype) -> None:
        """Updates the parameters in place, apart from frozen ones; the gradient is used up."""
        if spec.optimizer.name != "sgd":
            own = spec.optimizer
            self.powers = (self.powers[0] * own.beta1, self.powers[1] * own.beta2)
        moving = [slice(None)] if spec.moving is None else [slice(start, end) for start, end in spec.moving]
        if spec.clip is not None and moving:
            squares = torch.zeros((), device=w.device, dtype=double)
            for part in moving:
                g = gradient[part]
                if spec.anchor is not None:
                    g.add_(w[part] - spec.anchor[part], alpha=spec.mu)
                squares = squares + torch.linalg.vector_norm(g, dtype=double) ** 2
            # Without synchronisation: the factor stays on the device.
            scale = torch.clamp(spec.clip / (squares.sqrt() + 1e-6), max=1.0).to(w.dtype)
            for part in moving:
                gradient[part].mul_(scale)
        for part in moving:
            self._step(spec, w, gradient, part)

    def _step(self, spec: Pass, values: Tensor, gradient: Tensor, part: slice) -> None:
        """The step of a range of the parameters, whose gradient is clipped."""
        own, w, g = spec.optimizer, values[part], gradient[part]
        assert self.first is not None
        first = self.first[part]
        if own.weight_decay != 0.0 and own.name != "adamw":
            g.add_(w, alpha=own.weight_decay)
        if spec.anchor is not None and spec.clip is None:
            g.add_(w - spec.anchor[part], alpha=spec.mu)
        if spec.push is not None:
            g.add_(spec.push[part])
        if own.name == "sgd":
            first.mul_(own.momentum).add_(g)
            w.sub_(g.add_(first, alpha=own.momentum) if own.nesterov else first, alpha=own.lr)
            return
        assert self.second is not None
        second = self.second[part]
        first.lerp_(g, 1.0 - own.beta1)
        second.mul_(own.beta2).addcmul_(g, g, value=1.0 - own.beta2)
        if own.name == "adamw":
            w.mul_(1.0 - own.lr * own.weight_decay)
        root = second.sqrt().div_(math.sqrt(1.0 - self.powers[1])).add_(own.eps)
        w.addcdiv_(first, root, value=-own.lr / (1.0 - self.powers[0]))
