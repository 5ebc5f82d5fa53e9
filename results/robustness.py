#!/usr/bin/env python3
"""Keeps the runs of results/robustness.sh and makes the attack table of them. It needs Python 3.11 alone.

    results/robustness.py add RUNS OUT         adds the finished runs of a folder to OUT/runs.csv, and writes OUT/table.md
    results/robustness.py complete SEED ALPHA OUT    exits with 0 if OUT/runs.csv has all runs of a seed and skew
"""
import collections
import csv
import json
import pathlib
import statistics
import sys
import tomllib

# A rule counts as broken at this many points below itself without liars, and below twice the accuracy of guessing.
BROKEN, USELESS = 10.0, 20.0
HARDENED = "fedtvd, hardened"

Run = collections.namedtuple("Run", "alpha attack liars rule seed accuracy collapsed")


def made(folder):
    """The lines of runs.csv for the finished runs of a sweep's folder."""
    for summary in sorted(pathlib.Path(folder).glob("*/summary.json")):
        config = tomllib.loads((summary.parent / "config.toml").read_text())
        result = json.loads(summary.read_text())
        attack, strategy = config["attack"], config["strategy"]
        liars = 0 if attack["kind"] == "none" else attack["clients"]
        rule = HARDENED if strategy["mode"] == "hardened" else strategy["name"]
        accuracy = 100 * (result["last10_accuracy"] or 0.0)
        yield Run(config["split"]["alpha"], attack["kind"], liars, rule, config["seed"], round(accuracy, 2),
                  int(result["collapsed"] is not None))


def kept(out):
    """The runs of runs.csv."""
    file = pathlib.Path(out) / "runs.csv"
    if not file.exists():
        return set()
    with open(file, newline="") as lines:
        rows = csv.reader(lines)
        next(rows)
        return {Run(float(alpha), kind, int(liars), rule, int(seed), float(accuracy), int(collapsed))
                for alpha, kind, liars, rule, seed, accuracy, collapsed in rows}


def by_cell(runs):
    """Accuracies by alpha, attack, liars and rule, one per seed, with whether the run collapsed."""
    cells = {}
    for run in runs:
        cells.setdefault(run[:4], {})[run.seed] = (run.accuracy, bool(run.collapsed))
    return cells


def plan(out):
    """The axes of the sweep: skews, rules, attacks, seeds."""
    sweep = tomllib.loads((pathlib.Path(out) / "sweep.toml").read_text())["sweep"]
    rules = [HARDENED if s.get("mode") == "hardened" else s["name"] for s in sweep["strategy"]]
    kinds = list(dict.fromkeys(attack["kind"] for attack in sweep["attack"] if attack["kind"] != "none"))
    scales = {attack["kind"]: attack.get("scale") for attack in sweep["attack"]}
    return [split["alpha"] for split in sweep["split"]], rules, kinds, scales, len(sweep["seed"])


def mean(runs):
    return statistics.mean(accuracy for accuracy, _ in runs.values())


def difference(runs, base):
    """The mean difference over the seeds that both have; None if there are none."""
    shared = [runs[seed][0] - base[seed][0] for seed in runs if seed in base]
    return statistics.mean(shared) if shared else None


def cell(runs, clean, seeds):
    """The mean accuracy; bold where the rule is broken, with the number of seeds where some are missing."""
    if not runs:
        return ""
    text = f"{mean(runs):.1f}"
    if mean(runs) < USELESS or (difference(runs, clean) or 0.0) < -BROKEN:
        text = f"**{text}**"
    return text if len(runs) == seeds else f"{text} ({len(runs)})"


def heading(rules):
    names = [rule.removeprefix("fedtvd+").split(":")[0].replace("fedtvd, ", "") for rule in rules]
    return "| attack | liars | " + " | ".join(names) + " |\n|---|--:|" + "--:|" * len(rules) + "\n"


def table(cells, alpha, rules, kinds, scales, seeds):
    text = heading(rules)
    clean = {rule: cells.get((alpha, "none", 0, rule), {}) for rule in rules}
    text += "| none | 0 | " + " | ".join(cell(clean[rule], {}, seeds) for rule in rules) + " |\n"
    costs = [difference(clean[rule], clean[rules[0]]) for rule in rules[1:]]
    text += "| cost of the rule | 0 | | " + " | ".join("" if c is None else f"{c:+.1f}" for c in costs) + " |\n"
    for kind in kinds:
        name = f"{kind} ({scales[kind]:g})" if scales[kind] else kind
        for liars in (1, 2, 3):
            row = [cell(cells.get((alpha, kind, liars, rule), {}), clean[rule], seeds) for rule in rules]
            text += f"| {name} | {liars} | " + " | ".join(row) + " |\n"
    return text


def write(runs, out):
    with open(pathlib.Path(out) / "runs.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Run._fields)
        writer.writerows(sorted(runs))


def write_table(runs, out):
    cells, (alphas, rules, kinds, scales, seeds) = by_cell(runs), plan(out)
    total = per_slice(out) * len(alphas) * seeds
    text = f"""# Attacks and robust rules

Accuracy in per cent, the mean of the last 10 of 60 rounds and of {seeds} seeds, on the embedded subset of Fashion-MNIST: ten clients, all
in every round, one local epoch, weights of FedTVD. `fedtvd` is the weighted mean; hardened is the same with capped weights and screened
norms; the others are robust rules in paper mode, set for three liars where they take a number. Bold: the rule is broken, more than
{BROKEN:.0f} points below itself without liars, or below {USELESS:.0f} per cent, twice the accuracy of guessing. The cost of a rule is its
accuracy without liars minus that of the mean. Numbers in parentheses behind an attack are `attack.scale` where it is not the default;
behind an accuracy, the number of seeds that are done.

{len(runs)} of {total} runs are done. Generated by `results/robustness.sh` from [sweep.toml](sweep.toml); [runs.csv](runs.csv) has every
run. [README.md](README.md) says what follows.
"""
    for alpha in alphas:
        text += f"\n## alpha {alpha:g}\n\n" + table(cells, alpha, rules, kinds, scales, seeds)
    (pathlib.Path(out) / "table.md").write_text(text)


def per_slice(out):
    """Runs of one seed and skew."""
    _, rules, kinds, _, _ = plan(out)
    return len(rules) * (1 + 3 * len(kinds))


def main():
    match sys.argv[1:]:
        case ["complete", seed, alpha, out]:
            done = sum((run.seed, run.alpha) == (int(seed), float(alpha)) for run in kept(out))
            sys.exit(done < per_slice(out))
        case ["add", folder, out]:
            runs = {run[:5]: run for run in [*kept(out), *made(folder)]}.values()
            write(runs, out)
            write_table(runs, out)
        case _:
            sys.exit(__doc__)


main()
