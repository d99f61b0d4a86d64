"""Operating a cluster: one way undisturbed, the next with an operator that is killed at random times.

All of it is done on the real control plane. In the sandbox the simulator does it, in many more ways; two scenarios tell
here that the process does there what its parts do in the simulator.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kube.errors import NotFound
from kube.objects import Json
from kube.resources import LEASES, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.randomness import SeededRandomness
from sandbox.conditions import condition, holds
from tests.e2e import operators
from tests.e2e.operators import QUICK_LEASE, Operator
from tests.e2e.waiting import eventually, pause
from tests.e2e.worlds import OPERATOR_NAMESPACE, Place, conditions, create_cluster, sample

pytestmark = pytest.mark.slow
_on_the_real_one = pytest.mark.parametrize(
    "place", [pytest.param("real", marks=pytest.mark.controlplane)], indirect=True
)

_NAME = "basic"
_KILLS = 3
_FLAGS = (*QUICK_LEASE, *(f"--{component}-failover-period=3s" for component in ("pd", "tikv", "tidb")))
_PATIENCE = 60.0

Spec = dict[str, Any]


class Scene:
    """A cluster in a namespace of a world, and the operator that works there."""

    def __init__(self, place: Place, namespace: str, running: contextlib.ExitStack) -> None:
        """`running` ends whatever was started."""
        self.place = place
        self.namespace = namespace
        self._running = running
        self._randomness = SeededRandomness(5)
        self._environment = place.environment()
        self._operator = self._start()

    def create(self, *, store_down_after: str = "30m", **replicas: int) -> None:
        """A Ready cluster of so many pods a component."""
        tree = sample(_NAME)
        for component, count in replicas.items():
            tree["spec"][component] |= {"replicas": count, "maxFailoverCount": 3}
        tree["spec"]["pd"]["config"] = f'[schedule]\nmax-store-down-time = "{store_down_after}"\n'
        create_cluster(self.place.client, tree, self.namespace)
        self.work_until(lambda: self.is_settled)

    def change(self, spec: Spec, *, kills: int = 0, done: Callable[[], bool] = lambda: True) -> None:
        """Change the spec and let operators work until the cluster is as wanted; `kills` of them die on the way."""
        self.place.client.patch(TIDB_CLUSTERS, _NAME, self.namespace, {"spec": spec})
        self.work_until(lambda: done() and self.is_settled, kills)

    def work_until(self, done: Callable[[], bool], kills: int = 0) -> None:
        """Let the operator work; `kills` times it dies on the way, and another one takes over."""
        for _ in range(kills):
            pause(self._randomness.uniform(0.0, 1.5))
            self._operator.kill()
            self._operator.wait()
            self.place.client.delete(LEASES, operators.lease_name(self._environment), OPERATOR_NAMESPACE)
            self._operator = self._start()

        def told() -> object:
            return conditions(self.place.client, _NAME, self.namespace), self._operator.said[-2000:]

        eventually(done, _PATIENCE, told)

    def _start(self) -> Operator:
        operator = self._running.enter_context(operators.running(self.place.new_log(), self._environment, *_FLAGS))
        eventually(lambda: operator.has_said(event="controller started"))
        return operator

    @property
    def cluster(self) -> Json:
        """The TidbCluster."""
        return self.place.client.get(TIDB_CLUSTERS, _NAME, self.namespace).decode()

    @property
    def is_settled(self) -> bool:
        """Whether the cluster is Ready, nothing is left to do, and the operator has seen the newest spec."""
        tree = self.cluster
        progress = condition((tree.get("status") or {}).get("conditions"), "Progressing") or {}
        return holds(tree, "Ready") and progress.get("reason") == "Done" and self._as_declared(tree)

    def _as_declared(self, tree: Json) -> bool:
        """Whether the StatefulSets say what the spec says, so that Ready is not that of the spec before."""
        for component in ("pd", "tikv", "tidb"):
            try:
                live = self.place.client.get(STATEFUL_SETS, f"{_NAME}-{component}", self.namespace).decode()
            except NotFound:
                # larger volumes: it is made anew around its pods
                return False
            image = live["spec"]["template"]["spec"]["containers"][-1]["image"]
            wanted = (tree["spec"][component]["replicas"], tree["spec"]["version"])
            if (live["spec"]["replicas"], image.rpartition(":")[2]) != wanted:
                return False
            if live["status"].get("currentRevision") != live["status"].get("updateRevision"):
                return False
        return True

    def pods(self, component: str) -> dict[str, str]:
        """The pods of a component and their UIDs."""
        return {
            pod.metadata.name: pod.metadata.uid
            for pod in self.place.client.list_page(PODS, self.namespace).items
            if pod.metadata.labels.get("app.kubernetes.io/component") == component
        }

    def images(self) -> set[str]:
        """The versions that the pods of the database run."""
        pods = [pod.decode() for pod in self.place.client.list_page(PODS, self.namespace).items]
        return {
            container["image"].rpartition(":")[2]
            for pod in pods
            for container in pod["spec"]["containers"]
            if container["name"] in ("pd", "tikv", "tidb")
        }

    def members(self) -> set[str]:
        """PD's members, as PD knows them."""
        return {member.name for member in self._pd.members.values()}

    def stores(self) -> set[str]:
        """The pods of the stores that are Up, as the status says."""
        return {s["podName"] for s in self.cluster["status"]["tikv"]["stores"].values() if s["state"] == "Up"}

    def evicting(self) -> set[int]:
        """The stores whose leaders PD keeps away."""
        return set(self._pd.stores.evicting)

    def sizes(self, component: str) -> set[str]:
        """The capacities of a component's volumes."""
        claims = [
            claim.decode() for claim in self.place.client.list_page(PERSISTENT_VOLUME_CLAIMS, self.namespace).items
        ]
        return {c["status"]["capacity"]["storage"] for c in claims if f"-{component}-" in c["metadata"]["name"]}

    @property
    def _pd(self) -> Any:
        found = self.place.data_plane.pd_cluster(self.namespace, _NAME)
        assert found is not None
        return found


