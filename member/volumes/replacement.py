"""The replacement, pod by pod, of volumes that cannot become what the spec wants (lifecycle.md 10.4).

A spare pod comes first, as a place to move data to. Then one pod after another gets the command `replace-volume`, which
`member.commands` runs: its member or store leaves PD before its claims are deleted. The spare pod goes last.
"""

from collections.abc import Mapping
from typing import Protocol, TypeGuard

from apis import pod_commands, predicates
from apis.accessor import Component
from apis.predicates import status_of
from kube.actions import Apply
from kube.objects import Json, Object
from kube.resources import PODS
from member.context import ClusterContext
from member.lifecycle import pod_removal
from member.naming import ordinal_of
from member.observed.pods import pods_of
from member.observed.status import NORMAL, is_upgrading
from member.outcome import Done, Outcome, Refused, Waiting

REPLACING = "ReplacingVolume"
REFUSED = "VolumeCantChange"
TOO_FEW = "TooFewStores"

_SOON = 0.5
_FEWEST_STORES = 3


class ReplacesVolumes(Protocol):
    """A status that shows if volumes are being replaced pod by pod."""

    vol_replace_in_progress: bool


def refusal(ctx: ClusterContext, spec: Component, why: str, wish: bytes, *, in_vain: bool) -> Refused | None:
    """The refusal of a change that volumes cannot follow, for the reason `why`; None if they may be replaced.

    `in_vain` is True if a volume does not match although the present StatefulSet requests what is wanted; all new
    volumes would come out like that, the spare pod's first. Nothing is replaced for this `wish` again, even after the
    spare pod has gone.
    """
    status = _status(ctx, spec.name)
    if status is not None and not is_on(ctx):
        status.vol_replace_in_progress = False
        ctx.memory.replaced_in_vain.pop(spec.name, None)
    if status is None or not is_on(ctx):
        return Refused(REFUSED, why)
    if spec.type.is_store and spec.workload.replicas < _FEWEST_STORES:
        what = f"the volumes of {spec.workload.replicas} {spec.type.title} pods cannot be replaced one by one"
        return Refused(TOO_FEW, f"{spec.field}.replicas: {what}; set {_FEWEST_STORES} or more")
    if in_vain:
        ctx.memory.replaced_in_vain[spec.name] = wish
    if ctx.memory.replaced_in_vain.get(spec.name) != wish:
        return None
    status.vol_replace_in_progress = False
    vain = "new volumes come out no better, as something, such as an admission webhook, changes what is asked for"
    return Refused(REFUSED, f"{vain}; mend that, set the size or class back, and then once more; {why}")


def is_idle(ctx: ClusterContext, component: str, body: Json) -> bool:
    """True if no other operation runs on the pods of a StatefulSet."""
    is_normal = predicates.in_phase(ctx.tc, component, NORMAL) and not is_upgrading(body, pods_of(ctx, component))
    return is_normal and isinstance(ctx.outcomes.get(component), Done)


async def replace(ctx: ClusterContext, spec: Component, body: Json, stale: Mapping[str, str]) -> Waiting:
    """Take the next step for pods with volumes in `stale`, with the cause of each. Raises ApiError, TransportError."""
    first, why = next(iter(stale.items()))
    status = _status(ctx, spec.name)
    if status is not None and not status.vol_replace_in_progress:
        status.vol_replace_in_progress = True
        return Waiting(REPLACING, f"replacing the volumes of {', '.join(stale)}: {why}", _SOON)
    if pod := _being_replaced(ctx, spec.name):
        return Waiting(
            REPLACING, f"replacing the volumes of pod {pod.metadata.name}; its progress is reported in events"
        )
    pod = ctx.listers.pods.get(ctx.namespace, first)
    if pod is None or pod.metadata.deletion_timestamp or not is_idle(ctx, spec.name, body):
        return Waiting(REPLACING, f"waiting until {spec.name} is idle before replacing the volumes of pod {first}")
    if not _are_still(ctx, spec.name, body, first):
        return Waiting(
            "CacheOutdated", f"waiting for the operator's cache to show the current volume claims of pod {first}", _SOON
        )
    name = {"name": first, "namespace": ctx.namespace}
    await Apply(PODS, {"metadata": name | {"annotations": {pod_commands.REPLACE_VOLUME: "true"}}}, pod)
    return Waiting(REPLACING, f"annotated pod {first} to replace its volumes: {why}")


def _are_still(ctx: ClusterContext, component: str, body: Json, pod: str) -> bool:
    """True if the pod's claims, read live, are those in the cache: otherwise they may be new ones already (F1)."""
    cached, live = (
        {each.metadata.uid for each in look(ctx, component, body, ordinal_of(pod)).claims}
        for look in (pod_removal.cached, pod_removal.live)
    )
    return cached == live


def finish(ctx: ClusterContext, component: str, *, all_seen: bool) -> Outcome:
    """The remaining steps when no volume is stale, or when none may be replaced.

    `all_seen` is True if the cache shows every claim as bound: a claim that it lacks may be stale (F1).
    """
    ctx.memory.replaced_in_vain.pop(component, None)
    status = _status(ctx, component)
    if status is None or not status.vol_replace_in_progress:
        return Done()
    if is_on(ctx) and not all_seen:
        return Waiting(REPLACING, f"waiting for all volumes of {component} to be bound")
    if is_on(ctx) and ((pod := _being_replaced(ctx, component)) or not isinstance(ctx.outcomes.get(component), Done)):
        what = (
            f"replacing the volumes of pod {pod.metadata.name}"
            if pod
            else f"all volumes of {component} have been replaced"
        )
        return Waiting(REPLACING, f"{what}; waiting until {component} is idle")
    status.vol_replace_in_progress = False
    return Waiting(REPLACING, f"all volumes of {component} have been replaced; removing the spare pod", _SOON)


def is_on(ctx: ClusterContext) -> bool:
    """True if the user allows the replacement of volumes, in this cluster or in all."""
    return bool(ctx.tc.spec.enable_pvc_replace) or ctx.settings.replaces_volumes


def _being_replaced(ctx: ClusterContext, component: str) -> Object | None:
    return next(
        (pod for pod in pods_of(ctx, component) if pod_commands.REPLACE_VOLUME in pod.metadata.annotations), None
    )


def _status(ctx: ClusterContext, component: str) -> ReplacesVolumes | None:
    """The status with the progress, which adds a spare replica from the next reconcile on (apis.ordinals).

    None for a component whose volumes are never replaced; v1.6 leaves its pods annotated forever (lifecycle.md 10.4).
    """
    status: object = status_of(ctx.tc, component)
    return status if _replaces_volumes(status) else None


def _replaces_volumes(status: object) -> TypeGuard[ReplacesVolumes]:
    return hasattr(status, "vol_replace_in_progress")
