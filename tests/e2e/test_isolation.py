"""A cluster whose PD gives no answer does not slow down the others (reliability.md R31)."""

import pytest

from kube.resources import TIDB_CLUSTERS
from sandbox.dataplane.faults import Fault, Trouble
from tests.e2e import operators
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, is_ready, sample

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("workers", "allowed"), [(5, 0.5), (1, 5.0)])
def test_R31_a_black_holed_pd_costs_another_cluster_little_time(
    sandbox: Place, namespace: str, workers: int, allowed: float
) -> None:
    with operators.running(sandbox.new_log(), sandbox.environment(), f"--workers={workers}") as operator:
        with sandbox.namespace() as alone:
            create_cluster(sandbox.client, sample("basic"), alone)
            expected = await_ready(sandbox, operator, "basic", alone)
        create_cluster(sandbox.client, sample("basic"), namespace)
        await_ready(sandbox, operator, "basic", namespace)
        fault = Fault(Trouble.BLACK_HOLE, target=f"{namespace}/basic-pd-*", origin="/")
        sandbox.data_plane.network.inject(fault)
        try:
            sandbox.client.patch(TIDB_CLUSTERS, "basic", namespace, {"metadata": {"labels": {"touched": "yes"}}})
            eventually(lambda: not is_ready(sandbox.client, "basic", namespace))
            with sandbox.namespace() as beside:
                create_cluster(sandbox.client, sample("basic"), beside)
                actual = await_ready(sandbox, operator, "basic", beside, within=100)
        finally:
            sandbox.data_plane.network.heal(fault)
        assert actual <= expected * 1.1 + allowed


@pytest.fixture
def place(sandbox: Place) -> Place:
    """The network that can be broken is the sandbox's."""
    return sandbox
