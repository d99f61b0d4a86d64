"""Edits of StatefulSets by other clients: no pod restarts for them, and the operator writes its own spec back (I42)."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

COMPONENTS = ("pd", "tikv", "tidb")

Edit = Callable[[Json], object]


def container(spec: Json) -> Json:
    found: Json = spec["template"]["spec"]["containers"][-1]
    return found


EDITS: Mapping[str, Edit] = {
    "image": lambda spec: container(spec).update(image="pingcap/nobody:v1"),
    "variable": lambda spec: container(spec)["env"].append({"name": "BY", "value": "hand"}),
    "resources": lambda spec: container(spec).update(resources={"limits": {"cpu": "1"}}),
    "label": lambda spec: spec["template"]["metadata"]["labels"].update(by="hand"),
    "annotation": lambda spec: spec["template"]["metadata"]["annotations"].update(by="hand"),
    "grace period": lambda spec: spec["template"]["spec"].update(terminationGracePeriodSeconds=1),
    "volumes": lambda spec: spec["template"]["spec"]["volumes"].append({"name": "more", "emptyDir": {}}),
    "partition": lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=0),
    "a high partition": lambda spec: spec["updateStrategy"]["rollingUpdate"].update(partition=7),
    "OnDelete": lambda spec: spec.update(updateStrategy={"type": "OnDelete"}),
    "claims go": lambda spec: spec.update(
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"}
    ),
    "minReadySeconds": lambda spec: spec.update(minReadySeconds=30),
}


@pytest.fixture
def wide(clock: FakeClock) -> Iterator[OperatorWorld]:
    """Three PD, three TiKV, two TiDB, rolled once."""
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    for name, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][name]["replicas"] = replicas
    made.apply(cluster)
    made.run_until_ready()
    yield made
    made.stop()


def edit_stateful_set(world: OperatorWorld, component: str, edit: Edit) -> None:
    """Edit as `kubectl edit` does."""
    body = world.get(STATEFUL_SETS, f"basic-{component}")
    edit(body["spec"])
    world.admin.replace(STATEFUL_SETS, f"basic-{component}", NAMESPACE, body)


def uids(world: OperatorWorld, component: str) -> dict[str, str]:
    found = (pod["metadata"] for pod in world.every(PODS))
    return {meta["name"]: meta["uid"] for meta in found if meta["name"].startswith(f"basic-{component}-")}


def spec_of(world: OperatorWorld, component: str) -> Json:
    spec: Json = world.get(STATEFUL_SETS, f"basic-{component}")["spec"]
    return spec


def run_watched(world: OperatorWorld, component: str, until: Callable[[], bool], within: float = 300.0) -> None:
    """Let time pass; two pods of the component must never be away at once."""

    def watched() -> bool:
        pods = [pod for pod in world.every(PODS) if pod["metadata"]["name"].startswith(f"basic-{component}-")]
        away = [pod["metadata"]["name"] for pod in pods if not _is_ready(pod)]
        assert len(away) + world.replicas(component) - len(pods) <= 1, f"{away} are away"
        return until()

    world.run_until(watched, within)


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def is_half_way(world: OperatorWorld, component: str) -> bool:
    """True if all pods are Ready, and some of them restarted."""
    body = world.get(STATEFUL_SETS, f"basic-{component}")
    status, spec = body["status"], body["spec"]
    updated: int = status.get("updatedReplicas", 0)
    observed = status["observedGeneration"] == body["metadata"]["generation"]
    return bool(observed) and 0 < updated < spec["replicas"] == status.get("readyReplicas")


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.rule("I42")
def test_reverts_a_foreign_edit_without_restarting_a_pod(wide: OperatorWorld, component: str) -> None:
    before = uids(wide, component), spec_of(wide, component)
    for edit in EDITS.values():
        edit_stateful_set(wide, component, edit)
        wide.run(20.0)
        assert before == (uids(wide, component), spec_of(wide, component))
        # a status that returns is written up to half a minute late
        wide.run_until(lambda: (wide.is_ready(), wide.reason()) == (True, "Done"), 40.0)
    assert len(EDITS) - 2 == len(
        wide.events("ForeignEdit")
    )  # a partition that would restart fewer pods is raised as well


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("which", ["image", "variable", "partition", "a high partition", "OnDelete"])
@pytest.mark.rule("I42")
def test_reverts_a_foreign_edit_during_a_roll(wide: OperatorWorld, component: str, which: str) -> None:
    """Kubernetes has begun to restart the pods above the partition; no other pod restarts, and the cluster recovers."""
    slowly = {"metadata": {"annotations": {f"tidb.pingcap.com/{component}-min-ready-seconds": "5"}}}
    wide.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, slowly)
    wide.change(**{component: {"annotations": {"roll": "1"}}})
    wide.run_until(lambda: is_half_way(wide, component))
    wanted = spec_of(wide, component)["template"]
    edit_stateful_set(wide, component, EDITS[which])
    run_watched(wide, component, lambda: wide.is_ready() and wide.reason() == "Done")
    spec = spec_of(wide, component)
    assert wanted == spec["template"]
    assert {"type": "RollingUpdate", "rollingUpdate": {"partition": spec["replicas"]}} == spec["updateStrategy"]
    status = wide.get(STATEFUL_SETS, f"basic-{component}")["status"]
    assert (spec["replicas"], status["updateRevision"]) == (status["updatedReplicas"], status["currentRevision"])


@pytest.mark.rule("I42")
def test_reverts_a_foreign_template_and_partition_while_pd_is_silent(wide: OperatorWorld) -> None:
    """Undoing an edit needs no data plane."""
    wide.world.faults.pd_answers(f"{NAMESPACE}/basic", 500)
    wide.run(30.0)
    before = uids(wide, "tikv")

    def edit(spec: Json) -> None:
        EDITS["variable"](spec)
        EDITS["partition"](spec)

    edit_stateful_set(wide, "tikv", edit)
    wide.run(60.0)
    after = uids(wide, "tikv")
    # Kubernetes was as fast as the operator, once
    assert len({name for name in before if before[name] != after.get(name)}) <= 1
    wide.world.faults.heal()
    run_watched(wide, "tikv", lambda: wide.is_ready() and wide.reason() == "Done")


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("with_record", [True, False])
@pytest.mark.rule("I42")
def test_reverts_the_template_of_a_stateful_set_that_a_client_recreated(
    wide: OperatorWorld, component: str, with_record: bool
) -> None:
    """Its pods were left to it; Kubernetes begins to restart them at once, and must stop."""
    name = f"basic-{component}"
    body = wide.get(STATEFUL_SETS, name)
    wanted, meta = spec_of(wide, component), body["metadata"]
    body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": body["spec"]} | {
        "metadata": {key: meta[key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences")}
    }
    if not with_record:
        del body["metadata"]["annotations"]
    EDITS["variable"](body["spec"])
    EDITS["partition"](body["spec"])
    wide.admin.delete(STATEFUL_SETS, name, NAMESPACE, propagation="Orphan")
    wide.world.run_until_settled()
    wide.admin.create(STATEFUL_SETS, body, NAMESPACE)
    run_watched(wide, component, lambda: wide.is_ready() and wide.reason() == "Done")
    spec = spec_of(wide, component)
    assert wanted["template"]["spec"]["containers"] == spec["template"]["spec"]["containers"]
    assert wanted["updateStrategy"] == spec["updateStrategy"]


@pytest.mark.rule("I42")
def test_a_restart_requested_in_the_spec_is_not_reverted(wide: OperatorWorld) -> None:
    before = uids(wide, "tikv")
    wide.change(tikv={"annotations": {"tidb.pingcap.com/restartedAt": "2026-01-01T00:00"}})
    wide.run(5.0)
    run_watched(wide, "tikv", lambda: wide.is_ready() and wide.reason() == "Done")
    assert not set(before.values()) & set(uids(wide, "tikv").values())


@pytest.mark.rule("I42")
def test_corrects_a_changed_config_map_in_place(wide: OperatorWorld) -> None:
    before = uids(wide, "tikv")
    name = next(
        each["metadata"]["name"] for each in wide.every(CONFIG_MAPS) if "basic-tikv" in each["metadata"]["name"]
    )
    data = wide.get(CONFIG_MAPS, name)["data"]
    wide.admin.patch(CONFIG_MAPS, name, NAMESPACE, {"data": {"config-file": "by = 'hand'\n", "startup-script": "exit"}})
    wide.run(20.0)
    assert (data, before) == (wide.get(CONFIG_MAPS, name)["data"], uids(wide, "tikv"))
    assert (True, "Done") == (wide.is_ready(), wide.reason())
