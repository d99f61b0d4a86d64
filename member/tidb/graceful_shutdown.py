"""`tidb-graceful-shutdown` on a TiDB pod: with `delete-pod` it is restarted, closing its connections itself."""

from apis import predicates
from apis.components import component_type
from apis.pod_commands import NONE
from kube.objects import Object
from member.commands.annotations import RETRY_BUSY, Command
from member.commands.restarting import restart
from member.context import ReconcileContext
from member.outcome import Done, Outcome, Waiting
from member.tidb.failover import ignored_pods


def act(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Restart the pod when nothing else goes on. Raises ApiError, TransportError, LeaseExpired."""
    if command.value == NONE:
        return Done()
    for component in (*component_type("tidb").upgrades_after, "tidb"):
        if predicates.in_phase(ctx.tc, component, "Upgrade", "Scale"):
            name = pod.metadata.name
            what = f"waiting until {component} is neither being upgraded nor scaled before restarting pod {name}"
            return Waiting("ComponentBusy", what, RETRY_BUSY)
    return restart(ctx, pod, command, ignored_pods(ctx), "the server closes its connections gracefully")
