"""What a component lacks to serve as the spec demands, and the writes that make Kubernetes create its missing pods.

After each failed creation of a pod the StatefulSet controller waits longer, up to 1,000 seconds. It does not notice
when the obstacle has gone, e.g. a pod of an older StatefulSet, a quota or a webhook. A write to the StatefulSet wakes
it.
"""

from itertools import takewhile

from apis import predicates
from apis.ordinals import desired_replicas
from apis.times import stamp
from kube.errors import ApiError
from kube.objects import Object
from member.context import ClusterContext
from member.labels import REQUEUED_AT
from member.lifecycle.refused_writes import noted
from member.lifecycle.workload import Workload, members_ready
from member.naming import member_name
from member.objects.stateful_set import ordinals_of
from member.observed.claims import volume_being_deleted
from member.observed.nodes import kept_by_lost_nodes
from member.observed.pod import Pod
from member.observed.pods import controls, pods_of, ready_pods, wanted_pods
from member.observed.troubles import LOOK_AGAIN, troubles_of
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll


def serving_state(ctx: ClusterContext, member: Workload) -> Outcome:
    """Done if the component serves as the spec demands; else what it lacks."""
    wanted = desired_replicas(ctx.tc, member.name)
    ready = len(ready_pods(pods_of(ctx, member.name)))
    if ready < wanted:
        troubles = troubles_of(ctx, member.name, wanted_pods(ctx, member.name))
        missing = "; ".join(f"{name} ({trouble})" if trouble else name for name, trouble in troubles.items())
        # events report what keeps a pod from starting, but no event reports the state of the data plane
        again = next_poll(ctx, member.name) if all(troubles.values()) else LOOK_AGAIN
        what = f"{ready} of {wanted} pods are Ready; waiting for {missing}"
        return kept_by_lost_nodes(ctx, member.name, what) or Waiting("PodsNotReady", what, again)
    observed = ctx.observations.get(member.name, Done())
    if not isinstance(observed, Done):
        return observed
    if at_risk := volume_being_deleted(ctx, member.name):
        return at_risk
    if without_pods := _lacks_pods(ctx, member.name, wanted):
        return without_pods
    served = member.serving(ctx) if member.serving else members_ready(ctx, member.name)
    # the data plane may still count a server whose pod is about to go
    return served if isinstance(served, Done) else kept_by_lost_nodes(ctx, member.name, served.message) or served


def _lacks_pods(ctx: ClusterContext, component: str, wanted: int) -> Waiting | None:
    """The wait for a recreated StatefulSet to adopt the existing pods."""
    counted = predicates.counted_pods(ctx.tc, component)
    if counted >= wanted:
        return None
    what = f"StatefulSet {member_name(ctx.tc, component)} has {counted} of {wanted} pods"
    return Waiting("PodsNotReady", what, next_poll(ctx, component))


_FIRST = 5.0
"""Seconds within which Kubernetes usually creates pods; it retries often in that time."""
_LATEST = 300.0
"""The maximum of seconds between two writes; the interval grows with the time for which pods have been missing."""
_LOOK_AGAIN = 10.0


async def requeue(ctx: ClusterContext, component: str, live: Object) -> float | None:
    """Wake the controller of a StatefulSet if pods have been missing; seconds until the next check, None if none is.

    Does nothing while a pod of another StatefulSet has one of the names, as nothing can be created then. Raises
    TransportError.
    """
    missing = _missing(ctx, component, live)
    if not missing:
        return None
    key, clock = f"{live.metadata.uid}/{','.join(missing)}", ctx.deps.clock
    elapsed = ctx.memory.stopwatches.look("pods missing", key, clock).seconds
    if elapsed < _FIRST:
        return _FIRST - elapsed
    period = min(max(elapsed / 2, _FIRST), _LATEST)
    if ctx.memory.stopwatches.is_due("StatefulSet requeued", key, period, clock):
        await _write(ctx, live)
    return _LOOK_AGAIN


def _missing(ctx: ClusterContext, component: str, live: Object) -> list[str]:
    """The pods that Kubernetes should have created by now; empty if it has not read the spec or may create none."""
    body, meta = ctx.tree(live), live.metadata
    has_looked = (body.get("status") or {}).get("observedGeneration", 0) >= meta.generation
    if not has_looked:
        return []
    pods = {pod.metadata.name: pod for pod in pods_of(ctx, component)}
    wanted = [f"{meta.name}-{ordinal}" for ordinal in ordinals_of(body).ordinals]
    if body["spec"].get("podManagementPolicy") != "Parallel":
        # Kubernetes creates no pod behind one that is not Ready
        serve = takewhile(lambda name: name in pods and pods[name].decode_as(Pod).is_ready, wanted)
        wanted = wanted[: len(list(serve)) + 1]
    if not all(controls(meta.uid, pods[name]) for name in wanted if name in pods):
        return []
    return [name for name in wanted if name not in pods]


async def _write(ctx: ClusterContext, live: Object) -> None:
    try:
        await noted(live, {REQUEUED_AT: stamp(ctx.deps.clock.wall())})
    except ApiError:
        # another client has just written it, which has the same effect, or the next check writes it
        return
