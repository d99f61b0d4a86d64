"""The controllers of both kinds of StatefulSets themselves, on the real control plane, and this operator between them.

Neither may restart a pod when a StatefulSet moves (lifecycle.md 4.4): their revisions of one template must be equal.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import partial

import pytest
import yaml

from apis.ordinals import OrdinalSet
from cli import manifests
from kube.client import Client
from kube.objects import Json, is_observed
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from manifests import ADVANCED_STATEFUL_SET
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from sandbox.actor_system import ActorSystem
from sandbox.cluster import Cluster
from sandbox.controllers.stateful_set import StatefulSets
from sandbox.mirror import Mirror
from sandbox.notifier import Notifier
from sandbox.world import World, load_crds
from tests.chart.helm import Helm
from tests.contract.objects import stateful_set
from tests.e2e import operators, upstream
from tests.e2e.marks import ON_THE_REAL_ONE
from tests.e2e.waiting import CLOCK, eventually, pause
from tests.e2e.worlds import (
    OPERATOR_NAMESPACE,
    Place,
    await_ready,
    conditions,
    create_cluster,
    exists,
    is_ready,
    is_serving,
    sample,
)

pytestmark = [pytest.mark.slow, ON_THE_REAL_ONE, pytest.mark.timeout(300)]

NAME = "basic"
ON = "-features=AdvancedStatefulSet=true"
_IS_BUILT = upstream.ADVANCED_CONTROLLER.exists()


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The real control plane, the definition of Advanced StatefulSets, and their controller.

    Where the real controller was not built, the sandbox runs its own.
    """
    found: Place = request.getfixturevalue("real")
    (definition,) = load_crds(ADVANCED_STATEFUL_SET)
    name = found.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition).metadata.name
    try:
        eventually(lambda: is_serving(found.client))
        with _real_controller(found, tmp_path_factory) if _IS_BUILT else _sandboxs_controller(found.client):
            yield found
    finally:
        found.client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        eventually(lambda: not exists(found.client, CUSTOM_RESOURCE_DEFINITIONS, name))


@contextlib.contextmanager
def _real_controller(place: Place, temporary: pytest.TempPathFactory) -> Iterator[None]:
    """The real controller with the chart's rights."""
    manifests.apply(place.client, _rights(Helm(temporary.mktemp("helm"))))
    account = place.kubeconfig(OPERATOR_NAMESPACE, "advanced-statefulset-controller")
    with upstream.advanced_stateful_sets(temporary.mktemp("advanced"), account) as controller:
        yield
        # the API server learns of the definition later than the controller
        denied = [line for line in controller.said.splitlines() if "forbidden" in line and "no matches" not in line]
        assert [] == denied


@contextlib.contextmanager
def _sandboxs_controller(client: Client) -> Iterator[None]:
    """The sandbox's controller, in threads."""
    notifier, stop = Notifier(CLOCK), Stop()
    read = (ADVANCED_STATEFUL_SETS, PODS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS)
    mirror = Mirror(client, read, CLOCK, notifier)
    cluster = Cluster(mirror, client, CLOCK, SeededRandomness(1), "advanced-statefulset-controller")
    actors = ActorSystem(CLOCK, notifier, mirror, [StatefulSets(cluster, ADVANCED_STATEFUL_SETS)])
    actors.start(stop)
    try:
        yield
    finally:
        stop.set()
        actors.join()


def _rights(helm: Helm) -> list[manifests.Manifest]:
    """The account of the chart's controller and its rights."""
    made = helm.template({"advancedStatefulset.create": True, "controllerManager.create": False})
    kept = [each for each in made if each["kind"] not in ("Deployment", "CustomResourceDefinition")]
    return manifests.parse(yaml.safe_dump_all(kept).encode(), "the chart")


