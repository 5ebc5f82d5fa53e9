"""Any module of PyTorch: what travels of it, and how it trains."""

import json
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

from fedtvd.torch import DeviceFailed, Diverged, open_device, register  # noqa: E402
from fedtvd.torch import models  # noqa: E402

from torch import Tensor, nn  # noqa: E402


class Attention(nn.Module):
    """A token sequence, embedded, attended to and averaged: layers that the program does not know."""

    def __init__(self, length: int, classes: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 16)
        self.register_buffer("position", torch.linspace(0, 1, length)[:, None] * torch.ones(16))
        self.attend = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, classes)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x.long()) + self.position
        attended, _ = self.attend(tokens, tokens, tokens, need_weights=False)
        return self.head(self.norm(tokens + attended).mean(1))


def make(shape: tuple[int, int, int], classes: int) -> nn.Module:
    return Attention(shape[0], classes)


def task(rows: int = 240, length: int = 6) -> tuple[Any, Any]:
    """The class of a sequence is whether token 3 comes before token 5."""
    generator = numpy.random.default_rng(1)
    tokens = generator.integers(0, 8, (rows, length))
    tokens[:, 0], tokens[:, 1] = 3, 5
    tokens = generator.permuted(tokens, axis=1)
    first = [list(row).index(3) < list(row).index(5) for row in tokens]
    return tokens.astype(numpy.float32), numpy.array(first, dtype=numpy.uint32)


def spec(epoch: int, rows: int) -> dict[str, Any]:
    return {
        "first_epoch": epoch,
        "batch": 32,
        "keep_state": epoch > 0,
        "optimizer": {"name": "adam", "lr": 0.01, "weight_decay": 0.0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
        "smoothing": 0.0,
        "orders": numpy.random.default_rng(epoch).permutation(rows).astype(numpy.uint32),
        "seeds": [epoch],
    }


def trainer(name: str, values: Any, labels: Any, shape: tuple[int, int, int]) -> tuple[Any, Any]:
    definition = models.define(name, shape, 2)
    opened = open_device("cpu-torch")
    assert opened is not None
    data = opened.data(shape, 2, labels, values.ravel(), None)
    tensors = json.dumps(json.loads(definition)["tensors"])
    return opened.trainer(definition, tensors, data), models.initial(name, definition, 7)


def test_a_module_with_attention_learns_and_repeats_its_bits() -> None:
    register("attention", make)
    values, labels = task()
    runs = []
    for _ in range(2):
        own, params = trainer("attention", values, labels, (6, 1, 1))
        for epoch in range(30):
            own.run(params, spec(epoch, len(labels)))
        runs.append(params)
    assert runs[0].tobytes() == runs[1].tobytes()
    _, confusion = own.evaluate(params, numpy.arange(240, dtype=numpy.uint32), None)
    # Guessing gives half.
    assert (confusion[0] + confusion[3]) / 240 > 0.9


def test_parameters_come_before_buffers_and_layers_are_named_where_they_are_known() -> None:
    register("attention", make)
    tensors = json.loads(models.define("attention", (6, 1, 1), 2))["tensors"]
    found = {one["name"]: (one["kind"], one["role"]) for one in tensors}
    assert found["position"] == ("other", "buffer")
    assert found["head.weight"] == ("linear", "weight")
    assert found["attend.in_proj_weight"] == ("other", "other")
    assert [one["role"] for one in tensors][-1] == "buffer"
    normed = models.tensors(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)))
    assert [(one["name"], one["role"]) for one in normed][-2:] == [
        ("1.running_mean", "running-mean"),
        ("1.running_var", "running-variance"),
    ]


def test_initial_values_follow_the_seed_and_leave_the_generator_alone() -> None:
    register("attention", make)
    definition = models.define("attention", (6, 1, 1), 2)
    torch.manual_seed(3)
    undisturbed = torch.rand(1)
    torch.manual_seed(3)
    first = models.initial("attention", definition, 1)
    assert torch.equal(torch.rand(1), undisturbed)
    assert first.tobytes() == models.initial("attention", definition, 1).tobytes()
    assert first.tobytes() != models.initial("attention", definition, 2).tobytes()


def test_frozen_parameters_stay_as_they_are_and_tied_ones_travel_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(6, 6)
            self.b = nn.Linear(6, 6)
            self.b.weight = self.a.weight
            self.a.bias.requires_grad_(False)
            self.head = nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(torch.relu(self.b(torch.relu(self.a(x)))))

    register("tied", lambda: Tied())
    values, labels = task()
    own, params = trainer("tied", values, labels, (6, 1, 1))
    names = [one["name"] for one in own.bound.tensors]
    assert names == ["a.weight", "b.bias", "head.weight", "head.bias", "a.bias"]
    before = params.copy()
    own.run(params, spec(0, len(labels)))
    assert numpy.array_equal(params[-6:], before[-6:])
    assert not numpy.array_equal(params[:36], before[:36])


def test_mistakes_of_a_module_are_sentences() -> None:
    values, labels = task()
    register("wide", lambda shape, classes: nn.Linear(shape[0], classes + 1))
    own, params = trainer("wide", values, labels, (6, 1, 1))
    with pytest.raises(DeviceFailed, match=r"outputs of shape \(32, 3\); a batch needs .*\(samples, 2\)"):
        own.run(params, spec(0, len(labels)))
    register("broken", lambda: nn.Linear(7, 2))
    own, params = trainer("broken", values, labels, (6, 1, 1))
    with pytest.raises(DeviceFailed, match="cpu-torch failed in a pass in batches of 32: .*mat1 and mat2"):
        own.run(params, spec(0, len(labels)))
    register("average", lambda: nn.Sequential(nn.BatchNorm1d(6, momentum=None), nn.Linear(6, 2)))
    with pytest.raises(ValueError, match="give it a momentum"):
        models.define("average", (6, 1, 1), 2)
    register("plain", lambda: nn.Linear(6, 2))
    own, params = trainer("plain", values * 1e30, labels, (6, 1, 1))
    steep = {"name": "sgd", "lr": 1.0, "weight_decay": 0.0, "momentum": 0.0, "nesterov": False}
    with pytest.raises(Diverged, match="the loss became (nan|inf) in epoch 1"):
        own.run(params, {**spec(0, len(labels)), "optimizer": steep})


def test_memory_is_counted_without_taking_it() -> None:
    layers = [{"layer": "flatten"}, {"layer": "linear", "name": "fc", "out": 4}]
    definition = json.dumps({"input": [3, 1, 1], "classes": 4, "layers": layers})
    tensors = json.dumps([{"name": "fc.weight", "shape": [4, 3]}, {"name": "fc.bias", "shape": [4]}])
    opened = open_device("cpu-torch")
    assert opened is not None
    # 16 numbers: model, gradient, three copies and one vector; twice 10 times 3 and 4 outputs.
    assert opened.training_memory(definition, tensors, 10, 1) == 4 * 16 * 6 + 2 * 10 * 4 * (3 + 4)
