"""The API server refuses an edit of a running cluster: the operator still manages its pods (lifecycle.md 9, F21). A
taken node port, a quota or a policy on images may last, and pods are lost meanwhile."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dataplane.addresses import Address
from dataplane.pd import PDClient
from kube.objects import Json
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, ROLES, SERVICES, STATEFUL_SETS, Resource
from member.context import FailoverSettings
from rehearsal.operator import SETTINGS
from sandbox.apiserver.refusals import forbidden
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

_PERIOD = 60.0
_IMAGE = "v8.5.3"
_WANTED = {"pd": 3, "tikv": 3, "tidb": 2}
_REFUSED = {
    "image": (STATEFUL_SETS, _IMAGE, {"version": _IMAGE}),
    "configuration": (CONFIG_MAPS, "warn", {"config": {"log": {"level": "warn"}}}),
}
"""A refusal by a policy: the resource, the text in it, and the edit that adds this text."""


@pytest.fixture(name="world")
def _world() -> Iterator[OperatorWorld]:
    periods = FailoverSettings(pd_period=_PERIOD, tikv_period=_PERIOD, tidb_period=_PERIOD)
    world = OperatorWorld(settings=replace(SETTINGS, failover=periods))
    tree = sample("basic")
    for component, count in _WANTED.items():
        tree["spec"][component] |= {"replicas": count, "maxFailoverCount": 3}
    tree["spec"]["pd"]["config"] = {"schedule": {"max-store-down-time": "1m"}}
    world.apply(tree)
    world.run_until_ready(within=120.0)
    yield world
    world.stop()


def refuse(world: OperatorWorld, resource: Resource, text: str) -> Callable[[], None]:
    """Let a policy refuse objects that contain a text; returns the function that ends it."""

    def policy(of: Resource, tree: Json, _: Json | None) -> None:
        if of == resource and text in str(tree.get("spec") or tree.get("data")):
            raise forbidden(resource, tree["metadata"]["name"], "admission webhook denied the request")

    world.world.server.webhooks.append(policy)
    return lambda: world.world.server.webhooks.remove(policy)


def lose(world: OperatorWorld, component: str) -> None:
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-{component}-1")


def has_substitute(world: OperatorWorld, component: str) -> bool:
    pods = [pod for pod in world.every(PODS) if pod["metadata"]["name"].startswith(f"basic-{component}-")]
    return len([pod for pod in pods if "True" == _ready(pod)]) >= _WANTED[component]


def _ready(pod: Json) -> str:
    return next((each["status"] for each in pod["status"].get("conditions") or () if each["type"] == "Ready"), "")


@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.parametrize("which", _REFUSED)
def test_replaces_a_lost_pod_although_the_new_template_is_refused(
    world: OperatorWorld, component: str, which: str
) -> None:
    resource, text, edit = _REFUSED[which]
    allow = refuse(world, resource, text)
    before = world.get(STATEFUL_SETS, f"basic-{component}")["spec"]["template"]
    world.change(**{component: edit})
    world.run_until(lambda: world.reason() == "Forbidden")
    lose(world, component)
    world.run(30.0)
    message = world.condition("Progressing")["message"]
    assert "denied the request; " in message
    assert f"basic-{component}-1" in message

    world.run_until(lambda: has_substitute(world, component), 400.0)

    assert before == world.get(STATEFUL_SETS, f"basic-{component}")["spec"]["template"]
    assert "Forbidden" == world.reason()
    allow()
    world.world.faults.heal()
    world.run_until(lambda: text in str(world.get(STATEFUL_SETS, f"basic-{component}")) or which != "image", 90.0)


@pytest.mark.parametrize("component", ["pd", "tidb"])
def test_replaces_a_lost_pod_although_a_service_is_refused_during_a_scale_out(
    world: OperatorWorld, component: str
) -> None:
    refuse(world, SERVICES, "LoadBalancer")
    world.change(**{component: {"service": {"type": "LoadBalancer"}}})
    world.run_until(lambda: world.reason() == "Forbidden")
    lose(world, component)
    world.run_until(lambda: has_substitute(world, component), 400.0)
    world.change(tidb={"replicas": 3})
    world.run_until(lambda: world.replicas("tidb") >= 3, 60.0)


@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("F4")
def test_replaces_a_lost_pod_although_another_owner_took_over_a_service(world: OperatorWorld, component: str) -> None:
    name = f"basic-{component}-peer"
    rival = world.admin.create(CONFIG_MAPS, {"metadata": {"name": "rival"}}, NAMESPACE).metadata
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "rival", "uid": rival.uid, "controller": True}
    world.admin.patch(SERVICES, name, NAMESPACE, {"metadata": {"ownerReferences": [owner]}})
    world.run_until(lambda: world.reason() == "ForeignOwner")
    lose(world, component)
    world.run_until(lambda: has_substitute(world, component), 400.0)
    message = world.condition("Progressing")["message"]
    assert f"services default/{name} exists and is controlled by ConfigMap rival" in message

    world.world.faults.heal()
    world.admin.patch(SERVICES, name, NAMESPACE, {"metadata": {"ownerReferences": []}})
    world.run_until(lambda: world.reason() != "ForeignOwner", 35.0)


@pytest.mark.rule("I13")
def test_finishes_a_started_roll_although_the_next_edit_is_refused(world: OperatorWorld) -> None:
    refuse(world, CONFIG_MAPS, "warn")
    first = world.get(PODS, "basic-tikv-2")["metadata"]["uid"]
    world.change(tikv={"version": _IMAGE})
    world.run_until(lambda: world.get(PODS, "basic-tikv-2")["metadata"]["uid"] != first)
    world.change(tikv={"config": {"log": {"level": "warn"}}})

    world.run(300.0)

    assert "Forbidden" == world.reason()
    assert world.is_ready()
    images = {pod["spec"]["containers"][0]["image"] for pod in world.every(PODS) if "tikv" in pod["metadata"]["name"]}
    assert {f"pingcap/tikv:{_IMAGE}"} == images
    pd = PDClient(world.world.data_plane_transport(), Address("http://basic-pd.default:2379"))
    assert frozenset() == pd.evicting_stores()


@pytest.mark.rule("I39")
def test_resumes_ddl_when_the_service_of_an_upgrade_is_refused(world: OperatorWorld) -> None:
    refuse(world, SERVICES, "LoadBalancer")
    first = world.get(PODS, "basic-tidb-1")["metadata"]["uid"]
    world.change(tidb={"version": _IMAGE})
    world.run_until(lambda: world.get(PODS, "basic-tidb-1")["metadata"]["uid"] != first)
    world.change(tidb={"service": {"type": "LoadBalancer"}})
    world.run(300.0)
    assert "Forbidden" == world.reason()
    assert not [key for key in world.cluster()["metadata"].get("annotations") or {} if "smooth-upgrade" in key]


def test_retries_a_refused_write_with_growing_delays_that_delay_nothing_else(
    world: OperatorWorld,
) -> None:
    refuse(world, STATEFUL_SETS, _IMAGE)
    world.change(tidb={"version": _IMAGE})
    world.run(60.0)
    lose(world, "tikv")
    world.forget()
    world.run(600.0)
    refused = [write for write in world.writes() if write.startswith("patch statefulsets") and "tidb" in write]
    assert 5 <= len(refused) <= 15
    assert 4 == world.replicas("tikv")


def approve(world: OperatorWorld) -> None:
    """A policy that requires an annotation in pod templates, and a client that adds it to TiKV's."""

    def policy(of: Resource, tree: Json, old: Json | None) -> None:
        if of == STATEFUL_SETS and old is not None and "approved" not in str(tree["spec"]["template"]):
            raise forbidden(of, tree["metadata"]["name"], "admission webhook denied the request: not approved")

    world.world.server.webhooks.append(policy)
    template = {"metadata": {"annotations": {"approved": "yes"}}}
    world.admin.patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, {"spec": {"template": template}})


