"""The models as PyTorch modules: tensor names and shapes are those of fedtvd's safetensors files."""
import torch.nn as nn
import torch.nn.functional as F


class Logistic(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.fc = nn.Linear(784, classes)

    def forward(self, x):
        return self.fc(x.flatten(1))


class Mlp(nn.Module):
    """784-200-200-10: 199,210 parameters."""

    def __init__(self, classes=10):
        super().__init__()
        self.fc1 = nn.Linear(784, 200)
        self.fc2 = nn.Linear(200, 200)
        self.fc3 = nn.Linear(200, classes)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class LeNet(nn.Module):
    """lenet (pad 0: 44,426 parameters), lenet5 (pad 2: 61,706), lenet-bn (batch norm after each convolution)."""

    def __init__(self, pad=0, normed=False, classes=10):
        super().__init__()
        side = 4 if pad == 0 else 5
        self.conv1 = nn.Conv2d(1, 6, 5, padding=pad)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * side * side, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)
        self.normed = normed
        if normed:
            self.bn1, self.bn2 = nn.BatchNorm2d(6), nn.BatchNorm2d(16)

    def forward(self, x):
        x = self.conv1(x)
        x = F.max_pool2d(F.relu(self.bn1(x) if self.normed else x), 2)
        x = self.conv2(x)
        x = F.max_pool2d(F.relu(self.bn2(x) if self.normed else x), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Cnn(nn.Module):
    """McMahan's CNN: 1,663,370 parameters on 28x28."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = nn.Linear(3136, 512)
        self.fc2 = nn.Linear(512, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


class CnnPfl(nn.Module):
    """Two valid 3x3 convolutions, one pooling, two dropouts: 1,626,442 parameters on 32x32x3."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(64 * 14 * 14, 128)
        self.fc2 = nn.Linear(128, classes)
        self.drop1, self.drop2 = nn.Dropout(0.25), nn.Dropout(0.5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(self.drop2(F.relu(self.fc1(self.drop1(x).flatten(1)))))


class Block(nn.Module):
    def __init__(self, norm, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = norm(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = norm(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), norm(cout))

    def forward(self, x):
        skip = x if self.downsample is None else self.downsample(x)
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + skip)


class ResNet(nn.Module):
    """3x3 stem without pooling. resnet18: widths 64 to 512, two blocks each. resnet8 and 20: widths 16, 32, 64."""

    def __init__(self, widths, blocks, classes=10, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1 = norm(widths[0])
        cin = widths[0]
        for i, (w, n) in enumerate(zip(widths, blocks)):
            stage = []
            for j in range(n):
                stage.append(Block(norm, cin, w, 2 if i > 0 and j == 0 else 1))
                cin = w
            setattr(self, f"layer{i + 1}", nn.Sequential(*stage))
        self.stages = len(widths)
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


def groups(channels):
    return nn.GroupNorm(2, channels)


THIN, WIDE = (16, 32, 64), (64, 128, 256, 512)
GREY, COLOUR = (1, 28, 28), (3, 32, 32)
MODELS = {
    "logistic": (Logistic, GREY),
    "mlp": (Mlp, GREY),
    "lenet": (lambda: LeNet(0), GREY),
    "lenet5": (lambda: LeNet(2), GREY),
    "lenet-bn": (lambda: LeNet(0, True), GREY),
    "cnn": (Cnn, GREY),
    "cnn-pfl": (CnnPfl, COLOUR),
    "resnet8": (lambda: ResNet(THIN, (1, 1, 1)), COLOUR),
    "resnet8-gn": (lambda: ResNet(THIN, (1, 1, 1), norm=groups), COLOUR),
    "resnet20": (lambda: ResNet(THIN, (3, 3, 3)), COLOUR),
    "resnet20-gn": (lambda: ResNet(THIN, (3, 3, 3), norm=groups), COLOUR),
    "resnet18": (lambda: ResNet(WIDE, (2, 2, 2, 2)), COLOUR),
    "resnet18-gn": (lambda: ResNet(WIDE, (2, 2, 2, 2), norm=groups), COLOUR),
    "resnet34": (lambda: ResNet(WIDE, (3, 4, 6, 3), 100), COLOUR),
    "resnet34-gn": (lambda: ResNet(WIDE, (3, 4, 6, 3), 100, norm=groups), COLOUR),
}
