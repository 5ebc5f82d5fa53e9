"""What training takes, counted without allocating it."""

import json

import torch
from torch import Tensor, nn

from fedtvd.torch.trainer import module_of


def training_memory(definition: str, tensors: str, batch: int, vectors: int) -> int:
    """Bytes of the model, its gradient, the optimiser's vectors, three copies that travel, and all outputs of its modules in a
    batch, twice: for the backward pass and for its gradients."""
    numbers = [_numbers(one["shape"]) for one in json.loads(tensors)]
    model = 4 * sum(numbers) * (5 + vectors)
    outputs = 0

    def count(_module: nn.Module, _inputs: object, output: object) -> None:
        nonlocal outputs
        if isinstance(output, Tensor):
            outputs += output.numel() * output.element_size()

    module, flat = module_of(definition)
    shape = json.loads(definition)["input"]
    hooks = [own.register_forward_hook(count) for own in module.modules() if not list(own.children())]
    try:
        with torch.no_grad():
            sample = torch.zeros(1, shape[0]) if flat else torch.zeros(1, *shape)
            if any(own.is_meta for own in module.state_dict().values()):
                sample = sample.to("meta")
            module.eval()(sample)
    finally:
        for hook in hooks:
            hook.remove()
    return model + 2 * batch * outputs


def _numbers(shape: list[int]) -> int:
    numbers = 1
    for side in shape:
        numbers *= side
    return numbers
