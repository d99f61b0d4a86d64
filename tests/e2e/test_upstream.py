"""TiDB Operator v1.6 itself on the sandbox, and before and after ours (docs/migration.md).

Its statuses need its own definition of a TidbCluster, which has no status subresource.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apis.crd import TIDB_CLUSTER, definition
from apis.ordinals import slots_annotation
from kube.resources import ADVANCED_STATEFUL_SETS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from manifests import ADVANCED_STATEFUL_SET
from sandbox.conditions import holds
from sandbox.world import load_crds
from tests.controlplane.processes import require_or_reason
from tests.e2e import operators, upstream, worlds
from tests.e2e.operators import Operator
from tests.e2e.test_observing import diff
from tests.e2e.waiting import eventually, pause
from tests.e2e.worlds import Place, await_ready, conditions, create_cluster, is_ready, sample

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NAME = "basic"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A sandbox with v1.6's definition of a TidbCluster; skips where v1.6 or etcd was not built."""
    upstream.skip_where_it_is_missing()
    if reason := require_or_reason():
        pytest.skip(reason)
    theirs = definition(TIDB_CLUSTER, status_subresource=False)
    definitions = theirs, *load_crds(ADVANCED_STATEFUL_SET)
    with worlds.sandbox(tmp_path_factory.mktemp("upstream"), definitions) as made:
        yield made


class _Cluster:
    """The cluster `basic` of a namespace."""

    def __init__(self, place: Place, namespace: str) -> None:
        self._client, self._namespace = place.client, namespace

    def create(self) -> None:
        body = sample(NAME)
        for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
            body["spec"][component]["replicas"] = replicas
        create_cluster(self._client, body, self._namespace)

    def change(self, **spec: object) -> None:
        self._client.patch(TIDB_CLUSTERS, NAME, self._namespace, {"spec": spec})

    def leave_out(self, ordinals: str | None) -> None:
        """Ask for TiKV pods without these ordinals."""
        annotations = {slots_annotation("tikv"): ordinals}
        self._client.patch(TIDB_CLUSTERS, NAME, self._namespace, {"metadata": {"annotations": annotations}})

    def stores(self) -> list[str]:
        return sorted(each.rpartition("-")[2] for each in self.servers() if "tikv" in each)

    def is_ready(self) -> bool:
        return is_ready(self._client, NAME, self._namespace)

    def ready(self, component: str) -> int:
        body = self._client.get(STATEFUL_SETS, f"{NAME}-{component}", self._namespace).decode()
        return int(body["status"].get("readyReplicas", 0))

    def versions(self) -> set[str]:
        """The images that its servers run."""
        pods = [each.decode() for each in self._client.list_page(PODS, self._namespace).items]
        images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
        return {each for each in images if ":v8." in each}

    def servers(self) -> dict[str, str]:
        """The UIDs of the pods of databases, by name."""
        pods = self._client.list_page(PODS, self._namespace).items
        return {each.metadata.name: each.metadata.uid for each in pods if "discovery" not in each.metadata.name}

    def templates(self) -> dict[str, object]:
        sets = self._client.list_page(STATEFUL_SETS, self._namespace).items
        return {each.metadata.name: each.decode()["spec"]["template"] for each in sets}


@pytest.fixture
def cluster(place: Place, namespace: str) -> _Cluster:
    return _Cluster(place, namespace)


def test_v1_6_brings_a_cluster_up_upgrades_it_and_scales_it(
    place: Place, namespace: str, cluster: _Cluster, tmp_path: Path
) -> None:
    with upstream.running(tmp_path, place.environment(), [(namespace, NAME)]) as v16:
        cluster.create()
        eventually(cluster.is_ready, 100.0, lambda: v16.said[-3000:])
        cluster.change(version="v8.5.3")
        upgraded = {f"pingcap/{each}:v8.5.3" for each in ("pd", "tikv", "tidb")}
        eventually(lambda: cluster.versions() == upgraded and cluster.is_ready(), 100.0, lambda: v16.said[-3000:])
        for pd, tikv in ((5, 4), (3, 3)):
            cluster.change(pd={"replicas": pd}, tikv={"replicas": tikv})
            eventually(
                lambda pd=pd, tikv=tikv: (
                    (cluster.ready("pd"), cluster.ready("tikv")) == (pd, tikv)  # type: ignore[misc]
                    and cluster.is_ready()
                ),
                100.0,
                lambda: v16.said[-3000:],
            )


