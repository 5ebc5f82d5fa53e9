"""Rules in Python: a class with some of the methods below, registered under a name, is a strategy like all others.

========================================  ==========================================================================
``shares(self, profiles)``                the weight of each client of a round; optionally a tuple of the weights and
                                          the shares by quality that they are made of, which are recorded
``offsets(self, counts, reference)``      what the loss adds to the logit of each class, for a client with these labels
``combine(self, base, updates, weights)`` the next model, from a row per client; optionally a tuple of the model and the
                                          weight with which each client really entered
``step(self, base, aggregate, memory)``   the model after the server's step, trainable parameters only; ``memory`` is a
                                          dictionary of arrays, empty in the first round, that the method changes
========================================  ==========================================================================

The keyword parameters of ``__init__`` are the strategy's parameters. A rule must answer the same question in the same way:
what it remembers belongs into ``memory``, and random numbers have no place in it.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import RequestError

RULES = ("shares", "offsets", "combine", "step")
_Class = TypeVar("_Class", bound=type[Any])


@dataclass(frozen=True)
class Profiles:
    """What is known about the clients of a round, a row each, in client order."""

    #: Their ids.
    client: NDArray[np.uint32]
    #: Numbers of samples; in hardened mode capped at their median.
    size: NDArray[np.uint64]
    #: Total variation distances of their labels to the reference; empty unless the strategy asks for distance or counts.
    distance: NDArray[np.float64]
    #: Label counts, a column per class; without rows unless the strategy asks for counts.
    counts: NDArray[np.uint64]
    #: The reference label distribution Q.
    reference: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.client)


def strategy(
    name: str,
    *,
    asks: Literal["nothing", "distance", "counts"] = "nothing",
    suggests: str | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    paper: str = "no paper: a rule in Python",
) -> Callable[[_Class], _Class]:
    """Registers a class as a strategy.

    ``asks`` says what clients tell about their labels: ``"distance"`` is one number, the total variation distance, ``"counts"``
    the label counts. ``suggests`` names a strategy whose rules are used unless another name brings them, ``ranges`` the least and
    the greatest value of parameters.

    >>> @fedtvd.strategy("root")  # doctest: +SKIP
    ... class Root:
    ...     '''Clients are weighted by the square root of their size.'''
    ...
    ...     def shares(self, profiles):
    ...         roots = np.sqrt(profiles.size)
    ...         return roots / roots.sum()
    """

    def register(rules: _Class) -> _Class:
        own = [rule for rule in RULES if callable(getattr(rules, rule, None))]
        if not own:
            raise RequestError(f"{rules.__name__} has none of the methods {', '.join(RULES)}")
        about = inspect.cleandoc(rules.__doc__ or f"the rules of the class {rules.__name__}").split("\n")[0]
        params, keywords = _params(rules, ranges or {})

        def make(given: dict[str, bool | int | float]) -> _Adapter:
            return _Adapter(rules(**{keywords[param]: value for param, value in given.items()}))

        source = source_hash(rules)
        try:
            _native.register(name, about.rstrip("."), paper, asks, suggests, params, source, own, make)
        except ValueError as error:
            raise RequestError(str(error)) from error.__cause__
        return rules

    return register


def source_hash(rules: type[Any]) -> str:
    """A hash of the source of a class and of the classes that it is made from. What they call elsewhere is not part of it."""
    whole = hashlib.sha256()
    for part in rules.__mro__[:-1]:
        try:
            text = textwrap.dedent(inspect.getsource(part))
        except (OSError, TypeError):
            # Without a file, as in an interactive session, the compiled functions stand for the source.
            functions = [own for _, own in sorted(vars(part).items()) if inspect.isfunction(own)]
            text = "".join(marshal.dumps(_without_place(own.__code__)).hex() for own in functions)
        whole.update(text.encode())
    return whole.hexdigest()


def _without_place(code: CodeType) -> CodeType:
    """Compiled code that does not say where it was written: a notebook's cell is another file in every session."""
    inner = tuple(_without_place(own) if isinstance(own, CodeType) else own for own in code.co_consts)
    return code.replace(co_filename="", co_firstlineno=1, co_consts=inner)


