"""Suspension of a component: its pods go; its volumes, configuration and Services stay (lifecycle.md 12).

The operator sets the phase Suspend before it deletes the StatefulSet, and clears the status once a live read shows that
no pod is left. A restarted operator can therefore continue at any point.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apis import predicates
from apis.accessor import Component, workloads
from apis.accessor import component as component_of
from kube.deletion import Destroyer
from kube.objects import Object
from kube.resources import STATEFUL_SETS
from member.actions import Delete
from member.apply.writes import record_deletion
from member.context import ClusterContext
from member.evidence import pods_live, spec_confirmed
from member.naming import member_name
from member.observed.nodes import kept_by_lost_nodes
from member.observed.status import NORMAL, SUSPEND, set_phase
from member.outcome import Done, NotDone, Outcome, Refused, Waiting
from member.polling import next_poll

SUSPENDED = "Suspended"
SUSPENDING = "Suspending"

_IS_SUSPENDED = (
    "suspended: no pods run until suspendAction.suspendStatefulSet is false; volumes and configuration are kept"
)


@dataclass(frozen=True, slots=True)
class Postponed:
    """The component must be suspended but cannot be yet; until then it is reconciled as usual."""

    why: str

    def merged_with(self, outcome: Outcome) -> NotDone:
        """The outcome of the usual reconcile, with the reason of the postponement added."""
        if isinstance(outcome, Done):
            return Waiting(SUSPENDING, self.why)
        return replace(outcome, message=f"{outcome.message}; {self.why}")


async def suspension(ctx: ClusterContext, component: str) -> Outcome | Postponed | None:
    """Suspend or resume a component as far as possible in this reconcile; None if it is to be reconciled as usual.

    Raises OwnerGone, ApiError, TransportError.
    """
    spec = component_of(ctx.tc, component)
    suspended = predicates.in_phase(ctx.tc, component, SUSPEND)
    if not spec.suspended:
        if suspended:
            set_phase(ctx, component, NORMAL)
        return None
    if not suspended:
        if postponed := _obstacle(ctx, spec):
            return postponed
        set_phase(ctx, component, SUSPEND)
        return Waiting(SUSPENDING, "about to remove all pods")
    return await _remove(ctx, spec)


def _obstacle(ctx: ClusterContext, spec: Component) -> Postponed | None:
    """What must end before the suspension: the component's own scaling or upgrade (F42), and its users (I37)."""
    for other in sorted(workloads(ctx.tc), key=lambda each: each.type.suspend_rank):
        if other.type.suspend_rank < spec.type.suspend_rank and other.suspended and _is_there(ctx, other.name):
            return Postponed(f"waiting for {other.name} to be suspended first")
    status = predicates.status_of(ctx.tc, spec.name)
    if status is None or status.phase in ("", NORMAL):
        return None
    return Postponed(f"waiting for the phase {status.phase} to end before suspending")


def _is_there(ctx: ClusterContext, component: str) -> bool:
    """True if the cache or the status still has a StatefulSet of the component."""
    status = predicates.status_of(ctx.tc, component)
    return ctx.stateful_set(component) is not None or (status is not None and status.stateful_set is not None)


async def _remove(ctx: ClusterContext, spec: Component) -> Outcome | None:
    if not _is_there(ctx, spec.name):
        return Done(_IS_SUSPENDED, SUSPENDED)
    seen = Destroyer(ctx.deps.client).observe(STATEFUL_SETS, member_name(ctx.tc, spec.name), ctx.namespace)
    if seen is None:
        return _removed(ctx, spec.name)
    if seen.object.metadata.deletion_timestamp is None:
        evidence = spec_confirmed(ctx)
        if evidence is None:
            return Waiting(SUSPENDING, f"waiting for the operator's cache to show the current {ctx.tc.kind}")
        await Delete(seen, evidence, propagation="Foreground")
        await record_deletion(ctx, STATEFUL_SETS, seen.object.metadata.name)
    return _waiting(ctx, spec.name, "waiting for all pods to be deleted")


def _removed(ctx: ClusterContext, component: str) -> Outcome | None:
    """Finish the suspension once no pod is left; None if there are orphaned pods.

    A pod without a controller first needs a new StatefulSet that adopts it; deleting that one removes the pod.
    """
    pods = pods_live(ctx, component).pods
    if any(_is_orphan(pod) for pod in pods):
        return None
    if pods:
        return _waiting(ctx, component, f"waiting for pods to be deleted: {_names(pods)}")
    _clear(ctx, component)
    return Done(_IS_SUSPENDED, SUSPENDED)


def _waiting(ctx: ClusterContext, component: str, what: str) -> Waiting | Refused:
    """The wait for pods to go; names pods on lost nodes, which may need the user."""
    return kept_by_lost_nodes(ctx, component, what) or Waiting(SUSPENDING, what, next_poll(ctx, component))


def _is_orphan(pod: Object) -> bool:
    return pod.metadata.controller is None and pod.metadata.deletion_timestamp is None


def _names(pods: Sequence[Object]) -> str:
    return ", ".join(pod.metadata.name for pod in pods)


def _clear(ctx: ClusterContext, component: str) -> None:
    """Remove all members from the status: they are unknown until they run again."""
    status = predicates.status_of(ctx.tc, component)
    if status is not None:
        status.forget_members()


def paused(cluster: str) -> Refused:
    """The answer of every part of a cluster that the user has paused."""
    return Refused("Paused", f"Paused: edits wait, failover is off. Resume: kubectl tidb resume {cluster}.")
