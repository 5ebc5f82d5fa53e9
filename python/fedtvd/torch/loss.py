"""Softmax cross-entropy with offsets, class weights and label smoothing, as the program's own kernels compute it."""

import torch
from torch import Tensor

from fedtvd.torch.pass_spec import Pass


def cross_entropy(logits: Tensor, labels: Tensor, spec: Pass) -> tuple[Tensor, Tensor]:
    """The sum of the losses of a batch, each times its sample's weight, and the sum of the weights."""
    z = logits if spec.offsets is None else logits + spec.offsets
    losses = -torch.log_softmax(z, 1)
    own = losses.gather(1, labels[:, None]).squeeze(1)
    weights = None if spec.class_weights is None else spec.class_weights[labels]
    whole = torch.full((), float(len(labels)), device=z.device, dtype=z.dtype) if weights is None else weights.sum()
    total = own.sum() if weights is None else (weights * own).sum()
    if spec.smoothing > 0.0:
        every = losses if spec.class_weights is None else losses * spec.class_weights
        total = (1.0 - spec.smoothing) * total + spec.smoothing / losses.shape[1] * every.sum()
        if weights is not None:
            # Without weight, nothing is spread over the classes either.
            total = torch.where(whole > 0, total, torch.zeros_like(total))
    return total, whole
