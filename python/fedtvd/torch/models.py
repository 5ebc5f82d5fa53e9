"""Models that are any ``torch.nn.Module``, by name: a function makes one, given the shape of a sample and the number of classes."""

import hashlib
import inspect
import json
from collections.abc import Callable
from typing import Any

import numpy
import numpy.typing
import torch
from torch import Tensor, nn

#: Makes a module; called with as many of (input shape, number of classes) as it takes.
Make = Callable[..., nn.Module]

_REGISTERED: dict[str, Make] = {}

_KINDS: dict[type[nn.Module], str] = {
    nn.Linear: "linear",
    nn.Conv2d: "conv",
    nn.BatchNorm1d: "batch-norm",
    nn.BatchNorm2d: "batch-norm",
    nn.BatchNorm3d: "batch-norm",
    nn.GroupNorm: "group-norm",
}
_ROLES = {
    ("linear", "weight"): "weight",
    ("linear", "bias"): "bias",
    ("conv", "weight"): "weight",
    ("conv", "bias"): "bias",
    ("batch-norm", "weight"): "scale",
    ("batch-norm", "bias"): "shift",
    ("batch-norm", "running_mean"): "running-mean",
    ("batch-norm", "running_var"): "running-variance",
    ("group-norm", "weight"): "scale",
    ("group-norm", "bias"): "shift",
}


def register(name: str, make: Make) -> None:
    """Makes a model known under a name, in place of an earlier one of this name."""
    _REGISTERED[name] = make


def registered(name: str) -> Make:
    """The function that makes the model of this name."""
    if name not in _REGISTERED:
        names = ", ".join(_REGISTERED) or "none"
        raise KeyError(f"no module is registered as {name}; registered are: {names}")
    return _REGISTERED[name]


def made(make: Make, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """The module, in float32 and with parameters that a trainer can exchange."""
    takes = len(inspect.signature(make).parameters)
    module = make(*((shape, classes)[:takes]))
    if not isinstance(module, nn.Module):
        raise TypeError(f"the function made {type(module).__name__}; it must make a torch.nn.Module")
    wrong = [name for name, own in module.named_parameters() if not own.is_floating_point()]
    if wrong:
        raise TypeError(f"parameter {wrong[0]} is not of a real floating-point type")
    for name, own in module.named_modules():
        if isinstance(own, nn.modules.batchnorm._BatchNorm) and own.track_running_stats and own.momentum is None:
            raise ValueError(
                f"{name or 'the module'} averages its statistics over all batches so far (momentum=None), which starts anew in "
                "every round; give it a momentum"
            )
    return module.float()


def source(make: Make) -> str:
    """Hash of the source of a function and of its module's classes, as far as it can be read."""
    texts = []
    for part in (make, getattr(make, "__module__", "")):
        try:
            texts.append(inspect.getsource(part) if callable(part) else str(part))
        except (OSError, TypeError):
            texts.append(getattr(make, "__qualname__", repr(type(make))))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def define(name: str, shape: tuple[int, int, int], classes: int) -> str:
    """The definition of a registered model as JSON, with its tensors."""
    make = registered(name)
    module = made(make, shape, classes)
    return json.dumps(
        {
            "other": name,
            "source": source(make),
            "input": list(shape),
            "classes": classes,
            "tensors": tensors(module),
        }
    )


def tensors(module: nn.Module) -> list[dict[str, Any]]:
    """Name, shape, layer, kind and role of each tensor that travels: parameters and real buffers of the state."""
    layers: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    persistent = module.state_dict(keep_vars=True)
    named = {id(own): name for name, own in module.named_parameters()}
    for name, own in persistent.items():
        trainable = isinstance(own, nn.Parameter) and own.requires_grad
        # Tied parameters have several names; the first one counts. A count of batches is no part of the model.
        if not own.is_floating_point() or (isinstance(own, nn.Parameter) and named.get(id(own)) != name):
            continue
        parent, _, leaf = name.rpartition(".")
        layer = layers.setdefault(parent, len(layers))
        kind = _KINDS.get(type(module.get_submodule(parent)), "other")
        role = _ROLES.get((kind, leaf))
        if role is None or (trainable != (not role.startswith("running"))):
            kind, role = "other", "other" if trainable else "buffer"
        shape = list(own.shape)
        found.append({"name": name, "shape": shape, "layer": layer, "kind": kind, "role": role, "start": 0})
    return sorted(found, key=lambda one: not _trainable(one["role"]))


def _trainable(role: str) -> bool:
    return role not in ("running-mean", "running-variance", "buffer")


def initial(name: str, definition: str, seed: int) -> numpy.typing.NDArray[numpy.float32]:
    """The initial values that a module has if it is made after ``torch.manual_seed(seed)``, in the order of its tensors."""
    model = json.loads(definition)
    shape = tuple(model["input"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = made(registered(name), shape, model["classes"])
    state = module.state_dict(keep_vars=True)
    values = [state[one["name"]].detach().flatten() for one in model["tensors"]]
    flat: Tensor = torch.cat(values) if values else torch.empty(0)
    found: numpy.typing.NDArray[numpy.float32] = flat.to(torch.float32).contiguous().numpy()
    return found
