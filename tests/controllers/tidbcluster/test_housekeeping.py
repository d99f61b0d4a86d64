"""Labels, reclaim policies, orphaned pods and claims left behind, in a cluster that works (lifecycle.md 11)."""

from collections.abc import Iterator

import pytest

from apis.times import parse_time
from kube.objects import Json
from kube.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from member.labels import (
    CLUSTER_ID,
    MEMBER_ID,
    NAMESPACE,
    POD_NAME,
    POD_SCHEDULING,
    PVC_DEFER_DELETING,
    STORE_ID,
)
from ports.clock import FakeClock
from sandbox.apiserver import Fault as ApiFault
from sandbox.apiserver import Refusal
from sandbox.apiserver.audit import Call
from sandbox.apiserver.refusals import forbidden
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.world import ADMIN
from tests import operator_world
from tests.operator_world import OPERATOR, OperatorWorld, sample

CLAIM = "tikv-basic-tikv-0"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MARKED = {PVC_DEFER_DELETING: "2026-01-01T00:00:00Z"}


def ids(world: OperatorWorld) -> tuple[str, str, str]:
    """The ids of the cluster, of the first member and of the first store."""
    status = world.cluster()["status"]
    (member,), (store,) = status["pd"]["members"].values(), status["tikv"]["stores"].values()
    return status["clusterID"], member["id"], store["id"]


def labels(world: OperatorWorld, resource: Resource, name: str) -> dict[str, str]:
    found: dict[str, str] = world.get(resource, name)["metadata"]["labels"]
    return found


def volume_name(world: OperatorWorld, claim: str = CLAIM) -> str:
    return str(world.get(PERSISTENT_VOLUME_CLAIMS, claim)["spec"]["volumeName"])


def volume_of(world: OperatorWorld, claim: str) -> Json:
    return world.admin.get(PERSISTENT_VOLUMES, volume_name(world, claim)).decode()


def annotate(world: OperatorWorld, claim: str, annotations: dict[str, str]) -> None:
    patch = {"metadata": {"annotations": annotations}}
    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, operator_world.NAMESPACE, patch)


def annotations(world: OperatorWorld, claim: str) -> dict[str, str]:
    found: dict[str, str] = world.get(PERSISTENT_VOLUME_CLAIMS, claim)["metadata"]["annotations"]
    return found


@pytest.mark.rule("lifecycle-11.4")
def test_labels_pods_claims_and_volumes_with_their_member(basic: OperatorWorld) -> None:
    cluster, member, store = ids(basic)
    for kind, own in (("pd", {MEMBER_ID: member}), ("tikv", {STORE_ID: store})):
        pod, wanted = f"basic-{kind}-0", ({CLUSTER_ID: cluster} | own).items()
        claim = basic.get(PERSISTENT_VOLUME_CLAIMS, f"{kind}-{pod}")["metadata"]
        volume = volume_of(basic, f"{kind}-{pod}")["metadata"]
        assert wanted <= labels(basic, PODS, pod).items()
        assert wanted | {(POD_NAME, pod)} <= claim["labels"].items()
        assert wanted | {(NAMESPACE, "default"), ("app.kubernetes.io/component", kind)} <= volume["labels"].items()
        assert [pod, pod] == [each["annotations"][POD_NAME] for each in (claim, volume)]
    assert cluster == labels(basic, PODS, "basic-tidb-0")[CLUSTER_ID]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.4")
def test_labels_claims_of_pods_that_never_join_after_a_timeout(world: OperatorWorld) -> None:
    body = sample("basic")
    body["spec"]["tikv"]["version"] = "v8.5.99-nope"
    world.apply(body)
    world.run_until(lambda: world.exists(PODS, "basic-tikv-0"))
    claim = world.get(PERSISTENT_VOLUME_CLAIMS, CLAIM)
    created = parse_time(claim["metadata"]["creationTimestamp"])
    assert created is not None
    # resyncs come every 30 s
    for seconds, written in (
        (179.0, []),
        (181.5, ["persistentvolumeclaims"]),
        (189.0, []),
        (191.5, ["persistentvolumes"]),
    ):
        world.forget()
        world.run(created.timestamp() + seconds - world.clock.wall().timestamp())
        touched = [each.split()[1] for each in world.writes() if each.endswith((f" {CLAIM}", f" {volume_name(world)}"))]
        assert written == touched, seconds


