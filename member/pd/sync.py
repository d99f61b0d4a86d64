"""PD: the first component, on which all others wait (lifecycle.md 6.1)."""

from apis import predicates
from member import sync
from member.naming import pd_member_name
from member.outcome import Done, Outcome, Refused, Waiting
from member.pd import desired, failover, ghosts, scale_in, upgrade
from member.pd.status import observe
from member.polling import next_look
from member.proofs import member_gone
from member.round import Round
from member.scale_out import ScaleOut
from member.scaling import Scaling

__all__ = ["act", "foreign_cluster", "observe"]


def act(round_: Round) -> Outcome:
    """Bring PD a step closer to its spec."""
    outcome = sync.act(round_, _PD)
    if round_.tc.spec.paused:
        return outcome
    # one of them keeps others from joining, so it can't wait until all pods are Ready
    leaving = ghosts.give_up(round_)
    return leaving if leaving and isinstance(outcome, Done) else outcome


def foreign_cluster(round_: Round) -> Refused | None:
    """The refusal of everything when PD answered with another cluster's id (F40, I7)."""
    observed = round_.observations.get("pd")
    return observed if isinstance(observed, Refused) else None


def _serving(round_: Round) -> Outcome:
    members = round_.status.pd.members
    if predicates.pd_all_members_ready(round_.tc):
        return Done(f"{len(members)} of {len(members)} members are healthy")
    healthy = sum(member.health for member in members.values())
    wanted = round_.tc.spec.pd.replicas if round_.tc.spec.pd else 0
    return Waiting("PDUnhealthy", f"{healthy} of {wanted} members are healthy", next_look(round_, "pd"))


def _all_well(round_: Round) -> Waiting | None:
    """A further member joins only when every present pod is a healthy member (8.3 BETTER), but for the lost ones."""
    pd, lost = round_.status.pd, failover.replaced(round_)
    joined = len(pd.members) >= predicates.actual_replicas(round_.tc, "pd") - len(lost)
    if pd.synced and joined and pd.unjoined_members.keys() <= lost and all(m.health for m in pd.members.values()):
        return None
    return Waiting("PDUnhealthy", "PD grows when all its present members are healthy", next_look(round_, "pd"))


def _is_member(round_: Round, pod: str) -> bool:
    members = round_.status.pd.members
    return pod in members or pd_member_name(round_.tc, pod) in members


_OUT = ScaleOut(limit=lambda _: 1, allowed=_all_well, is_member=_is_member, unused=member_gone)

_PD = sync.Member(
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