@pytest.fixture
def scene(place: Place, namespace: str) -> Iterator[Scene]:
    with contextlib.ExitStack() as running:
        yield Scene(place, namespace, running)


def names(component: str, count: int) -> set[str]:
    return {f"{_NAME}-{component}-{ordinal}" for ordinal in range(count)}


@_on_the_real_one
def test_an_upgrade_restarts_each_pod_once_and_leaves_no_scheduler(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    for version, kills in (("v8.5.3", 0), ("v8.5.4", _KILLS)):
        before = {component: scene.pods(component) for component in ("pd", "tikv", "tidb")}
        scene.change({"version": version}, kills=kills)
        assert {version} == scene.images()
        assert set() == scene.evicting()
        for component, pods in before.items():
            assert pods.keys() == scene.pods(component).keys()
            assert set() == set(pods.values()) & set(scene.pods(component).values())
        assert (names("pd", 3), names("tikv", 3)) == (scene.members(), scene.stores())


@_on_the_real_one
def test_a_configuration_rolls_its_component_alone(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    others = scene.pods("pd") | scene.pods("tidb")
    for level, kills in (("warn", 0), ("info", _KILLS)):
        before = scene.pods("tikv")
        scene.change(
            {"tikv": {"config": f'[log]\nlevel = "{level}"\n'}},
            kills=kills,
            done=lambda: not set(before.values()) & set(scene.pods("tikv").values()),  # noqa: B023
        )
        assert before.keys() == scene.pods("tikv").keys()
        assert others == scene.pods("pd") | scene.pods("tidb")
        assert set() == scene.evicting()


@_on_the_real_one
@pytest.mark.parametrize("component", ["tikv", "pd"])
def test_growing_from_three_to_five_and_back(scene: Scene, component: str) -> None:
    scene.create(pd=3, tikv=3, tidb=1)
    first = scene.pods(component)
    for count, kills in ((5, 0), (3, _KILLS)):
        scene.change({component: {"replicas": count}}, kills=kills)
        eventually(lambda: names(component, count) == scene.pods(component).keys())  # noqa: B023
        found = scene.stores() if component == "tikv" else scene.members()
        assert names(component, count) == found
    assert first == scene.pods(component)
    assert set() == scene.evicting()


@_on_the_real_one
@pytest.mark.parametrize("component", ["tikv", "tidb"])
def test_a_lost_pod_gets_a_substitute(scene: Scene, component: str) -> None:
    scene.create(store_down_after="15s", pd=3, tikv=3, tidb=2)
    lost, count = f"{_NAME}-{component}-1", scene.cluster["spec"][component]["replicas"]

    def is_replaced() -> bool:
        scene.place.data_plane.crash(scene.namespace, lost)
        return names(component, count + 1) <= scene.pods(component).keys()

    scene.work_until(is_replaced, kills=_KILLS)


@_on_the_real_one
def test_a_lost_pd_comes_back_as_a_new_member(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=1)
    lost = f"{_NAME}-pd-1"
    first = scene.cluster["status"]["pd"]["members"][lost]["id"]

    def is_replaced() -> bool:
        members = scene.cluster["status"]["pd"]["members"]
        if members.get(lost, {}).get("id") == first:
            scene.place.data_plane.crash(scene.namespace, lost)
        return first not in {member["id"] for member in members.values()} and names("pd", 3) <= members.keys()

    scene.work_until(is_replaced, kills=_KILLS)


def test_a_suspended_cluster_comes_back_with_its_data(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    cluster_id = scene.cluster["status"]["clusterID"]
    claims = {c.metadata.uid for c in scene.place.client.list_page(PERSISTENT_VOLUME_CLAIMS, scene.namespace).items}
    scene.place.client.patch(
        TIDB_CLUSTERS, _NAME, scene.namespace, {"spec": {"suspendAction": {"suspendStatefulSet": True}}}
    )
    database = ("pd", "tikv", "tidb")
    scene.work_until(lambda: not any(scene.pods(component) for component in database))
    scene.change({"suspendAction": None}, kills=_KILLS)
    assert cluster_id == scene.cluster["status"]["clusterID"]
    assert claims == {
        c.metadata.uid for c in scene.place.client.list_page(PERSISTENT_VOLUME_CLAIMS, scene.namespace).items
    }


def test_volumes_grow_and_no_pod_is_restarted(scene: Scene) -> None:
    scene.create(pd=1, tikv=3, tidb=1)
    before = scene.pods("pd") | scene.pods("tikv")
    for component, kills in (("tikv", 0), ("pd", _KILLS)):
        larger = {component: {"requests": {"storage": "2Gi"}}}
        scene.change(larger, kills=kills, done=lambda: {"2Gi"} == scene.sizes(component))  # noqa: B023
        assert before == scene.pods("pd") | scene.pods("tikv")


@_on_the_real_one
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
def test_a_bad_image_and_its_revert_heal_without_a_hand(scene: Scene, component: str) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    before = scene.pods(component)
    last = max(before)

    def is_stuck() -> bool:
        return scene.pods(component).get(last, before[last]) != before[last]

    bad = {"spec": {component: {"version": "not-an-image"}}}
    scene.place.client.patch(TIDB_CLUSTERS, _NAME, scene.namespace, bad)
    scene.work_until(is_stuck)
    scene.change({component: {"version": None}}, kills=_KILLS)
    after = scene.pods(component)
    assert {pod: uid for pod, uid in before.items() if pod != last} == {p: u for p, u in after.items() if p != last}
    assert {"v8.5.2"} == scene.images()
