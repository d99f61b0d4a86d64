"""A healthy, unchanged cluster costs no write, neither to Kubernetes nor to PD (design.md 3.8)."""

import pytest

from dataplane.http_transport import USER_AGENT
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.operators import reconciles
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = [pytest.mark.slow, IN_ONE_WORLD]

_RESYNCS = 5
_NAMES = ("basic", "advanced")


def test_five_resyncs_of_ready_clusters_write_nothing(place: Place, namespace: str) -> None:
    with (
        place.gate() as gate,
        operators.running(place.new_log(), place.environment(gate), "--resync-duration=1s") as operator,
    ):
        for name in _NAMES:
            create_cluster(place.client, sample(name), namespace)
        for name in _NAMES:
            await_ready(place, operator, name, namespace)
        gate.await_quiet()
        gate.forget()
        place.data_plane.network.reset_counts()
        before = reconciles(operator)

        eventually(lambda: reconciles(operator) >= before + _RESYNCS * len(_NAMES))

        assert [] == gate.writes
        counts = place.data_plane.network.counts()
        assert {"GET"} == {count.method for count in counts if count.user_agent == USER_AGENT}
