"""A wish is judged as a whole, before the first pod leaves or restarts for it (lifecycle.md 7.2, 8)."""

from itertools import product

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member.components import workload_names
from member.labels import PVC_DEFER_DELETING, SCALE_IN_TIME
from member.lifecycle import pod_removal
from simulate.engine.worlds import CLUSTERS
from simulate.families.homes import home_of
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

_REFUSED = {
    "pd": "spec.pd.replicas cannot be 0",
    "tikv": "only 1 TiKV stores would be Up, but PD keeps 3 replicas of each region",
    "tiflash": "only 0 TiFlash stores would be Up, but the placement rule",
    "pump": "no Pump node that stays is online",
    "tso": "keeping the pods of tso",
}
"""Components that cannot have so few pods in the clusters of this test, and why; all others can."""

_WISHES = {"tikv": (5, 1)}
"""From how many pods to how many; that others go from 3 to 0 is a valid spec."""


def with_pods(component: str, replicas: int) -> Json:
    """The cluster of a component with this many pods of it; TiDB writes binlogs if there is a Pump."""
    home = home_of(component)
    cluster = CLUSTERS[home.cluster]()
    home.section_in(cluster["spec"])["replicas"] = replicas
    return cluster


def ask_for(world: OperatorWorld, component: str, replicas: int) -> None:
    home, name = home_of(component), world.names()[0]
    changed = home.changed(world.cluster(name)["spec"], {"replicas": replicas})
    world.change(name, **{home.part: changed[home.part]})


@pytest.mark.parametrize("component", workload_names())
@pytest.mark.rule("lifecycle-8")
def test_a_scale_in_is_possible_as_a_whole_or_removes_nothing(world: OperatorWorld, component: str) -> None:
    before, wanted = _WISHES.get(component, (3, 0))
    world.apply(with_pods(component, before))
    (name,) = world.names()
    world.run_until_ready(name, within=300.0)
    if component == "tiflash":
        world.world.faults.tiflash_replicas(f"{NAMESPACE}/{name}", 1)
    world.run(5.0)
    world.forget()
    ask_for(world, component, wanted)
    if component not in _REFUSED:
        world.run_until(lambda: world.replicas(component, name) == wanted, within=300.0)
        return
    world.run(60.0)
    assert ("FailedScaleIn", before) == (world.reason(name), world.replicas(component, name))
    assert _REFUSED[component] in world.condition("Progressing", name)["message"]
    assert [] == [call.url for call in world.operator.dataplane.writes()]
    marks = {
        mark for each in world.every(PERSISTENT_VOLUME_CLAIMS) for mark in each["metadata"].get("annotations") or {}
    }
    assert set() == marks & {PVC_DEFER_DELETING, SCALE_IN_TIME}

    ask_for(world, component, before)
    world.run_until_ready(name)


@pytest.mark.planted
@pytest.mark.rule("lifecycle-8")
def test_reports_a_scale_in_that_is_judged_pod_by_pod(world: OperatorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pod_removal.live
    monkeypatch.setattr(pod_removal, "live", lambda ctx, part, body, pod, _=None: honest(ctx, part, body, pod))
    with pytest.raises(AssertionError, match="FailedScaleIn"):
        test_a_scale_in_is_possible_as_a_whole_or_removes_nothing(world, "tikv")


_NO_CLASS: Json = {"name": "more", "storageSize": "1Gi", "mountPath": "/more", "storageClassName": "nowhere"}
_DATA: Json = {"name": "data", "storageSize": "1Gi", "mountPath": "/var/lib/tikv/data"}
_NOWHERE: Json = {"name": "nowhere", "mountPath": "/nowhere"}
_MOUNTS: dict[str, tuple[Json, Json]] = {
    "a volume of no storage class": ({}, {"storageVolumes": [_NO_CLASS]}),
    "no volume where the pods have data": ({"storageVolumes": [_DATA]}, {"storageVolumes": None}),
    "a mount of no volume": ({}, {"additionalVolumeMounts": [_NOWHERE]}),
}
"""A change that no running cluster can take: the part of the spec before, and with the change."""


def server_uids(world: OperatorWorld) -> set[str]:
    """The UIDs of all pods except Discovery's, which has no version of the database."""
    pods = [each["metadata"] for each in world.every(PODS)]
    return {each["uid"] for each in pods if each["labels"]["app.kubernetes.io/component"] != "discovery"}


@pytest.mark.parametrize(
    ("component", "change"), [*product(["tikv"], _MOUNTS), *product(["pd", "tidb"], [next(iter(_MOUNTS))])]
)
@pytest.mark.rule("7.2")
def test_a_version_beside_an_impossible_change_of_volumes_restarts_no_pod(
    world: OperatorWorld, component: str, change: str
) -> None:
    before, after = _MOUNTS[change]
    cluster = sample("basic")
    cluster["spec"][component] |= before
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    pods = server_uids(world)
    world.change(version="v8.5.3", **{component: after})
    world.run(240.0)
    assert pods == server_uids(world)
    assert f"spec.{component}" in world.condition("Progressing")["message"]

    world.change(**{component: before or dict.fromkeys(after)})
    world.run_until_ready(within=400.0)
    assert pods.isdisjoint(server_uids(world))
