"""Makes fedexp.json with NumPy: python make_fedexp.py > fedexp.json

Server steps of FedExP (Jhunjhunwala, Wang, Joshi, ICLR 2023, equation 4 with weights p_k):
eta_g = max(1, sum p_k ||D_k||^2 / (2 (||sum p_k D_k||^2 + eps))), x <- x + eta_g sum p_k D_k.
The clients' changes are given for each round, so they do not depend on the server's step.
"""

import json
import sys

import numpy as np

X0 = [0.5, -1.0, 2.0, 0.25]
CASES = {
    "nearly orthogonal changes, uniform weights": {
        "p": [0.25] * 4,
        "eps": 1e-3,
        "rounds": [
            [[1.0, 0.0, 0.0, 0.1], [0.0, 0.8, 0.0, 0.1], [0.0, 0.0, 1.2, 0.1], [0.1, 0.1, 0.1, 0.9]],
            [[0.5, 0.0, 0.1, 0.0], [0.0, 0.4, 0.0, -0.1], [-0.1, 0.0, 0.6, 0.0], [0.0, 0.1, 0.0, 0.5]],
        ],
    },
    "equal changes, which are not extrapolated": {
        "p": [0.5, 0.3, 0.2],
        "eps": 1e-3,
        "rounds": [[[0.2, -0.1, 0.3, 0.0]] * 3, [[-0.1, 0.1, 0.0, 0.4]] * 3],
    },
    "opposite changes, whose mean is bounded by epsilon": {
        "p": [0.5, 0.5],
        "eps": 0.1,
        "rounds": [[[1.0, 1.0, 0.0, 0.0], [-1.0, -0.9, 0.0, 0.02]]],
    },
    "unequal weights": {
        "p": [0.6, 0.3, 0.1],
        "eps": 1e-2,
        "rounds": [
            [[0.3, 0.0, -0.2, 0.0], [-0.3, 0.5, 0.0, 0.1], [0.0, -2.0, 1.0, 0.0]],
            [[0.1, -0.1, 0.0, 0.0], [0.0, 0.4, -0.4, 0.0], [0.0, 0.0, 0.0, 3.0]],
        ],
    },
}


def rounds(case):
    x, p = np.array(X0), np.array(case["p"])
    steps = []
    for changes in case["rounds"]:
        d = np.array(changes)
        norms = np.linalg.norm(d, axis=1)
        mean = p @ d
        eta = max(1.0, float(p @ norms**2) / (2 * (float(mean @ mean) + case["eps"])))
        x = x + eta * mean
        steps.append({"norms": norms.tolist(), "eta": eta, "x": x.tolist()})
    return steps


cases = [{"name": name, **case, "steps": rounds(case)} for name, case in CASES.items()]
made = {"made_by": f"make_fedexp.py with NumPy {np.__version__}", "x0": X0, "cases": cases}
json.dump(made, sys.stdout, indent=1)
print()
