"""Logs are collected instead of printed: tests can look at them, and failing property tests stay quick."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog.testing


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """The log of the code under test."""
    with structlog.testing.capture_logs() as entries:
        yield entries
