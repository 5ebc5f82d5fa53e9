#!/usr/bin/env python3
"""The numbers of README.md beside those of the reports: windows of rounds, rounds to a target seed by seed, and paired
differences between any two strategies, with Student's t intervals. It needs Python 3 alone.

    results/differences.py skew [BASE…]        differences to fedavg unless bases are named
"""
import csv
import math
import pathlib
import statistics
import sys

# 97.5 % quantiles of Student's t from one degree of freedom on.
T = [12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157]


def settings(name):
    """Accuracies in per cent by setting, strategy and seed."""
    found = {}
    with open(pathlib.Path(__file__).parent / name / "curves.csv") as lines:
        for setting, strategy, seed, *accuracy in list(csv.reader(lines))[1:]:
            curve = [100 * float(a) for a in accuracy if a]
            found.setdefault(setting, {}).setdefault(strategy, {})[int(seed)] = curve
    return found


def window(first, last):
    return lambda curve: statistics.mean(curve[first - 1 : last])


def rounds_to(target):
    """The first round at which the mean of ten rounds, this and those before it, reaches a target; one more than
    there are where it never does."""

    def rounds(curve):
        means = (statistics.mean(curve[end - 10 : end]) for end in range(10, len(curve) + 1))
        return next((end for end, mean in enumerate(means, 10) if mean >= target), len(curve) + 1)

    return rounds


MEASURES = {
    "last 10": lambda curve: statistics.mean(curve[-10:]),
    "last 50": lambda curve: statistics.mean(curve[-50:]),
    "11 to 30": window(11, 30),
    "to 80 %": rounds_to(80),
    "to 85 %": rounds_to(85),
}


def interval(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:+.2f}"
    half = T[len(values) - 2] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"


def main(name, bases):
    for setting, strategies in settings(name).items():
        print(f"\n# {name} {setting}")
        for measure, of in MEASURES.items():
            print(f"\n{measure}")
            value = {s: {seed: of(curve) for seed, curve in runs.items()} for s, runs in strategies.items()}
            for strategy, seeds in value.items():
                line = f"  {strategy:28}{statistics.mean(seeds.values()):8.2f}"
                for base in bases:
                    if base in value and base != strategy:
                        pairs = [seeds[seed] - value[base][seed] for seed in seeds if seed in value[base]]
                        wins = sum(pair > 0 for pair in pairs)
                        line += f"   {base} {interval(pairs)} {wins}/{len(pairs)}"
                print(line)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["fedavg"])