@pytest.mark.slow
@pytest.mark.rule("F50")
def test_corrects_changed_labels_and_keeps_foreign_ones(basic: OperatorWorld) -> None:
    _, member, _ = ids(basic)
    spoilt = {"metadata": {"labels": {MEMBER_ID: "1", CLUSTER_ID: None, "mine": "kept"}}}
    basic.admin.patch(PODS, "basic-pd-0", operator_world.NAMESPACE, spoilt)
    basic.run(35.0)
    found = labels(basic, PODS, "basic-pd-0")
    assert (member, "kept") == (found[MEMBER_ID], found["mine"])
    assert CLUSTER_ID in found


@pytest.mark.slow
@pytest.mark.rule("F3")
def test_decides_again_on_a_pod_that_changed_meanwhile(basic: OperatorWorld) -> None:
    basic.admin.patch(PODS, "basic-pd-0", operator_world.NAMESPACE, {"metadata": {"labels": {CLUSTER_ID: None}}})
    basic.operator.look()
    basic.operator.caches[PODS].blind = True
    basic.admin.patch(PODS, "basic-pd-0", operator_world.NAMESPACE, {"metadata": {"labels": {"mine": "new"}}})
    basic.operator.resync()
    basic.operator.work()
    found = labels(basic, PODS, "basic-pd-0")
    assert (ids(basic)[0], "new") == (found[CLUSTER_ID], found["mine"])
    assert "Done" == basic.reason()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.4")
def test_labels_a_new_pod_like_its_predecessor(basic: OperatorWorld) -> None:
    before = labels(basic, PODS, "basic-tikv-0")
    basic.admin.delete(PODS, "basic-tikv-0", operator_world.NAMESPACE)
    basic.run(35.0)
    basic.run_until_ready()
    assert before == labels(basic, PODS, "basic-tikv-0")


@pytest.mark.rule("lifecycle-3.2")
def test_while_paused_nothing_but_labels_is_written(basic: OperatorWorld) -> None:
    basic.change(paused=True, pvReclaimPolicy="Delete")
    basic.admin.patch(PODS, "basic-pd-0", operator_world.NAMESPACE, {"metadata": {"labels": {CLUSTER_ID: None}}})
    annotate(basic, CLAIM, MARKED)
    basic.run(35.0)
    assert {"patch pods basic-pd-0", "patch tidbclusters.pingcap.com/status basic"} == {
        write for write in basic.writes() if "events" not in write
    }


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.3")
def test_volumes_get_the_reclaim_policy_of_the_spec(basic: OperatorWorld) -> None:
    assert "Retain" == volume_of(basic, CLAIM)["spec"]["persistentVolumeReclaimPolicy"]
    basic.change(pvReclaimPolicy="Delete")
    basic.run(5.0)
    volume = volume_of(basic, CLAIM)
    assert "Delete" == volume["spec"]["persistentVolumeReclaimPolicy"]
    name = volume["metadata"]["name"]
    told = f"patch PersistentVolume {name} in TidbCluster basic successful: reclaim policy Delete"
    assert told in basic.messages("SuccessfulPatch")


def _refuse(world: OperatorWorld, resource: Resource, name: str) -> None:
    """Have a policy deny all changes of one object."""

    def policy(of: Resource, tree: Json, old: Json | None) -> None:
        if (of, tree["metadata"].get("name")) == (resource, name) and old is not None:
            raise forbidden(of, name, "admission webhook denied the request")

    world.world.server.webhooks.append(policy)


