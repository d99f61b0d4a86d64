"""Writes that make Kubernetes sync a StatefulSet again while pods are missing.

After each failed creation of a pod the StatefulSet controller waits longer, up to 1,000 seconds. It does not notice
when the obstacle has gone, e.g. a pod of an older StatefulSet, a quota or a webhook. A write to the StatefulSet wakes
it.
"""

from itertools import takewhile

from apis.times import stamp
from kube.errors import ApiError
from kube.objects import Object
from member.context import ClusterContext
from member.labels import REQUEUED_AT
from member.lifecycle.refused_writes import noted
from member.observed.belonging import controls
from member.observed.pod import Pod
from member.observed.pods import pods_of

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
    body, meta = live.decode(), live.metadata
    has_looked = (body.get("status") or {}).get("observedGeneration", 0) >= meta.generation
    if not has_looked:
        return []
    pods = {pod.metadata.name: pod for pod in pods_of(ctx, component)}
    wanted = [f"{meta.name}-{ordinal}" for ordinal in range(body["spec"]["replicas"])]
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