def test_ours_takes_over_from_v1_6_and_v1_6_returns_and_no_pod_restarts(
    place: Place, namespace: str, cluster: _Cluster, tmp_path: Path
) -> None:
    environment, clusters = place.environment(), [(namespace, NAME)]
    with upstream.running(tmp_path / "before", environment, clusters) as v16:
        cluster.create()
        eventually(cluster.is_ready, 100.0, lambda: v16.said[-3000:])
        before = cluster.servers()
        _, planned, complaints = diff(environment, namespace)
        assert "" == complaints
        # discovery's image, which flags choose, and its rights, which are fewer; notes of what the others were made for
        noted = {f"statefulsets/basic-{each}" for each in ("pd", "tikv", "tidb")} | {"configmaps/basic-*"}
        assert {"deployments/basic-discovery", "roles/basic-discovery"} | noted == _objects(planned)

    with operators.running(place.new_log(), environment) as ours:
        await_progress(ours, place, namespace)
        assert before == cluster.servers()
        cluster.change(tikv={"replicas": 4})
        eventually(lambda: cluster.ready("tikv") == 4, 100.0)
        await_ready(place, ours, NAME, namespace)
        assert before.items() <= cluster.servers().items()

    after, templates = cluster.servers(), cluster.templates()
    with upstream.running(tmp_path / "after", environment, clusters) as v16:
        cluster.change(tikv={"replicas": 3})
        eventually(lambda: cluster.ready("tikv") == 3 and cluster.is_ready(), 100.0, lambda: v16.said[-3000:])
        pause(5.0)
    assert {name: uid for name, uid in after.items() if name != f"{NAME}-tikv-3"} == cluster.servers()
    assert templates == cluster.templates()


@pytest.mark.thorough
def test_ours_takes_over_delete_slots_from_v1_6_and_leaves_the_feature_and_no_pod_restarts(
    place: Place, namespace: str, cluster: _Cluster, tmp_path: Path
) -> None:
    environment, on = place.environment(), "-features=AdvancedStatefulSet=true"
    with upstream.running(tmp_path, environment, [(namespace, NAME)], on) as v16:
        cluster.create()
        eventually(cluster.is_ready, 100.0, lambda: v16.said[-3000:])
        cluster.leave_out("[1]")
        eventually(lambda: cluster.stores() == ["0", "2", "3"] and cluster.is_ready(), 100.0, lambda: v16.said[-3000:])
    before = cluster.servers()
    with operators.running(place.new_log(), environment, on) as ours:
        await_progress(ours, place, namespace)
        assert before == cluster.servers()
        cluster.leave_out(None)
        eventually(
            lambda: cluster.stores() == ["0", "1", "2"],
            60.0,
            lambda: (cluster.servers(), conditions(place.client, NAME, namespace)),
        )
        await_ready(place, ours, NAME, namespace)
    after = cluster.servers()
    assert {name: uid for name, uid in before.items() if name != f"{NAME}-tikv-3"}.items() <= after.items()

    def native() -> bool:
        return len(place.client.list_page(STATEFUL_SETS, namespace).items) == 3

    with operators.running(place.new_log(), environment) as ours:
        eventually(lambda: native() and not place.client.list_page(ADVANCED_STATEFUL_SETS, namespace).items, 60.0)
        await_ready(place, ours, NAME, namespace)
        pause(5.0)
    assert after == cluster.servers()


def _objects(planned: str) -> set[str]:
    """The objects that a difference is about."""
    lines = [line.split()[1] for line in planned.splitlines() if line.startswith("+++ ")]
    names = (line.partition("/")[2] for line in lines)
    return {"configmaps/basic-*" if name.startswith("configmaps/basic-") else name for name in names}


def await_progress(operator: Operator, place: Place, namespace: str) -> None:
    """Wait until ours has said of the cluster that it matches its spec."""
    client = place.client
    eventually(
        lambda: (
            not holds(client.get(TIDB_CLUSTERS, NAME, namespace).decode(), "Progressing")
            and operator.has_said(event="object patched", kind="Role", name="basic-discovery")
        )
    )
