"""Rolling upgrades and restarts, as a whole operator does them (lifecycle.md 7)."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from dataplane.addresses import Address
from dataplane.pd import PDClient
from kube.objects import Json
from kube.resources import CONFIG_MAPS, EVENTS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import FakeClock
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.faults import OUTSIDE
from tests.operator_world import NAMESPACE, OperatorWorld, sample

COMPONENTS = ("pd", "tikv", "tidb")
SECRET_THAT_IS_NOT_THERE: Json = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "no-such-secret", "key": "a"}}}


def uids(world: OperatorWorld, component: str = "") -> dict[str, str]:
    """The identity of each pod of the cluster, or of a component."""
    return {
        pod["metadata"]["name"]: pod["metadata"]["uid"]
        for pod in world.every(PODS)
        if pod["metadata"]["labels"]["app.kubernetes.io/component"] in ((component,) if component else COMPONENTS)
    }


def strategy(world: OperatorWorld, component: str) -> Json:
    found: Json = world.get(STATEFUL_SETS, f"basic-{component}")["spec"]["updateStrategy"]
    return found


def status(world: OperatorWorld, component: str) -> Json:
    found: Json = world.cluster()["status"][component]
    return found


def image(world: OperatorWorld, component: str) -> str:
    """The desired image of a component's pods."""
    found: str = world.get(STATEFUL_SETS, f"basic-{component}")["spec"]["template"]["spec"]["containers"][-1]["image"]
    return found


def message(world: OperatorWorld) -> str:
    return str(world.condition("Progressing").get("message", ""))


def says(world: OperatorWorld, text: str) -> Callable[[], bool]:
    """A condition that holds while the operator reports this wait."""
    return lambda: text in message(world)


def begin_stuck_roll(world: OperatorWorld, component: str) -> None:
    """Roll a component to a revision whose first pod does not start."""
    world.change(**{component: {"env": [SECRET_THAT_IS_NOT_THERE]}})
    world.run_until(says(world, f"waiting until pod basic-{component}-{world.replicas(component) - 1} is Ready"))


def annotate(world: OperatorWorld, **annotations: str | None) -> None:
    body = {f"tidb.pingcap.com/{key.replace('_', '-')}": value for key, value in annotations.items()}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": body}})


def config_map_in_use(world: OperatorWorld, component: str) -> str:
    """The ConfigMap that the pods of a component mount."""
    volumes = world.get(STATEFUL_SETS, f"basic-{component}")["spec"]["template"]["spec"]["volumes"]
    return next(str(volume["configMap"]["name"]) for volume in volumes if "configMap" in volume)


def times_made(world: OperatorWorld, pod: str) -> int:
    """The number of pod creations that the StatefulSet controller reports."""
    said = [each for each in world.every(EVENTS) if each["message"].startswith(f"create Pod {pod} in StatefulSet")]
    return sum(each["count"] for each in said)


def evicting(world: OperatorWorld) -> set[int]:
    """The stores that PD moves leaders away from."""
    cluster = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert cluster is not None
    return set(cluster.stores.evicting)


def store_id(world: OperatorWorld, ordinal: int) -> int:
    """The store of a TiKV pod; which of them registers first is chance."""
    stores: Json = status(world, "tikv")["stores"]
    return next(int(key) for key, store in stores.items() if store["podName"] == f"basic-tikv-{ordinal}")


def store(world: OperatorWorld, ordinal: int) -> Json:
    """The status of the store of a TiKV pod."""
    found: Json = status(world, "tikv")["stores"][str(store_id(world, ordinal))]
    return found


def marks(world: OperatorWorld) -> list[str]:
    """The traces of evictions on pods and in the status."""
    ours = ("evictLeaderBeginTime", "tidb.pingcap.com/tikv-evict-leader-end-at")
    pods = [name for pod in world.every(PODS) for name in pod["metadata"].get("annotations") or {} if name in ours]
    return pods + [
        store["podName"] for store in status(world, "tikv")["stores"].values() if "leaderCountBeforeUpgrade" in store
    ]


@pytest.fixture
def wide(clock: FakeClock) -> Iterator[OperatorWorld]:
    """Three PD, three TiKV, two TiDB, Ready; nothing is counted yet."""
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    for name, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][name]["replicas"] = replicas
    cluster["spec"]["tikv"]["evictLeaderTimeout"] = "10m"
    made.apply(cluster)
    made.run_until_ready()
    made.forget()
    yield made
    made.stop()


_THESE = {"pd": "its members", "tikv": "the TiKV stores"}


def see_no_more_than(world: OperatorWorld, write: str) -> Callable[[], None]:
    """Show the operator its own write, but no reaction of other controllers to it; returns the function that ends
    this."""
    seen = world.operator.caches[STATEFUL_SETS]
    while write not in world.writes():
        world.world.settle()
        if not world.operator.step():
            world.world.advance(0.1)
    seen.look()
    seen.blind = True

    def show() -> None:
        seen.blind = False

    return show


class Watch:
    """Notes in which order pods are replaced, and that never two of a component are away (I10)."""

    def __init__(self, world: OperatorWorld) -> None:
        self._world = world
        self._known = uids(world)
        self.replaced: list[str] = []

    def __call__(self) -> bool:
        """Look at the world, and return True, for use in a condition."""
        now = uids(self._world)
        self.replaced += [name for name, uid in now.items() if self._known.get(name, uid) != uid]
        self._known |= now
        for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
            ready = self._world.get(STATEFUL_SETS, f"basic-{component}")["status"].get("readyReplicas", 0)
            assert ready >= replicas - 1, f"only {ready} of {component} are Ready"
        return True


