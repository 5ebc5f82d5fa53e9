"""Batch norms with constants added to their batch statistics, in PyTorch in f64: python make_norm_shift.py > norm_shift.json

m~ = m + a, v~ = max(v + b, floor), y = scale (x - m~) / sqrt(v~ + 1e-5) + shift, where m and v are the mean and the biased variance of the
batch; PyTorch differentiates through them. Each case is a small network in fedtvd's lines and in PyTorch; for a batch of 5 with labels
n % 3 it has the loss, the gradients of all parameters and the statistics m, v. Weights and inputs are u(k) = frac(43758.5453 sin(k + 1)),
value = 2 u - 1: tensor t starts at k = 1000 t (all of them, norms included), x at k = 7. The constants of buffer i, in the order of all
buffers, are 1.5 (2 u(9000 + i) - 1), and all floors are 0.25; `floored` counts the channels whose variance is at its floor.
"""
import json
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

FLOOR = 0.25


def uniform(first, shape):
    count = int(np.prod(shape))
    x = np.sin(np.arange(first, first + count, dtype=np.float64) + 1.0) * 43758.5453
    return torch.tensor((2 * (x - np.floor(x)) - 1).astype(np.float32).astype(np.float64)).reshape(shape)


class Shifted(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        wide = (1, -1, 1, 1)
        self.mean = x.mean((0, 2, 3))
        self.variance = x.var((0, 2, 3), unbiased=False)
        shift = (1.5 * uniform(9000 + self.first, (2 * self.channels,)).float()).double()
        raised = self.variance + shift[self.channels :]
        self.floored = int((raised < FLOOR).sum())
        variance = torch.clamp(raised, min=FLOOR)
        h = (x - (self.mean + shift[: self.channels]).reshape(wide)) / torch.sqrt(variance + 1e-5).reshape(wide)
        return self.weight.reshape(wide) * h + self.bias.reshape(wide)


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = nn.Sequential(*body), nn.Sequential(*shortcut)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class GlobalPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


C, L, R = nn.Conv2d, nn.Linear, nn.ReLU
CASES = [
    ("one norm", ["conv 5 2x2", "batchnorm", "relu", "globalpool", "linear"], [C(2, 5, 2), Shifted(5), R(), GlobalPool(), L(5, 3)], (2, 5, 4)),
    ("two norms", ["conv 6 2x2", "batchnorm", "relu", "conv 4 2x2 nobias", "batchnorm", "globalpool", "linear"],
     [C(2, 6, 2), Shifted(6), R(), C(6, 4, 2, bias=False), Shifted(4), GlobalPool(), L(4, 3)], (2, 5, 4)),
    ("residual block",
     ["conv 4 3x3 pad 1", "residual {", "conv 6 3x3 stride 2 pad 1", "batchnorm", "} shortcut {", "conv 6 1x1 stride 2", "batchnorm", "}", "relu", "globalpool", "linear"],
     [C(2, 4, 3, 1, 1), Residual([C(4, 6, 3, 2, 1), Shifted(6)], [C(4, 6, 1, 2), Shifted(6)]), R(), GlobalPool(), L(6, 3)], (2, 5, 4)),
]
rows = []
for name, lines, modules, shape in CASES:
    model, batch = nn.Sequential(*modules).double(), 5
    for t, p in enumerate(model.parameters()):
        p.data = uniform(1000 * t, p.shape)
    norms = [module for module in model.modules() if isinstance(module, Shifted)]
    first = 0
    for norm in norms:
        norm.first = first
        first += 2 * norm.channels
    x = uniform(7, (batch, *shape))
    y = torch.tensor([n % 3 for n in range(batch)])
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    gradients = [g for p in model.parameters() for g in p.grad.flatten().tolist()]
    statistics = [v for norm in norms for part in (norm.mean, norm.variance) for v in part.tolist()]
    short = lambda values: [float(f"{v:.10g}") for v in values]
    rows.append({
        "name": name, "lines": lines, "shape": shape, "loss": loss.item(), "gradients": short(gradients),
        "statistics": short(statistics), "floored": sum(norm.floored for norm in norms), "channels": sum(norm.channels for norm in norms),
    })
text = ",\n".join(json.dumps(row) for row in rows)
print('{"torch": "%s", "floor": %s, "cases": [\n%s\n]}' % (torch.__version__, FLOOR, text))
