"""Every test works in a folder of its own, with runs of a second."""

from __future__ import annotations

from pathlib import Path

import pytest

SMALL = {"rounds": 3, "split.clients": 20, "cohort.fraction": 0.25, "model.name": "logistic", "local.epochs": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small() -> dict[str, object]:
    """The configuration of a small run."""
    return dict(SMALL)
