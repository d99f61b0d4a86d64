"""Operating a cluster: once undisturbed, once with an operator that is killed at random times. Each operation runs on
the real control plane, and at the same time in the simulator, without kills: both end in the same state. The simulator
covers many more cases; two scenarios show here that the process behaves like its parts in the simulator."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controller_manager.flags import parse
from controller_manager.tidb import settings_of
from kube.resources import LEASES, TIDB_CLUSTERS
from ports.randomness import SeededRandomness
from simulate.judge.end_state import differing
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD, ON_THE_REAL_ONE
from tests.e2e.operators import QUICK_LEASE, Operator
from tests.e2e.sides import NAME, Side, Twin
from tests.e2e.waiting import eventually, pause
from tests.e2e.worlds import OPERATOR_NAMESPACE, Place, conditions, create_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_KILLS = 2
_SOON = ("--resync-duration=8s", *(f"--{component}-failover-period=3s" for component in ("pd", "tikv", "tidb")))
"""Shorter periods for waits of minutes."""
_PATIENCE = 60.0

Spec = dict[str, Any]


class Scene:
    """A cluster in a namespace of a world, the operator that works there, and the cluster's twin in the simulator."""

    def __init__(self, place: Place, namespace: str, running: contextlib.ExitStack) -> None:
        """`running` ends the processes that this scene starts."""
        self.here = Side(place.client, place.world, namespace)
        self._place = place
        self._running = running
        self._randomness = SeededRandomness(5)
        self._environment = place.environment()
        self._operator = self._start()
        self.twin = Twin(settings_of(parse(_SOON, self._environment, version="")))

    def create(self, *, store_down_after: str = "30m", **replicas: int) -> None:
        """A Ready cluster with this many pods per component."""
        tree = sample(NAME)
        for component, count in replicas.items():
            tree["spec"][component] |= {"replicas": count, "maxFailoverCount": 3}
        tree["spec"]["pd"]["config"] = f'[schedule]\nmax-store-down-time = "{store_down_after}"\n'
        for side in self.sides:
            create_cluster(side.client, tree, side.namespace)
        self.work_until(lambda side: side.is_settled)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Here, and in the simulator."""
        return self.here, self.twin.side

    def edit(self, spec: Spec) -> None:
        """The user's action, on both sides."""
        for side in self.sides:
            side.client.patch(TIDB_CLUSTERS, NAME, side.namespace, {"spec": spec})

    def change(self, spec: Spec, *, kills: int = 0, done: Callable[[Side], bool] = lambda _: True) -> None:
        """Change the spec and let operators work until the cluster is as wanted; `kills` of them die on the way."""
        self.edit(spec)
        self.work_until(lambda side: done(side) and side.is_settled, kills)

    def work_until(self, done: Callable[[Side], bool], kills: int = 0) -> None:
        """Let the operator work; it is killed `kills` times on the way, and another one takes over."""
        for _ in range(kills):
            pause(self._randomness.uniform(0.0, 1.5))
            self._operator.kill()
            self._operator.wait()
            self._place.client.delete(LEASES, operators.lease_name(self._environment), OPERATOR_NAMESPACE)
            self._operator = self._start()
        self.twin.work_until(done)
        eventually(lambda: done(self.here), _PATIENCE, self._told)

    def ends_as_simulated(self, *, beside: str = "/") -> None:
        """Wait until the cluster has the twin's end state; an object `beside` may differ from the twin's."""
        wanted = self.twin.side.end_state()

        def others() -> dict[str, tuple[str | None, str | None]]:
            found = self.here.end_state()
            paths = (path for path in sorted(differing(found, wanted)) if not path.startswith(f"{beside}."))
            return {path: (found.get(path), wanted.get(path)) for path in paths}

        eventually(lambda: not others(), _PATIENCE, lambda: (others(), *self._told()))

    def _start(self) -> Operator:
        log = self._place.new_log()
        operator = self._running.enter_context(
            operators.running(log, self._environment, *QUICK_LEASE, *_SOON),
        )
        eventually(lambda: operator.has_said(event="controller started"))
        return operator

    def _told(self) -> tuple[object, ...]:
        return conditions(self.here.client, NAME, self.here.namespace), self._operator.said[-2000:]


@pytest.fixture
def scene(place: Place, namespace: str) -> Iterator[Scene]:
    with contextlib.ExitStack() as running:
        yield Scene(place, namespace, running)


def names(component: str, count: int) -> set[str]:
    return {f"{NAME}-{component}-{ordinal}" for ordinal in range(count)}


