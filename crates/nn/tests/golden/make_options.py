"""20 training steps of `lenet` in PyTorch with each option of local training: python make_options.py > options.json

Weights, images, labels and batches are those of make_training.py. Each step is a round of its own with one batch, and the
optimiser's state is kept, so that PyTorch's schedulers step beside ours. "losses" are those of each step, with offsets, class
weights and smoothing; "lrs" the learning rate of each step; "clipped" the number of clipped steps; "tensors" sum, sum of absolute values and every 997th entry of each
trained tensor. "nudged" is what rounding alone does: the largest relative difference of a loss or of a tensor's sum of absolute
values between PyTorch and PyTorch with every third of the initial weights one bit larger, three times with other thirds.
"""
import json, math
import torch, torch.nn as nn
from make_training import fill, rows_of
from torch_models import MODELS

STEPS, BATCH, CLASSES = 20, 8, 10
WEIGHTS = [0.5, 2.0, 1.0, 4.0, 0.25, 1.0, 3.0, 1.5, 0.75, 1.0]
OFFSETS = [0.5, -1.0, 0.0, 0.25, 1.5, -0.5, 0.0, 1.0, -2.0, 0.75]

SGD = {"lr": 0.01, "momentum": 0.9}
ADAM = {"lr": 0.001, "betas": (0.9, 0.999), "eps": 1e-8}
CASES = {
    "adam": dict(adam=ADAM),
    "adam with other settings": dict(adam={"lr": 0.002, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1}),
    "adamw": dict(adamw={**ADAM, "weight_decay": 0.1}),
    "clipped sgd": dict(sgd=SGD, clip=0.4),
    "clipped adamw with a proximal term": dict(adamw={**ADAM, "weight_decay": 0.1}, clip=0.4, mu=0.5),
    "clipped sgd with a push": dict(sgd={**SGD, "weight_decay": 0.01}, clip=0.4, push=True),
    "smoothed": dict(sgd=SGD, smoothing=0.1),
    "smoothed with class weights": dict(sgd=SGD, smoothing=0.1, weights=WEIGHTS),
    "smoothed with class weights and offsets": dict(sgd=SGD, smoothing=0.2, weights=WEIGHTS, offsets=OFFSETS),
    "all together": dict(adamw={**ADAM, "weight_decay": 0.01}, clip=0.5, smoothing=0.1, weights=WEIGHTS, offsets=OFFSETS,
                         warmup=3, cosine=(20, 0.1)),
    "constant": dict(sgd=SGD),
    "exponential": dict(sgd=SGD, exponential=0.9),
    "step": dict(sgd=SGD, step=(6, 0.5)),
    "cosine": dict(sgd=SGD, cosine=(20, 0.0)),
    "cosine with a floor": dict(sgd=SGD, cosine=(30, 0.2)),
    "warm-up": dict(sgd=SGD, warmup=5),
    "warm-up, then exponential": dict(sgd=SGD, warmup=4, exponential=0.8),
    "warm-up, then step": dict(sgd=SGD, warmup=4, step=(5, 0.3)),
    "warm-up, then cosine": dict(sgd=SGD, warmup=4, cosine=(24, 0.05)),
}


def optimizer(model, case):
    for word, kind in [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]:
        if word in case:
            return kind(model.parameters(), **case[word])


def schedule(optim, case):
    schedulers = torch.optim.lr_scheduler
    lr, warmup = optim.param_groups[0]["lr"], case.get("warmup", 0)
    if "exponential" in case:
        decay = lambda: schedulers.ExponentialLR(optim, case["exponential"])
    elif "step" in case:
        decay = lambda: schedulers.StepLR(optim, *case["step"])
    elif "cosine" in case:
        rounds, floor = case["cosine"]
        decay = lambda: schedulers.CosineAnnealingLR(optim, rounds - warmup, floor * lr)
    else:
        decay = lambda: schedulers.LambdaLR(optim, lambda round: 1.0)
    if warmup == 0:
        return decay()
    linear = schedulers.LinearLR(optim, 1 / (warmup + 1), 1.0, warmup)
    return schedulers.SequentialLR(optim, [linear, decay()], [warmup])


def train(case, nudged=None):
    make, shape = MODELS["lenet"]
    model = make()
    fill(model, nudged)
    start = [p.detach().clone() for p in model.parameters()]
    # (i % 5) / 50 - 0.04 over all parameters in a row, as a correction by control variates would be.
    places = torch.arange(sum(p.numel() for p in start)) % 5
    pushes = (places.float() / 50 - 0.04).split([p.numel() for p in start])
    optim = optimizer(model, case)
    scheduler = schedule(optim, case)
    weights = torch.tensor(case["weights"]) if "weights" in case else None
    loss_of = nn.CrossEntropyLoss(weight=weights, label_smoothing=case.get("smoothing", 0.0))
    offsets = torch.tensor(case.get("offsets", [0.0] * CLASSES))
    losses, lrs, clipped = [], [], 0
    for step in range(STEPS):
        x, y = rows_of(step * BATCH % 64, BATCH, shape, CLASSES)
        optim.zero_grad()
        loss = loss_of(model(x) + offsets, y)
        pull = sum(((p - anchor) ** 2).sum() for p, anchor in zip(model.parameters(), start))
        (loss + case.get("mu", 0.0) / 2 * pull).backward()
        if "clip" in case:
            norm = nn.utils.clip_grad_norm_(model.parameters(), case["clip"])
            clipped += int(norm > case["clip"])
        if "push" in case:
            for p, push in zip(model.parameters(), pushes):
                p.grad += push.reshape(p.shape)
        lrs.append(optim.param_groups[0]["lr"])
        optim.step()
        scheduler.step()
        losses.append(loss.item())
    tensors = {}
    for name, tensor in model.state_dict().items():
        flat = tensor.double().flatten()
        tensors[name] = {"sum": flat.sum().item(), "abs": flat.abs().sum().item(), "some": flat[::997].tolist()}
    return losses, lrs, tensors, clipped


def difference(one, other):
    losses = zip(one[0], other[0])
    tensors = ((one[2][name]["abs"], other[2][name]["abs"]) for name in one[2])
    return max(abs(a - b) / abs(a) for a, b in [*losses, *tensors])


def row(name, case):
    run = train(case)
    nudged = max(difference(run, train(case, third)) for third in range(3))
    losses, lrs, tensors, clipped = run
    return {"name": name, **case, "losses": losses, "lrs": lrs, "clipped": clipped, "nudged": nudged, "tensors": tensors}


if __name__ == "__main__":
    torch.set_num_threads(1)
    text = ",\n".join(json.dumps(row(name, case)) for name, case in CASES.items())
    print(f'{{"torch": "{torch.__version__}", "runs": [\n{text}\n]}}')