def finish(world: OperatorWorld, within: float = 60.0) -> list[str]:
    """Run the operator until it is idle; returns the replaced pods, in order."""
    watch = Watch(world)
    begun = world.clock.now()
    world.run_until(
        lambda: watch() and world.clock.now() > begun and world.is_ready() and world.reason() == "Done", within
    )
    return watch.replaced


# All components


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.2", "I15")
def test_an_upgrade_rolls_pd_then_tikv_then_tidb_each_pod_once(wide: OperatorWorld) -> None:
    wide.run(5.0)  # this measures the roll, not the end of the bring-up
    begun = wide.clock.now()
    wide.change(version="v8.5.9")
    replaced = finish(wide)

    order = ("pd-2", "pd-1", "pd-0", "tikv-2", "tikv-1", "tikv-0", "tidb-1", "tidb-0")
    assert [f"basic-{name}" for name in order] == replaced
    # The start script of each PD member sleeps at most three seconds, and a new leader of PD needs two to load.
    assert wide.clock.now() - begun <= 20.0
    assert {"Normal"} == {status(wide, component)["phase"] for component in COMPONENTS}
    # The partitions are above all pods again, so that no edit by another client restarts one.
    for component in COMPONENTS:
        assert wide.replicas(component) == strategy(wide, component)["rollingUpdate"]["partition"]
    assert (set(), []) == (evicting(wide), marks(wide))
    # PD's leadership moves once, to the first restarted member
    moves = [call.url for call in wide.operator.dataplane.writes() if "/leader/transfer/" in call.url]
    assert len(moves) <= 1
    assert all(url.endswith("basic-pd-2") for url in moves)
    wide.forget()
    wide.run(120.0)
    assert ([], []) == (wide.writes(), wide.operator.dataplane.writes())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "replaced_after"),
    [
        ({"tikv": {"replicas": 4}}, "tikv-1 tikv-0 tidb-1 tidb-0"),
        ({"version": "v8.6.0"}, "pd-2 pd-1 pd-0 tikv-2 tikv-1 tikv-0 tidb-1 tidb-0"),
        # pods that the roll has not reached stay untouched
        ({"version": "v8.5.2"}, "pd-2 pd-1 pd-0 tikv-2"),
    ],
    ids=["scale out", "another version", "back"],
)
@pytest.mark.rule("R24", "I32")
def test_a_second_change_during_a_roll_restarts_each_pod_at_most_once_more(
    wide: OperatorWorld, second: Json, replaced_after: str
) -> None:
    watch = Watch(wide)
    wide.change(version="v8.5.9")
    wide.run_until(lambda: watch() and watch.replaced[-1:] == ["basic-tikv-2"])
    watch.replaced.clear()
    wide.change(**second)
    begun = wide.clock.now()
    wide.run_until(lambda: watch() and wide.clock.now() > begun + 1 and wide.is_ready() and wide.reason() == "Done")

    assert [f"basic-{name}" for name in replaced_after.split()] == watch.replaced
    assert {"Normal"} == {status(wide, component)["phase"] for component in COMPONENTS}
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-14")
def test_the_restarted_at_annotation_and_a_new_configuration_restart_pods(basic: OperatorWorld) -> None:
    before = uids(basic)
    basic.change(tidb={"annotations": {"tidb.pingcap.com/restartedAt": "now"}})
    basic.run_until(lambda: basic.reason() == "RollingUpdate")
    basic.run_until_ready()
    basic.change(tikv={"config": {"log": {"level": "warn"}}})
    basic.run_until(lambda: basic.reason() == "RollingUpdate")
    basic.run_until_ready()

    after = uids(basic)
    assert {"basic-tidb-0", "basic-tikv-0"} == {name for name in before if before[name] != after[name]}


@pytest.mark.rule("F27", "#3970")
def test_a_new_config_update_strategy_restarts_no_pod(world: OperatorWorld) -> None:
    world.apply(sample("basic") | {"spec": sample("basic")["spec"] | {"configUpdateStrategy": "InPlace"}})
    world.run_until_ready()
    before = uids(world)
    world.change(tikv={"config": {"log": {"level": "warn"}}})
    world.run_until(lambda: "warn" in world.get(CONFIG_MAPS, "basic-tikv")["data"]["config-file"])
    for strategy in ("RollingUpdate", "InPlace"):
        world.change(configUpdateStrategy=strategy)
        world.run(5.0)
        assert (before, "Done") == (uids(world), world.reason())


@pytest.mark.rule("F27", "#5601", "#5602")
def test_a_recreated_stateful_set_keeps_the_config_map(basic: OperatorWorld) -> None:
    """Its name has a digest from the time of RollingUpdate; under InPlace a new one would have none."""
    before, in_use = uids(basic), config_map_in_use(basic, "tikv")
    basic.change(configUpdateStrategy="InPlace", tikv={"requests": {"storage": "2Gi"}})
    basic.run_until(lambda: bool(basic.events("SuccessfulDelete")))
    basic.run_until_ready()
    assert (before, in_use) == (uids(basic), config_map_in_use(basic, "tikv"))
    assert in_use != "basic-tikv"


