"""`replace-volume` on a TiDB pod: its volumes and it are made anew, one server at a time (lifecycle.md 13)."""

from apis.components import component_type
from kube.objects import Object
from member.commands.annotations import RETRY_SOON, Command
from member.commands.replacement import cancel, component_busy, is_cancelled
from member.commands.restarting import others_not_ready, restart_without_volumes
from member.context import ReconcileContext
from member.evidence import spec_or_wait
from member.outcome import Outcome, Waiting
from member.tidb.failover import ignored_pods


def act(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """One step of a replacement. Raises DataPlaneError, ApiError, TransportError, LeaseExpired."""
    if is_cancelled(ctx, pod, command):
        return cancel(ctx, pod)
    name = pod.metadata.name
    if busy := _busy(ctx, name):
        return busy
    if waiting := others_not_ready(ctx, pod, ignored_pods(ctx)):
        return waiting
    wanted = spec_or_wait(ctx, RETRY_SOON)
    if isinstance(wanted, Waiting):
        return wanted
    return restart_without_volumes(ctx, pod, command, wanted)


def _busy(ctx: ReconcileContext, pod: str) -> Waiting | None:
    first = (component_busy(ctx, pod, name) for name in component_type("tidb").upgrades_after)
    return next(filter(None, first), None) or component_busy(ctx, pod, "tidb", "Scale")