@pytest.mark.rule("lifecycle-11.3")
def test_a_write_protected_volume_does_not_block_the_policy_of_other_volumes(basic: OperatorWorld) -> None:
    name = volume_name(basic, "pd-basic-pd-0")
    _refuse(basic, PERSISTENT_VOLUMES, name)
    basic.change(pvReclaimPolicy="Delete")
    basic.run(5.0)
    found = {
        claim: volume_of(basic, claim)["spec"]["persistentVolumeReclaimPolicy"] for claim in ("pd-basic-pd-0", CLAIM)
    }
    assert {"pd-basic-pd-0": "Retain", CLAIM: "Delete"} == found
    assert ("Forbidden", True) == (basic.reason(), name in basic.condition("Progressing")["message"])


@pytest.mark.rule("lifecycle-11.4")
def test_a_write_protected_pod_does_not_block_the_labels_of_other_pods(basic: OperatorWorld) -> None:
    for pod in ("basic-pd-0", "basic-tikv-0"):
        basic.admin.patch(PODS, pod, operator_world.NAMESPACE, {"metadata": {"labels": {CLUSTER_ID: None}}})
    _refuse(basic, PODS, "basic-pd-0")
    basic.run(35.0)
    assert [False, True] == [CLUSTER_ID in labels(basic, PODS, pod) for pod in ("basic-pd-0", "basic-tikv-0")]
    assert "Forbidden" == basic.reason()


@pytest.mark.rule("lifecycle-11.4")
def test_does_not_read_a_volume_that_is_named_after_its_claim(basic: OperatorWorld) -> None:
    name = volume_of(basic, CLAIM)["metadata"]["name"]
    basic.admin.patch(PERSISTENT_VOLUMES, name, "", {"metadata": {"labels": None}})
    basic.run(35.0)
    calls = [entry.call for entry in basic.world.server.audit.recent()]
    asked = [call.request.method for call in calls if (call.user, call.name) == (operator_world.OPERATOR, name)]
    assert {"PATCH"} == set(asked)
    assert "default" == volume_of(basic, CLAIM)["metadata"]["labels"][NAMESPACE]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.3")
def test_reports_a_missing_volume_and_continues(basic: OperatorWorld) -> None:
    volume = volume_of(basic, CLAIM)["metadata"]["name"]
    basic.admin.patch(PERSISTENT_VOLUMES, volume, "", {"metadata": {"finalizers": None}})
    basic.admin.delete(PERSISTENT_VOLUMES, volume)
    basic.change(tidb={"replicas": 2})
    basic.run_until(lambda: basic.replicas("tidb") == 2)
    basic.run(35.0)
    (event,) = basic.events("VolumeMissing")
    assert volume in event["message"]


@pytest.mark.rule("lifecycle-5.8")
def test_the_status_shows_volumes(basic: OperatorWorld) -> None:
    status = basic.cluster()["status"]
    assert [("pd", 1, "1Gi", "standard"), ("tikv", 1, "1Gi", "standard")] == [
        (each["name"], each["boundCount"], each["currentCapacity"], each["modifiedStorageClass"])
        for part in ("pd", "tikv")
        for each in status[part]["volumes"].values()
    ]
    assert "volumes" not in status["tidb"]


class Away:
    """An API server that refuses the operator's questions about claims, or new pods and claims to controllers."""

    def __init__(self) -> None:
        self.refusal: Refusal | None = None
        self.full = False

    def __call__(self, call: Call) -> ApiFault | None:
        made = call.verb == "create" and call.resource in ("persistentvolumeclaims", "pods")
        if self.full and made and call.user != ADMIN:
            return ApiFault(refusal=Refusal(403, "Forbidden", "exceeded quota"))
        asked = (call.user, call.verb, call.resource) == (OPERATOR, "get", "persistentvolumeclaims")
        return ApiFault(refusal=self.refusal) if asked and self.refusal else None


@pytest.fixture
def away() -> Away:
    return Away()


@pytest.fixture
def world(clock: FakeClock, away: Away) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock, faults=away)
    yield made
    made.stop()