@pytest.mark.slow
@pytest.mark.rule("lifecycle-4.7")
def test_phase_upgrade_lasts_until_the_last_pod_serves(basic: OperatorWorld) -> None:
    """F20: the last pod is checked like any other, and later components wait for it."""
    annotate(basic, tikv_min_ready_seconds="20")
    basic.change(version="v8.5.9")
    basic.run_until(says(basic, "tikv: waiting until pod basic-tikv-0 has been Ready for 20 s"))
    tidb = uids(basic, "tidb")
    basic.run(15.0)
    assert ("Upgrade", tidb) == (status(basic, "tikv")["phase"], uids(basic, "tidb"))
    basic.run_until_ready()
    assert tidb != uids(basic, "tidb")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1")
def test_leaves_restarts_to_the_user_under_on_delete(basic: OperatorWorld) -> None:
    basic.change(statefulSetUpdateStrategy="OnDelete")
    basic.run_until(lambda: {"type": "OnDelete"} == strategy(basic, "tidb"))
    before = uids(basic)
    basic.change(tidb={"annotations": {"a": "b"}})
    basic.run_until(says(basic, "tidb has the update strategy OnDelete"))
    basic.run(40.0)
    assert before == uids(basic)

    basic.admin.delete(PODS, "basic-tidb-0", NAMESPACE)
    basic.run_until(lambda: basic.reason() == "Done" and before != uids(basic))
    # Kubernetes never calls the newest revision the current one then
    basic.run_until_ready()
    assert "Normal" == status(basic, "tidb")["phase"]


@pytest.mark.slow
@pytest.mark.rule("F11")
def test_ordered_ready_pods_recover_from_a_bad_revision(world: OperatorWorld) -> None:
    """A StatefulSet with OrderedReady never replaces a pod that is not Ready (Kubernetes 67250)."""
    cluster = sample("basic")
    cluster["spec"] |= {"podManagementPolicy": "OrderedReady"}
    cluster["spec"]["tidb"]["replicas"] = 2
    world.apply(cluster)
    world.run_until_ready()
    world.change(tidb={"nodeSelector": {"no-such": "label"}})
    world.run_until(says(world, "waiting until pod basic-tidb-1 is Ready"))
    world.change(tidb={"nodeSelector": None})
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("F11")
def test_pods_recover_from_a_bad_revision_although_kubernetes_replaces_no_unready_pod(
    wide: OperatorWorld, component: str
) -> None:
    """The first StatefulSets of Kubernetes 1.35 do not, side by side either (Kubernetes 137904)."""
    wide.world.faults.one_unavailable_at_most()
    begin_stuck_roll(wide, component)
    wide.change(**{component: {"env": None}})
    wide.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("I29")
def test_writes_nothing_while_a_quota_blocks_a_pod_of_a_stuck_roll(wide: OperatorWorld) -> None:
    """To write the update strategy turn by turn would be as fast as the API server answers."""
    begin_stuck_roll(wide, "tidb")
    allow = wide.world.faults.creation_refused("pods", "basic-tidb-0")
    wide.admin.delete(PODS, "basic-tidb-0", NAMESPACE)
    wide.run(10.0)
    before = wide.get(STATEFUL_SETS, "basic-tidb")["metadata"]["generation"]
    wide.run(60.0)
    assert before == wide.get(STATEFUL_SETS, "basic-tidb")["metadata"]["generation"]
    allow()
    wide.change(tidb={"env": None})
    wide.run_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("component", ["tikv", "tidb"])
@pytest.mark.rule("F11")
def test_a_server_that_crashes_during_a_bad_roll_keeps_the_good_revision(wide: OperatorWorld, component: str) -> None:
    begin_stuck_roll(wide, component)
    before = uids(wide, component)
    wide.world.faults.pod_crash(f"{NAMESPACE}/basic-{component}-0")
    wide.run(60.0)
    assert before == uids(wide, component)
    wide.change(**{component: {"env": None}})
    wide.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("F11")
def test_recreates_a_pod_lost_during_a_bad_roll_on_the_good_revision(wide: OperatorWorld, component: str) -> None:
    """Two pods of a bad revision would be a lost majority, or no server at all."""
    begin_stuck_roll(wide, component)
    lost, before = f"basic-{component}-0", uids(wide, component)
    wide.admin.delete(PODS, lost, NAMESPACE)
    wide.run_until(lambda: uids(wide, component).get(lost, before[lost]) != before[lost])
    wide.run(30.0)
    pod = wide.get(PODS, lost)
    assert "no-such-secret" not in str(pod["spec"])
    assert {"Ready": "True"}.items() <= {each["type"]: each["status"] for each in pod["status"]["conditions"]}.items()
    wide.change(**{component: {"env": None}})
    wide.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-3.2")
def test_does_not_continue_a_paused_roll(basic: OperatorWorld) -> None:
    basic.world.faults.pod_pending(f"{NAMESPACE}/basic-tikv-0")
    basic.change(version="v8.5.9")
    basic.run_until(says(basic, "basic-tikv-0 is Ready"))
    basic.change(paused=True)
    basic.run_until(lambda: basic.reason() == "Paused")
    basic.world.faults.heal()
    before = uids(basic, "tidb")
    basic.run(20.0)
    assert before == uids(basic, "tidb")
    basic.change(paused=False)
    basic.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("I16")
