"""Every layer's forward and backward pass in PyTorch: python make_layers.py > layers.json

Each case is a small network in fedtvd's lines and in PyTorch; for a batch of 5 with labels n % 3 it has the loss, the
gradients of all parameters and the running statistics afterwards. Weights and inputs are u(k) = frac(43758.5453 sin(k + 1)), value = 2 u - 1: tensor t starts at
k = 1000 t (all of them, norms included), x at k = 7.
"""
import json
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F


def uniform(first, shape):
    count = int(np.prod(shape))
    x = np.sin(np.arange(first, first + count, dtype=np.float64) + 1.0) * 43758.5453
    return torch.tensor((2 * (x - np.floor(x)) - 1).astype(np.float32)).reshape(shape)


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = nn.Sequential(*body), nn.Sequential(*shortcut)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class GlobalPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


C, L, R, P = nn.Conv2d, nn.Linear, nn.ReLU, nn.MaxPool2d
CASES = [
    ("conv, odd sizes", ["conv 5 3x2 stride 2 pad 1", "flatten", "linear"], [C(3, 5, (3, 2), 2, 1), nn.Flatten(), L(60, 3)], (3, 7, 5)),
    ("conv without bias, stride beyond kernel", ["conv 9 2x2 stride 3 nobias", "conv 4 1x1 stride 2 pad 1", "flatten", "linear"],
     [C(2, 9, 2, 3, bias=False), C(9, 4, 1, 2, 1), nn.Flatten(), L(24, 3)], (2, 8, 5)),
    ("linear and relu", ["flatten", "linear 17", "relu", "linear"], [nn.Flatten(), L(12, 17), R(), L(17, 3)], (3, 2, 2)),
    ("conv, relu, max pooling", ["conv 6 3x3", "relu", "maxpool 2", "flatten", "linear"], [C(1, 6, 3), R(), P(2), nn.Flatten(), L(54, 3)], (1, 9, 8)),
    ("overlapping max pooling", ["conv 3 1x1", "maxpool 3 stride 2", "flatten", "linear"], [C(2, 3, 1), P(3, 2), nn.Flatten(), L(18, 3)], (2, 7, 5)),
    ("average pooling", ["conv 3 1x1", "avgpool 2", "avgpool 2 stride 1", "flatten", "linear"],
     [C(2, 3, 1), nn.AvgPool2d(2), nn.AvgPool2d(2, 1), nn.Flatten(), L(6, 3)], (2, 7, 5)),
    ("batch norm", ["conv 5 2x2", "batchnorm", "relu", "globalpool", "linear"], [C(2, 5, 2), nn.BatchNorm2d(5), R(), GlobalPool(), L(5, 3)], (2, 5, 4)),
    ("group norm", ["conv 6 2x2", "groupnorm 3", "relu", "globalpool", "linear"], [C(2, 6, 2), nn.GroupNorm(3, 6), R(), GlobalPool(), L(6, 3)], (2, 5, 4)),
    ("residual block",
     ["conv 4 3x3 pad 1", "residual {", "conv 6 3x3 stride 2 pad 1", "batchnorm", "} shortcut {", "conv 6 1x1 stride 2", "}", "relu", "globalpool", "linear"],
     [C(2, 4, 3, 1, 1), Residual([C(4, 6, 3, 2, 1), nn.BatchNorm2d(6)], [C(4, 6, 1, 2)]), R(), GlobalPool(), L(6, 3)], (2, 5, 4)),
]
rows = []
for name, lines, modules, shape in CASES:
    model, batch = nn.Sequential(*modules), 5
    for t, p in enumerate(model.parameters()):
        p.data = uniform(1000 * t, p.shape)
    x = uniform(7, (batch, *shape))
    y = torch.tensor([n % 3 for n in range(batch)])
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    gradients = [g for p in model.parameters() for g in p.grad.flatten().tolist()]
    buffers = [v for n, b in model.named_buffers() if not n.endswith("tracked") for v in b.tolist()]
    short = lambda values: [float(f"{v:.8g}") for v in values]
    rows.append({"name": name, "lines": lines, "shape": shape, "loss": loss.item(), "gradients": short(gradients), "buffers": short(buffers)})
text = ",\n".join(json.dumps(row) for row in rows)
print(f'{{"torch": "{torch.__version__}", "cases": [\n{text}\n]}}')
