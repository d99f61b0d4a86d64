"""Logs of simulated runs are discarded."""

from collections.abc import Iterator

import pytest
import structlog

from simulate.engine.logs import silence


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    before = structlog.get_config()
    silence()
    yield
    structlog.configure(**before)
