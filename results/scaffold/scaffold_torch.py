#!/usr/bin/env python3
"""SCAFFOLD in PyTorch, written a second time to find out whether what `fedtvd run` shows is the method or a bug.

Nothing is shared with the program but its random numbers: gradients are autograd's, steps are `torch.optim.SGD`'s, and the round is
written out below as in the paper (option II, variates of Karimireddy et al., ICML 2020). Initial model, cohorts and order of samples are
drawn from the seed by bench/streams.py; the split is read from a run directory, which also is what the result is compared with.

    fedtvd run base.toml --set strategy.name=scaffold --out RUN          (base.toml is beside this script)
    results/scaffold/scaffold_torch.py RUN FASHION_MNIST --rounds 120 --out NAME

writes NAME-rounds.csv (accuracy and loss of every n-th round, lengths of the variates, distance from the run's models) and
NAME-clients.csv (one line per client and round: what its variate was, and where it went). It needs PyTorch and takes one thread.
"""
import argparse, csv, sys
from pathlib import Path
import torch, torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from run_files import grey_images, partition, rounds, tensors
from streams import INIT, JOB, ORDER, Stream, key_at, key_of
from torch_models import MODELS

EPOCHS, BATCH = 4, 32


def initial(model, seed):
    """PyTorch's default distributions; a bias has its weight's bound."""
    for number, (name, tensor) in enumerate(model.named_parameters()):
        if name.endswith("weight"):
            bound = tensor[0].numel() ** -0.5
        stream = Stream(key_at(key_of(seed), INIT, 0, number))
        draws = [(2 * stream.unit() - 1) * bound for _ in range(tensor.numel())]
        tensor.data = torch.tensor(draws, dtype=torch.float64).float().reshape(tensor.shape)


