"""Makes statistics.json with SciPy: python make_statistics.py > statistics.json

Each case is a list of paired differences; their interval, test and bootstrap are SciPy's. The bootstrap distribution
is drawn here and kept in the file, so that the interval which SciPy makes of it can be compared to the last digits.
Holm's correction, which SciPy lacks, is spelled out below.
"""

import json
import sys

import numpy as np
import scipy
from scipy import stats

CASES = {
    "five seeds": [0.013, -0.004, 0.021, 0.008, 0.002],
    "six seeds": [0.071, 0.093, 0.102, 0.065, 0.088, 0.079],
    "seven seeds, skewed": [0.001, 0.002, 0.0015, -0.003, 0.0005, 0.04, 0.0021],
    "ten seeds around nothing": [0.01, -0.012, 0.004, -0.003, 0.008, -0.009, 0.002, 0.0001, -0.0052, 0.0061],
    "twelve seeds, tiny p": [0.2 + 0.001 * k for k in range(12)],
}
P = [[0.01, 0.04, 0.03, 0.005], [0.6, 0.5, 0.9], [0.001], [0.02, 0.02, 0.02], []]


def holm(p):
    order = np.argsort(p, kind="stable")
    out = np.zeros(len(p))
    highest = 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - place) * p[index]))
        out[index] = highest
    return out.tolist()


def case(values):
    x = np.array(values)
    test = stats.ttest_1samp(x, 0.0)
    interval = test.confidence_interval(0.95)
    out = {
        "values": values,
        "mean": float(np.mean(x)),
        "std": float(np.std(x, ddof=1)),
        "low": float(interval.low),
        "high": float(interval.high),
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
    "made_by": f"make_statistics.py with SciPy {scipy.__version__}",
    "cases": {name: case(values) for name, values in CASES.items()},
    "holm": [{"p": p, "adjusted": holm(p)} for p in P],
    "normal": [{"x": x, "below": float(stats.norm.cdf(x))} for x in [-6.0, -2.5, -1.0, -0.1, 0.0, 0.7, 1.9599, 2.9, 5.0]],
    "normal_quantile": [{"p": p, "x": float(stats.norm.ppf(p))} for p in [1e-6, 0.025, 0.3, 0.5, 0.9, 0.975]],
    "student": [{"p": p, "freedom": f, "t": float(stats.t.ppf(p, f))} for p in [0.6, 0.975, 0.9995] for f in [1, 2, 4, 9, 30]],
}
json.dump(document, sys.stdout, indent=1)
print()
