"""Which pods a StatefulSet has, wherever code asks: with delete slots only if it is an Advanced one (4.4)."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from apis.ordinals import OrdinalSet
from kube.objects import Json, Object
from kube.resources import ADVANCED_STATEFUL_SETS, TIDB_CLUSTERS
from member.apply import stateful_set
from member.apply.stateful_set import EvidenceMissing, Replicas, UpdateStrategy, with_size
from member.context import Dependencies, Listers, ReconcileContext
from member.evidence import Evidence, pods_live
from member.lifecycle.creation import claim_of_others
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.roll_view import RollView
from member.lifecycle.rolling import Rolling
from member.lifecycle.scaling import ScaleIn, ScaleOut, Scaling, next_size
from member.objects.stateful_set import lowest_restarted, ordinals_of
from member.tikv import desired
from meta.templates import unlabelled_pods
from ports.clock import FakeClock
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.deciding import concluded
from tests.member.reconciling import as_object, context, put_stateful_set

NATIVE, ADVANCED = "apps/v1", ADVANCED_STATEFUL_SETS.api_version


def body(slots: str | None = "[1]", api_version: str = ADVANCED, replicas: int = 3) -> Json:
    """TiKV's StatefulSet."""
    made = desired.stateful_set(cluster(tikv={"replicas": replicas}), "cm")
    annotations = {} if slots is None else {"delete-slots": slots}
    return made | {"apiVersion": api_version, "metadata": made["metadata"] | {"annotations": annotations}}


def bound(there: Json) -> list[int]:
    return list(range(ordinals_of(there).bound))


def restarted_by_the_controller(there: Json) -> list[int]:
    """The ordinals from the lowest restarted one; the partition in `body` is 3."""
    return list(range(lowest_restarted(there)))


def below_the_partition_of_a_resized_one(there: Json) -> list[int]:
    strategy = with_size(there, Replicas.unchanged(there))["spec"]["updateStrategy"]
    return list(range(strategy["rollingUpdate"]["partition"]))


def below_the_partition_above_all(there: Json) -> list[int]:
    return list(range(UpdateStrategy.above_all(ordinals_of(there).bound).spec["rollingUpdate"]["partition"]))


def rolled(there: Json) -> list[int]:
    ctx = ReconcileContext(
        as_object({"metadata": {"name": "demo"}}), cluster(), cast("Dependencies", SimpleNamespace(listers=None))
    )
    view = RollView(ctx, "tikv", Rolling(), there, scaling=False, everything_changed=False)
    return [each.ordinal for each in view.rolling_pods([])]


def whose_claims_are_checked(there: Json) -> list[int]:
    """Ordinals whose claim of another controller keeps the StatefulSet from being created."""
    refused = []
    for ordinal in range(6):
        owner = {"apiVersion": "v1", "kind": "Other", "name": "other", "uid": "1", "controller": True}
        meta = {"name": f"tikv-demo-tikv-{ordinal}", "ownerReferences": [owner]}
        claim = Object(msgspec.json.encode({"metadata": meta}))
        taken = SimpleNamespace(LOOK_AGAIN=1.0)
        ctx = cast("ReconcileContext", SimpleNamespace(tc=cluster(), memory=SimpleNamespace(taken_names=taken)))
        refused += [ordinal] if claim_of_others(ctx, "tikv", there, [claim]) else []
    return refused


def looked_for(there: Json) -> list[int]:
    """Ordinals of pods that are read live because the cache lacks them."""
    asked: list[int] = []

    def find(_: object, name: str, __: str) -> None:
        asked.append(int(name.rpartition("-")[2]))

    long_since = SimpleNamespace(seconds=3600.0)
    watches = SimpleNamespace(is_due=lambda *_: True, look=lambda *_: long_since, known=lambda _: [])
    deps = SimpleNamespace(client=SimpleNamespace(find=find), clock=FakeClock())
    ctx = SimpleNamespace(memory=SimpleNamespace(stopwatches=watches), deps=deps, namespace="ns")
    assert [] == list(unlabelled_pods(cast("ReconcileContext", ctx), {"uid": there}, ()))
    return asked


_PODS: list[Callable[[Json], list[int]]] = [rolled, whose_claims_are_checked, looked_for]
_RANGES: list[Callable[[Json], list[int]]] = [
    bound,
    restarted_by_the_controller,
    below_the_partition_of_a_resized_one,
    below_the_partition_above_all,
]
_TABLE = [
    (body(), [0, 2, 3], 4),
    (body("[0,1]"), [2, 3, 4], 5),
    (body("[0]", replicas=1), [1], 2),
    (body("[7]"), [0, 1, 2], 3),
    (body("[]"), [0, 1, 2], 3),
    (body(None), [0, 1, 2], 3),
    (body("[1"), [0, 1, 2], 3),
    (body("[1]", NATIVE), [0, 1, 2], 3),
    (body(None, NATIVE), [0, 1, 2], 3),
]


@pytest.mark.parametrize("ask", _PODS, ids=lambda each: each.__name__)
@pytest.mark.parametrize(("there", "expected", "_"), _TABLE)
@pytest.mark.rule("4.4")
def test_pods_have_the_ordinals_of_the_stateful_set(
    there: Json, expected: list[int], _: int, ask: Callable[[Json], list[int]]
) -> None:
    assert expected == ask(there)


