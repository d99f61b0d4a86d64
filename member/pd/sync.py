"""PD: the first component, on which all others wait (lifecycle.md 6.1)."""

from apis import predicates
from member.context import ReconcileContext
from member.evidence import member_gone
from member.lifecycle import component_sync
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.scaling import Scaling
from member.naming import pd_member_name
from member.outcome import Done, Outcome, Refused, Waiting
from member.pd import desired, failover, scale_in, unstarted_members, upgrade
from member.pd.status import observe
from member.polling import next_look

__all__ = ["act", "foreign_cluster", "observe"]


def act(ctx: ReconcileContext) -> Outcome:
    """Bring PD a step closer to its spec."""
    outcome = component_sync.act(ctx, _PD)
    if ctx.tc.spec.paused:
        return outcome
    # one of them keeps others from joining, so it can't wait until all pods are Ready
    leaving = unstarted_members.give_up(ctx)
    return leaving if leaving and isinstance(outcome, Done) else outcome


def foreign_cluster(ctx: ReconcileContext) -> Refused | None:
    """The refusal of everything when PD answered with another cluster's id (F40, I7)."""
    observed = ctx.observations.get("pd")
    return observed if isinstance(observed, Refused) else None


def _serving(ctx: ReconcileContext) -> Outcome:
    members = ctx.status.pd.members
    if predicates.pd_all_members_ready(ctx.tc):
        return Done(f"{len(members)} of {len(members)} members are healthy")
    healthy = sum(member.health for member in members.values())
    wanted = ctx.tc.spec.pd.replicas if ctx.tc.spec.pd else 0
    return Waiting("PDUnhealthy", f"{healthy} of {wanted} members are healthy", next_look(ctx, "pd"))


def _all_well(ctx: ReconcileContext) -> Waiting | None:
    """A further member joins only when every present pod is a healthy member (8.3 BETTER), but for the lost ones."""
    pd, lost = ctx.status.pd, failover.replaced(ctx)
    joined = len(pd.members) >= predicates.actual_replicas(ctx.tc, "pd") - len(lost)
    if pd.synced and joined and pd.unjoined_members.keys() <= lost and all(m.health for m in pd.members.values()):
        return None
    return Waiting("PDUnhealthy", "PD grows when all its present members are healthy", next_look(ctx, "pd"))


def _is_member(ctx: ReconcileContext, pod: str) -> bool:
    members = ctx.status.pd.members
    return pod in members or pd_member_name(ctx.tc, pod) in members


_OUT = ScaleOut(limit=lambda _: 1, allowed=_all_well, is_member=_is_member, unused=member_gone)

_PD = component_sync.Member(
    name="pd",
    gate=lambda _: None,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(_OUT, scale_in.SCALE_IN),
    rolling=upgrade.ROLLING,
    failover=failover.failover,
)
