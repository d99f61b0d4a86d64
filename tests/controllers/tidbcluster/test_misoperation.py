"""A bad spec and the way back: the cluster recovers by itself after the correction (reliability.md R23, O6;
lifecycle.md F11).

Each of eight mistakes is made in one component in steady state, in another one in the middle of a roll, and in all of
them by `make simulate` (family `mistake`). None costs more than one pod at a time, and no pod needs to be deleted by
hand.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from tests.operator_world import OperatorWorld, sample

pytestmark = pytest.mark.slow

REPLICAS = {"pd": 3, "tikv": 3, "tidb": 2}
MISSING = "v0.0.0-missing"
WITHIN = 600.0
"""Virtual seconds from the correction to a cluster that is Ready and has no work left."""

_NOWHERE = {"matchExpressions": [{"key": "no-such-label", "operator": "Exists"}]}
_AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NOWHERE]}}}
_SECRET = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "no-such-secret", "key": "password"}}}
_VOLUME = {"name": "more", "storageSize": "1Gi", "mountPath": "/more", "storageClassName": "no-such-class"}

MISTAKES: Mapping[str, Mapping[str, Any]] = {
    "unsatisfiable affinity": {"affinity": _AFFINITY},
    "unsatisfiable nodeSelector": {"nodeSelector": {"no-such": "label"}},
    "10,000 CPU": {"requests": {"cpu": "10000"}},
    "missing image": {"version": MISSING},
    "bad TOML": {"config": "log = ["},
    "missing Secret": {"env": [_SECRET]},
    "missing storage class": {"storageVolumes": [_VOLUME]},
    "missing TLS Secret": {},
}


def spec_of(component: str, mistake: Mapping[str, Any]) -> Json:
    """A part of the spec with the mistake."""
    return {component: dict(mistake)} if mistake else {"tlsCluster": {"enabled": True}}


def undone(component: str, mistake: Mapping[str, Any], good: Json) -> Json:
    """The correction of the mistake."""
    if not mistake:
        return {"tlsCluster": None}
    return {component: {field: good[component].get(field) for field in mistake} | _without_cpu(mistake)}


def _without_cpu(mistake: Mapping[str, Any]) -> Json:
    return {"requests": {"cpu": None}} if "requests" in mistake else {}


def run_watched(world: OperatorWorld, component: str, until: Any, within: float) -> None:
    """Let time pass until a condition holds; two pods of the component must never be down at once (I10)."""

    def watched() -> bool:
        down = [name for name, ready in readiness(world, component).items() if not ready]
        assert len(down) <= 1, f"{down} are down at the same time"
        return bool(until())

    world.run_until(watched, within)


def readiness(world: OperatorWorld, component: str) -> dict[str, bool]:
    """For each desired pod, True if it is Ready."""
    found = {f"basic-{component}-{ordinal}": False for ordinal in range(REPLICAS[component])}
    for pod in world.every(PODS):
        conditions = (pod.get("status") or {}).get("conditions") or ()
        if pod["metadata"]["name"] in found and "deletionTimestamp" not in pod["metadata"]:
            ready = any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)
            found[pod["metadata"]["name"]] = ready
    return found


def one_is_updated(world: OperatorWorld, component: str) -> bool:
    """True if a roll is half-way."""
    status = world.get(STATEFUL_SETS, f"basic-{component}")["status"]
    return bool(status["currentRevision"] != status["updateRevision"] and status.get("updatedReplicas"))


@pytest.mark.parametrize(
    ("situation", "first"), [("steady", 1), pytest.param("rolling", 0, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("R23", "F11", "#4946", "O6")
def test_a_cluster_recovers_when_the_user_corrects_a_mistake(
    world: OperatorWorld, component: str, situation: str, first: int
) -> None:
    cluster = sample("basic")
    for name, replicas in REPLICAS.items():
        cluster["spec"][name]["replicas"] = replicas
    world.apply(cluster)
    world.run_until_ready()
    world.world.faults.image_missing(f"*:{MISSING}")

    of_component = (list(REPLICAS).index(component) + first) % len(REPLICAS)
    mistakes = list(MISTAKES.values())[of_component :: len(REPLICAS)]
    healed = 0
    for number, mistake in enumerate(mistakes):
        if situation == "rolling":
            world.change(**{component: {"annotations": {"roll": str(number)}}})
            run_watched(world, component, lambda: one_is_updated(world, component), 60.0)
        world.change(**spec_of(component, mistake))
        end = world.clock.now() + 30.0
        run_watched(world, component, lambda end=end: world.clock.now() >= end, 30.0)
        assert "Done" != world.reason()
        world.change(**undone(component, mistake, cluster["spec"]))
        run_watched(world, component, lambda: world.is_ready() and world.reason() == "Done", WITHIN)
        healed += 1

    print(f"{healed} of {len(mistakes)} mistakes in {component} healed ({situation})")  # noqa: T201 - the count is asked for
    revisions = {
        pod["metadata"]["labels"].get("controller-revision-hash")
        for pod in world.every(PODS)
        if pod["metadata"]["labels"].get("app.kubernetes.io/component") == component
    }
    status = world.get(STATEFUL_SETS, f"basic-{component}")["status"]
    assert {status["updateRevision"]} == {status["currentRevision"]} == revisions


@pytest.mark.parametrize("component", REPLICAS)
@pytest.mark.rule("R23")
def test_accepts_the_removal_of_an_unprovisionable_volume_before_a_pod_has_run(
    world: OperatorWorld, component: str
) -> None:
    cluster = sample("basic")
    cluster["spec"][component]["storageVolumes"] = [_VOLUME]
    world.apply(cluster)
    world.run_until(lambda: "no-such-class" in world.condition("Progressing").get("message", ""))
    world.change(**{component: {"storageVolumes": None}})
    world.run_until_ready(within=WITHIN)
    made = world.get(STATEFUL_SETS, f"basic-{component}")["spec"].get("volumeClaimTemplates") or []
    assert not [each for each in made if "more" in each["metadata"]["name"]]


@pytest.mark.slow
@pytest.mark.parametrize("component", REPLICAS)
@pytest.mark.rule("R23", "R26")
def test_corrects_an_unprovisionable_volume_together_with_another_one(world: OperatorWorld, component: str) -> None:
    """The StatefulSet controller does nothing more for pods that lack one of its volumes."""
    cluster = sample("basic")
    cluster["spec"][component] |= {"replicas": 3, "storageVolumes": [_VOLUME]}
    world.apply(cluster)
    world.run_until(lambda: "no-such-class" in world.condition("Progressing").get("message", ""))
    provided = {key: value for key, value in _VOLUME.items() if key != "storageClassName"}
    other = {"name": "other", "storageSize": "1Gi", "mountPath": "/other"}
    world.change(**{component: {"storageVolumes": [provided, other]}})
    world.run_until_ready(within=WITHIN)
    assert [] == world.messages("FailedUpdate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "mistaken", "corrected", "policy"),
    [
        ("pd", {"storageClassName": "no-such-class"}, {"storageClassName": "standard"}, ""),
        ("pd", {"storageClassName": "no-such-class"}, {"storageClassName": None}, ""),
        ("tikv", {"storageClassName": "no-such-class"}, {"storageClassName": "standard"}, ""),
        (
            "tikv",
            {"storageClassName": "no-such-class", "requests": {"storage": "9Ti"}},
            {"storageClassName": None, "requests": {"storage": "2Gi"}},
            "",
        ),
        ("tikv", {"storageClassName": "no-such-class", "replicas": 2}, {"storageClassName": None}, "OrderedReady"),
        ("pump", {"storageClassName": "no-such-class"}, {"storageClassName": None}, ""),
    ],
)
@pytest.mark.rule("R23")
def test_recreates_unprovisionable_claims_from_the_corrected_spec(
    world: OperatorWorld, component: str, mistaken: Json, corrected: Json, policy: str
) -> None:
    cluster = sample("basic")
    cluster["spec"].setdefault(component, {"replicas": 2, "requests": {"storage": "1Gi"}})
    cluster["spec"][component] |= mistaken
    cluster["spec"] |= {"podManagementPolicy": policy} if policy else {}
    world.apply(cluster)
    world.run_until(lambda: 0 < len(_claims(world, component)), 120.0)
    world.run(30.0)
    before = _claims(world, component)
    world.change(**{component: corrected})
    world.run_until_ready(within=WITHIN)
    after = _claims(world, component)
    assert ({"standard"}, {"Bound"}) == tuple(
        {each[group][field] for each in after.values()}
        for group, field in (("spec", "storageClassName"), ("status", "phase"))
    )
    assert not {uid(each) for each in before.values()} & {uid(each) for each in after.values()}
    assert any("PersistentVolumeClaim" in each["message"] for each in world.events("SuccessfulDelete"))


@pytest.mark.rule("R23")
def test_a_single_pd_keeps_serving_while_its_new_certificates_are_missing(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.run_until_ready()
    before = {uid(pod) for pod in world.every(PODS)}
    world.change(tlsCluster={"enabled": True})
    world.run_until(lambda: world.reason() == "BadCertificate")
    world.run(30.0)
    servers = [pod for pod in world.every(PODS) if "discovery" not in pod["metadata"]["name"]]
    assert {uid(pod) for pod in servers} < before
    world.change(tlsCluster=None)
    world.run_until(lambda: world.is_ready() and world.reason() == "Done", WITHIN)
    assert {uid(pod) for pod in servers} < {uid(pod) for pod in world.every(PODS)}


def uid(tree: Json) -> str:
    return str(tree["metadata"]["uid"])


def _claims(world: OperatorWorld, component: str) -> dict[str, Json]:
    found = world.every(PERSISTENT_VOLUME_CLAIMS)
    own = (each for each in found if each["metadata"]["labels"]["app.kubernetes.io/component"] == component)
    return {each["metadata"]["name"]: each for each in own}
