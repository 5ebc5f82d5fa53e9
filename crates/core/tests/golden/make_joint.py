"""Writes joint_weights.json: joint weights by a general solver (SciPy's SLSQP), not by the method under test.

    python3 make_joint.py > joint_weights.json

minimise 1/2 sum_c t_c + rho |s - u|^2  with  -t_c <= sum_k s_k P_k[c] - Q[c] <= t_c,  s >= 0,  sum s = 1
"""

import json

import numpy as np
from scipy.optimize import minimize


def joint(counts, q, preferred, rho):
    p = counts / counts.sum(axis=1, keepdims=True)
    clients, classes = p.shape

    def objective(x):
        return 0.5 * x[clients:].sum() + rho * ((x[:clients] - preferred) ** 2).sum()

    def gradient(x):
        return np.concatenate([2 * rho * (x[:clients] - preferred), np.full(classes, 0.5)])

    eye = np.eye(classes)
    above = np.hstack([-p.T, eye])
    below = np.hstack([p.T, eye])
    total = np.concatenate([np.ones(clients), np.zeros(classes)])
    start = np.concatenate([preferred, np.abs(preferred @ p - q)])
    solution = minimize(
        objective,
        start,
        jac=gradient,
        method="SLSQP",
        bounds=[(0, 1)] * clients + [(0, 2)] * classes,
        constraints=[
            {"type": "ineq", "fun": lambda x: above @ x + q, "jac": lambda x: above},
            {"type": "ineq", "fun": lambda x: below @ x - q, "jac": lambda x: below},
            {"type": "eq", "fun": lambda x: total @ x - 1, "jac": lambda x: total},
        ],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert solution.success, solution.message
    return solution.x[:clients]


cases = []
rng = np.random.default_rng(29)
for rho, size, clients, classes, uniform in [
    (1.0, False, 4, 3, True),
    (0.1, False, 10, 10, True),
    (0.01, True, 10, 10, True),
    (3.0, True, 6, 5, False),
    (0.3, False, 12, 4, False),
]:
    counts = np.maximum(rng.dirichlet(np.full(classes, 0.3), clients) * rng.integers(20, 400, (clients, 1)), 0)
    counts = counts.astype(int)
    counts[:, 0] += 1
    q = np.full(classes, 1 / classes) if uniform else rng.dirichlet(np.full(classes, 5.0))
    n = counts.sum(axis=1)
    preferred = n / n.sum() if size else np.full(clients, 1 / clients)
    weights = joint(counts, q, preferred, rho)
    cases.append(
        {"rho": rho, "size": size, "counts": counts.tolist(), "Q": q.tolist(), "weights": weights.tolist()}
    )
print(json.dumps({"made by": "make_joint.py, SciPy SLSQP", "cases": cases}, indent=1))
