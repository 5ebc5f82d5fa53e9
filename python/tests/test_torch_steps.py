"""What a pass does on the device, beside PyTorch's own optimisers and loss, in plain PyTorch."""

import copy
import json
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

from fedtvd.torch import open_device  # noqa: E402
from fedtvd.torch.network import Network  # noqa: E402

CLASSES, SHAPE, ROWS = 3, (2, 6, 5), 11
LAYERS: list[dict[str, Any]] = [
    {"layer": "conv", "name": "conv", "out": 4, "kernel": [3, 3], "stride": 1, "pad": 1, "bias": True},
    {"layer": "relu"},
    {"layer": "max-pool", "size": 2, "stride": 2},
    {"layer": "flatten"},
    {"layer": "linear", "name": "fc", "out": CLASSES},
]
NORMED = [
    {"layer": "conv", "name": "block.conv", "out": 4, "kernel": [3, 3], "stride": 1, "pad": 1, "bias": False},
    {"layer": "batch-norm", "name": "block.bn"},
    {"layer": "relu"},
    {"layer": "dropout", "rate": 0.25},
    {"layer": "global-pool"},
    {"layer": "linear", "name": "fc", "out": CLASSES},
]


def definition(layers: list[dict[str, Any]]) -> str:
    return json.dumps({"input": list(SHAPE), "classes": CLASSES, "layers": layers})


