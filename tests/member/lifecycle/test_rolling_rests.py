"""A roll decides once: as long as nothing changes, it writes nothing different (I29, R24). Covered are all states of
pods, every strategy of the StatefulSet, and a world in which pods neither start nor end, as with a quota: alternating
writes would be as fast as the API server answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest

from kube.objects import Json, Object
from kube.resources import PODS
from member import labels
from member.apply.last_applied import stamped
from member.context import Listers, ReconcileContext
from member.labels import base_labels
from member.lifecycle.roll import next_roll
from member.lifecycle.rolling import Rolling
from member.observed.troubles import LOOK_AGAIN
from member.outcome import SOONEST
from member.tidb import desired
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.deciding import concluded
from tests.member.reconciling import as_object, context

_REPLICAS = 2
_OLD, _NEW, _UNTOLD = "demo-tidb-old", "demo-tidb-new", ""
"""The last pod has lost its label by a foreign edit."""
_TEMPLATES = [(revision, state) for revision in (_OLD, _NEW, _UNTOLD) for state in ("Ready", "ill", "ending")]
_GONE = ("", "gone")
_WRITES = 4
"""So many decisions lead from any state to the last one."""


@dataclass(frozen=True, slots=True)
class World:
    """Pods by ordinal, as revision and state; the StatefulSet's current revision, management policy and strategy."""

    pods: tuple[tuple[str, str], ...]
    current: str
    policy: str
    strategy: Json
    priorities: Sequence[str] = ()

    def stateful_set(self, strategy: Json) -> Json:
        """The pods after this strategy was written."""
        body = stamped(wanted(self.policy, strategy))
        body["metadata"] |= {"uid": "uid-2", "generation": 1}
        there = sum(pod != _GONE for pod in self.pods)
        revisions = {"currentRevision": self.current, "updateRevision": _NEW}
        return body | {"status": {"observedGeneration": 1, "replicas": there, **revisions}}


def worlds() -> Iterator[World]:
    strategies = [{"type": "OnDelete"}, *map(_partition, range(_REPLICAS + 1))]
    ways = product([*_TEMPLATES, _GONE], repeat=_REPLICAS)
    return (World(*each) for each in product(ways, (_OLD, _NEW), ("Parallel", "OrderedReady"), strategies))


def in_users_orders() -> Iterator[World]:
    """The same, with priorities."""
    return (replace(world, priorities=each) for world, each in product(worlds(), (("1", "0"), ("0", "-1"))))


def _partition(ordinal: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": ordinal}}


def wanted(policy: str, strategy: Json) -> Json:
    """TiDB's StatefulSet, with a strategy."""
    body = desired.stateful_set(cluster(tidb={"replicas": _REPLICAS}), "cm")
    return body | {"spec": body["spec"] | {"podManagementPolicy": policy, "updateStrategy": strategy}}


class Cache:
    """A lister that shows these objects, or none."""

    changes = 0

    def __init__(self, *objects: Object) -> None:
        self._objects = objects

    def get(self, _namespace: str, name: str) -> Object | None:
        return next((each for each in self._objects if each.metadata.name == name), None)

    def list(self, *_: Any) -> Sequence[Object]:
        return self._objects


def seen(world: World, body: Json) -> ReconcileContext:
    """The context of a reconcile, in which caches and API server show the same."""
    api = FakeApi()
    ctx = context(api, cluster(tidb={"replicas": _REPLICAS}, status={"tidb": {"phase": "Upgrade"}}))
    pods = [_pod(ordinal, *each, world.priorities) for ordinal, each in enumerate(world.pods) if each != _GONE]
    api.put(PODS.path("ns"), {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})
    listers: dict[str, Any] = dict.fromkeys(Listers.__annotations__, Cache())
    shown = {"pods": Cache(*map(as_object, pods)), "stateful_sets": Cache(as_object(body))}
    ctx.listers = Listers(**(listers | shown))
    return ctx


def _pod(ordinal: int, revision: str, state: str, priorities: Sequence[str]) -> Json:
    told = {labels.CONTROLLER_REVISION_HASH: revision} if revision else {}
    carried = base_labels(cluster(), "tidb") | told
    meta: Json = {"name": f"demo-tidb-{ordinal}", "namespace": "ns", "uid": f"uid-{ordinal}", "labels": carried}
    if priorities:
        meta["annotations"] = {labels.RESTART_PRIORITY: priorities[ordinal]}
    if state == "ending":
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": str(state == "Ready"), "lastTransitionTime": "2025-01-01T00:00:00Z"}
    status = {"phase": "Running", "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}, "status": status}


def written(world: World, rolling: Rolling) -> list[Json]:
    """The strategies that are written in sequence, until one stays, a pod is deleted, or there are too many."""
    found, wanted_one = [world.strategy], wanted(world.policy, _partition(_REPLICAS))
    while len(found) <= _WRITES:
        body = world.stateful_set(found[-1])
        ctx = seen(world, body)
        roll = concluded(ctx, next_roll(ctx, "tidb", rolling, body, wanted_one, changed="", scaling=False))
        if roll.delete or roll.strategy.spec == found[-1]:
            break
        found.append(roll.strategy.spec)
    return found


@pytest.mark.parametrize("ignored", [(), ("demo-tidb-0",)], ids=["all counted", "one ignored"])
@pytest.mark.rule("I29")
def test_a_roll_writes_nothing_while_nothing_changes(ignored: Sequence[str]) -> None:
    assert {} == restless(worlds(), ignored)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.rule("I29", "lifecycle-7.1.1")
def test_a_roll_in_the_users_order_writes_nothing_while_nothing_changes() -> None:
    assert {} == restless(in_users_orders(), ())


def restless(places: Iterable[World], ignored: Sequence[str]) -> Mapping[object, Sequence[Json]]:
    """The worlds in which writes do not end, with the written strategies."""
    rolling = Rolling(ignored_pods=lambda _: ignored)
    return {world.pods: found for world in places if len(found := written(world, rolling)) > _WRITES}


@pytest.mark.parametrize(("state", "again"), [("ending", LOOK_AGAIN), ("ill", SOONEST)])
def test_a_pod_that_leaves_is_checked_seldom_because_events_report_its_return(state: str, again: float) -> None:
    world = World(((_OLD, "Ready"), (_OLD, state)), _OLD, "Parallel", _partition(1))
    ctx = seen(world, world.stateful_set(world.strategy))
    deciding = next_roll(
        ctx,
        "tidb",
        Rolling(),
        world.stateful_set(world.strategy),
        wanted("Parallel", _partition(2)),
        changed="",
        scaling=False,
    )
    roll = concluded(ctx, deciding)
    assert roll.outcome
    assert again == roll.outcome.retry_after, roll.outcome
