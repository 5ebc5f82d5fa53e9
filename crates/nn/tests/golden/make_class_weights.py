"""PyTorch's weighted and smoothed cross-entropy: python make_class_weights.py > class_weights.json

Offsets are added to the logits, as the balanced loss does; `sum` is the sum of the losses, `loss` is
CrossEntropyLoss(weight=w, label_smoothing=s), and
`gradient` is that of `loss` with respect to the logits.
"""
import json
import torch

LOGITS = [[1.0, 2.0, 0.5, -1.0], [0.0, 0.25, -0.75, 3.0], [-2.0, 1.0, 1.0, 0.5], [0.5, -0.5, 4.0, 0.25], [1.5, 0.125, -3.0, 0.75]]
LABELS = [1, 3, 2, 1, 0]
NONE = [0.0, 0.0, 0.0, 0.0]
CASES = {
    "equal": ([1.0, 1.0, 1.0, 1.0], NONE, 0.0),
    "costs": ([1.0, 5.0, 0.25, 2.0], NONE, 0.0),
    "a class without weight": ([0.0, 1.5, 1.5, 0.75], NONE, 0.0),
    "with offsets": ([0.5, 4.0, 1.0, 8.0], [-1.5, 0.25, 0.0, 2.0], 0.0),
    "smoothed": ([1.0, 1.0, 1.0, 1.0], NONE, 0.125),
    "smoothed costs": ([1.0, 5.0, 0.25, 2.0], NONE, 0.1),
    "smoothed, a class without weight": ([0.0, 1.5, 1.5, 0.75], NONE, 0.3),
    "smoothed with offsets": ([0.5, 4.0, 1.0, 8.0], [-1.5, 0.25, 0.0, 2.0], 0.25),
}


def case(weights, offsets, smoothing):
    logits = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    labels, weights = torch.tensor(LABELS), torch.tensor(weights, dtype=torch.float64)
    shifted = logits + torch.tensor(offsets, dtype=torch.float64)
    loss = torch.nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing)(shifted, labels)
    total = torch.nn.CrossEntropyLoss(weight=weights, label_smoothing=smoothing, reduction="sum")(shifted, labels)
    loss.backward()
    return {"weights": weights.tolist(), "offsets": offsets, "smoothing": smoothing, "sum": total.item(), "loss": loss.item(), "gradient": logits.grad.tolist()}


print(json.dumps({"logits": LOGITS, "labels": LABELS, "cases": {name: case(*terms) for name, terms in CASES.items()}}, indent=1))
