"""Losses of 20 training steps of every model in PyTorch: python make_training.py > training.json

Initial weights and batches come from a formula that the test evaluates too, in f64, rounded once to f32:
u(k) = frac(43758.5453 sin(k + 1)), value = (2 u - 1) bound. Tensor t (counting weights and biases of convolutions
and linear layers) starts at k = 1000003 t with PyTorch's bound 1 / sqrt(fan in); norms start at 1 and 0. Pixel i of
the data is 2 u(7 + i) - 1; row n has label (7 n + n // 3) % classes; step s takes the rows from s * batch % 64 on.
Batch 8 (4 for the wide ResNets), lr 0.01, momentum 0.9, dropout off. "checks" are sums of the absolute values of
some trained tensors. "spread" is the largest relative difference of a loss between PyTorch with one thread, with two
threads, and with its other set of kernels (oneDNN off): what rounding alone does to these 20 losses.
"""
import json, math, os, sys
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../bench"))
from torch_models import MODELS


def uniform(first, count):
    x = np.sin(np.arange(first, first + count, dtype=np.float64) + 1.0) * 43758.5453
    return x - np.floor(x)


def fill(model):
    number, bound = 0, 0.0
    for name, p in model.named_parameters():
        if isinstance(model.get_submodule(name.rsplit(".", 1)[0]), (nn.BatchNorm2d, nn.GroupNorm)):
            continue
        if p.dim() > 1:
            bound = 1 / math.sqrt(p[0].numel())
        values = (2 * uniform(1000003 * number, p.numel()) - 1) * bound
        p.data = torch.tensor(values.astype(np.float32)).reshape(p.shape)
        number += 1


def train(name, threads, onednn=True):
    torch.set_num_threads(threads)
    make, shape = MODELS[name]
    model = make()
    fill(model)
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    classes = 100 if name.startswith("resnet34") else 10
    batch = 4 if name.startswith(("resnet18", "resnet34")) else 8
    size = math.prod(shape)
    sgd = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    losses = []
    with torch.backends.mkldnn.flags(enabled=onednn):
        for step in range(20):
            rows = range(step * batch % 64, step * batch % 64 + batch)
            x = np.stack([(uniform(7 + r * size, size) * 2 - 1).astype(np.float32).reshape(shape) for r in rows])
            y = torch.tensor([(7 * n + n // 3) % classes for n in rows])
            sgd.zero_grad()
            loss = F.cross_entropy(model(torch.tensor(x)), y)
            loss.backward()
            sgd.step()
            losses.append(loss.item())
    state = model.state_dict()
    checks = {n: float(state[n].double().abs().sum()) for n in state if not n.endswith("tracked")}
    return losses, checks


rows = []
for name in MODELS:
    losses, checks = train(name, 1)
    others = [train(name, 2)[0], train(name, 1, onednn=False)[0]]
    spread = max(abs(a - b) / abs(a) for other in others for a, b in zip(losses, other))
    some = list(checks)[:: max(1, len(checks) // 6)]
    rows.append({"model": name, "losses": losses, "spread": spread, "checks": {n: checks[n] for n in some}})
    print(name, spread, file=sys.stderr)
text = ",\n".join(json.dumps(row) for row in rows)
print(f'{{"torch": "{torch.__version__}", "runs": [\n{text}\n]}}')
