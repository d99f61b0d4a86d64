"""Two connected Kubernetes clusters: what one can reach in the other (objects.md 8)."""

from collections.abc import Iterator

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ConnectionRefused, Request, RequestTimeout
from sandbox.world import World
from tests.joined_worlds import NORTH, SOUTH, JoinedWorlds, across

_PD = "basic-pd-0.basic-pd-peer.default.svc"


@pytest.fixture
def worlds(clock: FakeClock) -> Iterator[JoinedWorlds]:
    """A cluster in the north, none in the south."""
    made = JoinedWorlds(clock=clock)
    made.north.apply(across("basic", NORTH, pd=1, tikv=1))
    made.run_until_ready()
    yield made
    made.stop()


def asked_from_the_south(worlds: JoinedWorlds, host: str) -> int:
    request = Request("GET", f"http://{host}:2379/pd/api/v1/members", timeout=3.0)
    return worlds.south.world.data_plane_transport().request(request).status


@pytest.mark.rule("objects-8")
def test_a_pod_is_reached_from_the_other_kubernetes_under_its_domain(worlds: JoinedWorlds) -> None:
    assert 200 == asked_from_the_south(worlds, f"{_PD}.{NORTH}")
    assert 200 == asked_from_the_south(worlds, f"basic-pd-peer.default.svc.{NORTH}")


@pytest.mark.slow
@pytest.mark.parametrize("host", [_PD, f"{_PD}.{SOUTH}", f"{_PD}.elsewhere.example.com", "basic-pd.default"])
@pytest.mark.rule("objects-8")
def test_a_pod_is_not_reached_from_the_other_kubernetes_under_another_domain(worlds: JoinedWorlds, host: str) -> None:
    with pytest.raises(ConnectionRefused):
        asked_from_the_south(worlds, host)


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_the_address_of_a_service_is_local_to_its_kubernetes(worlds: JoinedWorlds) -> None:
    with pytest.raises(ConnectionRefused):
        asked_from_the_south(worlds, f"basic-pd.default.svc.{NORTH}")


@pytest.mark.slow
@pytest.mark.rule("objects-8")
def test_a_kubernetes_that_is_cut_off_is_silent_until_reconnected(worlds: JoinedWorlds) -> None:
    heal = worlds.south.world.faults.kubernetes_cut_off()
    with pytest.raises(RequestTimeout):
        asked_from_the_south(worlds, f"{_PD}.{NORTH}")
    heal()
    assert 200 == asked_from_the_south(worlds, f"{_PD}.{NORTH}")


@pytest.mark.rule("objects-8")
def test_each_kubernetes_needs_its_own_domain(worlds: JoinedWorlds) -> None:
    with pytest.raises(ValueError, match=r"two Kubernetes clusters have the domain 'north\.example\.com'"):
        World(worlds.clock, SeededRandomness(3), domain=NORTH, beside=worlds.north.world)
