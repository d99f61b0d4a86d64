"""How long a pod that is not Ready may recover (lifecycle.md F11, F44), and how long OnDelete stays (7.1.1)."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from apis.times import stamp
from kube.objects import Json, Object
from member.context import Dependencies, ReconcileContext
from member.lifecycle.roll_steps import RollingPod
from member.lifecycle.roll_view import RollView
from member.lifecycle.rolling import Rolling
from ports.clock import FakeClock
from tests.member.clusters import cluster
from tests.member.reconciling import as_object

_BODY: Json = {
    "metadata": {"name": "demo-pd"},
    "spec": {"replicas": 1, "updateStrategy": {"type": "RollingUpdate"}},
    "status": {"updateRevision": "new"},
}


class _Dependencies:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.listers = SimpleNamespace(nodes=None)


def pod(clock: FakeClock, *, crashes: bool) -> Object:
    """A pod that has just stopped being Ready."""
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(clock.wall())}
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if crashes else {"running": {}}
    status = {"conditions": [ready], "containerStatuses": [{"name": "pd", "restartCount": 1, "state": state}]}
    labels = {"controller-revision-hash": "old"}
    meta = {"name": "demo-pd-0", "uid": "1", "labels": labels}
    return Object(msgspec.json.encode({"metadata": meta, "spec": {}, "status": status}))


def is_starting(ctx: ReconcileContext, seen: Object) -> bool:
    """True if it is expected to recover."""
    view = RollView(ctx, "pd", Rolling(), _BODY, scaling=False, everything_changed=False)
    (found,) = view.rolling_pods([seen])
    return found.starting


@pytest.mark.parametrize(("crashes", "seconds"), [(True, 15), (False, 300)])
@pytest.mark.parametrize("jump", [0, -3600, -31_536_000])
@pytest.mark.rule("F11", "F44")
def test_a_clock_that_is_set_back_lengthens_no_wait(
    clock: FakeClock, *, crashes: bool, seconds: int, jump: int
) -> None:
    deps = cast("Dependencies", _Dependencies(clock))
    ctx, seen = (
        ReconcileContext(as_object({"metadata": {"name": "demo"}}), cluster(), deps),
        pod(clock, crashes=crashes),
    )
    clock.jump(timedelta(seconds=jump))
    assert is_starting(ctx, seen)
    clock.step(seconds - 1)
    assert is_starting(ctx, seen)
    clock.step(1)
    assert not is_starting(ctx, seen)


_FIRST, _SECOND = RollingPod("demo-pd-0", 0, True, True, False), RollingPod("demo-pd-1", 1, True, True, False)
_PREFERRED = replace(_FIRST, priority=1)


@pytest.mark.parametrize(
    ("pods", "observed", "expected"),
    [
        ([_PREFERRED, _SECOND], 2, 2),
        ([replace(_FIRST, updated=True), _SECOND], 2, 2),
        # the StatefulSet's controller has not seen OnDelete, after which the pod is deleted
        ([_PREFERRED, _SECOND], 1, None),
        ([replace(_FIRST, ready=False), _SECOND], 1, None),
        # the pod was deleted, and is to return on the newest revision
        ([replace(_PREFERRED, exists=False), _SECOND], 2, None),
        ([replace(_FIRST, exists=False), replace(_SECOND, priority=-1)], 2, None),
        ([replace(_FIRST, exists=False, ignored=True), replace(_SECOND, priority=-1)], 2, 2),
        ([replace(_FIRST, exists=False), _SECOND], 2, 2),
    ],
)
@pytest.mark.rule("lifecycle-7.1.1")
def test_on_delete_stays_until_the_pod_whose_turn_it_is_has_returned(
    clock: FakeClock, pods: list[RollingPod], observed: int, expected: int | None
) -> None:
    """`expected` is the partition; None for OnDelete."""
    ctx = ReconcileContext(
        as_object({"metadata": {"name": "demo"}}), cluster(), cast("Dependencies", _Dependencies(clock))
    )
    body: Json = {
        "metadata": {"name": "demo-pd", "generation": 2},
        "spec": {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
        "status": {"updateRevision": "new", "observedGeneration": observed},
    }
    view = RollView(ctx, "pd", Rolling(), body, scaling=False, everything_changed=False)
    spec = view.no_restarts(pods).spec
    assert expected == spec.get("rollingUpdate", {}).get("partition")
    assert ("OnDelete" if expected is None else "RollingUpdate") == spec["type"]