class _Cluster:
    """The cluster `basic` of a namespace."""

    def __init__(self, place: Place, namespace: str) -> None:
        self._client, self._namespace = place.client, namespace

    def all(self, resource: Resource) -> list[Json]:
        return [each.decode() for each in self._client.list_page(resource, self._namespace).items]

    def pods(self) -> dict[str, tuple[str, str, int]]:
        """The UID of each pod of the database, and since when its first container runs after how many restarts."""
        found = {}
        for pod in self.all(PODS):
            name, status = pod["metadata"]["name"], (pod["status"].get("containerStatuses") or [{}])[0]
            if "discovery" not in name:
                running = status.get("state", {}).get("running") or {}
                found[name] = (pod["metadata"]["uid"], running.get("startedAt", ""), status.get("restartCount", 0))
        return found

    def edit(self, component: str, replicas: int, slots: str | None) -> None:
        """Change replicas and delete slots of a component in one edit."""
        annotations = {f"{component}.tidb.pingcap.com/delete-slots": slots}
        patch: Json = {"metadata": {"annotations": annotations}, "spec": {component: {"replicas": replicas}}}
        self._client.patch(TIDB_CLUSTERS, NAME, self._namespace, patch)

    def await_pods(self, *names: str) -> dict[str, tuple[str, str, int]]:
        """The pods, once these and no others run and the cluster is Ready."""
        wanted = {f"{NAME}-{name}" for name in names}

        def are_there() -> bool:
            pods = self.pods()
            run = all(started for _, started, _ in pods.values())
            return wanted == pods.keys() and run and is_ready(self._client, NAME, self._namespace)

        eventually(are_there, 90.0, lambda: (self.pods(), conditions(self._client, NAME, self._namespace)))
        return self.pods()

    def revisions(self) -> set[str]:
        """The UIDs of the revisions."""
        return {each["metadata"]["uid"] for each in self.all(CONTROLLER_REVISIONS)}

    def told(self) -> object:
        """What a failure shows."""
        return self.owners(), self.all(STATEFUL_SETS), self.all(ADVANCED_STATEFUL_SETS)

    def owners(self) -> set[str]:
        """The groups of the StatefulSets that control pods and revisions."""
        found = [*self.all(PODS), *self.all(CONTROLLER_REVISIONS)]
        kept = (each["metadata"] for each in found if "discovery" not in each["metadata"]["name"])
        return {owner["apiVersion"] for meta in kept for owner in meta.get("ownerReferences") or [{"apiVersion": ""}]}

    def is_settled(self, resource: Resource) -> bool:
        """True if all StatefulSets are of this kind, and their pods run their newest revision."""
        other = ADVANCED_STATEFUL_SETS if resource == STATEFUL_SETS else STATEFUL_SETS
        sets = self.all(resource)
        return (
            len(sets) == 3
            and not self.all(other)
            and {resource.api_version} == self.owners()
            and all(map(_is_up_to_date, sets))
        )


def _is_up_to_date(body: Json) -> bool:
    status = body.get("status") or {}
    counts = {status.get(each, 0) for each in ("replicas", "readyReplicas", "updatedReplicas")}
    observed = status.get("observedGeneration") == body["metadata"]["generation"]
    return observed and counts == {body["spec"]["replicas"]} and status["currentRevision"] == status["updateRevision"]


@pytest.mark.rule("4.4")
def test_a_cluster_moves_changes_its_slots_and_moves_back_and_what_stays_never_restarts(
    place: Place, namespace: str
) -> None:
    cluster, body = _Cluster(place, namespace), sample(NAME)
    body["spec"]["tikv"]["replicas"] = 4
    body["spec"]["tidb"]["replicas"] = 2
    with operators.running(place.new_log(), place.environment()) as operator:
        create_cluster(place.client, body, namespace)
        await_ready(place, operator, NAME, namespace)
    first = cluster.pods()
    with operators.running(place.new_log(), place.environment(), ON):
        eventually(lambda: {ADVANCED_STATEFUL_SETS.api_version} == cluster.owners(), 120.0, cluster.owners)
        assert first == cluster.pods()
        cluster.edit("tikv", 3, "[1]")
        cluster.edit("tidb", 2, "[0]")
        scaled = cluster.await_pods("pd-0", "tikv-0", "tikv-2", "tikv-3", "tidb-1", "tidb-2")
        assert {name: first[name] for name in first.keys() & scaled.keys()}.items() <= scaled.items()
        cluster.edit("tikv", 3, None)
        cluster.edit("tidb", 2, None)
        last = cluster.await_pods("pd-0", "tikv-0", "tikv-1", "tikv-2", "tidb-0", "tidb-1")
        assert {name: scaled[name] for name in scaled.keys() & last.keys()}.items() <= last.items()
    with operators.running(place.new_log(), place.environment()) as operator:
        # the garbage collector has to notice the definition before it lets pods go
        eventually(lambda: {STATEFUL_SETS.api_version} == cluster.owners(), 120.0, cluster.owners)
        await_ready(place, operator, NAME, namespace)
    assert last == cluster.pods()


