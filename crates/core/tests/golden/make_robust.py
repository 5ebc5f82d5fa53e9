"""Makes robust.json with NumPy: python make_robust.py > robust.json

Robust combinations of clients' models, computed on whole vectors in f64 from the papers' formulas: by integrating the
weighted quantile function (trimmed mean), by all pairwise distances (Krum), by Weiszfeld iterations until the gradient of
the smoothed objective vanishes (geometric median), and by moving the centre itself (centred clipping). The models are
rounded to f32 first, as clients send them. "entered" is the weight with which each client entered.
"""

import json
import sys

import numpy as np


def f32(array):
    return np.asarray(array, dtype=np.float32).astype(np.float64)


def trimmed_mean(x, s, trim):
    """The mean of the quantile function between trim and 1 - trim, parameter by parameter."""
    mean, entered = np.zeros(x.shape[1]), np.zeros(len(s))
    for d in range(x.shape[1]):
        order = np.argsort(x[:, d], kind="stable")
        ends = np.clip(np.concatenate([[0.0], np.cumsum(s[order])]), trim, 1 - trim)
        part = np.diff(ends) / (1 - 2 * trim)
        mean[d] = part @ x[order, d]
        entered[order] += part / x.shape[1]
    return mean, entered


def krum_order(x, f):
    k = len(x)
    squares = np.array([[np.sum((a - b) ** 2) for b in x] for a in x])
    scores = [np.sort(np.delete(squares[i], i))[: max(1, k - f - 2)].sum() for i in range(k)]
    return np.argsort(scores, kind="stable")


def krum(x, f):
    entered = np.zeros(len(x))
    entered[krum_order(x, f)[0]] = 1.0
    return entered @ x, entered


def multi_krum(x, s, f, m):
    entered = np.zeros(len(x))
    chosen = krum_order(x, f)[:m]
    entered[chosen] = s[chosen] / s[chosen].sum()
    return entered @ x, entered


def geometric_median(x, s, nu=1e-6):
    z = s @ x
    for _ in range(1_000_000):
        gaps = z - x
        pull = s / np.maximum(nu, np.linalg.norm(gaps, axis=1))
        if np.linalg.norm(pull @ gaps) < 1e-12:
            break
        z = pull @ x / pull.sum()
    return z, pull / pull.sum()


def weighted_median(values, s):
    order = np.argsort(values, kind="stable")
    return values[order][np.searchsorted(np.cumsum(s[order]), 0.5 - 1e-12)]


def centred_clipping(x, s, v, tau, iterations):
    """The new centre; x and v are changes. The entered weights follow from the moves of the centre."""
    share = np.zeros(len(s))
    for _ in range(iterations):
        gaps = x - v
        distances = np.linalg.norm(gaps, axis=1)
        radius = tau * weighted_median(distances, s)
        clipped = distances > radius
        pull = s * np.where(clipped, radius / np.where(clipped, distances, 1.0), 1.0)
        v = v + pull @ gaps
        share = (1 - pull.sum()) * share + pull
    return v, share / share.sum()


def case(name, rng, clients, values, outlier=None):
    sizes = rng.integers(5, 60, clients)
    base = f32(rng.normal(size=values))
    spread = rng.uniform(0.2, 2.0, clients)[:, None]
    models = f32(base + 0.5 + spread * rng.normal(size=(clients, values)))
    if outlier is not None:
        models[1] = f32(outlier * np.sign(rng.normal(size=values)))
    results = []
    for weights in ["uniform", "size"]:
        s = np.full(clients, 1 / clients) if weights == "uniform" else sizes / sizes.sum()
        add = lambda label, found: results.append(
            {"label": label, "weights": weights, "model": list(found[0]), "entered": list(found[1])}
        )
        for trim in [0.0, 0.1, 0.2, 0.45]:
            add(f"trimmed-mean:trim={trim}", trimmed_mean(models, s, trim))
        for fraction, f in [(0.0, 0), (0.15, int(np.ceil(0.15 * clients)))]:
            f = min(f, max(0, (clients - 3) // 2))
            add(f"krum:byzantine={fraction}", krum(models, f))
            add(f"multi-krum:byzantine={fraction}", multi_krum(models, s, f, clients - f))
            m = max(1, clients // 2)
            add(f"multi-krum:byzantine={fraction}:select=0.5", multi_krum(models, s, f, m))
        add("geometric-median", geometric_median(models, s))
        for tau, iterations in [(1.0, 1), (1.0, 3), (2.0, 3)]:
            change, entered = centred_clipping(models - base, s, np.zeros(values), tau, iterations)
            add(f"centred-clipping:tau={tau}:iterations={iterations}", (base + change, entered))
    return {
        "name": name,
        "sizes": [int(n) for n in sizes],
        "base": list(base),
        "models": [list(model) for model in models],
        "results": results,
    }


def two_rounds(rng, clients=5, values=4, tau=1.0, iterations=2):
    """Centred clipping, whose second round starts from the change of the first."""
    s = np.full(clients, 1 / clients)
    start = f32(rng.normal(size=values))
    w, v, rounds = start, np.zeros(values), []
    for _ in range(2):
        models = f32(w + rng.normal(size=(clients, values)) + 1.0)
        v, entered = centred_clipping(models - w, s, v, tau, iterations)
        w = f32(w + v)
        rounds.append({"models": [list(m) for m in models], "model": list(w), "entered": list(entered)})
    label = f"centred-clipping:tau={tau}:iterations={iterations}"
    return {"label": label, "base": list(start), "rounds": rounds}


rng = np.random.default_rng(29)
document = {
    "made_by": f"make_robust.py with NumPy {np.__version__}",
    "cases": [
        case("seven clients", rng, 7, 5),
        case("ten clients", rng, 10, 3),
        case("two clients", rng, 2, 3),
        case("one client", rng, 1, 3),
        case("one of eight is at 1000", rng, 8, 4, outlier=1000.0),
    ],
    "two_rounds": two_rounds(rng),
}
json.dump(document, sys.stdout, indent=1)
print()
