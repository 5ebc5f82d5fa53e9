"""Makes `first_steps.ipynb` from this file's cells and executes it: python notebook.py (needs nbclient and ipykernel)."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent

CELLS = [
    """# fedtvd in a notebook

Own data, a split, weights, a rule of one's own, a comparison and its figures. Made and executed by `notebook.py`; every number is
repeatable, because the same seed gives the same bits.""",
    '''import numpy as np
import fedtvd
from IPython.display import SVG

# Four kinds of 8x8 images: a bright quadrant each, under noise.
random = np.random.default_rng(1)

def images(count):
    labels = random.integers(0, 4, count)
    values = random.normal(0, 1.5, (count, 8, 8))
    for k, label in enumerate(labels):
        row, column = divmod(label, 2)
        values[k, 4 * row:4 * row + 4, 4 * column:4 * column + 4] += 1
    return values, labels

x_train, y_train = images(4000)
x_test, y_test = images(1000)
data = (x_train, y_train, x_test, y_test)
classes = ["top left", "top right", "bottom left", "bottom right"]''',
    """## Which client holds which labels

The same splits as in a configuration's `[split]` table, on any labels.""",
    '''clients = fedtvd.split(y_train, clients=40, alpha=0.1, seed=1)
counts = np.array([np.bincount(y_train[rows], minlength=4) for rows in clients])
print(counts[:5])
print("mean total variation distance:", fedtvd.tvd(counts).mean().round(3))
print("weights of the first five:", fedtvd.weights(counts[:5], "fedtvd").round(3))''',
    """## A run

The result is a run directory and what it holds, as data frames.""",
    '''config = {
    "rounds": 30,
    "model.layers": ["flatten", "linear 32", "relu", "linear"],
    "split": {"clients": 40, "alpha": 0.1},
    "cohort.fraction": 0.25,
    "local": {"lr": 0.05, "epochs": 2},
}
run = fedtvd.run({**config, "strategy.name": "fedtvd"}, data=data, classes=classes, quiet=True)
run.rounds[["accuracy", "loss", "effective_clients"]].tail(3)''',
    "run.clients[['size', 'tvd', 'weight']].loc[30].head()",
    "{name: (array.shape, str(array.dtype)) for name, array in run.state_dict().items()}",
    """## A rule of one's own

A class with one method is a strategy. It composes with all others and runs in the same round.""",
    '''@fedtvd.strategy("root")
class Root:
    """Clients are weighted by the square root of their size."""

    def shares(self, profiles):
        roots = np.sqrt(profiles.size)
        return roots / roots.sum()''',
    '''found = fedtvd.compare(
    config, data=data, classes=classes, seeds=3, quiet=True, out="runs/comparison",
    strategies=["fedavg", "root", "fedtvd", "fedtvd+balanced", "root+balanced"],
)
found.summary[["mean", "std", "difference", "simultaneous_low", "simultaneous_high"]].astype(float).round(3)''',
    """## Figures

`compare` and `report` write a page with tables and figures, and each figure as a file.""",
    '''report = fedtvd.report("runs/comparison", out="runs/report")
print(report.verdict)
figures = sorted(report.directory.glob("**/*.svg"))
SVG(filename=str(next(path for path in figures if "accuracy" in path.name)))''',
]


def main() -> None:
    """Writes the executed notebook."""
    import tempfile

    notebook = nbformat.v4.new_notebook()
    for text in CELLS:
        prose = text.startswith("#") and "\n\n" in text and "import" not in text
        cell = nbformat.v4.new_markdown_cell if prose else nbformat.v4.new_code_cell
        notebook.cells.append(cell(text))
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    for cell in notebook.cells:
        # When a cell ran is not worth a difference.
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, HERE / "first_steps.ipynb")


if __name__ == "__main__":
    main()