@pytest.mark.thorough
@pytest.mark.rule("4.4")
def test_clusters_move_to_the_other_kind_and_back_and_no_container_restarts(place: Place, namespace: str) -> None:
    cluster = _Cluster(place, namespace)
    body = sample(NAME)
    for component in ("pd", "tikv"):
        body["spec"][component]["replicas"] = 3
    with operators.running(place.new_log(), place.environment()) as operator:
        create_cluster(place.client, body, namespace)
        await_ready(place, operator, NAME, namespace)
        eventually(lambda: cluster.is_settled(STATEFUL_SETS), told=cluster.told)
    before, revisions = cluster.pods(), cluster.revisions()
    for flags, kind in (((ON,), ADVANCED_STATEFUL_SETS), ((), STATEFUL_SETS), ((ON,), ADVANCED_STATEFUL_SETS)):
        with operators.running(place.new_log(), place.environment(), *flags) as operator:
            eventually(partial(cluster.is_settled, kind), 120.0, cluster.told)
            await_ready(place, operator, NAME, namespace)
            pause(3.0)
            assert cluster.is_settled(kind)
        assert before == cluster.pods()
        assert revisions <= cluster.revisions()


@pytest.mark.thorough
@pytest.mark.rule("4.4")
def test_the_sandbox_has_the_same_pods_after_each_of_fifty_changes(place: Place, namespace: str) -> None:
    upstream.advanced_controller()
    ours = World(FakeClock(), SeededRandomness(1), crds=load_crds(ADVANCED_STATEFUL_SET))
    sides = [_Set(place.client, namespace), _Set(ours.client(), "default")]
    chance = SeededRandomness(44)
    try:
        for number in range(50):
            replicas, slots = chance.integer(0, 4), [chance.integer(0, 6) for _ in range(chance.integer(0, 4))]
            wanted = OrdinalSet(replicas, frozenset(slots))
            for side in sides:
                side.want(replicas, slots)
            # the first sync fails until the API server's admission knows the definition, and is then put off
            eventually(lambda: sides[0].is_settled(wanted.ordinals), 120.0, sides[0].pods)  # noqa: B023
            ours.run_until_settled()
            kept = [side.kept() for side in sides]
            assert kept[0] == kept[1], f"after change {number} to {replicas} replicas without {slots}"
    finally:
        ours.stop()


class _Set:
    """An Advanced StatefulSet in one of the worlds."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._before: dict[int, str] = {}
        body = stateful_set("db", 0, podManagementPolicy="Parallel")
        body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
        self._client.create(
            ADVANCED_STATEFUL_SETS, body | {"apiVersion": ADVANCED_STATEFUL_SETS.api_version}, namespace
        )

    def want(self, replicas: int, slots: Sequence[int]) -> None:
        """Ask for pods by one edit."""
        meta, spec = {"annotations": {"delete-slots": str([*slots])}}, {"replicas": replicas}
        self._client.patch(ADVANCED_STATEFUL_SETS, "db", self._namespace, {"metadata": meta, "spec": spec})

    def pods(self) -> dict[int, str]:
        """The UIDs of the pods by ordinal."""
        found = self._client.list_page(PODS, self._namespace).items
        return {int(each.metadata.name.removeprefix("db-")): each.metadata.uid for each in found}

    def is_settled(self, wanted: Collection[int]) -> bool:
        """True if these pods exist, all are Ready, and the controller has said so of this edit."""
        body = self._client.get(ADVANCED_STATEFUL_SETS, "db", self._namespace).decode()
        status = body.get("status") or {}
        counts = {status.get(each, 0) for each in ("replicas", "readyReplicas")}
        return is_observed(body) and {len(wanted)} == counts and {*wanted} == self.pods().keys()

    def kept(self) -> dict[int, bool]:
        """The pods, and whether each is the one of the call before."""
        before, self._before = self._before, self.pods()
        return {ordinal: before.get(ordinal) == uid for ordinal, uid in sorted(self._before.items())}