def tensors(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Names, shapes and roles as the program would list them."""
    module = Network(json.loads(definition(layers)))
    found = []
    for name, own in module.state_dict().items():
        leaf = name.rpartition(".")[2]
        if leaf == "num_batches_tracked":
            continue
        role = {"running_mean": "running-mean", "running_var": "running-variance"}.get(leaf, "weight")
        found.append({"name": name, "shape": list(own.shape), "role": role})
    return sorted(found, key=lambda one: one["role"].startswith("running"))


def start(layers: list[dict[str, Any]]) -> numpy.ndarray[Any, Any]:
    generator = numpy.random.default_rng(1)
    parts = []
    for one in tensors(layers):
        size = int(numpy.prod(one["shape"]))
        if one["role"] == "running-variance":
            parts.append(numpy.ones(size))
        elif one["role"] == "running-mean":
            parts.append(numpy.zeros(size))
        else:
            parts.append(generator.uniform(-0.4, 0.4, size))
    return numpy.concatenate(parts).astype(numpy.float32)


def trainer(layers: list[dict[str, Any]], device: str = "cpu-torch") -> Any:
    generator = numpy.random.default_rng(2)
    opened = open_device(device)
    assert opened is not None
    values = generator.normal(size=(ROWS, *SHAPE)).astype(numpy.float32).ravel()
    labels = numpy.arange(ROWS, dtype=numpy.uint32) % CLASSES
    data = opened.data(SHAPE, CLASSES, labels, values, None)
    return opened.trainer(definition(layers), json.dumps(tensors(layers)), data)


def spec(epochs: int = 1, batch: int = 4, first: int = 0, **changes: Any) -> dict[str, Any]:
    orders = [numpy.random.default_rng(first + e).permutation(ROWS) for e in range(epochs)]
    settings = {"name": "sgd", "lr": 0.1, "weight_decay": 0.0, "momentum": 0.0, "nesterov": False}
    return {
        "first_epoch": first,
        "batch": batch,
        "keep_state": False,
        "optimizer": settings,
        "smoothing": 0.0,
        "orders": numpy.concatenate(orders).astype(numpy.uint32),
        "seeds": [100 + first + e for e in range(epochs)],
        **changes,
    }


def trained(layers: list[dict[str, Any]], *passes: dict[str, Any]) -> numpy.ndarray[Any, Any]:
    own, params = trainer(layers), start(layers)
    for one in passes:
        own.run(params, one)
    return params


def reference(layers: list[dict[str, Any]], one: dict[str, Any], optimizer: Any, loss: Any) -> Any:
    """The same pass as a plain loop."""
    own = trainer(layers)
    module = copy.deepcopy(own.bound.module)
    values, place = torch.from_numpy(start(layers)), 0
    state = module.state_dict(keep_vars=True)
    for tensor in tensors(layers):
        size = int(numpy.prod(tensor["shape"]))
        state[tensor["name"]].data = values[place : place + size].view(tensor["shape"]).clone()
        place += size
    stepper = optimizer(module.parameters())
    module.train()
    for epoch in one["orders"].reshape(len(one["seeds"]), -1):
        for rows in torch.from_numpy(epoch.astype(numpy.int64)).split(one["batch"]):
            stepper.zero_grad()
            loss(module(own.data.values[rows]), own.data.labels[rows], module).backward()
            stepper.step()
    names = [tensor["name"] for tensor in tensors(layers)]
    state = module.state_dict()
    return torch.cat([state[name].flatten() for name in names]).numpy()


def plain(logits: Any, labels: Any, _module: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits, labels)


# Sums in another order, in float32: a few units in the last place after six steps.
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.mark.parametrize(
    ("settings", "optimizer"),
    [
        ({"name": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}, torch.optim.SGD),
        ({"name": "sgd", "momentum": 0.5, "nesterov": False, "weight_decay": 0.0}, torch.optim.SGD),
        ({"name": "adam", "beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "weight_decay": 0.01}, torch.optim.Adam),
        ({"name": "adamw", "beta1": 0.9, "beta2": 0.99, "eps": 1e-3, "weight_decay": 0.1}, torch.optim.AdamW),
    ],
)
def test_optimizers_are_those_of_pytorch(settings: dict[str, Any], optimizer: Any) -> None:
    own = {"lr": 0.05, **settings}
    one = spec(epochs=2, optimizer=own)
    betas = {"betas": (own["beta1"], own["beta2"]), "eps": own["eps"]} if "beta1" in own else {}
    sgd = {} if betas else {"momentum": own["momentum"], "nesterov": own["nesterov"]}
    make = lambda params: optimizer(params, lr=0.05, weight_decay=own["weight_decay"], **betas, **sgd)  # noqa: E731
    numpy.testing.assert_allclose(trained(LAYERS, one), reference(LAYERS, one, make, plain), **CLOSE)


def test_offsets_weights_smoothing_pull_and_push_enter_as_in_a_plain_loop() -> None:
    anchor = start(LAYERS) * 0.5
    push = numpy.linspace(-0.1, 0.1, anchor.size, dtype=numpy.float32)
    offsets = numpy.array([0.5, -0.25, 0.0], dtype=numpy.float32)
    weights = numpy.array([0.5, 1.0, 2.5], dtype=numpy.float32)
    one = spec(
        epochs=2,
        offsets=offsets,
        class_weights=weights,
        smoothing=0.1,
        mu=0.3,
        anchor=anchor,
        push=push,
    )

    def loss(logits: Any, labels: Any, module: Any) -> Any:
        w = torch.cat([own.flatten() for own in module.parameters()])
        entropy = torch.nn.functional.cross_entropy(
            logits + torch.from_numpy(offsets), labels, torch.from_numpy(weights), label_smoothing=0.1
        )
        pull = 0.15 * ((w - torch.from_numpy(anchor)) ** 2).sum()
        return entropy + pull + (w * torch.from_numpy(push)).sum()

    make = lambda params: torch.optim.SGD(params, lr=0.1)  # noqa: E731
    numpy.testing.assert_allclose(trained(LAYERS, one), reference(LAYERS, one, make, loss), **CLOSE)


def test_clipping_bounds_the_norm_of_the_gradient() -> None:
    before = start(LAYERS)
    moved = trained(LAYERS, spec(batch=ROWS, clip=0.01)) - before
    assert numpy.linalg.norm(moved) == pytest.approx(0.1 * 0.01, rel=1e-3)
    free = trained(LAYERS, spec(batch=ROWS)) - before
    # A gradient shorter than the bound stays as it is.
    wide = trained(LAYERS, spec(batch=ROWS, clip=10.0)) - before
    numpy.testing.assert_allclose(wide, free, rtol=1e-4, atol=1e-7)


def test_repeated_passes_have_the_same_bits_and_four_of_one_epoch_are_one_of_four() -> None:
    momentum = {"name": "sgd", "lr": 0.1, "weight_decay": 0.0, "momentum": 0.9, "nesterov": False}
    whole = spec(epochs=4, optimizer=momentum)
    parts = [spec(first=e, keep_state=e > 0, optimizer=momentum) for e in range(4)]
    for layers in (LAYERS, NORMED):
        first = trained(layers, whole)
        assert first.tobytes() == trained(layers, whole).tobytes()
        assert first.tobytes() == trained(layers, *parts).tobytes()


def test_frozen_ranges_stay_and_frozen_statistics_normalise_as_in_evaluation() -> None:
    before = start(NORMED)
    layers = [one for one in NORMED if one["layer"] != "dropout"]
    still = ["block.bn.running_mean", "block.bn.running_var"]
    momentum = {"name": "sgd", "lr": 0.1, "weight_decay": 0.1, "momentum": 0.9, "nesterov": False}
    after = trained(layers, spec(epochs=2, optimizer=momentum, clip=0.5, moving=[(72, 80)], still=still))
    assert numpy.array_equal(after[:72], before[:72])
    assert numpy.array_equal(after[80:], before[80:])
    assert not numpy.array_equal(after[72:80], before[72:80])
    gradient = trainer(layers).gradient(before.copy(), spec(moving=[(72, 80)], still=still))
    assert numpy.flatnonzero(gradient).min() >= 72 and numpy.flatnonzero(gradient).max() < 80


def test_dropout_follows_the_epochs_seed_while_training_and_rests_otherwise() -> None:
    one = spec(batch=ROWS)
    assert trained(NORMED, one).tobytes() != trained(NORMED, {**one, "seeds": [7]}).tobytes()
    own, params = trainer(NORMED), start(NORMED)
    rows = numpy.arange(ROWS, dtype=numpy.uint32)
    assert own.logits(params, rows).tobytes() == own.logits(params, rows).tobytes()
    others = trainer([one for one in NORMED if one["layer"] != "dropout"])
    assert own.logits(params, rows).tobytes() == others.logits(params, rows).tobytes()


def test_batch_norms_remember_as_pytorch_does_and_take_a_batch_of_one_value() -> None:
    layers = [one for one in NORMED if one["layer"] != "dropout"]
    one = spec(epochs=2)
    make = lambda params: torch.optim.SGD(params, lr=0.1)  # noqa: E731
    numpy.testing.assert_allclose(trained(layers, one), reference(layers, one, make, plain), rtol=1e-4, atol=1e-5)
    flat = [{"layer": "flatten"}, {"layer": "batch-norm", "name": "bn"}, {"layer": "linear", "name": "fc", "out": 3}]
    # Batches of 5, 5 and 1.
    assert numpy.isfinite(trained(flat, spec(batch=5))).all()


def test_constants_shift_batch_statistics_and_their_mean_is_reported() -> None:
    layers = [one for one in NORMED if one["layer"] != "dropout"]
    zero = numpy.zeros(8, dtype=numpy.float32)
    own, params = trainer(layers), start(layers)
    _, _, statistics = own.run(params, spec(batch=ROWS, shift=zero, floor=zero))
    assert params.tobytes() == trained(layers, spec(batch=ROWS)).tobytes()
    # Of one batch, the running mean moved by a tenth of its mean.
    numpy.testing.assert_allclose(statistics[:4], params[-8:-4] * 10, rtol=1e-5, atol=1e-6)
    shift = numpy.full(8, 0.5, dtype=numpy.float32)
    own, moved = trainer(layers), start(layers)
    _, _, again = own.run(moved, spec(batch=ROWS, shift=shift, floor=zero))
    numpy.testing.assert_allclose(again, statistics, rtol=1e-6)
    assert not numpy.allclose(moved[:-8], params[:-8])
    # The constants are those of one pass.
    assert all(part.shift is None for part in own.norms.values())


def test_a_gradient_is_that_of_a_step_and_leaves_no_trace() -> None:
    # With its dropout: both draw from the epoch's seed.
    own, params = trainer(NORMED), start(NORMED)
    before = params.copy()
    gradient = own.gradient(params, spec(batch=ROWS))
    assert params.tobytes() == before.tobytes()
    own.run(params, spec(batch=ROWS))
    numpy.testing.assert_allclose(before[:-8] - params[:-8], 0.1 * gradient, rtol=1e-3, atol=1e-6)


def test_an_evaluation_counts_each_row_and_agrees_with_the_logits() -> None:
    own, params = trainer(NORMED), start(NORMED)
    rows = numpy.arange(ROWS, dtype=numpy.uint32)
    loss, confusion = own.evaluate(params, rows, None)
    logits = torch.from_numpy(own.logits(params, rows)).view(ROWS, CLASSES)
    labels = torch.arange(ROWS) % CLASSES
    assert confusion.sum() == ROWS
    assert loss == pytest.approx(float(torch.nn.functional.cross_entropy(logits, labels, reduction="sum")), rel=1e-6)
    hits = int((logits.argmax(1) == labels).sum())
    assert confusion.reshape(CLASSES, CLASSES).trace() == hits
    offsets = numpy.array([100.0, 0.0, 0.0], dtype=numpy.float32)
    _, all_first = own.evaluate(params, rows, offsets)
    assert all_first.reshape(CLASSES, CLASSES)[:, 0].sum() == ROWS
