"""Makes statistics.json with SciPy and statsmodels: python make_statistics.py > statistics.json

Each case is a list of paired differences; their intervals, test and bootstrap are SciPy's. The bootstrap distribution
is drawn here and kept in the file, so that the interval which SciPy makes of it can be compared to the last digits.
Corrections for several comparisons are those of statsmodels. The tables are whole comparisons of several strategies: each
has the interval of every difference at the level 1 - 0.05 / m and its corrected p-values. In `shared_test_set` a standard
error over test rows is added; NumPy also draws it by a paired bootstrap over rows, and SciPy's t gives interval and p for the
combined error.
"""

import json
import sys

import numpy as np
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

CASES = {
    "three seeds": [0.047, 0.031, 0.062],
    "five seeds": [0.013, -0.004, 0.021, 0.008, 0.002],
    "six seeds": [0.071, 0.093, 0.102, 0.065, 0.088, 0.079],
    "seven seeds, skewed": [0.001, 0.002, 0.0015, -0.003, 0.0005, 0.04, 0.0021],
    "ten seeds around nothing": [0.01, -0.012, 0.004, -0.003, 0.008, -0.009, 0.002, 0.0001, -0.0052, 0.0061],
    "twelve seeds, tiny p": [0.2 + 0.001 * k for k in range(12)],
}
P = [[0.01, 0.04, 0.03, 0.005], [0.6, 0.5, 0.9], [0.001], [0.02, 0.02, 0.02], []]


LEVELS = [0.9, 0.95, 1 - 0.05 / 3, 0.99]
TABLES = [
    [[0.047, 0.003, 0.091]],
    [[0.03, 0.05, 0.04, 0.01], [-0.02, 0.02, -0.02, 0.02], [0.02, -0.02, 0.02, -0.02]],
    [[0.011, 0.012, 0.009, 0.013, 0.010], [0.004, -0.001, 0.006, 0.002, 0.003], [-0.03, -0.01, -0.04, -0.02, -0.05]],
]


def corrected(p, method):
    return multipletests(p, alpha=0.05, method=method)[1].tolist() if p else []


def table(lists):
    level = 1 - 0.05 / len(lists)
    tests = [stats.ttest_1samp(values, 0.0) for values in lists]
    p = [float(test.pvalue) for test in tests]
    return {
        "differences": lists,
        "intervals": [[float(end) for end in test.confidence_interval(level)] for test in tests],
        "p": p,
        "bonferroni": corrected(p, "bonferroni"),
        "holm": corrected(p, "holm"),
    }


def shared_test_set():
    """Three seeds, 40 rows: which rows each model gets right, and the errors over seeds and rows."""
    random = np.random.default_rng(2)
    own, other = random.random((3, 40)) < 0.8, random.random((3, 40)) < 0.6
    rows = (own.astype(float) - other.astype(float)).mean(axis=0)
    draws = np.array([rows[random.integers(0, 40, 40)].mean() for _ in range(200_000)])
    differences = (own.mean(axis=1) - other.mean(axis=1)).tolist()
    seed_error = float(stats.sem(differences))
    row_error = float(np.std(rows) / np.sqrt(40))
    error = float(np.hypot(seed_error, row_error))
    mean = float(np.mean(differences))
    return {
        "own": own.astype(int).tolist(),
        "baseline": other.astype(int).tolist(),
        "differences": differences,
        "seed_error": seed_error,
        "row_error": row_error,
        "drawn_row_error": float(np.std(draws, ddof=1)),
        "interval": [float(end) for end in stats.t.interval(0.95, 2, loc=mean, scale=error)],
        "p": float(2 * stats.t.sf(abs(mean) / error, 2)),
    }


def case(values):
    x = np.array(values)
    test = stats.ttest_1samp(x, 0.0)
    intervals = [test.confidence_interval(level) for level in LEVELS]
    out = {
        "values": values,
        "mean": float(np.mean(x)),
        "std": float(np.std(x, ddof=1)),
        "intervals": [[level, float(ends.low), float(ends.high)] for level, ends in zip(LEVELS, intervals)],
        "p": float(test.pvalue),
    }
    if len(values) >= 6:
        random = np.random.default_rng(1)
        means = x[random.integers(0, len(x), (299, len(x)))].mean(axis=1)
        drawn = stats._resampling.BootstrapResult(None, means, None)
        small = stats.bootstrap((x,), np.mean, n_resamples=0, bootstrap_result=drawn, method="BCa")
        large = stats.bootstrap((x,), np.mean, n_resamples=400_000, method="BCa", rng=random, batch=50_000)
        out["means"] = means.tolist()
        out["bca_of_means"] = [float(end) for end in small.confidence_interval]
        out["bca"] = [float(end) for end in large.confidence_interval]
    return out


document = {
    "made_by": f"make_statistics.py with SciPy {scipy.__version__}, statsmodels {statsmodels.__version__}, NumPy {np.__version__}",
    "cases": {name: case(values) for name, values in CASES.items()},
    "corrections": [{"p": p, "holm": corrected(p, "holm"), "bonferroni": corrected(p, "bonferroni")} for p in P],
    "tables": [table(lists) for lists in TABLES],
    "shared_test_set": shared_test_set(),
    "normal": [{"x": x, "below": float(stats.norm.cdf(x))} for x in [-6.0, -2.5, -1.0, -0.1, 0.0, 0.7, 1.9599, 2.9, 5.0]],
    "normal_quantile": [{"p": p, "x": float(stats.norm.ppf(p))} for p in [1e-6, 0.025, 0.3, 0.5, 0.9, 0.975]],
    "student": [{"p": p, "freedom": f, "t": float(stats.t.ppf(p, f))} for p in [0.6, 0.975, 0.9995] for f in [1, 2, 4, 9, 30]],
}
json.dump(document, sys.stdout, indent=1)
print()
