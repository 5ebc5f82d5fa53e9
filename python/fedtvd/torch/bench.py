"""``fedtvd bench --device NAME``: whether a device trains as it must, whether it repeats its bits, and how fast it is beside a plain
PyTorch loop of the same model."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from fedtvd.torch.device import Device, open_device

#: Name, lines of layers as the program lists them, input and classes.
SHAPE, CLASSES, ROWS, BATCH = (1, 28, 28), 10, 4096, 64


def _conv(name: str, out: int) -> dict[str, Any]:
    return {"layer": "conv", "name": name, "out": out, "kernel": [5, 5], "stride": 1, "pad": 0, "bias": True}


#: The model that is timed: that of McMahan et al. (2017), without padding.
LAYERS: list[dict[str, Any]] = [
    _conv("conv1", 32),
    {"layer": "relu"},
    {"layer": "max-pool", "size": 2, "stride": 2},
    _conv("conv2", 64),
    {"layer": "relu"},
    {"layer": "max-pool", "size": 2, "stride": 2},
    {"layer": "flatten"},
    {"layer": "linear", "name": "fc1", "out": 512},
    {"layer": "relu"},
    {"layer": "linear", "name": "fc2", "out": CLASSES},
]


def timed(device: Device) -> dict[str, float]:
    """Samples per second of a pass through the backend and of a plain loop, and whether two passes have the same bits."""
    from fedtvd.torch.models import tensors
    from fedtvd.torch.network import Network

    definition = {"input": list(SHAPE), "classes": CLASSES, "layers": LAYERS}
    generator = numpy.random.default_rng(1)
    values = generator.normal(size=(ROWS, *SHAPE)).astype(numpy.float32).ravel()
    labels = (numpy.arange(ROWS) % CLASSES).astype(numpy.uint32)
    data = device.data(SHAPE, CLASSES, labels, values, None)
    listed = json.dumps(tensors(Network(definition)))
    trainer = device.trainer(json.dumps(definition), listed, data)
    length = trainer.bound.values.numel()
    start = generator.uniform(-0.05, 0.05, length).astype(numpy.float32)
    spec = {
        "first_epoch": 0,
        "batch": BATCH,
        "keep_state": False,
        "optimizer": {"name": "sgd", "lr": 0.01, "weight_decay": 0.0, "momentum": 0.9, "nesterov": False},
        "smoothing": 0.0,
        "orders": generator.permutation(ROWS).astype(numpy.uint32),
        "seeds": [1],
    }
    ends = []

    def one_pass() -> None:
        params = start.copy()
        trainer.run(params, spec)
        ends.append(params.tobytes())

    module = Network(definition).to_empty(device=device.torch)
    state = module.state_dict(keep_vars=True)
    place = 0
    for tensor in json.loads(listed):
        own = state[tensor["name"]]
        own.data.copy_(torch.from_numpy(start[place : place + own.numel()]).view(own.shape))
        place += own.numel()
    order = torch.from_numpy(spec["orders"].astype(numpy.int64)).to(device.torch)  # type: ignore[attr-defined]
    stepper = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)

    def plain_loop() -> None:
        for rows in torch.split(order, BATCH):
            stepper.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(data.values[rows]), data.labels[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            stepper.step()
        float(loss)

    through, plain = _fastest(one_pass), _fastest(plain_loop)
    return {"samples_per_second": ROWS / through, "plain": ROWS / plain, "repeats": float(len(set(ends)) == 1)}


def _fastest(work: Callable[[], None]) -> float:
    """Seconds of the fastest of several calls; the first one warms up."""
    work()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def main(words: Sequence[str]) -> int:
    """Checks and times a device; the exit code is 1 if it does not conform."""
    parser = argparse.ArgumentParser("fedtvd bench", description=__doc__)
    parser.add_argument("--device", required=True, metavar="NAME", help="cuda, cuda:1, mps or cpu-torch")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON document")
    asked = parser.parse_args(words)
    try:
        device = open_device(asked.device)
    except ValueError as error:
        print(f"fedtvd: {error}", file=sys.stderr)
        return 2
    if device is None:
        print(f"fedtvd: {asked.device} is not a device of PyTorch", file=sys.stderr)
        return 2
    from fedtvd import _native

    violated = _native.conformance(asked.device)
    found = timed(device)
    answer = {**device.describe(), **found, "repeats": found["repeats"] == 1.0, "violated": violated}
    if asked.json:
        print(json.dumps(answer, indent=2))
    else:
        versions = ", ".join(f"{what} {version}" for what, version in answer["versions"].items())
        print(f"{answer['name']}: {answer['hardware']}, {versions}")
        print("conformance: " + ("all properties hold" if violated is None else violated))
        print("two passes: " + ("the same bits" if answer["repeats"] else "other bits"))
        print(f"{answer['samples_per_second']:.0f} samples/s; a plain PyTorch loop {answer['plain']:.0f} samples/s")
    return 0 if violated is None else 1
