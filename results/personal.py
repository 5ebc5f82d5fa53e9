#!/usr/bin/env python3
"""Keeps the runs of results/personal.sh and makes the table of them. It needs Python 3.11 alone.

    results/personal.py slice SEED SPLIT OUT       prints the part of OUT/sweep.toml with this seed and kind of split
    results/personal.py add RUNS OUT               adds the finished runs of a folder to OUT/runs.csv, and writes OUT/table.md
    results/personal.py complete SEED SPLIT OUT    exits with 0 if OUT/runs.csv has all runs of a seed and kind of split
"""
import collections
import csv
import json
import pathlib
import re
import statistics
import sys
import tomllib

NAMES = {"dirichlet": "Dirichlet alpha 0.1", "labels": "two labels per client"}

# Of all clients' accuracies, in per cent: mean, standard deviation, mean of the worst tenth; and the shared model's on the test set.
Run = collections.namedtuple("Run", "split strategy seed round mean deviation worst shared")


def made(folder):
    """The lines of runs.csv for the finished runs of a sweep's folder, one for each judged round."""
    for summary in sorted(pathlib.Path(folder).glob("*/summary.json")):
        config = tomllib.loads((summary.parent / "config.toml").read_text())
        for line in (summary.parent / "rounds.jsonl").read_text().splitlines():
            record = json.loads(line)
            # The models that clients use: their own, or without such models the shared one.
            judged = record.get("personal") or record.get("validation")
            if judged is None:
                continue
            clients = judged["clients"]
            spread = [round(100 * clients[part], 2) for part in ("mean", "deviation", "worst_decile")]
            accuracy = record.get("accuracy")
            shared = "" if accuracy is None else round(100 * accuracy, 2)
            yield Run(config["split"]["kind"], config["strategy"]["name"], config["seed"], record["round"], *spread, shared)


def kept(out):
    """The runs of runs.csv."""
    file = pathlib.Path(out) / "runs.csv"
    if not file.exists():
        return []
    with open(file, newline="") as lines:
        rows = csv.reader(lines)
        next(rows)
        return [Run(split, strategy, int(seed), int(at), *map(float, spread), float(shared) if shared else "")
                for split, strategy, seed, at, *spread, shared in rows]


def plan(out):
    """The axes of the sweep, and its last round."""
    config = tomllib.loads((pathlib.Path(out) / "sweep.toml").read_text())
    sweep = config["sweep"]
    return [split["kind"] for split in sweep["split"]], sweep["strategy.name"], sweep["seed"], config["rounds"]


def slice_of(seed, split, out):
    """The sweep with one seed and one split."""
    text = (pathlib.Path(out) / "sweep.toml").read_text()
    (own,) = re.findall(r'\{ kind = "%s"[^}]*\}' % re.escape(split), text)
    text = re.sub(r"(?m)^seed = .*$", f"seed = [{int(seed)}]", text)
    return re.sub(r"(?m)^split = .*$", lambda _: f"split = [{own}]", text)


def figures(runs):
    """Mean over seeds with its standard deviation, for each column."""
    def shown(values):
        values = [value for value in values if value != ""]
        if not values:
            return "–"
        spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.1f}{spread}"
    return [shown([getattr(run, column) for run in runs]) for column in ("mean", "deviation", "worst", "shared")]


def table(runs, split, strategies, seeds, last):
    text = "| strategy | clients' accuracy | deviation over clients | worst tenth | shared model, test set |\n|---|--:|--:|--:|--:|\n"
    for strategy in strategies:
        own = [run for run in runs if (run.split, run.strategy, run.round) == (split, strategy, last)]
        done = "" if len(own) == len(seeds) else f" ({len(own)} of {len(seeds)} seeds)"
        text += f"| `{strategy}`{done} | " + " | ".join(figures(own)) + " |\n"
    return text


def curve(runs, split, strategies):
    """Mean accuracy over clients in each judged round."""
    rounds = sorted({run.round for run in runs})
    text = "| strategy | " + " | ".join(f"round {at}" for at in rounds) + " |\n|---|" + "--:|" * len(rounds) + "\n"
    for strategy in strategies:
        cells = [[run.mean for run in runs if run[:2] == (split, strategy) and run.round == at] for at in rounds]
        text += f"| `{strategy}` | " + " | ".join(f"{statistics.mean(c):.1f}" if c else "" for c in cells) + " |\n"
    return text


def write(runs, out):
    with open(pathlib.Path(out) / "runs.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Run._fields)
        writer.writerows(sorted(runs, key=lambda run: run[:4]))


def write_table(runs, out):
    splits, strategies, seeds, last = plan(out)
    done, total = sum(run.round == last for run in runs), len(splits) * len(strategies) * len(seeds)
    text = f"""# Models for each client

Accuracy in per cent on what each of 100 clients holds out (a fifth of its samples of Fashion-MNIST), after {last} rounds with ten clients each:
of the model that the client uses itself, or of the shared one where there is no other. Mean over clients, standard deviation over clients,
and mean of the worst tenth of the clients; each the mean of {len(seeds)} seeds with its standard deviation. The last column is the shared model on the
balanced test set, if there is a shared model.

{done} of {total} runs are done. Generated by `results/personal.sh` from [sweep.toml](sweep.toml); [runs.csv](runs.csv) has every judged round.
"""
    for split in splits:
        text += f"\n## {NAMES[split]}\n\n" + table(runs, split, strategies, seeds, last)
        text += "\nClients' accuracy, mean over clients and seeds:\n\n" + curve(runs, split, strategies)
    (pathlib.Path(out) / "table.md").write_text(text)


def main():
    match sys.argv[1:]:
        case ["slice", seed, split, out]:
            print(slice_of(seed, split, out), end="")
        case ["complete", seed, split, out]:
            _, strategies, _, last = plan(out)
            done = {run.strategy for run in kept(out) if (run.seed, run.split, run.round) == (int(seed), split, last)}
            sys.exit(not done.issuperset(strategies))
        case ["add", folder, out]:
            runs = list({run[:4]: run for run in [*kept(out), *made(folder)]}.values())
            write(runs, out)
            write_table(runs, out)
        case _:
            sys.exit(__doc__)


main()
