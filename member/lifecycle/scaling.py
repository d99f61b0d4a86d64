"""How many replicas a StatefulSet gets in this reconcile (lifecycle.md 8.1).

If both are pending, `member.lifecycle.scale_out` runs before `member.lifecycle.scale_in`, which also undoes a scale-in
that the user took back.
"""

from dataclasses import dataclass

from apis.ordinals import slots_annotation
from kube.actions import Emit
from kube.events import WARNING
from kube.objects import Json
from member.apply.stateful_set import Replicas
from member.context import ClusterContext
from member.labels import DELETE_SLOTS
from member.lifecycle.scale_in import ScaleIn, cancel_removals, next_lower_replicas
from member.lifecycle.scale_out import ScaleOut, next_replicas, next_returning
from member.naming import pod_name
from member.observed.status import SCALE, set_phase
from member.outcome import NotDone, Waiting


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a component grows and shrinks."""

    out: ScaleOut
    in_: ScaleIn


@dataclass(frozen=True, slots=True)
class Size:
    """The replicas for this reconcile, and what the StatefulSet waits for to get the wanted number."""

    replicas: Replicas
    outcome: NotDone | None = None


async def next_size(ctx: ClusterContext, component: str, scaling: Scaling, body: Json, desired: Json) -> Size:
    """Decide on the replicas. Raises ApiError, TransportError, DataPlaneError."""
    there, wanted = body["spec"]["replicas"], desired["spec"]["replicas"]
    if pod := next_returning(ctx, component, scaling.out, body, wanted):
        what = f"recreating pod {pod}, whose data is still in use"
        return Size(Replicas.raised(body, there + 1), Waiting("ScalingOut", what))
    kept = min(there, wanted)
    retained, unfinished = await cancel_removals(ctx, component, scaling.in_, body, kept)
    if unfinished:
        return Size(Replicas.unchanged(body), unfinished)
    if retained < kept:
        set_phase(ctx, component, SCALE)
        return await _finish_removal(ctx, component, scaling, body, retained)
    if wanted < there:
        return Size(*await next_lower_replicas(ctx, component, scaling.in_, body, wanted))
    return Size(*await next_replicas(ctx, component, scaling.out, body, desired))


async def warn_of_slots(ctx: ClusterContext, component: str, desired: Json, body: Json | None) -> None:
    """Warn, when a list of ordinals to skip reaches the StatefulSet, that it has no effect (4.4 BETTER)."""
    slots = _slots(desired)
    if slots is None or (body is not None and _slots(body) == slots):
        return
    what = (
        f"annotation {slots_annotation(component)}={slots} has no effect: a StatefulSet always removes its highest "
        "ordinal; remove the annotation and set only the replicas"
    )
    await Emit(ctx.owner, WARNING, "DeleteSlotsIgnored", what)


def _slots(stateful_set: Json) -> str | None:
    slots: str | None = (stateful_set["metadata"].get("annotations") or {}).get(DELETE_SLOTS)
    return slots


async def _finish_removal(ctx: ClusterContext, component: str, scaling: Scaling, body: Json, retained: int) -> Size:
    """Remove a pod that has already left the data plane; it is recreated with empty volumes afterwards (F32, I32)."""
    replicas, outcome = await next_lower_replicas(ctx, component, scaling.in_, body, retained)
    if not isinstance(outcome, Waiting):
        return Size(replicas, outcome)
    pod = pod_name(ctx.tc, component, retained)
    what = f"pod {pod} had already left the data plane; recreating it with empty volumes: {outcome.message}"
    return Size(replicas, Waiting(outcome.reason, what, outcome.retry_after))