def lose_the_claim(world: OperatorWorld, away: Away, *components: str) -> list[str]:
    """Recreate the pod of each component while no node takes it, then delete its claim; returns the pods' UIDs.

    A newer Kubernetes recreates such a claim, if it may; here it may not.
    """
    for node in world.admin.list_page(NODES).items:
        world.admin.patch(NODES, node.metadata.name, "", {"spec": {"unschedulable": True}})
    lost = [_recreated(world, f"basic-{each}-0") for each in components]
    away.full = True
    for each in components:
        world.admin.delete(PERSISTENT_VOLUME_CLAIMS, f"{each}-basic-{each}-0", operator_world.NAMESPACE)
    return lost


def _recreated(world: OperatorWorld, pod: str) -> str:
    former = pod_uid(world, pod)
    world.admin.delete(PODS, pod, operator_world.NAMESPACE)
    world.run_until(lambda: world.exists(PODS, pod) and pod_uid(world, pod) != former)
    return pod_uid(world, pod)


def pod_uid(world: OperatorWorld, pod: str = "basic-tikv-0") -> str:
    return str(world.get(PODS, pod)["metadata"]["uid"])


@pytest.mark.slow
@pytest.mark.rule("I38")
def test_an_orphan_whose_claim_cannot_be_read_delays_no_other_orphan(basic: OperatorWorld, away: Away) -> None:
    fault, unread = ApiFault(refusal=Refusal(403, "Forbidden", "not now")), f"{operator_world.NAMESPACE}/pd-basic-pd-0"
    basic.world.faults.api_fault(fault, OPERATOR, "get", "persistentvolumeclaims", unread)
    unknown, _ = lose_the_claim(basic, away, "pd", "tikv")
    basic.run_until(lambda: not basic.exists(PODS, "basic-tikv-0"))
    assert unknown == pod_uid(basic, "basic-pd-0")


@pytest.mark.slow
@pytest.mark.rule("I38")
def test_recreates_a_pod_whose_claim_was_deleted_with_a_new_claim(basic: OperatorWorld, away: Away) -> None:
    former = basic.get(PERSISTENT_VOLUME_CLAIMS, CLAIM)["metadata"]["uid"]
    (lost,) = lose_the_claim(basic, away, "tikv")
    basic.run_until(lambda: not basic.exists(PODS, "basic-tikv-0"))
    away.full = False
    basic.run_until(lambda: basic.exists(PODS, "basic-tikv-0") and pod_uid(basic) != lost)

    assert former != basic.get(PERSISTENT_VOLUME_CLAIMS, CLAIM)["metadata"]["uid"]
    (event,) = basic.events("SuccessfulDelete")
    assert f"delete Pod basic-tikv-0 in TidbCluster basic successful: {CLAIM} does not exist" == event["message"]
    assert ["delete pods basic-tikv-0"] == [write for write in basic.writes() if write.startswith("delete")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(403, "Forbidden", "no"),
        Refusal(503, "ServiceUnavailable", "no"),
        Refusal(404, "NotFound", "the server could not find the requested resource"),
    ],
    ids=["forbidden", "away", "another NotFound"],
)
@pytest.mark.rule("F1")
def test_deletes_no_pod_while_the_state_of_its_claim_is_unknown(
    basic: OperatorWorld, away: Away, refusal: Refusal
) -> None:
    away.refusal = refusal
    lose_the_claim(basic, away, "tikv")
    basic.run(60.0)
    assert [] == [write for write in basic.writes() if write.startswith("delete")]

    away.refusal = None
    basic.run_until(lambda: "delete pods basic-tikv-0" in basic.writes(), 120.0)


