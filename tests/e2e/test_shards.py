"""Many clusters: the operator in several processes that share them, and its share of the API server.

How shards are taken and given is in docs/adr/0010-shards-by-leases.md.
"""

import contextlib
from collections.abc import Iterator

import pytest
import yaml

from kube.objects import Json
from kube.resources import LEASES, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from kube.sharding import shard_of
from ports.transport import Request
from tests.e2e import operators
from tests.e2e.marks import ON_THE_REAL_ONE
from tests.e2e.operators import Operator, sample_value
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import (
    MANIFESTS,
    OPERATOR_NAMESPACE,
    SERVICE_ACCOUNT,
    Place,
    await_ready,
    create_cluster,
    sample,
)

pytestmark = pytest.mark.slow

_SHARDS = 3
_SERVED = 20.0
_PRIORITY_LEVELS = Resource(
    "flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False
)
_FLOW_SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False)


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


@ON_THE_REAL_ONE
@pytest.mark.rule("LE-13")
def test_after_one_of_three_is_killed_its_clusters_are_served_within_20_s(place: Place, namespace: str) -> None:
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
        eventually(lambda: _SHARDS == sum(_held(each) for each in replicas if each.is_running))


@pytest.mark.rule("3.2")
def test_a_cluster_that_leaves_the_selector_stays_unchanged_and_may_return(sandbox: Place) -> None:
    def labelled(version: str) -> Json:
        return {"metadata": {"labels": {"version": version}}}

    with (
        sandbox.namespace() as namespace,
        operators.running(sandbox.new_log(), sandbox.environment(), "--selector=version=canary") as operator,
    ):
        create_cluster(sandbox.client, sample("basic"), namespace)
        sandbox.client.patch(TIDB_CLUSTERS, "basic", namespace, labelled("canary") | {"spec": _labelled("first")})
        _await_served(sandbox, ["basic"], namespace, "first", 30.0)
        await_ready(sandbox, operator, "basic", namespace)
        before = sandbox.client.list_page(STATEFUL_SETS, namespace).items

        sandbox.client.patch(TIDB_CLUSTERS, "basic", namespace, labelled("stable") | {"spec": _labelled("second")})
        eventually(lambda: operator.has_said(event="TidbCluster has been deleted"))
        assert [each.metadata.uid for each in before] == [
            each.metadata.uid for each in sandbox.client.list_page(STATEFUL_SETS, namespace).items
        ]
        service = sandbox.client.get(SERVICES, "basic-pd", namespace)
        assert "first" == service.metadata.labels["touched"]

        sandbox.client.patch(TIDB_CLUSTERS, "basic", namespace, labelled("canary"))
        _await_served(sandbox, ["basic"], namespace, "second", 20.0)


@pytest.mark.controlplane
def test_the_api_server_has_seats_for_the_operator_and_others_for_its_leases(real: Place) -> None:
    resources = {each.kind: each for each in (_PRIORITY_LEVELS, _FLOW_SCHEMAS)}
    made = {}
    for tree in yaml.safe_load_all((MANIFESTS / "operator" / "flow-control.yaml").read_text()):
        created = real.client.create(resources[tree["kind"]], tree)
        made[created.metadata.uid] = f"{tree['kind']} {created.metadata.name}"
    operator = real.account(OPERATOR_NAMESPACE, SERVICE_ACCOUNT)

    def seated(path: str) -> str:
        answer = operator.request(Request("GET", path))
        assert 200 == answer.status
        return made.get(answer.headers.get("x-kubernetes-pf-flowschema-uid", ""), "")

    eventually(lambda: "FlowSchema tidb-operator-controller-manager" == seated(TIDB_CLUSTERS.path()))
    eventually(lambda: "FlowSchema tidb-operator-controller-manager-leases" == seated(LEASES.path(OPERATOR_NAMESPACE)))
    for uid, each in made.items():
        kind, name = each.split()
        real.client.delete(resources[kind], name, uid=uid)
