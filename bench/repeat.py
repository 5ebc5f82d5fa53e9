"""Repeats three rounds in PyTorch, each from fedtvd's global model before it; called by repeat.sh, which explains it.

Everything random is drawn a second time here from the seed (initial model, cohort, order of samples); split and weights
are read from the run directory.
"""
import argparse, hashlib, json, math, subprocess, sys
from pathlib import Path
import torch, torch.nn.functional as F
from run_files import grey_images, partition, rounds, tensors
from streams import COHORT, INIT, JOB, ORDER, Stream, key_at, key_of
from torch_models import MODELS

ROUNDS, BATCH, LR, MOMENTUM, BOUND = 3, 32, 0.01, 0.9, 1e-5


def initial(model, seed):
    """PyTorch's distributions; every tensor draws from its own stream, and a bias has its weight's bound."""
    values = {}
    for number, (name, like) in enumerate(model.named_parameters()):
        if name.endswith("weight"):
            bound = 1 / math.sqrt(like[0].numel())
        stream = Stream(key_at(key_of(seed), INIT, 0, number))
        draws = [(2 * stream.unit() - 1) * bound for _ in range(like.numel())]
        values[name] = torch.tensor(draws, dtype=torch.float64).float().reshape(like.shape)
    return values


def cohort(seed, round, clients, size):
    drawn = list(range(clients))
    Stream(key_at(key_of(seed), COHORT, round, 0)).shuffle(drawn)
    return sorted(drawn[:size])


def train(model, start, rows, images, labels, seed, round, client):
    """One epoch of a client: a new momentum, and a last batch of what is left."""
    model.load_state_dict(start)
    model.train()
    sgd = torch.optim.SGD(model.parameters(), LR, MOMENTUM)
    order = list(rows)
    job = key_at(key_of(seed), JOB, round, client)
    Stream(key_at(job, ORDER, 0, 0), 0).shuffle(order)
    total = 0.0
    for batch in torch.tensor(order).split(BATCH):
        sgd.zero_grad()
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        sgd.step()
        total += loss.item() * len(batch)
    return total / len(order)


def hash_of(model, values):
    """The hash of a global model in rounds.jsonl: of the tensors' hashes, in the model's order."""
    whole = hashlib.sha256()
    for name in model.state_dict():
        whole.update(hashlib.sha256(bytes(values[name].contiguous().view(torch.uint8).flatten().tolist())).digest())
    return whole.hexdigest()


def flat(values, names):
    return torch.cat([values[name].double().flatten() for name in names])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = MODELS["lenet"][0]()
    names = list(model.state_dict())
    (images, labels), _ = grey_images("crates/data/fmnist-mini")
    for count in range(1, ROUNDS + 1):
        subprocess.run(
            [options.binary, "run", "--quiet", "--out", options.folder / str(count), "--set", f"rounds={count}",
             "--set", f"seed={options.seed}", "--set", "local.epochs=1"], check=True, stdout=subprocess.DEVNULL)
    longest = options.folder / str(ROUNDS)
    clients, lines = partition(longest), rounds(longest)
    say = (lambda row, text: print(json.dumps(row), flush=True)) if options.json else (lambda row, text: print(text, flush=True))
    say({"check": "split", "hash_agrees": True}, f"split: {len(clients)} clients, hash agrees")
    before, good = initial(model, options.seed), True
    for round, line in enumerate(lines):
        asked = [client["client"] for client in line["clients"]]
        same_cohort = asked == cohort(options.seed, round, len(clients), len(clients) // 10)
        ours = tensors(options.folder / str(round + 1) / "model.safetensors")
        same_hash = hash_of(model, ours) == line["model_hash"]
        after = {name: torch.zeros_like(before[name], dtype=torch.float64) for name in names}
        loss = 0.0
        for client in line["clients"]:
            mean = train(model, before, clients[client["client"]], images, labels, options.seed, round, client["client"])
            loss = max(loss, abs(mean - client["first_loss"]) / client["first_loss"])
            for name, value in model.state_dict().items():
                after[name] += client["weight"] * value.double()
        after = {name: value.float() for name, value in after.items()}
        theirs, mine, start = flat(after, names), flat(ours, names), flat(before, names)
        apart = torch.linalg.norm(theirs - mine)
        difference, of_step = (apart / torch.linalg.norm(mine)).item(), (apart / torch.linalg.norm(mine - start)).item()
        passed = same_cohort and same_hash and difference <= BOUND
        good &= passed
        say({"check": "round", "round": round + 1, "clients": len(asked), "difference": difference, "of_the_step": of_step,
             "loss_difference": loss, "cohort_agrees": same_cohort, "hash_agrees": same_hash, "bound": BOUND, "passed": passed},
            f"round {round + 1}: relative L2 difference {difference:.1e} of the model (bound {BOUND:.0e}), {of_step:.1e} of the "
            f"round's step; clients' losses within {loss:.1e}; cohort {'agrees' if same_cohort else 'DIFFERS'}, "
            f"hash {'agrees' if same_hash else 'DIFFERS'}")
        before = ours
    say({"check": "verdict", "passed": good}, "passed: PyTorch repeats our rounds" if good else "FAILED: PyTorch comes to other models")
    sys.exit(0 if good else 1)


main()