def uids(world: OperatorWorld, component: str) -> set[str]:
    pods = (pod["metadata"] for pod in world.every(PODS))
    return {each["uid"] for each in pods if each["name"].startswith(f"basic-{component}-")}


def made_again(world: OperatorWorld, component: str, propagation: str) -> None:
    """A user deletes a StatefulSet, and the operator recreates it."""
    name = f"basic-{component}"
    before = world.get(STATEFUL_SETS, name)["metadata"]["uid"]
    world.admin.delete(STATEFUL_SETS, name, NAMESPACE, propagation=propagation)
    world.run_until(
        lambda: world.exists(STATEFUL_SETS, name) and before != world.get(STATEFUL_SETS, name)["metadata"]["uid"], 30.0
    )


@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
def test_replaces_a_lost_pod_although_the_spec_mounts_a_new_volume(world: OperatorWorld, component: str) -> None:
    world.change(**{component: {"additionalVolumeMounts": [{"name": "nowhere", "mountPath": "/x"}]}})
    world.run_until(lambda: world.reason().startswith("FailedUpdate"))
    lose(world, component)
    world.run_until(lambda: has_substitute(world, component), 400.0)
    assert "mounts nowhere" in world.condition("Progressing")["message"]


@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("F10")
def test_recreates_a_deleted_stateful_set_as_its_pods_run_if_the_new_template_is_refused(
    world: OperatorWorld, component: str
) -> None:
    allow, before = refuse(world, STATEFUL_SETS, _IMAGE), uids(world, component)
    world.change(**{component: {"version": _IMAGE}})
    world.run_until(lambda: world.reason() == "Forbidden")
    made_again(world, component, "Orphan")
    world.run(60.0)

    assert before == uids(world, component)
    assert "Forbidden" == world.reason()
    assert world.is_ready()
    allow()
    world.run_until_ready(within=300.0)
    assert before.isdisjoint(uids(world, component))


