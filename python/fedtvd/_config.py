"""Configurations: a TOML file, a dictionary, or both."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Settings: TypeAlias = Mapping[str, Any]
Config: TypeAlias = "str | os.PathLike[str] | Settings | None"


def arguments(config: Config, set: Settings | None = None) -> list[str]:
    """The arguments that give the same configuration on the command line."""
    if config is None or isinstance(config, Mapping):
        return settings({**(config or {}), **(set or {})})
    return [os.fspath(config), *settings(set or {})]


def settings(values: Settings) -> list[str]:
    """``--set key=value`` for each value; tables may be nested or written into the key."""
    return [word for key, value in flat(values) for word in ("--set", f"{key}={toml(value)}")]


def flat(values: Settings, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with their tables, and values."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def toml(value: Any) -> str:
    """A value as TOML."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, Path)):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(own)}" for key, own in flat(value)) + " }"
    if isinstance(value, Sequence) or hasattr(value, "tolist"):
        items = value.tolist() if hasattr(value, "tolist") else value
        return "[" + ", ".join(toml(item) for item in items) + "]"
    raise TypeError(
        f"{value!r} cannot be the value of a key; it must be text, a number, True, False or a list of them"
    )


def grid_text(grid: Settings) -> str:
    """The ``[sweep]`` table with these lists."""
    lines = (f"{json.dumps(key)} = {toml(values)}" for key, values in flat(grid))
    return "\n[sweep]\n" + "\n".join(lines) + "\n"