def test_a_recreated_pod_does_not_take_a_new_version_early(wide: OperatorWorld) -> None:
    wide.world.faults.image_missing("pingcap/pd:v8.5.9")
    wide.change(version="v8.5.9")
    wide.run_until(says(wide, "pd: waiting until pod basic-pd-2 is Ready"))
    wide.admin.delete(PODS, "basic-tidb-0", NAMESPACE)
    wide.run(20.0)
    assert "pingcap/tidb:v8.5.2" == image(wide, "tidb")

    # but one that can't start is replaced at once (F11)
    wide.world.faults.image_missing("pingcap/tidb:v8.5.2")
    wide.admin.delete(PODS, "basic-tidb-0", NAMESPACE)
    wide.run_until(lambda: image(wide, "tidb") == "pingcap/tidb:v8.5.9")
    wide.change(version="v8.5.3")
    wide.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("F9", "#784", "#830")
def test_restarts_no_pod_before_the_revision_of_the_new_template_is_known(wide: OperatorWorld) -> None:
    """Until the StatefulSet controller has named it, every pod seems to run the newest revision."""
    before = uids(wide)
    wide.change(pd={"annotations": {"a": "b"}})
    show = see_no_more_than(wide, "patch statefulsets.apps basic-pd")
    wide.run_until(says(wide, "waiting for the StatefulSet controller to report the newest revision"))
    wide.run(20.0)
    assert (3, before) == (strategy(wide, "pd")["rollingUpdate"]["partition"], uids(wide))

    show()
    assert ["basic-pd-2", "basic-pd-1", "basic-pd-0"] == finish(wide)


@pytest.mark.slow
@pytest.mark.rule("F10", "#5551")
def test_neither_rolls_nor_waits_for_a_new_stateful_set(wide: OperatorWorld) -> None:
    """Its pods were there before it, and it does not know yet which revision they run."""
    before = uids(wide)
    wide.admin.delete(STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    show = see_no_more_than(wide, "create statefulsets.apps ")
    wide.run(20.0)
    assert ("Normal", set(), []) == (status(wide, "tikv")["phase"], evicting(wide), marks(wide))

    show()
    wide.run_until_ready()
    assert (before, []) == (uids(wide), wide.operator.dataplane.writes())


@pytest.mark.slow
@pytest.mark.rule("F21", "#4739")
def test_an_interrupted_roll_continues_at_its_partition(wide: OperatorWorld) -> None:
    """A partition above pods that were restarted would bring them back as they were before."""
    wide.world.faults.pod_pending(f"{NAMESPACE}/basic-tidb-1")
    wide.change(tidb={"annotations": {"a": "b"}})
    wide.run_until(says(wide, "tidb: waiting until pod basic-tidb-1 is Ready"))
    wide.change(tikv={"replicas": 4, "annotations": {"a": "b"}})
    wide.run_until(lambda: status(wide, "tikv")["phase"] == "Upgrade")
    before = uids(wide, "tidb")
    wide.admin.delete(PODS, "basic-tidb-1", NAMESPACE)
    partitions = [1]

    def note() -> bool:
        partition = strategy(wide, "tidb")["rollingUpdate"]["partition"]
        if partition != partitions[-1]:
            partitions.append(partition)
        return True

    wide.run_until(lambda: note() and uids(wide, "tidb").keys() == before.keys())
    again = uids(wide, "tidb")["basic-tidb-1"]
    wide.world.faults.heal()
    wide.run_until(lambda: note() and wide.is_ready() and wide.reason() == "Done")
    assert ([1, 0, 2], again) == (partitions, uids(wide, "tidb")["basic-tidb-1"])


@pytest.mark.slow
@pytest.mark.rule("F21", "#901")
def test_a_pod_missing_at_a_second_change_gets_the_newest_revision(wide: OperatorWorld) -> None:
    """All others have been restarted; with the partition above them it would restart on the oldest revision."""
    release = wide.world.faults.pod_terminating(f"{NAMESPACE}/basic-pd-0")
    wide.change(pd={"config": {"log": {"level": "warn"}}})
    wide.run_until(lambda: "deletionTimestamp" in wide.get(PODS, "basic-pd-0")["metadata"])
    wide.change(pd={"config": {"log": {"level": "error"}}})
    wide.run(10.0)
    made = times_made(wide, "basic-pd-0")
    release()
    finish(wide)
    assert made + 1 == times_made(wide, "basic-pd-0")


# PD


@pytest.mark.slow
@pytest.mark.rule("I12", "F13")
def test_restarts_a_pd_pod_when_the_others_form_a_quorum_and_another_leads(wide: OperatorWorld) -> None:
    wide.world.faults.network_cut(f"{NAMESPACE}/basic-pd-0", "*", refuse=True)
    wide.run_until(lambda: not status(wide, "pd")["members"]["basic-pd-0"].get("health"))
    pods = uids(wide, "pd")
    wide.change(pd={"annotations": {"a": "b"}})
    missing = "without pod basic-pd-2, only 1 of PD's 3 members would be healthy, but a quorum needs 2"
    quorum = f"{missing}; waiting for basic-pd-0"
    wide.run_until(says(wide, quorum))
    wide.run(60.0)
    assert pods == uids(wide, "pd")

    wide.world.faults.heal()
    finish(wide, 120.0)
    assert not set(pods.values()) & set(uids(wide, "pd").values())


@pytest.mark.slow
@pytest.mark.rule("F13")
def test_leaves_a_roll_of_two_pds_to_the_user(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = 2
    world.apply(cluster)
    world.run_until_ready()
    before = uids(world, "pd")
    world.change(pd={"annotations": {"a": "b"}})
    world.run_until(says(world, "scale PD to 3, or set the annotation tidb.pingcap.com/pd-check-quorum-before-upgrade"))
    assert before == uids(world, "pd")
    annotate(world, pd_check_quorum_before_upgrade="false")
    world.run_until(lambda: not set(before.values()) & set(uids(world, "pd").values()))
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.1")
def test_a_single_pd_that_answers_with_errors_is_restarted_when_the_user_asks(basic: OperatorWorld) -> None:
    before = uids(basic, "pd")
    basic.world.faults.pd_answers(f"{NAMESPACE}/basic", 500)
    basic.run_until(lambda: not status(basic, "pd").get("synced"))
    basic.change(pd={"annotations": {"a": "b"}})
    basic.run(20.0)
    assert before == uids(basic, "pd")
    annotate(basic, force_upgrade="true")
    basic.run_until(lambda: before != uids(basic, "pd"))
    basic.world.faults.heal()
    basic.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("F11", "#1241")
def test_corrects_a_single_pd_that_never_started(world: OperatorWorld) -> None:
    world.world.faults.image_missing("*:v0.0.0-missing")
    world.apply(sample("basic") | {"spec": sample("basic")["spec"] | {"version": "v0.0.0-missing"}})
    world.run(60.0)
    assert not world.cluster()["status"]["pd"].get("synced")
    world.change(version="v8.5.2")
    world.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("F24", "#4721")
def test_finds_pd_members_by_short_and_long_names(world: OperatorWorld) -> None:
    """A member takes its long name, as across Kubernetes clusters, when it is restarted: in between there are both."""
    cluster = sample("basic")
    cluster["spec"]["pd"]["replicas"] = 3
    world.apply(cluster)
    world.run_until_ready()
    for change in ({"acrossK8s": True}, {"pd": {"annotations": {"a": "b"}}}):
        before = uids(world, "pd")
        world.forget()
        world.change(**change)
        world.run_until(lambda before=before: not set(before.values()) & set(uids(world, "pd").values()))  # type: ignore[misc]
        world.run_until_ready(within=120.0)
        assert {f"basic-pd-{n}.basic-pd-peer.default.svc" for n in range(3)} == set(status(world, "pd")["members"])
        assert any("/leader/transfer/" in call.url for call in world.operator.dataplane.writes())


@pytest.mark.slow
@pytest.mark.rule("lifecycle-6.1")
def test_force_upgrade_restarts_a_silent_pd(wide: OperatorWorld) -> None:
    before = uids(wide, "pd")
    wide.world.faults.pd_answers(f"{NAMESPACE}/basic", 500)
    wide.run_until(lambda: not status(wide, "pd").get("synced"))
    wide.change(pd={"annotations": {"a": "b"}})
    wide.run(20.0)
    assert before == uids(wide, "pd")
    annotate(wide, force_upgrade="true")
    wide.run_until(lambda: not set(before.values()) & set(uids(wide, "pd").values()))


# TiKV


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.4", "I11")
def test_evicts_leaders_first_and_counts_the_rest_in_the_condition(wide: OperatorWorld) -> None:
    thaw = wide.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    before = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"a": "b"}})
    left, two = store(wide, 2)["leaderCount"], store_id(wide, 2)
    wide.run_until(says(wide, f"evicting leaders from pod basic-tikv-2 (store {two}): {left} left, timeout at 20"))
    wide.run(100.0)
    assert (before, {two}, ["evictLeaderBeginTime", "basic-tikv-2"]) == (
        uids(wide, "tikv"),
        evicting(wide),
        marks(wide),
    )
    thaw()
    assert ["basic-tikv-2", "basic-tikv-1", "basic-tikv-0"] == finish(wide)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.parametrize(("component", "path"), [("pd", "members"), ("tikv", "stores")])
