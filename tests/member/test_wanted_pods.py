"""Which pods each decision about a cluster counts on: with delete slots only if the feature is on (4.4)."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from apis.decoding import encode
from apis.ordinals import OrdinalSet, desired_ordinals, gated, slots_annotation
from apis.tidbcluster import TidbCluster
from cli.tidb.clusters import Found
from cli.tidb.pods import ClusterPod
from cli.tidb.status.facts import Facts
from cli.tidb.status.reporting import report_of
from discovery.bootstrap import desired_pods as pods_that_may_found
from kube.client import Client
from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member.commands import others_not_ready
from member.context import Listers, ReconcileContext
from member.evidence import spec_confirmed
from member.failover.steps import given_up, remaining, substitutes
from member.failover.witnesses import desired_pods
from member.labels import POD_NAME, PVC_DEFER_DELETING, base_labels
from member.lifecycle import stateless
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.quorum import Transfer, Voter, next_step
from member.objects.stateful_set import ordinals_of
from member.observed.pod import Pod
from member.observed.pods import wanted_pods
from member.observed.status import server_pods
from member.outcome import Waiting
from member.pd import scaling as pd_scaling
from member.tidb import desired as tidb
from member.tikv import desired as tikv
from meta.deferred_claims import Keep, deferred_step
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.deciding import concluded
from tests.member.reconciling import CLUSTER_PATH, as_object, context

_ROOT = Path(__file__).parents[2]


def of(text: str, advanced: bool, status: Json | None = None) -> TidbCluster:
    """Three pods of each component, with these slots of each."""
    slots = {slots_annotation(name): text for name in ("pd", "tikv", "tidb")}
    return gated(cluster(tidb={"replicas": 3}, annotations=slots, status=status), advanced)


def numbers(pods: list[str]) -> list[int]:
    return [int(pod.rpartition("-")[2]) for pod in pods]


def reconcile(tc: TidbCluster, stateful_set: Json | None = None) -> ReconcileContext:
    ctx = context(FakeApi(), tc)
    live = as_object(stateful_set) if stateful_set else None
    nothing = SimpleNamespace(list=lambda *_: (), get=lambda *_: None, changes=0)
    sets = SimpleNamespace(get=lambda *_: live)
    return replace(
        ctx,
        deps=replace(ctx.deps, listers=cast("Listers", SimpleNamespace(pods=nothing, stateful_sets=sets, nodes=None))),
    )


def made(tc: TidbCluster) -> list[int]:
    return ordinals_of(tikv.stateful_set(tc, "cm")).ordinals


def below_the_partition_are_slots_or_pods(tc: TidbCluster) -> list[int]:
    body = tikv.stateful_set(tc, "cm")
    below = range(body["spec"]["updateStrategy"]["rollingUpdate"]["partition"])
    return [ordinal for ordinal in below if ordinal in ordinals_of(body)]


def may_be_marked_failed(tc: TidbCluster) -> list[int]:
    return numbers(desired_pods(reconcile(tc), "tikv"))


def must_serve_until_the_lost_return(tc: TidbCluster) -> list[int]:
    return numbers(remaining(reconcile(tc), "tikv", ()))


def wanted_by_spec_and_failover(tc: TidbCluster) -> list[int]:
    return numbers(wanted_pods(reconcile(tc), "tikv"))


def asked_for_their_health(tc: TidbCluster) -> list[int]:
    status = {"replicas": 4, "currentReplicas": 4} if tc.metadata.counts_slots else {"replicas": 3}
    tc.status.tidb.stateful_set = status
    return numbers(server_pods(reconcile(tc, tidb.stateful_set(tc, "cm") | {"status": status}), "tidb", ()))


def awaited_before_a_restart(tc: TidbCluster) -> list[int]:
    labels = base_labels(tc, "tikv")
    pod = as_object({"kind": "Pod", "metadata": {"name": "demo-tikv-77", "namespace": "ns", "labels": labels}})
    waiting = others_not_ready(reconcile(tc), pod, ())
    assert waiting is not None
    return numbers(waiting.message.removeprefix("waiting for ").partition(" to be")[0].split(", "))


def that_may_found_the_cluster(tc: TidbCluster) -> list[int]:
    return numbers(pods_that_may_found(tc))


def whose_claims_stay(tc: TidbCluster) -> list[int]:
    """The ordinals whose claim is kept because its pod is wanted."""

    def step(ordinal: int) -> object:
        marks = {POD_NAME: f"demo-tikv-{ordinal}", PVC_DEFER_DELETING: "1"}
        meta = {"name": f"tikv-demo-tikv-{ordinal}", "labels": base_labels(tc, "tikv"), "annotations": marks}
        return deferred_step(tc, as_object({"kind": "PersistentVolumeClaim", "metadata": meta}), None)

    return [ordinal for ordinal in range(9) if step(ordinal) == Keep("its pod is wanted again")]


def whose_pd_members_are_not_strays(tc: TidbCluster) -> list[int]:
    there = as_object({"metadata": {"name": "demo-pd"}, "spec": {"replicas": 0}})
    strays = pd_scaling._unasked(reconcile(tc), there, range(9))
    return [ordinal for ordinal in range(9) if ordinal not in strays]


def that_let_another_tidb_leave(tc: TidbCluster) -> list[int]:
    """The pods that, Ready together with pod 2, are enough for pod 8 to leave: of three, one may be missing."""

    def lets(ordinal: int) -> bool:
        api = FakeApi()
        ctx = replace(context(api, tc), deps=reconcile(tc).deps)
        ready: Json = {"conditions": [{"type": "Ready", "status": "True"}]}
        pods = [_pod(tc, each) | {"status": ready} for each in (ordinal, 2, 8)]
        api.put(PODS.path("ns"), {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})
        ctx.deps = replace(ctx.deps, client=Client(api))
        removal = PodRemoval(ctx, "tidb", 8, desired_ordinals(tc, "tidb"), None, ())
        return not isinstance(concluded(ctx, stateless._drain(removal)), Waiting)

    return [ordinal for ordinal in range(8) if ordinal == 2 or lets(ordinal)]


def _pod(tc: TidbCluster, ordinal: int) -> Json:
    meta = {"name": f"demo-tidb-{ordinal}", "namespace": "ns", "labels": base_labels(tc, "tidb")}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": []}}


def that_are_missing_in_the_report(tc: TidbCluster) -> list[int]:
    """The missing TiKV pods in `kubectl tidb status`; a pod of an Advanced StatefulSet shows that slots count."""
    version = (ADVANCED_STATEFUL_SETS if tc.metadata.counts_slots else STATEFUL_SETS).api_version
    owner = {"apiVersion": version, "kind": "StatefulSet", "name": "demo-tidb", "uid": "1", "controller": True}
    meta = {"name": "demo-tidb-2", "namespace": "ns", "labels": base_labels(tc, "tidb"), "ownerReferences": [owner]}
    pod = as_object({"kind": "Pod", "metadata": meta, "spec": {"containers": []}})
    tree = as_object({"metadata": {"name": "demo", "namespace": "ns", "uid": "1"}})
    facts = Facts(Found(TIDB_CLUSTERS, tree, gated(tc, False)), [ClusterPod("tidb", pod, pod.decode_as(Pod))])
    return numbers([each.name for each in report_of(facts).pods if each.component == "tikv"])


_DECISIONS: list[Callable[[TidbCluster], list[int]]] = [
    made,
    below_the_partition_are_slots_or_pods,
    may_be_marked_failed,
    must_serve_until_the_lost_return,
    wanted_by_spec_and_failover,
    asked_for_their_health,
    awaited_before_a_restart,
    that_may_found_the_cluster,
    whose_claims_stay,
    whose_pd_members_are_not_strays,
    that_let_another_tidb_leave,
    that_are_missing_in_the_report,
]


@pytest.mark.parametrize("decision", _DECISIONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    ("slots", "expected"), [("[1]", [0, 2, 3]), ("[0,1]", [2, 3, 4]), ("[7]", [0, 1, 2]), ("[]", [0, 1, 2])]
)
@pytest.mark.rule("4.4")
def test_every_decision_counts_on_the_same_pods(
    slots: str, expected: list[int], decision: Callable[[TidbCluster], list[int]]
) -> None:
    assert expected == decision(of(slots, True))
    assert [0, 1, 2] == decision(of(slots, False))


@pytest.mark.parametrize("advanced", [False, True])
@pytest.mark.rule("4.4", "F5")
def test_a_slot_that_counts_is_part_of_what_a_live_read_confirms(advanced: bool) -> None:
    api = FakeApi()
    ctx = context(api, of("[1]", advanced))
    ours, other = (encode(of(slots, False)) | {"kind": "TidbCluster"} for slots in ("[1]", "[2]"))
    ctx.owner = as_object(api.put(CLUSTER_PATH, ours))
    assert spec_confirmed(ctx) is not None
    api.put(CLUSTER_PATH, other)
    assert advanced is (spec_confirmed(ctx) is None)


@pytest.mark.rule("4.4")
def test_no_pod_stands_in_for_a_lost_one_whose_ordinal_is_a_slot() -> None:
    lost = {"tikv": {"failureStores": {"1": {"podName": "demo-tikv-1"}}}}
    before, after = reconcile(of("[]", True, status=lost)), reconcile(of("[1]", True, status=lost))
    assert ["demo-tikv-3"] == substitutes(before, "tikv")
    assert [] == substitutes(after, "tikv")
    assert (False, True) == (given_up(before, "tikv", "demo-tikv-1"), given_up(after, "tikv", "demo-tikv-1"))


@pytest.mark.rule("8.3")
def test_a_leaving_pd_leader_hands_over_to_a_member_that_stays() -> None:
    voters = [Voter(each, f"demo-pd-{each}", each, healthy=True, leads=each == 3) for each in range(4)]
    staying = OrdinalSet(2, frozenset({0}))
    assert Transfer(voters[1]) == next_step(voters, 3, 2, staying=staying)
    assert Transfer(voters[0]) == next_step(voters, 3, 2)


_COUNTED = re.compile(r"\breplicas\b")


def test_no_code_counts_ordinals_from_replicas() -> None:
    """`range(replicas)` and `pods[replicas:]` forget delete slots; an OrdinalSet knows them."""
    rooms = ("apis", "cli", "controllers", "discovery", "member", "meta", "rehearsal", "scheduler", "simulate")
    files = sorted(path for room in rooms for path in (_ROOT / room).rglob("*.py"))
    found = [f"{path.relative_to(_ROOT)}: {text}" for path in files for text in _counts(path.read_text())]
    assert [] == [each for each in found if not each.startswith(_OF_OTHERS)]


_OF_OTHERS = ("apis/ordinals.py", "simulate/")


def _counts(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        is_range = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
        if (is_range or isinstance(node, ast.Slice)) and _COUNTED.search(text := ast.unparse(node)):
            yield text


@pytest.mark.parametrize(
    "code", ["range(tc.spec.tikv.replicas)", "range(int(body['spec']['replicas']))", "pods[workload.replicas:]"]
)
def test_counting_from_replicas_is_noticed(code: str) -> None:
    assert list(_counts(code))
