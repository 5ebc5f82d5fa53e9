"""Makes macro_f1.json with scikit-learn: python make_macro_f1.py > macro_f1.json

Each case is a confusion matrix, one row per true class. scikit-learn averages F1 over the classes that have samples or
predictions, and balanced accuracy over those that have samples.
"""

import json
import sys
import warnings

import numpy as np
import sklearn
from sklearn.metrics import balanced_accuracy_score, f1_score

CASES = {
    "80/15/5 with a class that is never predicted": [[790, 10, 0], [60, 90, 0], [48, 2, 0]],
    "80/15/5 with a class that is predicted, and always wrongly": [[780, 10, 10], [60, 90, 0], [48, 2, 0]],
    "a class without samples and predictions": [[5, 3, 0], [2, 7, 0], [0, 0, 0]],
    "a class without samples that is predicted": [[5, 2, 1], [2, 7, 4], [0, 0, 0]],
    "everything in one class": [[0, 10, 0], [0, 20, 0], [0, 30, 0]],
    "perfect": [[3, 0], [0, 4]],
    "nothing right": [[0, 3], [4, 0]],
    "a single sample": [[1, 0], [0, 0]],
}


def case(name, confusion):
    pairs = [(t, p) for t, row in enumerate(confusion) for p, count in enumerate(row) for _ in range(count)]
    true, predicted = np.array(pairs).T
    return {
        "name": name,
        "confusion": confusion,
        "macro_f1": float(f1_score(true, predicted, average="macro", zero_division=0)),
        "balanced_accuracy": float(balanced_accuracy_score(true, predicted)),
    }


# A class that is predicted and has no samples is part of the case.
warnings.simplefilter("ignore")
made_by = f"make_macro_f1.py with scikit-learn {sklearn.__version__} and NumPy {np.__version__}"
document = {"made_by": made_by, "cases": [case(name, confusion) for name, confusion in CASES.items()]}
json.dump(document, sys.stdout, indent=1)
print()