@pytest.mark.parametrize("ask", _RANGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize(("there", "_", "expected"), _TABLE)
@pytest.mark.rule("4.4")
def test_a_partition_above_all_pods_is_above_the_highest_ordinal(
    there: Json, _: list[int], expected: int, ask: Callable[[Json], list[int]]
) -> None:
    there = there | {
        "spec": there["spec"] | {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 9}}}
    }
    assert list(range(expected)) == ask(there)


@pytest.mark.rule("4.4", "I3")
def test_another_slot_is_not_written_without_evidence() -> None:
    api = FakeApi()
    ctx, there = context(api), body("[1]")
    live, wanted = put_stateful_set(api, there), body("[2]")

    replicas, strategy = Replicas.unchanged(there), UpdateStrategy.unchanged(there)
    with pytest.raises(EvidenceMissing, match=r"without evidence for each pod that is removed"):
        concluded(ctx, stateful_set.update(ctx, wanted, live, replicas=replicas, strategy=strategy))
    assert "PATCH demo-tikv" not in api.calls


class Scaled:
    """A TiDB whose pods drain at once, scaled as a StatefulSet of some kind is written reconcile by reconcile."""

    def __init__(self, api_version: str) -> None:
        self._api, self._version = FakeApi(), api_version
        ctx = context(self._api, cluster(tidb={"replicas": 1}))
        nothing = SimpleNamespace(get=lambda *_: None)
        listers = cast("Listers", SimpleNamespace(pods=nothing, persistent_volume_claims=nothing))
        live = ctx.deps.client.get(TIDB_CLUSTERS, "demo", "ns")
        self._ctx = ReconcileContext(live, ctx.tc, replace(ctx.deps, listers=listers))
        self.drained: list[tuple[int, list[int]]] = []
        """Each pod that left, and those that were to stay."""

    async def _drain(self, removal: PodRemoval) -> Evidence:
        self.drained.append((removal.ordinal, removal.staying.ordinals))
        return pods_live(self._ctx, "tidb")

    async def _cancel(self, removal: PodRemoval) -> None:
        raise AssertionError(f"nothing of pod {removal.name} has begun")

    def run(self, before: OrdinalSet, wanted: OrdinalSet) -> list[tuple[int, str | None]]:
        """The replicas and slots that are written, in order."""
        out = ScaleOut(lambda _: 1, lambda _: None, lambda *_: False, lambda *_: None)
        scaling = Scaling(out, ScaleIn(lambda _: 1, self._drain, self._cancel))
        there, goal, written = self._body(before), self._body(wanted), list[tuple[int, str | None]]()
        for _ in range(9):
            size = concluded(self._ctx, next_size(self._ctx, "tidb", scaling, there, goal))
            there = with_size(goal, size.replicas) | {"status": {"replicas": size.replicas.count}}
            if size.outcome is None:
                return written
            annotations = there["metadata"].get("annotations") or {}
            written.append((there["spec"]["replicas"], annotations.get("delete-slots")))
        raise AssertionError(f"not settled: {written}, {size.outcome}")

    def _body(self, pods: OrdinalSet) -> Json:
        made = body(str(sorted(pods.slots)), self._version, pods.replicas)
        made["metadata"]["name"] = "demo-tidb"
        return made | {"spec": made["spec"] | {"volumeClaimTemplates": []}, "status": {"replicas": pods.replicas}}


def pods(replicas: int, *slots: int) -> OrdinalSet:
    return OrdinalSet(replicas, frozenset(slots))


@pytest.mark.parametrize(
    ("before", "wanted", "expected", "drained"),
    [
        (pods(4), pods(3, 1), [(3, "[1]")], [(1, [0, 2, 3])]),
        (pods(3), pods(3, 1), [(4, "[]"), (3, "[1]")], [(1, [0, 2, 3])]),
        (pods(3, 1), pods(4), [(4, "[]")], []),
        (pods(3, 1), pods(3), [(4, "[]"), (3, "[]")], [(3, [0, 1, 2])]),
        (pods(4), pods(2, 0), [(3, "[]"), (2, "[0]")], [(3, [1, 2]), (0, [1, 2])]),
        (pods(3, 1), pods(2, 1), [(2, "[1]")], [(3, [0, 2])]),
        (pods(3), pods(3, 5), [], []),
    ],
)
@pytest.mark.rule("4.4")
def test_an_advanced_stateful_set_is_scaled_pod_by_pod_as_by_v1_6(
    before: OrdinalSet,
    wanted: OrdinalSet,
    expected: list[tuple[int, str]],
    drained: list[tuple[int, list[int]]],
) -> None:
    tidb = Scaled(ADVANCED)
    assert expected == tidb.run(before, wanted)
    assert drained == tidb.drained


@pytest.mark.rule("4.4")
def test_slots_do_not_count_for_a_native_stateful_set() -> None:
    tidb = Scaled(NATIVE)
    assert [(2, "[0]")] == tidb.run(pods(3), pods(2, 0))
    assert [(2, [0, 1])] == tidb.drained