def test_a_wait_names_why_the_state_of_a_component_is_unknown(wide: OperatorWorld, component: str, path: str) -> None:
    answers = wide.world.faults.pd_answers(f"{NAMESPACE}/basic", 500, path=f"/pd/api/v1/{path}*")
    wide.change(**{component: {"annotations": {"a": "b"}}})
    wide.run_until(lambda: f"waiting for PD to report {_THESE[component]}" in wide.progressing)
    assert f"/pd/api/v1/{path}" in wide.progressing
    assert wide.progressing.endswith("error response 500")
    answers()
    assert [f"basic-{component}-{ordinal}" for ordinal in (2, 1, 0)] == finish(wide)


@pytest.mark.slow
@pytest.mark.rule("F15")
def test_evicts_no_other_store_while_leaders_cannot_return_to_the_previous_one(
    wide: OperatorWorld,
) -> None:
    """Else the last of them has no store to give its leaders to."""
    answers = wide.world.faults.pd_answers(f"{NAMESPACE}/basic", 500, path="/pd/api/v1/schedulers/*", method="DELETE")
    before, two = uids(wide, "tikv"), store_id(wide, 2)
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: "cannot give the pods of tikv back what they served: DELETE" in wide.progressing)
    wide.run(200.0)
    restarted = {pod for pod, uid in uids(wide, "tikv").items() if uid != before[pod]}
    assert ({two}, {"basic-tikv-2"}) == (evicting(wide), restarted)
    assert "error response 500" in wide.progressing
    answers()
    assert ["basic-tikv-1", "basic-tikv-0"] == finish(wide)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("F15")
