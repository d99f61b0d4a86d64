"""Pods under each shell."""

from pathlib import Path

import pytest

from tests.member.startscript.pods import SHELLS, Pod, pod_of


@pytest.fixture(params=SHELLS)
def pd_pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    """A pod of PD."""
    return pod_of("pd", tmp_path, request.param)


@pytest.fixture(params=SHELLS)
def tikv_pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    """A pod of TiKV."""
    return pod_of("tikv", tmp_path, request.param)


@pytest.fixture(params=SHELLS)
def pump_pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    """A pod of Pump."""
    return pod_of("pump", tmp_path, request.param)


@pytest.fixture(params=SHELLS)
def tidb_pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    """A pod of TiDB."""
    return pod_of("tidb", tmp_path, request.param)
