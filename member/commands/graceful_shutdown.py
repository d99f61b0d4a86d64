"""`tidb-graceful-shutdown` on a TiDB pod: with `delete-pod` it is restarted, closing its connections itself."""

from apis import predicates
from kube.objects import Object
from member.commands.asking import BUSY, NONE, Command
from member.commands.restarting import restart
from member.outcome import Done, Outcome, Waiting
from member.round import Round


def act(round_: Round, pod: Object, command: Command) -> Outcome:
    """Restart the pod when nothing else goes on. Raises ApiError, TransportError, LeaseExpired."""
    if command.value == NONE:
        return Done()
    for component in ("pd", "tikv", "tidb"):
        if predicates.in_phase(round_.tc, component, "Upgrade", "Scale"):
            what = f"{pod.metadata.name} is restarted when {component} is neither upgraded nor scaled"
            return Waiting("ComponentBusy", what, BUSY)
    return restart(round_, pod, command, "a TiDB server ends its connections by itself")
