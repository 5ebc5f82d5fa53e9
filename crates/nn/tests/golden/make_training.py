"""Losses of 20 training steps of every model in PyTorch: python make_training.py > training.json

Initial weights and batches come from a formula that the test evaluates too, in f64, rounded once to f32:
u(k) = frac(43758.5453 sin(k + 1)), value = (2 u - 1) bound. Tensor t (counting weights and biases of convolutions
and linear layers) starts at k = 1000003 t with PyTorch's bound 1 / sqrt(fan in); norms start at 1 and 0. Pixel i of
the data is 2 u(7 + i) - 1; row n has label (7 n + n // 3) % classes; step s takes the rows from s * batch % 64 on.
Batch 8 (4 for the wide ResNets), lr 0.01, momentum 0.9, dropout off. "checks" are sums of the absolute values of
some trained tensors. "threads" is the largest relative difference of a loss between PyTorch with one and with two
threads. "nudged", for nets without batch norm, is the largest one between PyTorch and PyTorch with every third of
the initial weights one bit larger, three times with other thirds: what rounding alone does to these 20 losses.
"""
import json, math, os, sys
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../bench"))
from torch_models import MODELS


def uniform(first, count):
    x = np.sin(np.arange(first, first + count, dtype=np.float64) + 1.0) * 43758.5453
    return x - np.floor(x)


def fill(model, nudged=None):
    number, bound = 0, 0.0
    for name, p in model.named_parameters():
        if isinstance(model.get_submodule(name.rsplit(".", 1)[0]), (nn.BatchNorm2d, nn.GroupNorm)):
            continue
        if p.dim() > 1:
            bound = 1 / math.sqrt(p[0].numel())
        values = ((2 * uniform(1000003 * number, p.numel()) - 1) * bound).astype(np.float32)
        if nudged is not None:
            values[nudged::3] = np.nextafter(values[nudged::3], np.float32(np.inf))
        p.data = torch.tensor(values).reshape(p.shape)
        number += 1


def rows_of(first, count, shape, classes):
    rows, size = range(first, first + count), math.prod(shape)
    x = np.stack([(uniform(7 + r * size, size) * 2 - 1).astype(np.float32).reshape(shape) for r in rows])
    return torch.tensor(x), torch.tensor([(7 * n + n // 3) % classes for n in rows])


def train(name, threads, nudged=None):
    torch.set_num_threads(threads)
    make, shape = MODELS[name]
    model = make()
    fill(model, nudged)
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    classes = 100 if name.startswith("resnet34") else 10
    batch = 4 if name.startswith(("resnet18", "resnet34")) else 8
    sgd = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    losses = []
    for step in range(20):
        x, y = rows_of(step * batch % 64, batch, shape, classes)
        sgd.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    state = model.state_dict()
    checks = {n: float(state[n].double().abs().sum()) for n in state if not n.endswith("tracked")}
    return losses, checks


def difference(losses, others):
    return max(abs(a - b) / abs(a) for a, b in zip(losses, others))


def has_batch_norm(name):
    return any(isinstance(module, nn.BatchNorm2d) for module in MODELS[name][0]().modules())


def row(name):
    losses, checks = train(name, 1)
    threads = difference(losses, train(name, 2)[0])
    nudged = None
    if not has_batch_norm(name):
        nudged = max(difference(losses, train(name, 1, third)[0]) for third in range(3))
    some = list(checks)[:: max(1, len(checks) // 6)]
    print(name, threads, nudged, file=sys.stderr)
    return {"model": name, "losses": losses, "threads": threads, "nudged": nudged,
            "checks": {n: checks[n] for n in some}}


if __name__ == "__main__":
    text = ",\n".join(json.dumps(row(name)) for name in MODELS)
    print(f'{{"torch": "{torch.__version__}", "runs": [\n{text}\n]}}')