@pytest.mark.parametrize("propagation", ["Background", "Orphan"])
def test_recreates_a_deleted_stateful_set_although_a_service_edit_is_refused(
    world: OperatorWorld, propagation: str
) -> None:
    refuse(world, SERVICES, "LoadBalancer")
    world.change(tidb={"service": {"type": "LoadBalancer"}})
    world.run_until(lambda: world.reason() == "Forbidden")
    made_again(world, "tidb", propagation)
    world.run_until(world.is_ready, 90.0)
    assert "Forbidden" == world.reason()


def test_recreates_a_deleted_service_immediately_although_another_edit_is_refused(
    world: OperatorWorld,
) -> None:
    refuse(world, SERVICES, "LoadBalancer")
    world.change(tidb={"service": {"type": "LoadBalancer"}})
    world.run(200.0)
    world.admin.delete(SERVICES, "basic-tidb-peer", NAMESPACE)
    world.run_until(lambda: world.exists(SERVICES, "basic-tidb-peer"), 3.0)


@pytest.mark.rule("R27")
def test_a_foreign_edit_that_a_policy_protects_neither_restarts_pods_nor_blocks_failover(
    world: OperatorWorld,
) -> None:
    before = uids(world, "tikv")
    approve(world)
    world.run(30.0)
    assert "not approved" in world.condition("Progressing")["message"]
    lose(world, "tikv")
    world.run_until(lambda: has_substitute(world, "tikv"), 400.0)
    assert before < uids(world, "tikv")
    world.world.faults.heal()
    world.world.server.webhooks.clear()
    world.run_until(lambda: "approved" not in str(world.get(STATEFUL_SETS, "basic-tikv")["spec"]["template"]), 90.0)
    world.run(120.0)
    assert before <= uids(world, "tikv")


def test_recreates_discovery_objects_although_its_role_cannot_be_changed(world: OperatorWorld) -> None:
    def policy(of: Resource, tree: Json, old: Json | None) -> None:
        if of == ROLES and old is not None and tree["rules"]:
            raise forbidden(of, tree["metadata"]["name"], "admission webhook denied the request")

    world.world.server.webhooks.append(policy)
    world.admin.patch(ROLES, "basic-discovery", NAMESPACE, {"rules": []})
    world.run_until(lambda: world.reason() == "Forbidden")
    world.run(120.0)
    world.admin.delete(SERVICES, "basic-discovery", NAMESPACE)
    world.admin.delete(DEPLOYMENTS, "basic-discovery", NAMESPACE)
    world.run_until(lambda: world.exists(SERVICES, "basic-discovery"), 3.0)
    world.run_until(lambda: world.exists(DEPLOYMENTS, "basic-discovery"), 3.0)


@pytest.mark.parametrize("component", ["tikv", "tidb"])
@pytest.mark.parametrize("which", _REFUSED)
@pytest.mark.rule("F10")
def test_recreates_a_vanished_stateful_set_unchanged_if_the_new_template_is_refused(
    world: OperatorWorld, component: str, which: str
) -> None:
    resource, text, edit = _REFUSED[which]
    refuse(world, resource, text)
    name = f"basic-{component}"
    before, pods = world.get(STATEFUL_SETS, name)["spec"]["template"], _uids(world)
    world.change(**{component: edit})
    world.run_until(lambda: world.reason() == "Forbidden")
    world.admin.delete(STATEFUL_SETS, name, NAMESPACE, propagation="Orphan")
    world.run(60.0)
    assert (before, pods) == (world.get(STATEFUL_SETS, name)["spec"]["template"], _uids(world))
    assert "Forbidden" == world.reason()
    lose(world, component)
    world.run_until(lambda: has_substitute(world, component), 400.0)


def _uids(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def test_retries_refused_objects_of_running_pods_with_growing_delays(
    world: OperatorWorld,
) -> None:
    refuse(world, STATEFUL_SETS, "pingcap/tikv")
    world.change(tikv={"version": _IMAGE, "replicas": 5})
    world.run(60.0)
    world.forget()
    world.run(300.0)
    assert 1 <= world.writes().count("patch statefulsets.apps basic-tikv") <= 16


def test_a_continued_roll_reports_its_own_cause_and_not_the_refused_one(world: OperatorWorld) -> None:
    refuse(world, STATEFUL_SETS, "v8.5.9")
    first = world.get(PODS, "basic-tikv-2")["metadata"]["uid"]
    world.change(tikv={"version": _IMAGE})
    world.run_until(lambda: world.get(PODS, "basic-tikv-2")["metadata"]["uid"] != first)
    world.change(tikv={"version": "v8.5.9"})
    world.run(300.0)
    assert "Forbidden" == world.reason()
    told = [each for reason in ("RestartingPod", "RollFinished") for each in world.messages(reason)]
    assert any("basic-tikv-0" in each for each in told)
    assert [] == [each for each in told if "v8.5.9" in each]