def test_waits_with_polls_while_a_new_leader_of_pd_runs_no_schedulers(wide: OperatorWorld) -> None:
    """A back-off would last as long again as PD needs to load them."""
    before = uids(wide, "tikv")
    loaded = wide.world.faults.pd_answers(f"{NAMESPACE}/basic", 200, b"[]", path="/pd/api/v1/schedulers", method="GET")
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: wide.reason() == "SchedulersUnknown")
    wide.run(60.0)
    assert (before, "SchedulersUnknown") == (uids(wide, "tikv"), wide.reason())
    assert "cannot prepare pod basic-tikv-2 for its restart" in message(wide)
    assert "PD runs no schedulers" in message(wide)
    loaded()
    wide.run_until(lambda: {store_id(wide, 2)} == evicting(wide), 7.0)


@pytest.mark.slow
@pytest.mark.rule("F15", "#1200", "#3722")
def test_keeps_leaders_away_until_the_pod_serves_again(wide: OperatorWorld) -> None:
    stores = {f"basic-tikv-{ordinal}": store_id(wide, ordinal) for ordinal in range(3)}
    before = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"a": "b"}})
    begun: set[int] = set()

    def looked() -> bool:
        begun.update(evicting(wide))
        pods = {pod["metadata"]["name"]: pod for pod in wide.every(PODS)}
        for name, number in stores.items():
            if number in begun and not serves_anew(pods.get(name), before[name]):
                assert number in evicting(wide)
        return True

    wide.run_until(lambda: looked() and begun == set(stores.values()) and wide.is_ready() and wide.reason() == "Done")
    assert (set(), []) == (evicting(wide), marks(wide))


def serves_anew(pod: Json | None, before: str) -> bool:
    """True if a pod is new and Ready."""
    if pod is None or pod["metadata"]["uid"] == before:
        return False
    conditions = pod["status"].get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["the count stays", "the count is silent", "PD agrees and evicts nothing"])
@pytest.mark.rule("R20", "F14", "#4071", "F18", "#4034")
def test_an_endless_eviction_times_out_with_an_event(wide: OperatorWorld, trouble: str) -> None:
    if trouble == "PD agrees and evicts nothing":
        wide.world.faults.pd_lies(f"{NAMESPACE}/basic", "no-leaders-are-evicted", "all")
    wide.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    if trouble == "the count is silent":
        silence = Fault(Trouble.BLACK_HOLE, f"{NAMESPACE}/basic-tikv-*", path="/metrics")
        wide.world.faults.network_fault(silence)
    wide.change(tikv={"evictLeaderTimeout": "60s", "annotations": {"a": "b"}})
    begun = wide.clock.now()
    wide.run_until(lambda: bool(wide.events("EvictLeaderTimeout")), 120.0)
    assert 60.0 <= wide.clock.now() - begun <= 75.0
    assert (
        f"evicting leaders from pod basic-tikv-2 (store {store_id(wide, 2)}): "
        in wide.events("EvictLeaderTimeout")[0]["message"]
    )
    wide.world.faults.heal()
    finish(wide, 120.0)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("R20", "I32")
def test_a_cancelled_upgrade_leaves_nothing_behind(wide: OperatorWorld) -> None:
    wide.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    before = uids(wide)
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: evicting(wide) == {store_id(wide, 2)})
    wide.change(tikv={"annotations": {"a": None}})
    finish(wide)
    assert (before, set(), []) == (uids(wide), evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("F17", "#5614", "#5613")
def test_recreates_an_eviction_scheduler_that_vanished_from_pd(wide: OperatorWorld) -> None:
    wide.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    pd = PDClient(wide.world.data_plane_transport(), Address("http://basic-pd.default:2379"))
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: evicting(wide) == {store_id(wide, 2)})
    pd.end_evict_leaders(store_id(wide, 2))
    wide.run(20.0)
    assert {store_id(wide, 2)} == evicting(wide)
    wide.change(tikv={"annotations": {"a": None}})
    finish(wide)
    assert set() == evicting(wide)


@pytest.mark.slow
@pytest.mark.rule("F16")
def test_removes_a_reappearing_scheduler_from_a_store_that_the_operator_evicted(wide: OperatorWorld) -> None:
    pd = PDClient(wide.world.data_plane_transport(), Address("http://basic-pd.default:2379"))
    wide.change(tikv={"annotations": {"a": "b"}})
    finish(wide)
    own = store_id(wide, 0)
    pd.begin_evict_leaders(own)
    wide.forget()
    wide.run(60.0)
    assert set() == evicting(wide)
    told = f"removed the evict-leader scheduler of store {own} (pod basic-tikv-0): nothing requests it"
    assert [told] == [event["message"] for event in wide.events("LeaderEvictionEnded")]


@pytest.mark.slow
@pytest.mark.rule("F16")
def test_leaves_foreign_schedulers_alone_and_reports_them_once(wide: OperatorWorld) -> None:
    wide.register_store("foreign-tikv-0.foreign-tikv-peer.default.svc:20160", {"engine": "tiflash"})
    wide.run(5.0)
    pd = PDClient(wide.world.data_plane_transport(), Address("http://basic-pd.default:2379"))
    theirs = {max(store.id for store in pd.stores()), store_id(wide, 0)}
    for each in theirs:
        pd.begin_evict_leaders(each)
    wide.run(700.0)
    assert theirs == evicting(wide)
    (told,) = wide.events("LeadersEvictedByOthers")
    assert f"store {store_id(wide, 0)} (pod basic-tikv-0) leads no regions" in told["message"]
    assert 1 == told["count"]


