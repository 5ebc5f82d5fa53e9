"""Progress of runs: one line that is rewritten, on terminals and in notebooks."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any


class Progress:
    """Counts rounds over all runs of a call, and shows the last accuracy and the remaining time."""

    WIDTH = 24

    def __init__(self, quiet: bool) -> None:
        self.done: dict[int, int] = {}
        self.first: dict[int, int] = {}
        self.length = 0
        self.started = time.monotonic()
        self.shown = 0.0
        self.display = None if quiet else _display()

    def note(self, text: str) -> None:
        """Shows a note, even if the progress is not shown."""
        if self.display is not None:
            self.display.clear()
        print(f"note: {text}", file=sys.stderr, flush=True)

    def __call__(
        self, name: str, run: int, runs: int, round: int, rounds: int, accuracy: float | None
    ) -> None:
        self.first.setdefault(run, round)
        self.done[run] = round
        done, everything = sum(self.done.values()), rounds * runs
        now = time.monotonic()
        # A terminal cannot show more, and a notebook stores every line that it gets.
        if self.display is None or (now - self.shown < 0.1 and done < everything):
            return
        self.shown = now
        part = done / everything
        bar = "█" * int(part * self.WIDTH)
        fresh = done - sum(self.first.values())
        left = (now - self.started) / fresh * (everything - done) if fresh > 0 else None
        reached = "" if accuracy is None else f"  {100 * accuracy:.1f} %"
        wait = "" if left is None else f"  {_duration(left)} left"
        self.display.show(f"{name}  {bar:·<{self.WIDTH}} {done}/{everything} rounds{reached}{wait}")

    def finish(self) -> None:
        """Removes the line."""
        if self.display is not None:
            self.display.clear()


class _Terminal:
    """A line of a terminal."""

    def __init__(self) -> None:
        self.length = 0

    def show(self, line: str) -> None:
        print("\r" + line.ljust(self.length), end="", file=sys.stderr, flush=True)
        self.length = len(line)

    def clear(self) -> None:
        if self.length:
            self.show("")
            print("\r", end="", file=sys.stderr, flush=True)
            self.length = 0


class _Notebook:
    """An output of a notebook's cell that is updated."""

    def __init__(self, display: Any) -> None:
        self.handle: Any = None
        self.display = display

    def show(self, line: str) -> None:
        content = {"text/plain": line}
        if self.handle is None:
            self.handle = self.display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)

    def clear(self) -> None:
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)


def _display() -> _Terminal | _Notebook | None:
    """Where progress can be shown, if anywhere."""
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    if kernel is not None and "IPKernelApp" in kernel.config:
        return _Notebook(import_module("IPython.display").display)
    return _Terminal() if sys.stderr.isatty() else None


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
