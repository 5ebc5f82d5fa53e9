#!/usr/bin/env python3
"""What SCAFFOLD does to one client's control variate if nothing else changes.

Takes the model and the variates of a run at one of its kept rounds, holds model and c fixed, and lets a client take part again and
again: it trains with g(y) - c_k + c from the same model, then c_k = c_k - c + (w - y) / r_k. A variate that estimates the client's
gradient settles; the table has the length of c_k after each time, for each of the variants below.

    results/scaffold/one_client.py RUN FASHION_MNIST --round 24 --round 36 --client 43 --out one-client.csv

It needs PyTorch, and a minute of one thread for small clients.
"""
import argparse, csv, sys
from pathlib import Path
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from scaffold_torch import BATCH, JOB, MODELS, flat, gradient, grey_images, key_at, key_of, partition, state, train

# Name, whether the incomplete batch is left out, learning rate, momentum, and the factor on c - c_k.
VARIANTS = [
    ("as in the run", False, 0.01, 0.9, 1.0),
    ("no incomplete batch", True, 0.01, 0.9, 1.0),
    ("no momentum", False, 0.01, 0.0, 1.0),
    ("no momentum, lr 0.1", False, 0.1, 0.0, 1.0),
    ("damping 0.9", False, 0.01, 0.9, 0.9),
    ("damping 0.5", False, 0.01, 0.9, 0.5),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("images")
    parser.add_argument("--round", type=int, action="append", required=True)
    parser.add_argument("--client", type=int, action="append", required=True)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="one-client.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    (images, labels), _ = grey_images(options.images)
    clients = [torch.tensor(rows) for rows in partition(options.run)]
    model = MODELS["lenet"][0]()
    w = flat(model)
    c = torch.zeros_like(w)
    with open(options.out, "w") as file:
        table = csv.writer(file, lineterminator="\n")
        after = [f"after_{n}" for n in range(options.times + 1)]
        table.writerow("round client variant size last_batch steps reach gradient norm_c".split() + after)
        for round in options.round:
            variates, _ = state(options.run, round, w, c)
            for k in options.client:
                for name, drop, options.lr, options.momentum, damping in VARIANTS:
                    rows = clients[k]
                    if drop and len(rows) > BATCH:
                        rows = rows[: len(rows) // BATCH * BATCH]
                    c_k, length = variates.get(k, torch.zeros_like(c)), gradient(model, w, images, labels, rows).norm()
                    lengths = [c_k.norm()]
                    for time in range(options.times):
                        correction = damping * (c - c_k)
                        key = key_at(key_of(options.seed), JOB, round + time, k)
                        y, steps, reach = train(model, w, correction, rows, images, labels, key, options)
                        c_k = (w - y) / reach - correction
                        lengths.append(c_k.norm())
                    table.writerow([round, k, name, len(rows), len(rows) % BATCH or BATCH, steps]
                                   + [f"{x:.4g}" for x in [reach, length, c.norm(), *lengths]])
                    file.flush()


if __name__ == "__main__":
    main()