@pytest.mark.slow
@pytest.mark.rule("F14", "F44")
def test_a_clock_jump_does_not_shorten_the_eviction_timeout(wide: OperatorWorld) -> None:
    wide.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    before = uids(wide)
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: evicting(wide) == {store_id(wide, 2)})
    wide.clock.jump(timedelta(hours=1))
    wide.run(500.0)
    assert (before, []) == (uids(wide), wide.events("EvictLeaderTimeout"))
    wide.run_until(lambda: bool(wide.events("EvictLeaderTimeout")), 120.0)
    wide.world.faults.heal()
    finish(wide, 120.0)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("F13")
def test_the_next_pod_waits_until_the_store_has_reported_since_its_restart(wide: OperatorWorld) -> None:
    wide.world.faults.pod_slow(f"{NAMESPACE}/basic-tikv-*", 15.0)
    before = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"a": "b"}})
    what = says(wide, "waiting until pod basic-tikv-2 has reported to PD since its restart")
    wide.run_until(what, 60.0)
    assert "Up" == store(wide, 2)["state"]
    wide.run(10.0)
    assert ["basic-tikv-2"] == [pod for pod, uid in uids(wide, "tikv").items() if before[pod] != uid]
    wide.run_until_ready(within=300.0)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("F13")
def test_waits_for_a_store_that_answers_no_client_before_pd_and_kubernetes_notice(wide: OperatorWorld) -> None:
    for fault in (
        Fault(Trouble.BLACK_HOLE, f"{NAMESPACE}/basic-tikv-0"),
        Fault(Trouble.BLACK_HOLE, origin=f"{NAMESPACE}/basic-tikv-0"),
    ):
        wide.world.faults.network_fault(fault)
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(says(wide, f"store {store_id(wide, 0)} (basic-tikv-0) does not answer"), 10.0)
    assert "Up" == store(wide, 0)["state"]
    before = uids(wide, "tikv")
    wide.run(30.0)
    assert ("Disconnected", before) == (store(wide, 0)["state"], uids(wide, "tikv"))


@pytest.mark.slow
@pytest.mark.rule("F13")
def test_does_not_wait_for_a_store_that_only_the_operator_cannot_reach(wide: OperatorWorld) -> None:
    """PD hears from it every ten seconds."""
    before = uids(wide, "tikv")
    silence = Fault(Trouble.BLACK_HOLE, f"{NAMESPACE}/basic-tikv-0", origin=OUTSIDE, port=20180)
    wide.world.faults.network_fault(silence)
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(says(wide, f"store {store_id(wide, 0)} (basic-tikv-0) does not answer"), 10.0)
    wide.run_until(lambda: before["basic-tikv-2"] != uids(wide, "tikv").get("basic-tikv-2"), 20.0)
    wide.run_until(lambda: before["basic-tikv-1"] != uids(wide, "tikv").get("basic-tikv-1"), 20.0)


@pytest.mark.slow
@pytest.mark.rule("F13")
def test_asks_no_store_whether_a_pod_may_go_that_already_leaves(wide: OperatorWorld) -> None:
    """Of 50 stores, each poll asked 49 for as long as the pod took to stop."""
    wide.world.faults.pod_terminating(f"{NAMESPACE}/basic-tikv-2")
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(says(wide, "waiting for pod basic-tikv-2 to be recreated"), 20.0)
    wide.operator.dataplane.requests.clear()
    wide.run(20.0)
    asked = [request.url for request in wide.operator.dataplane.requests]
    assert any("/stores" in url for url in asked)
    assert [] == [url for url in asked if "20180" in url]


@pytest.mark.slow
@pytest.mark.rule("F19", "#4335")
def test_restarts_a_single_tikv_without_an_eviction(basic: OperatorWorld) -> None:
    before = uids(basic, "tikv")
    basic.change(tikv={"annotations": {"a": "b"}})
    basic.run_until(lambda: before != uids(basic, "tikv"))
    basic.run_until_ready()
    assert [] == basic.operator.dataplane.writes()


@pytest.mark.slow
@pytest.mark.rule("F20", "#5544")
def test_leaders_return_to_the_last_pod_when_it_has_been_ready_long_enough(wide: OperatorWorld) -> None:
    annotate(wide, tikv_min_ready_seconds="20")
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(says(wide, "tikv: waiting until pod basic-tikv-0 has been Ready for 20 s"), 90.0)
    wide.run(15.0)
    assert ({store_id(wide, 0)}, "Upgrade") == (evicting(wide), status(wide, "tikv")["phase"])
    finish(wide)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("R17")
def test_restarts_nothing_while_pd_has_no_leader(wide: OperatorWorld) -> None:
    old = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: uids(wide, "tikv") != old)
    elect = wide.world.faults.pd_no_leader(f"{NAMESPACE}/basic")
    wide.run(30.0)
    before = uids(wide)
    wide.run(570.0)
    assert before == uids(wide)
    elect()
    finish(wide, 200.0)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("R02", "F16", "#4483", "#4522")
