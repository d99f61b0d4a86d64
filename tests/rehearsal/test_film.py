"""When a film of a cluster needs another frame."""

import pytest

from kube.resources import TIDB_CLUSTERS
from ports.clock import FakeClock
from rehearsal.film import Film
from tests.operator_world import NAMESPACE
from tests.sandbox.test_ticdc import Captures


@pytest.mark.slow
def test_a_server_that_stops_listening_needs_a_frame_although_no_object_changes() -> None:
    clock = FakeClock()
    captures = Captures(clock, 1)
    world = captures.world.world
    film = Film(world, TIDB_CLUSTERS, NAMESPACE, "basic", clock.now())
    film.see_servers()
    version, before = world.server.storage.version, film.beyond_kubernetes()
    pd = world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    pd.etcd.leases.clear()  # as after a time in which PD could not renew the capture's session
    assert world.advance(2.0, lambda: film.beyond_kubernetes() != before)
    film.look()
    captures.world.stop()
    assert version == world.server.storage.version
    assert [1, 0] == [frame.ready("ticdc") for frame in film.frames]
