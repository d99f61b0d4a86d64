"""Fixtures for tests of rules."""

import os
import shutil
from pathlib import Path

import pytest

BIN = Path(__file__).parents[2] / "hack" / "prometheus" / "bin"


@pytest.fixture(scope="session")
def promtool() -> str:
    """Prometheus' own tool; skips where it is not installed."""
    return required("promtool")


def built(program: str) -> str:
    """The path of a program of Prometheus that finds pods; skips where it was not built."""
    found = BIN / program
    if not found.exists() and os.environ.get("REQUIRE_EVERYTHING"):
        pytest.fail(f"{found} is required here: run `make prometheus`")
    if not found.exists():
        pytest.skip(f"no {program} that finds pods of Kubernetes: run `make prometheus`")
    return str(found)


def required(program: str) -> str:
    """The path of a program of Debian's package prometheus; skips where it is not installed."""
    found = shutil.which(program)
    if found is None and os.environ.get("REQUIRE_EVERYTHING"):
        pytest.fail(f"{program} is required here; Debian has it in the package prometheus")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found