@pytest.mark.rule("F1")
def test_deletes_no_pod_for_a_claim_missing_only_from_the_cache(basic: OperatorWorld, away: Away) -> None:
    """A claim that the user created in advance: without our labels the cache never shows it."""
    (lost,) = lose_the_claim(basic, away, "tikv")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": CLAIM}, "spec": spec}
    basic.world.settle()
    basic.admin.create(PERSISTENT_VOLUME_CLAIMS, claim, operator_world.NAMESPACE)
    basic.run(60.0)

    assert lost == pod_uid(basic)
    assert "tikv" == labels(basic, PERSISTENT_VOLUME_CLAIMS, CLAIM)["app.kubernetes.io/component"]
    basic.forget()
    basic.run(60.0)
    assert [] == [read for read in basic.reads() if CLAIM in read]


def leave_behind(world: OperatorWorld) -> str:
    """A second TiKV pod that is gone with its store, as after a scale-in; its claim."""
    claim = "tikv-basic-tikv-1"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    own = labels(world, STATEFUL_SETS, "basic-tikv")
    meta = {"name": claim, "labels": own, "annotations": {POD_NAME: "basic-tikv-1", SELECTED_NODE: node_of(world)}}
    world.admin.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": meta, "spec": spec}, operator_world.NAMESPACE)
    world.run_until(lambda: "volumeName" in world.get(PERSISTENT_VOLUME_CLAIMS, claim)["spec"])
    annotate(world, claim, MARKED)
    return claim


def node_of(world: OperatorWorld) -> str:
    return str(world.get(PODS, "basic-tikv-0")["spec"]["nodeName"])


@pytest.mark.rule("lifecycle-11.2")
def test_deletes_a_claim_left_behind_with_its_volume_on_request(basic: OperatorWorld) -> None:
    claim = leave_behind(basic)
    volume = volume_of(basic, claim)["metadata"]["name"]
    basic.run(215.0)  # a new claim is given time to know its ids
    assert basic.exists(PERSISTENT_VOLUME_CLAIMS, claim)
    assert "Retain" == volume_of(basic, claim)["spec"]["persistentVolumeReclaimPolicy"]

    basic.forget()
    basic.change(enablePVReclaim=True)
    basic.run(35.0)
    assert not basic.exists(PERSISTENT_VOLUME_CLAIMS, claim)
    assert [volume] == [write.split()[2] for write in basic.writes() if write.startswith("patch persistentvolumes ")]
    left = basic.admin.list_page(PERSISTENT_VOLUMES).items
    assert volume not in [each.metadata.name for each in left]
    assert basic.exists(PERSISTENT_VOLUME_CLAIMS, CLAIM)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.2")
def test_deletes_a_left_behind_claim_without_labels(basic: OperatorWorld) -> None:
    claim, spec = "tikv-basic-tikv-1", basic.cluster()["spec"]["tikv"]
    basic.change(enablePVReclaim=True, tikv=spec | {"replicas": 2})
    basic.run_until(lambda: basic.exists(PODS, "basic-tikv-1"))
    basic.run_until(lambda: "volumeName" in basic.get(PERSISTENT_VOLUME_CLAIMS, claim)["spec"])
    assert POD_NAME not in annotations(basic, claim)
    basic.change(tikv=spec | {"replicas": 1})
    basic.run_until(lambda: not basic.exists(PODS, "basic-tikv-1"))
    basic.run_until(lambda: not basic.exists(PERSISTENT_VOLUME_CLAIMS, claim), 35.0)


@pytest.mark.slow
@pytest.mark.rule("F5")
def test_keeps_the_claim_of_an_ordinal_that_the_stateful_set_includes_again(basic: OperatorWorld, away: Away) -> None:
    """The user raised the replicas, the cache does not show it yet, and the pod can't be created."""
    claim = leave_behind(basic)
    away.full = True
    basic.operator.caches[STATEFUL_SETS].blind = True
    basic.admin.patch(STATEFUL_SETS, "basic-tikv", operator_world.NAMESPACE, {"spec": {"replicas": 2}})
    basic.change(enablePVReclaim=True)
    basic.run(20.0)
    assert {"get pods basic-tikv-1", "get statefulsets.apps basic-tikv"} <= set(basic.reads())
    assert basic.exists(PERSISTENT_VOLUME_CLAIMS, claim)


