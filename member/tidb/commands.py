"""Commands on TiDB pods: `tidb-graceful-shutdown` and `replace-volume` (lifecycle.md 13)."""

from apis import predicates
from apis.components import component_type
from apis.pod_commands import NONE
from kube.objects import Object
from member.commands import (
    RETRY_BUSY,
    RETRY_SOON,
    cancel,
    component_busy,
    is_cancelled,
    others_not_ready,
    restart,
    restart_without_volumes,
)
from member.context import ReconcileContext
from member.evidence import spec_or_wait
from member.observed.command_annotations import Command
from member.outcome import Done, Outcome, Waiting
from member.tidb.failover import ignored_pods


async def graceful_shutdown(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Restart the pod for `tidb-graceful-shutdown`: with `delete-pod` the server closes its connections first.

    Waits while TiDB, or a component that is upgraded before it, is upgraded or scaled. Raises ApiError, TransportError,
    LeaseExpired.
    """
    if command.value == NONE:
        return Done()
    for component in (*component_type("tidb").upgrades_after, "tidb"):
        if predicates.in_phase(ctx.tc, component, "Upgrade", "Scale"):
            name = pod.metadata.name
            what = f"waiting until {component} is neither being upgraded nor scaled before restarting pod {name}"
            return Waiting("ComponentBusy", what, RETRY_BUSY)
    return await restart(ctx, pod, command, ignored_pods(ctx), "the server closes its connections gracefully")


async def replace_volume(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Take one step of `replace-volume`: the pod gets new volumes, one server at a time.

    Raises DataPlaneError, ApiError, TransportError, LeaseExpired.
    """
    if is_cancelled(ctx, pod, command):
        return await cancel(ctx, pod)
    name = pod.metadata.name
    if busy := _busy(ctx, name):
        return busy
    if waiting := others_not_ready(ctx, pod, ignored_pods(ctx)):
        return waiting
    wanted = spec_or_wait(ctx, RETRY_SOON)
    if isinstance(wanted, Waiting):
        return wanted
    return await restart_without_volumes(ctx, pod, command, wanted)


def _busy(ctx: ReconcileContext, pod: str) -> Waiting | None:
    first = (component_busy(ctx, pod, name) for name in component_type("tidb").upgrades_after)
    return next(filter(None, first), None) or component_busy(ctx, pod, "tidb", "Scale")