def flat(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()


def load(model, vector):
    torch.nn.utils.vector_to_parameters(vector.clone(), model.parameters())


def gradient(model, w, images, labels, rows):
    """The gradient of the client's whole loss at w."""
    load(model, w)
    model.zero_grad()
    for part in rows.split(512):
        (F.cross_entropy(model(images[part]), labels[part], reduction="sum") / len(rows)).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def train(model, w, correction, rows, images, labels, key, options):
    """The client's model after its epochs, its number of steps, and how far a constant gradient of 1 would have moved it."""
    load(model, w)
    sgd = torch.optim.SGD(model.parameters(), options.lr, options.momentum)
    pieces = [piece.view_as(p) for piece, p in zip(correction.split([p.numel() for p in model.parameters()]), model.parameters())]
    reach, velocity, steps = 0.0, 0.0, 0
    for epoch in range(EPOCHS):
        order = rows.tolist()
        Stream(key_at(key, ORDER, 0, 0), epoch).shuffle(order)
        for batch in torch.tensor(order).split(BATCH):
            sgd.zero_grad()
            F.cross_entropy(model(images[batch]), labels[batch]).backward()
            for p, piece in zip(model.parameters(), pieces):
                p.grad += piece
            sgd.step()
            velocity = options.momentum * velocity + 1.0
            reach += options.lr * velocity
            steps += 1
    return flat(model), steps, reach


def evaluation(model, w, images, labels):
    load(model, w)
    with torch.no_grad():
        logits = torch.cat([model(part) for part in images.split(500)])
    return (logits.argmax(1) == labels).float().mean().item(), F.cross_entropy(logits, labels).item()


def apart(run, count, w, c):
    """Distance of model and c from the program's after this round, over their lengths, if the run has kept that state."""
    state = Path(run) / "checkpoint" / f"round-{count:06}" / "state.safetensors"
    if not state.exists():
        return ["", ""]
    theirs = tensors(state)
    pairs = [(w, theirs["model"]), (c, theirs["carried/control"])]
    return [f"{((mine - kept).norm() / kept.norm()).item():.3g}" for mine, kept in pairs]


def variate_apart(run, count, k, c_k):
    """Distance of a client's new variate from the program's, over its length, if the run has kept that state."""
    file = Path(run) / "checkpoint" / f"round-{count:06}" / f"client-{k}-round-{count - 1}.safetensors"
    if not file.exists():
        return ""
    kept = tensors(file)["memory/control"]
    return f"{((c_k - kept).norm() / kept.norm()).item():.3g}"


def state(run, count, w, c):
    """The program's model, c, every c_k and the round it is from, after this round."""
    folder = Path(run) / "checkpoint" / f"round-{count:06}"
    kept = tensors(folder / "state.safetensors")
    w.copy_(kept["model"]), c.copy_(kept["carried/control"])
    names = {file: file.stem.split("-") for file in folder.glob("client-*.safetensors")}
    variates = {int(name[1]): tensors(file)["memory/control"].to(c.dtype) for file, name in names.items()}
    return variates, {int(name[1]): int(name[3]) for name in names.values()}


def shares(weights, clients, labels):
    """Weights of these clients; their sum is 1."""
    sizes = torch.tensor([len(rows) for rows in clients], dtype=torch.float64)
    if weights == "uniform":
        sizes = torch.ones_like(sizes)
    by_size = sizes / sizes.sum()
    if weights != "fedtvd":
        return by_size
    counts = torch.stack([torch.bincount(labels[rows], minlength=10) for rows in clients]).double()
    tvd = (counts / counts.sum(1, keepdim=True) - 0.1).abs().sum(1) / 2
    return 0.5 * torch.softmax(-tvd, 0) + 0.5 * by_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run directory of fedtvd: its split and cohorts are used")
    parser.add_argument("images", help="folder of Fashion-MNIST's IDX files")
    parser.add_argument("--out", default="torch")
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--start", type=int, default=0, help="begin with the run's own state after this round, if it was kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=5, help="rounds between evaluations")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weights", choices=["uniform", "size", "fedtvd"], default="uniform", help="of the clients, in the model and in c")
    parser.add_argument("--double", action="store_true", help="compute in double precision, to see what rounding does")
    options = parser.parse_args()
    torch.set_num_threads(1)
    (images, labels), test = grey_images(options.images)
    clients = [torch.tensor(rows) for rows in partition(options.run)]
    lines = rounds(options.run)
    of_all = shares(options.weights, clients, labels)
    model = MODELS["lenet"][0]()
    initial(model, options.seed)
    if options.double:
        model, images, test = model.double(), images.double(), (test[0].double(), test[1])
    w = flat(model)
    c = torch.zeros_like(w)
    variates, learned = state(options.run, options.start, w, c) if options.start else ({}, {})
    with open(f"{options.out}-rounds.csv", "w") as per_round, open(f"{options.out}-clients.csv", "w") as per_client:
        table, detail = (csv.writer(file, lineterminator="\n") for file in (per_round, per_client))
        table.writerow("round accuracy loss run_accuracy run_loss model_apart c_apart norm_c mean_norm_ck identity".split())
        detail.writerow("round client size steps reach age gradient norm_ck error cosine correction push moved apart".split())
        for t in range(options.start, options.rounds):
            cohort = [client["client"] for client in lines[t]["clients"]]
            total, change = torch.zeros_like(w, dtype=torch.float64), torch.zeros_like(w, dtype=torch.float64)
            for k, share in zip(cohort, shares(options.weights, [clients[k] for k in cohort], labels)):
                old = variates.get(k, torch.zeros_like(c))
                correction = c - old
                g = gradient(model, w, images, labels, clients[k])
                key = key_at(key_of(options.seed), JOB, t, k)
                y, steps, reach = train(model, w, correction, clients[k], images, labels, key, options)
                new = (old.double() - c.double() + (w.double() - y.double()) / reach).to(w.dtype)
                total += share * (y.double() - w.double())
                change += of_all[k] * (new.double() - old.double())
                detail.writerow([t + 1, k, len(clients[k]), steps] + [f"{x:.5g}" for x in (
                    reach, t - learned[k] if k in learned else -1, g.norm(), old.norm(), (old - g).norm(),
                    F.cosine_similarity(old, g, 0), correction.norm(), reach * correction.norm(), (y - w).norm())] + [variate_apart(options.run, t + 1, k, new)])
                variates[k], learned[k] = new, t
            w, c = (w.double() + total).to(w.dtype), (c.double() + change).to(c.dtype)
            mean = sum(of_all[k] * v.double() for k, v in variates.items())
            measured = evaluation(model, w, *test) if (t + 1) % options.every == 0 or t < 3 else ("", "")
            norms = [c.norm().item(), sum(v.norm().item() for v in variates.values()) / len(variates),
                     ((c.double() - mean).norm() / mean.norm()).item()]
            table.writerow([t + 1, *measured, lines[t]["accuracy"], lines[t]["loss"], *apart(options.run, t + 1, w, c)]
                           + [f"{x:.5g}" for x in norms])
            per_round.flush(), per_client.flush()


if __name__ == "__main__":
    main()
