"""What tests of rules need."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def promtool() -> str:
    """Prometheus' own tool; skips where it is not installed."""
    return required("promtool")


def required(program: str) -> str:
    """The path of a program of Debian's package prometheus; skips where it is not installed."""
    found = shutil.which(program)
    if found is None and os.environ.get("REQUIRE_EVERYTHING"):
        pytest.fail(f"{program} is required here; Debian has it in the package prometheus")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found
