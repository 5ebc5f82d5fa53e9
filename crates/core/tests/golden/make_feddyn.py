"""Makes feddyn.json with NumPy: python make_feddyn.py > feddyn.json

FedDyn (Acar et al., ICLR 2021, algorithm 1; alpha is called mu here) on quadratic clients
F_k(w) = 1/2 sum h_k (w - b_k)^2, with K steps of gradient descent as the local solver:
  y <- y - lr (h_k (y - b_k) - g_k + mu (y - w)),  g_k <- g_k - mu (y - w),
  h <- h - mu sum_{k in round} s_k^(N) (y_k - w),  w <- sum_{k in round} s_k y_k - h / mu.
s_k^(N) are the weights over all clients; s_k those over the clients of the round. With uniform weights the update of h is
the paper's h - mu / N sum (y_k - w).
"""

import json
import sys

import numpy as np

H = np.array([[1.0, 2.0], [0.5, 1.0], [2.0, 0.5]])
B = np.array([[1.0, -1.0], [-2.0, 3.0], [0.0, 0.5]])
W0 = np.array([0.5, 0.25])


def rounds(selections, sizes, mu, steps, lr):
    sizes = np.array(sizes, dtype=float)
    w, h, g = W0.copy(), np.zeros(2), np.zeros((3, 2))
    made = []
    for selected in selections:
        own = sizes[selected] / sizes[selected].sum()
        over_all = sizes[selected] / sizes.sum()
        ys = []
        for k in selected:
            y = w.copy()
            for _ in range(steps):
                y = y - lr * (H[k] * (y - B[k]) - g[k] + mu * (y - w))
            g[k] = g[k] - mu * (y - w)
            ys.append(y)
        ys = np.array(ys)
        h = h - mu * (over_all @ (ys - w))
        w = own @ ys - h / mu
        # The invariant that the server's state stands for.
        assert np.allclose(h, (sizes / sizes.sum()) @ g, rtol=0, atol=1e-14)
        made.append(
            {
                "selected": selected,
                "clients": ys.tolist(),
                "g": g[selected].tolist(),
                "h": h.tolist(),
                "w": w.tolist(),
            }
        )
    return made


def optimum(sizes):
    """The minimum of the weighted sum of the clients' losses."""
    s = np.array(sizes, dtype=float)[:, None]
    return ((s * H * B).sum(axis=0) / (s * H).sum(axis=0)).tolist()


EVERYONE = [[0, 1, 2]]
PARTIAL = [[0, 1], [1, 2], [2], [0, 2], [0, 1, 2]]
CASES = {
    "full": dict(selections=EVERYONE * 3, sizes=[8, 8, 8], mu=0.5, steps=3, lr=0.1),
    "partial": dict(selections=PARTIAL, sizes=[8, 8, 8], mu=0.1, steps=3, lr=0.1),
    "partial_by_size": dict(selections=PARTIAL, sizes=[60, 30, 10], mu=0.2, steps=4, lr=0.1),
}

made = {
    "made_by": f"make_feddyn.py with NumPy {np.__version__}",
    "h": H.tolist(),
    "b": B.tolist(),
    "w0": W0.tolist(),
    "cases": {name: {**case, "rounds": rounds(**case)} for name, case in CASES.items()},
    "optimum_uniform": optimum([1, 1, 1]),
    "optimum_by_size": optimum([60, 30, 10]),
}
json.dump(made, sys.stdout, indent=1)
print()