def _params(
    rules: type[Any], ranges: Mapping[str, tuple[float, float]]
) -> tuple[list[tuple[str, bool | int | float, float, float, str]], dict[str, str]]:
    """The parameters of a class, and the keyword of each: a name that Python reserves has an underscore more."""
    params: list[tuple[str, bool | int | float, float, float, str]] = []
    keywords: dict[str, str] = {}
    init = vars(rules).get("__init__") or next(
        (vars(part)["__init__"] for part in rules.__mro__[:-1] if "__init__" in vars(part)), None
    )
    listed = list(inspect.signature(init).parameters.values())[1:] if init is not None else []
    for keyword in listed:
        if not isinstance(keyword.default, (bool, int, float)):
            raise RequestError(
                f"{rules.__name__}: the parameter {keyword.name} needs a default that is a number, True or False"
            )
        param = keyword.name.rstrip("_")
        low, high = ranges.get(param, (0 if type(keyword.default) is int else -math.inf, math.inf))
        keywords[param] = keyword.name
        params.append((param, keyword.default, float(low), float(high), f"parameter of {rules.__name__}"))
    unknown = [name for name in ranges if name not in keywords]
    if unknown:
        raise RequestError(f"{rules.__name__} has no parameter {unknown[0]}; it has {', '.join(keywords) or 'none'}")
    return params, keywords


class _Adapter:
    """Calls a user's rules with arrays and checks what they answer."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def shares(
        self,
        client: NDArray[np.uint32],
        size: NDArray[np.uint64],
        distance: NDArray[np.float64],
        counts: NDArray[np.uint64],
        reference: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        table = counts.reshape(-1, len(reference))
        answer = self.rules.shares(Profiles(client, size, distance, table, reference))
        weights, quality = answer if isinstance(answer, tuple) else (answer, None)
        checked = _numbers("shares", "clients", weights, len(client))
        if (checked < 0).any() or not abs(checked.sum() - 1) < 1e-6:
            raise ValueError(
                f"shares must not be negative and must sum to 1, but are {_some(checked)} with a sum of {checked.sum():g}"
            )
        return checked, None if quality is None else _numbers("shares by quality", "clients", quality, len(client))

    def offsets(self, counts: NDArray[np.uint64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
        return _numbers("offsets", "classes", self.rules.offsets(counts, reference), len(counts))

    def combine(
        self, base: NDArray[np.float32], updates: NDArray[np.float32], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        answer = self.rules.combine(base, updates, weights)
        values, counted = answer if isinstance(answer, tuple) else (answer, None)
        checked = _array("combine", "parameters", values, len(base), np.float64)
        return checked, None if counted is None else _numbers("counted weights", "clients", counted, len(weights))

    def step(
        self, base: NDArray[np.float32], aggregate: NDArray[np.float64], memory: dict[str, Any]
    ) -> NDArray[np.float32]:
        values = _array("step", "trainable parameters", self.rules.step(base, aggregate, memory), len(base), np.float32)
        for name, array in memory.items():
            given = np.atleast_1d(np.asarray(array))
            if not isinstance(name, str) or given.ndim != 1 or given.dtype.kind not in "fiub":
                raise ValueError(f"memory[{name!r}] must be a number or an array of one dimension")
            kind = np.float32 if given.dtype == np.float32 else np.uint64 if given.dtype.kind in "ub" else np.float64
            memory[name] = np.ascontiguousarray(given, dtype=kind)
        return values


def _array(what: str, of: str, values: Any, length: int, kind: Any) -> NDArray[Any]:
    checked = np.ascontiguousarray(values, dtype=kind)
    if checked.shape != (length,):
        raise ValueError(f"{what} must be an array of {length} numbers for {length} {of}, not of shape {checked.shape}")
    return checked


def _numbers(what: str, of: str, values: Any, length: int) -> NDArray[np.float64]:
    checked = _array(what, of, values, length, np.float64)
    if not np.isfinite(checked).all():
        raise ValueError(f"{what} must be finite, but are {_some(checked)}")
    return checked


def _some(values: NDArray[np.float64]) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return f"[{shown}{', …' if len(values) > 6 else ''}]"