@ON_THE_REAL_ONE
def test_an_upgrade_restarts_each_pod_once_and_leaves_no_scheduler(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    for version, kills in (("v8.5.3", 0), ("v8.5.4", _KILLS)):
        before = {component: scene.here.pods(component) for component in ("pd", "tikv", "tidb")}
        scene.change({"version": version}, kills=kills)
        assert {version} == scene.here.images()
        assert set() == scene.here.evicting()
        for component, pods in before.items():
            assert pods.keys() == scene.here.pods(component).keys()
            assert set() == set(pods.values()) & set(scene.here.pods(component).values())
        assert (names("pd", 3), names("tikv", 3)) == (scene.here.members(), scene.here.stores())
    scene.ends_as_simulated()


@pytest.mark.thorough
@ON_THE_REAL_ONE
def test_a_configuration_rolls_its_component_alone(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    others = scene.here.pods("pd") | scene.here.pods("tidb")
    for level, kills in (("warn", 0), ("info", _KILLS)):
        before = scene.here.pods("tikv")
        scene.change(
            {"tikv": {"config": f'[log]\nlevel = "{level}"\n'}},
            kills=kills,
            done=lambda side: not set(before.values()) & set(side.pods("tikv").values()),  # noqa: B023
        )
        assert before.keys() == scene.here.pods("tikv").keys()
        assert others == scene.here.pods("pd") | scene.here.pods("tidb")
        assert set() == scene.here.evicting()
    scene.ends_as_simulated()


@ON_THE_REAL_ONE
def test_growing_from_three_to_five_and_back(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=1)
    for component in ("tikv", "pd"):
        first = scene.here.pods(component)
        for count, kills in ((5, 0), (3, _KILLS)):
            scene.change({component: {"replicas": count}}, kills=kills)
            eventually(lambda: names(component, count) == scene.here.pods(component).keys())  # noqa: B023
            found = scene.here.stores() if component == "tikv" else scene.here.members()
            assert names(component, count) == found
        assert first == scene.here.pods(component)
        assert set() == scene.here.evicting()
    scene.ends_as_simulated()


@ON_THE_REAL_ONE
def test_a_lost_store_gets_a_substitute(scene: Scene) -> None:
    scene.create(store_down_after="12s", pd=3, tikv=3, tidb=2)
    lost = f"{NAME}-tikv-1"

    def is_down(side: Side) -> bool:
        side.lose(lost)
        return lost in side.stores("Down")

    def is_replaced(side: Side) -> bool:
        side.lose(lost)
        return names("tikv", 4) <= side.pods("tikv").keys()

    scene.work_until(is_down)
    scene.work_until(is_replaced, kills=_KILLS)
    scene.ends_as_simulated()


@pytest.mark.thorough
@ON_THE_REAL_ONE
def test_a_lost_tidb_gets_a_substitute(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)

    def is_replaced(side: Side) -> bool:
        side.lose(f"{NAME}-tidb-1")
        return names("tidb", 3) <= side.pods("tidb").keys()

    scene.work_until(is_replaced, kills=_KILLS)
    scene.ends_as_simulated()


@pytest.mark.thorough
@ON_THE_REAL_ONE
def test_a_lost_pd_returns_as_a_new_member(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=1)
    lost = f"{NAME}-pd-1"
    first = {side.pd_ids()[lost] for side in scene.sides}

    def is_replaced(side: Side) -> bool:
        ids = side.pd_ids()
        if ids.get(lost) in first:
            side.lose(lost)
        return not first & set(ids.values()) and names("pd", 3) <= ids.keys()

    scene.work_until(is_replaced, kills=_KILLS)
    # the pod that served meanwhile may be gone before its claim has got labels
    scene.ends_as_simulated(beside=f"persistentvolumeclaims/pd-{NAME}-pd-3")


@pytest.mark.thorough
@IN_ONE_WORLD
def test_a_suspended_cluster_resumes_with_its_data(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    cluster_id = scene.here.cluster["status"]["clusterID"]
    claims = scene.here.claims()
    scene.edit({"suspendAction": {"suspendStatefulSet": True}})
    scene.work_until(lambda side: not any(side.pods(component) for component in ("pd", "tikv", "tidb")), kills=1)
    scene.change({"suspendAction": None}, kills=_KILLS)
    assert cluster_id == scene.here.cluster["status"]["clusterID"]
    assert claims == scene.here.claims()
    scene.ends_as_simulated()


@pytest.mark.thorough
@IN_ONE_WORLD
def test_volumes_grow_and_no_pod_is_restarted(scene: Scene) -> None:
    scene.create(pd=1, tikv=3, tidb=1)
    before = scene.here.pods("pd") | scene.here.pods("tikv")
    for component in ("tikv", "pd"):
        larger = {component: {"requests": {"storage": "2Gi"}}}
        scene.change(larger, kills=_KILLS, done=lambda side: {"2Gi"} == side.sizes(component))  # noqa: B023
        assert before == scene.here.pods("pd") | scene.here.pods("tikv")
    scene.ends_as_simulated()


@pytest.mark.thorough
@ON_THE_REAL_ONE
def test_a_bad_image_and_its_revert_heal_without_a_hand(scene: Scene) -> None:
    scene.create(pd=3, tikv=3, tidb=2)
    for side in scene.sides:
        side.lack_image("not-an-image")
    for component in ("pd", "tikv", "tidb"):
        before = scene.here.pods(component)
        last = max(before)
        scene.edit({component: {"version": "not-an-image"}})
        scene.work_until(lambda side: "not-an-image" in side.images())
        scene.change({component: {"version": None}}, kills=_KILLS)
        after = scene.here.pods(component)
        kept = {pod: uid for pod, uid in before.items() if pod != last}
        assert kept == {pod: uid for pod, uid in after.items() if pod != last}
        assert {"v8.5.2"} == scene.here.images()
    # in the simulator the image is bad for longer than PD's failover period, which leaves the claim of a substitute
    scene.ends_as_simulated(beside=f"persistentvolumeclaims/pd-{NAME}-pd-3")
