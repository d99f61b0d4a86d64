"""The operator in several processes that share the clusters (docs/adr/0010-shards-by-leases.md)."""

import contextlib
from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import SERVICES, TIDB_CLUSTERS
from kube.sharding import shard_of
from tests.e2e import operators
from tests.e2e.operators import Operator, sample_value
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import Place, create_cluster, sample

pytestmark = pytest.mark.slow

_SHARDS = 3
_SERVED = 20.0


def _held(operator: Operator) -> int:
    return int(sample_value(operator.page("/metrics")[1], "tidb_operator_shards_held", {}))


@contextlib.contextmanager
def _replicas(place: Place) -> Iterator[list[Operator]]:
    environment = place.environment()
    with contextlib.ExitStack() as running:
        yield [
            running.enter_context(operators.running(place.new_log(), environment, f"--shards={_SHARDS}"))
            for _ in range(_SHARDS)
        ]


def _one_of_each_shard(namespace: str) -> list[str]:
    """Names of clusters, one in each shard."""
    names = [f"c{number}" for number in range(50)]
    return [next(each for each in names if shard_of(f"{namespace}/{each}", _SHARDS) == n) for n in range(_SHARDS)]


def _labelled(value: str) -> Json:
    return {"pd": {"service": {"labels": {"touched": value}}}}


def _await_served(place: Place, names: list[str], namespace: str, value: str, within: float) -> None:
    def served() -> bool:
        services = [place.client.find(SERVICES, f"{name}-pd", namespace) for name in names]
        return all(each is not None and each.metadata.labels.get("touched") == value for each in services)

    eventually(served, within)


@pytest.mark.parametrize("place", [pytest.param("real", marks=pytest.mark.controlplane)], indirect=True)
def test_LE_13_one_of_three_is_killed_and_its_clusters_are_served_within_20_s(place: Place, namespace: str) -> None:
    with _replicas(place) as replicas:
        eventually(lambda: [1, 1, 1] == [_held(each) for each in replicas], 60.0, lambda: replicas[0].said[-3000:])
        names = _one_of_each_shard(namespace)
        for name in names:
            tree = sample("basic")
            tree["metadata"]["name"] = name
            tree["spec"]["pd"] |= _labelled("first")["pd"]
            create_cluster(place.client, tree, namespace)
        _await_served(place, names, namespace, "first", 30.0)
        replicas[1].kill()
        killed = CLOCK.now()
        for name in names:
            place.client.patch(TIDB_CLUSTERS, name, namespace, {"spec": _labelled("second")})
        _await_served(place, names, namespace, "second", _SERVED)
        print(f"served {CLOCK.now() - killed:.1f} s after the kill")  # noqa: T201
        assert _SHARDS == sum(_held(each) for each in replicas if each.is_running)
