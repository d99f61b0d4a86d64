"""Helm without a cluster."""

from pathlib import Path

import pytest

from kube.objects import Json
from tests.chart.helm import Helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Skips where Helm was not built."""
    home: Path = tmp_path_factory.mktemp("helm")
    return Helm(home)


@pytest.fixture(scope="session")
def defaults(helm: Helm) -> list[Json]:
    """The chart's objects without values."""
    return helm.template({})