def test_leaves_no_scheduler_although_the_operator_restarts_at_any_moment(wide: OperatorWorld) -> None:
    before = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"a": "b"}})
    watch = Watch(wide)
    for _ in range(40):
        if wide.is_ready() and wide.reason() == "Done" and before != uids(wide, "tikv"):
            break
        wide.forget()
        wide.run_until(lambda: watch() and bool(wide.writes()))
        wide.restart()
    wide.run_until_ready(within=120.0)
    assert ["basic-tikv-2", "basic-tikv-1", "basic-tikv-0"] == watch.replaced
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.4")
def test_a_store_gets_two_thirds_of_its_leaders_back_before_the_next_one_goes(wide: OperatorWorld) -> None:
    cluster = wide.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert cluster is not None
    cluster.stores.split(900, wide.clock.now())
    wide.run_until(lambda: min(s["leaderCount"] for s in status(wide, "tikv")["stores"].values()) >= 250, 300.0)
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(says(wide, "waiting until pod basic-tikv-2 leads its regions again ("), 120.0)
    before = store(wide, 2)["leaderCountBeforeUpgrade"]
    wide.run_until(lambda: evicting(wide) == {store_id(wide, 1)}, 120.0)
    assert store(wide, 2)["leaderCount"] >= before * 2 // 3
    wide.world.faults.regions_frozen(f"{NAMESPACE}/basic")
    wide.change(tikv={"evictLeaderTimeout": "30s", "waitLeaderTransferBackTimeout": "40s"})
    wide.run_until_ready(within=600.0)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("F12")
def test_a_roll_ends_despite_a_lost_pod_and_its_substitute(wide: OperatorWorld) -> None:
    wide.world.faults.pod_pending(f"{NAMESPACE}/basic-tikv-2")
    wide.admin.delete(PODS, "basic-tikv-2", NAMESPACE)
    wide.run_until(lambda: store(wide, 2)["state"] == "Down", 2400.0)
    lost = str(store_id(wide, 2))
    record = {"failureStores": {lost: {"podName": "basic-tikv-2", "storeID": lost}}}
    wide.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"status": {"tikv": record}}, subresource="status")
    wide.run_until(lambda: status(wide, "tikv")["statefulSet"].get("readyReplicas") == 3)
    before = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"a": "b"}})
    watch = Watch(wide)
    wide.run_until(lambda: watch() and len(set(watch.replaced)) == 4, 120.0)
    wide.run_until(lambda: status(wide, "tikv")["phase"] == "Normal", 120.0)

    assert not set(before.values()) & set(uids(wide, "tikv").values())
    assert ["basic-tikv-3", "basic-tikv-1", "basic-tikv-0"] == [name for name in watch.replaced if name[-1] != "2"]
    assert "RollingUpdate" == strategy(wide, "tikv")["type"]
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("R19")
def test_members_of_pd_that_contradict_each_other_move_no_store_to_another_pod(wide: OperatorWorld) -> None:
    two = str(store_id(wide, 2))
    pods: set[str] = set()
    labels: set[str] = set()
    for _ in range(20):
        heal = wide.world.faults.pd_lies(f"{NAMESPACE}/basic", "stores-are-swapped", "all", "basic-tikv-2")
        wide.run(20.0)
        heal()
        wide.run(20.0)
        pods.add(status(wide, "tikv")["stores"][two]["podName"])
        labels.add(wide.get(PODS, "basic-tikv-2")["metadata"]["labels"]["tidb.pingcap.com/store-id"])
    assert ({"basic-tikv-2"}, {two}) == (pods, labels)


@pytest.mark.slow
@pytest.mark.rule("R19")
def test_believes_that_two_stores_have_swapped_their_pods_after_half_a_minute(wide: OperatorWorld) -> None:
    two = str(store_id(wide, 2))
    wide.world.faults.pd_lies(f"{NAMESPACE}/basic", "stores-are-swapped", "all", "basic-tikv-2")
    wide.run_until(says(wide, f"store {two} at pod basic-tikv-1, until now at basic-tikv-2; ignoring its answer"), 40.0)
    assert status(wide, "tikv")["stores"][two]["podName"] == "basic-tikv-2"
    wide.run_until(lambda: status(wide, "tikv")["stores"][two]["podName"] != "basic-tikv-2", 60.0)


@pytest.mark.slow
@pytest.mark.rule("R19")
def test_keeps_an_eviction_while_pd_reports_no_stores(wide: OperatorWorld) -> None:
    wide.change(tikv={"annotations": {"a": "b"}})
    wide.run_until(lambda: strategy(wide, "tikv")["rollingUpdate"]["partition"] == 2)
    heal, two = wide.world.faults.pd_no_stores(f"{NAMESPACE}/basic"), store_id(wide, 2)
    wide.run_until(says(wide, "PD reports no stores, not even 1, 4, 5"))
    wide.run(20.0)
    assert (["basic-tikv-2"], {two}) == (marks(wide), evicting(wide))
    heal()
    assert ["basic-tikv-2", "basic-tikv-1", "basic-tikv-0"] == sorted({"basic-tikv-2", *finish(wide)}, reverse=True)
    assert (set(), []) == (evicting(wide), marks(wide))


@pytest.mark.slow
@pytest.mark.rule("I16")
def test_a_component_that_cannot_begin_its_roll_delays_its_successors(basic: OperatorWorld) -> None:
    allow = basic.world.faults.creation_refused("configmaps", "basic-pd-*")
    basic.change(version="v8.5.9", pd={"config": {"log": {"level": "warn"}}})
    basic.run(60.0)
    assert ("pingcap/tikv:v8.5.2", "pingcap/tidb:v8.5.2") == (image(basic, "tikv"), image(basic, "tidb"))
    assert "exceeded quota" in message(basic)

    allow()
    basic.run_until(lambda: image(basic, "pd") == "pingcap/pd:v8.5.9")
    assert "pingcap/tikv:v8.5.2" == image(basic, "tikv")
    basic.run_until_ready()
    assert "pingcap/tidb:v8.5.9" == image(basic, "tidb")
