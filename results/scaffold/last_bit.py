#!/usr/bin/env python3
"""How far rounding alone moves a client's new control variate: the starting model is changed by about one unit in the last place.

    results/scaffold/last_bit.py RUN FASHION_MNIST > last-bit.csv        (a run of `scaffold` over 10 rounds)

Clients 72, 78, 38, 68 and 90 are those that differ most between PyTorch and the program in agreement.csv, the others some that agree.
"""
import csv, sys, types
from pathlib import Path
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from scaffold_torch import JOB, MODELS, flat, grey_images, key_at, key_of, partition, state, train

run, folder = sys.argv[1:]
torch.set_num_threads(1)
torch.manual_seed(0)
options = types.SimpleNamespace(lr=0.01, momentum=0.9)
(images, labels), _ = grey_images(folder)
clients = [torch.tensor(rows) for rows in partition(run)]
model = MODELS["lenet"][0]()
w = flat(model)
c = torch.zeros_like(w)
table = csv.writer(sys.stdout, lineterminator="\n")
table.writerow("round client try_1 try_2 try_3 try_4".split())
for before, chosen in ((1, (72, 78, 87, 21)), (2, (38, 81)), (7, (68, 90, 54))):
    variates, _ = state(run, before, w, c)
    for k in chosen:
        old = variates.get(k, torch.zeros_like(c))

        def variate(start):
            key = key_at(key_of(1), JOB, before, k)
            y, _, reach = train(model, start, c - old, clients[k], images, labels, key, options)
            return old.double() - c.double() + (start.double() - y.double()) / reach

        exact = variate(w)
        moved = [variate(w * (1 + 6e-8 * torch.randn_like(w))) for _ in range(4)]
        table.writerow([before + 1, k] + [f"{((c_k - exact).norm() / exact.norm()).item():.1e}" for c_k in moved])
