"""Times fedtvd's kernels and PyTorch in turn; called by kernels.sh, which explains the arguments.

Times are seconds on the core, which neighbours on a busy machine lengthen less than seconds on the clock; with one
thread on an idle core both are the same.
"""
import argparse, json, subprocess, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch_models import MODELS

SECONDS = 1.5


def flops(model, shape):
    """Of one image: forward, and a whole training step (the first layer needs no gradient of its input)."""
    counts = []

    def count(module, inputs, output):
        per_output = module.weight[0].numel()
        counts.append(2 * output[0].numel() * per_output)

    hooks = [m.register_forward_hook(count) for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    model.eval()
    with torch.no_grad():
        model(torch.zeros(1, *shape))
    for hook in hooks:
        hook.remove()
    return sum(counts), 3 * sum(counts) - counts[0]


def torch_pass(model, shape, training):
    x, y = torch.randn(32, *shape), torch.randint(0, 10, (32,))
    sgd = torch.optim.SGD(model.parameters(), 0.001, 0.9)

    def train():
        sgd.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sgd.step()

    def evaluate():
        with torch.no_grad():
            logits = model(x)
            return F.cross_entropy(logits, y, reduction="sum").item(), logits.argmax(1)

    model.train(training)
    return train if training else evaluate


def torch_ms(work):
    work()
    start = time.perf_counter()
    work()
    times = max(1, int(SECONDS / 6 / (time.perf_counter() - start)))
    best, begin = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - begin < SECONDS:
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=4)
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if not options.json:
        print("model      pass   PyTorch ms   fedtvd ms   ratio   GFLOP/s   images/s")
    for name in options.models or ["lenet", "lenet5", "cnn", "resnet8", "resnet18"]:
        make, shape = MODELS[name]
        model = make()
        forward, step = flops(model, shape)
        for kind, work in (("train", step), ("eval", forward)):
            theirs = ours = float("inf")
            run = torch_pass(model, shape, kind == "train")
            for _ in range(options.repeat):
                theirs = min(theirs, torch_ms(run))
                out = subprocess.run([options.binary, kind, name, str(SECONDS)], check=True, capture_output=True)
                ours = min(ours, float(out.stdout))
            row = {"model": name, "pass": kind, "torch_ms": round(theirs, 4), "fedtvd_ms": round(ours, 4),
                   "ratio": round(theirs / ours, 2), "gflops": round(32 * work / ours / 1e6, 1)}
            if options.json:
                print(json.dumps(row), flush=True)
            else:
                print(f"{name:10} {kind:5} {theirs:11.3f} {ours:11.3f} {theirs / ours:7.2f} {row['gflops']:9.1f} {32e3 / ours:10.0f}", flush=True)


main()