@pytest.mark.rule("lifecycle-8.5")
def test_removes_the_mark_from_a_claim_in_use(basic: OperatorWorld) -> None:
    annotate(basic, CLAIM, MARKED)
    basic.run(5.0)
    assert PVC_DEFER_DELETING not in annotations(basic, CLAIM)


@pytest.mark.rule("lifecycle-11.2")
def test_removes_the_schedulers_lock_when_the_pod_is_scheduled(basic: OperatorWorld) -> None:
    annotate(basic, CLAIM, {POD_SCHEDULING: "2026-01-01T00:00:00Z"})
    basic.run(5.0)
    assert POD_SCHEDULING not in annotations(basic, CLAIM)


@pytest.mark.slow
@pytest.mark.rule("I40")
def test_a_cluster_without_pd_reads_its_id_once_per_reconcile(basic: OperatorWorld) -> None:
    joined = sample("basic")
    joined["metadata"]["name"] = "joined"
    spec = joined["spec"]
    joined["spec"] = {"version": spec["version"], "cluster": {"name": "basic"}, "tikv": spec["tikv"]}
    basic.apply(joined)
    basic.run(95.0)
    assert ids(basic)[0] == labels(basic, PERSISTENT_VOLUME_CLAIMS, "tikv-joined-tikv-0")[CLUSTER_ID]

    basic.forget()
    basic.operator.resync()
    basic.operator.work()
    assert [] == basic.reads()
    asked = [request for request in basic.operator.dataplane.requests if request.url.endswith("/cluster")]
    assert 1 == len(asked)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.4")
def test_labels_claims_in_time_although_the_referenced_cluster_is_gone(basic: OperatorWorld) -> None:
    joined = sample("basic")
    joined["metadata"]["name"] = "joined"
    spec = joined["spec"]
    joined["spec"] = {"cluster": {"name": "basic"}, "version": "v8.5.99-nope", "tikv": spec["tikv"]}
    basic.apply(joined)
    basic.run_until(lambda: basic.exists(PODS, "joined-tikv-0"))
    claim = "tikv-joined-tikv-0"
    created = parse_time(basic.get(PERSISTENT_VOLUME_CLAIMS, claim)["metadata"]["creationTimestamp"])
    assert created is not None
    # the reference is looked up every 10 s, at another moment than the claim
    basic.run(created.timestamp() + 35.0 - basic.clock.wall().timestamp())
    basic.operator.resyncs = False
    basic.admin.delete(TIDB_CLUSTERS, "basic", operator_world.NAMESPACE)
    for seconds, is_labelled in ((179.0, False), (181.5, True)):
        basic.run(created.timestamp() + seconds - basic.clock.wall().timestamp())
        assert is_labelled == (POD_NAME in labels(basic, PERSISTENT_VOLUME_CLAIMS, claim)), seconds


@pytest.mark.slow
@pytest.mark.rule("F7")
def test_a_silent_pd_removes_no_label(basic: OperatorWorld) -> None:
    before = labels(basic, PODS, "basic-tikv-0")
    basic.world.data_plane.network.inject(Fault(Trouble.BLACK_HOLE, "*/basic-pd-*"))
    basic.run(60.0)
    assert before == labels(basic, PODS, "basic-tikv-0")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-11.5")
def test_removes_killed_servers_from_the_topology_of_tidb_dashboard(basic: OperatorWorld) -> None:
    pd = basic.world.data_plane.pd_cluster(operator_world.NAMESPACE, "basic")
    assert pd is not None
    killed = [f"/topology/tidb/{name}-tidb-7.{name}-tidb-peer.default.svc:4000/info" for name in ("basic", "other")]
    for key in killed:
        pd.etcd.put(key.encode(), b"{}")
    before = set(pd.etcd.keys)
    basic.run(330.0)
    assert {killed[0].encode()} == before - set(pd.etcd.keys)
