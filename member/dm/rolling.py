"""Rolling restarts of masters (other-resources.md 6.7): a quorum holds, and the leader transfers its role first."""

from apis import predicates
from apis.ordinals import desired_replicas
from dataplane.dm import LiveMaster
from kube.objects import Object
from member import api_clients
from member.actions import ResignMaster
from member.context import DMContext
from member.dm.desired import MASTER
from member.dm.failover import ignored_masters
from member.evidence import Evidence, Spared, spared, stopped
from member.lifecycle.quorum import WAY_OUT, forced
from member.lifecycle.roll import next_roll_poll
from member.lifecycle.rolling import Rolling, Silence
from member.outcome import NotDone, Refused, Waiting
from member.polling import next_poll

_WAY_OUT = f"{WAY_OUT} restarts all masters without asking them"


def _blocked(ctx: DMContext) -> Waiting | None:
    if ctx.status.master.synced:
        return None
    what = "waiting for DM to report its masters before restarting their pods"
    return Waiting("DMMasterUnknown", f"{what}; {_WAY_OUT}" if _is_alone(ctx) else what, next_poll(ctx, MASTER))


def _unmet_condition(ctx: DMContext, pod: Object) -> str:
    member = ctx.status.master.members.get(pod.metadata.name)
    return "" if member and member.health else "is a healthy master"


async def _prepare(ctx: DMContext, pod: Object) -> NotDone | None:
    """Check quorum and leader live, right before the restart (F13, I9, I12)."""
    name = pod.metadata.name
    leader, masters = api_clients.dm_masters(ctx).led_masters()
    return _without_quorum(ctx, name, masters) or await _hand_over(ctx, leader, name, masters)


async def _spare(ctx: DMContext, pod: str) -> Spared | Silence | NotDone:
    """Spare an unready pod, unless the quorum needs its master (I9) or it leads (I12). Raises DataPlaneError."""
    if not ctx.status.master.synced:
        return Silence("DMMasterUnknown", "DM does not report its masters", _WAY_OUT)
    leader, masters = api_clients.dm_masters(ctx).led_masters()
    is_listed = any(master.name == pod for master in masters)
    needed = _without_quorum(ctx, pod, masters) if is_listed else None
    if needed and stopped(ctx, MASTER, pod) is None:
        return needed
    what = "DM has a quorum without it" if not needed else "nothing of it runs"
    return await _hand_over(ctx, leader, pod, masters) or spared(pod, what)


def _without_quorum(ctx: DMContext, pod: str, found: tuple[LiveMaster, ...]) -> NotDone | None:
    """Why the other masters would be no quorum; None if they are one, or if there is a single master."""
    others = [master for master in found if master.name != pod]
    alive, wanted = sum(master.alive for master in others), len(found) // 2 + 1
    if len(found) <= 1 or alive >= wanted:
        return None
    what = f"without pod {pod}, only {alive} of {len(found)} masters would be alive, but a quorum needs {wanted}"
    if len(others) >= wanted:
        ill = ", ".join(master.name or "one that has not started" for master in others if not master.alive)
        return Waiting("DMMasterQuorum", f"{what}; waiting for {ill}", next_roll_poll(ctx, MASTER))
    if desired_replicas(ctx.tc, MASTER) > len(found):
        return Waiting("DMMasterQuorum", f"{what}; waiting for the other masters to join", next_roll_poll(ctx, MASTER))
    return Refused("DMMasterQuorum", f"{what}; set spec.master.replicas to 3", next_roll_poll(ctx, MASTER))


async def _hand_over(ctx: DMContext, leader: str, pod: str, found: tuple[LiveMaster, ...]) -> Waiting | None:
    """Have another master lead, and wait until it does; None if no other master is alive."""
    if leader != pod or not any(master.alive for master in found if master.name != pod):
        return None
    await ResignMaster(api_clients.dm_master(ctx, pod))
    what = f"waiting until another master leads in place of pod {pod}"
    way_out = "the masters' logs say why none takes over; `dmctl list-member --leader` names the leader"
    return Waiting("TransferringDMMasterLeader", what, next_roll_poll(ctx, MASTER), way_out=way_out)


def _forced(ctx: DMContext) -> Evidence | None:
    def ask(pod: str) -> object:
        return api_clients.dm_master(ctx, pod).masters()

    return None if ctx.status.master.synced else forced(ctx, MASTER, alone=_is_alone(ctx), ask=ask)


def _is_alone(ctx: DMContext) -> bool:
    """True if only a single master is known."""
    return predicates.actual_replicas(ctx.tc, MASTER) < 2


def _leader(ctx: DMContext) -> str:
    return ctx.status.master.leader.name if ctx.status.master.leader else ""


ROLLING = Rolling(_blocked, _unmet_condition, _prepare, ignored_masters, spare=_spare, forced=_forced, leader=_leader)
