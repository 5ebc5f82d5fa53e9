"""Federated learning that asks what clients know about their labels.

The same program as the command ``fedtvd``: the same configuration, names, run directories and bits.

>>> import fedtvd
>>> run = fedtvd.run({"rounds": 5, "strategy.name": "fedtvd+balanced"})  # doctest: +SKIP
>>> run.rounds.accuracy.iloc[-1]  # doctest: +SKIP
"""

from ._devices import install, model
from ._errors import FedtvdError, RequestError, WorkError
from ._labels import split, tvd, weights
from ._results import Comparison, Report, Run, Sweep
from ._rules import Profiles, strategy
from ._runs import compare, report, resume, run, strategies, sweep, verify

__all__ = [
    "Comparison",
    "FedtvdError",
    "Profiles",
    "Report",
    "RequestError",
    "Run",
    "Sweep",
    "WorkError",
    "compare",
    "model",
    "report",
    "resume",
    "run",
    "split",
    "strategies",
    "strategy",
    "sweep",
    "tvd",
    "verify",
    "weights",
]
__version__ = "0.1.0"

install()
