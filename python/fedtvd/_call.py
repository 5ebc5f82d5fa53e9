"""Calls of subcommands: their JSON documents, and their failures as exceptions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

from . import _native
from ._errors import RequestError, WorkError
from ._progress import Progress


def call(arguments: Sequence[str], quiet: bool = False) -> Any:
    """What a subcommand with ``--json`` prints.

    Ctrl-C stops the work after the current rounds, and then raises ``KeyboardInterrupt``; what was done is saved.
    """
    progress = Progress(quiet)
    try:
        words = [*arguments, "--quiet"] if quiet else list(arguments)
        document, failure = _native.call(words, progress.note, progress)
    finally:
        progress.finish()
    if failure is None:
        return json.loads(document)
    request, why, cause = failure
    if document:
        # A collapsed run: there are results, but they cannot be used.
        warnings.warn(why, RuntimeWarning, stacklevel=3)
        return json.loads(document)
    raise (RequestError if request else WorkError)(why) from cause
