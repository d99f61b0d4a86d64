"""Rolling restarts of PD: the quorum holds without each pod, and the leader transfers its role first (7.3)."""

from apis import predicates
from apis.ordinals import desired_replicas
from dataplane.addresses import Stranger
from dataplane.errors import Unavailable
from dataplane.pd import Health, Member, PDClient, unreported
from kube.objects import Object
from member import api_clients, labels
from member.context import ReconcileContext
from member.evidence import Evidence, Spared, spared, stopped
from member.lifecycle.quorum import WAY_OUT, forced
from member.lifecycle.roll import next_roll_poll
from member.lifecycle.rolling import Rolling, Silence
from member.naming import address_book, ordinal_of, pod_name
from member.observed.pods import pods_of
from member.observed.status import UPGRADE
from member.observed.troubles import removal_by_others
from member.outcome import NotDone, Refused, Waiting
from member.ownership import member_owner, not_understood, own_member, require_understood_members
from member.pd.failover import ignored_pods
from member.pd.scaling import hand_leadership, healths, may_vote
from member.polling import next_poll

_WAY_OUT = f"{WAY_OUT} restarts all pods of PD without asking it"


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    if ctx.status.pd.synced:
        return None
    what = "waiting for PD to report its members before restarting its pods"
    return Waiting("PDUnknown", f"{what}; {_WAY_OUT}" if _is_alone(ctx) else what, next_poll(ctx, "pd"))


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    member = own_member(ctx.tc, ctx.status.pd.members.values(), ordinal_of(pod.metadata.name))
    return "" if member and member.health else "is a healthy member"


async def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    """Check quorum, readiness of the others and leader live, right before the restart (F13, I9, I12)."""
    pd, name = api_clients.pd(ctx), pod.metadata.name
    members = _health(ctx, pd)
    others = [member for member in members if not is_of(ctx, member, name)]
    if hold := _without_quorum(ctx, name, others, len(members)):
        return hold
    healthy = [member for member in others if member.healthy]
    if loading := _loading(ctx, healthy):
        return loading
    if not is_of(ctx, pd.leader(), name):
        return None
    return await _transfer(ctx, pd, name, healthy)


async def _spare(ctx: ReconcileContext, pod: str) -> Spared | Silence | NotDone:
    """Spare an unready pod, unless the quorum needs its member (I9) or it leads (I12). Raises DataPlaneError."""
    if not ctx.status.pd.synced:
        silence = Silence("PDUnknown", "PD does not report its members", _WAY_OUT)
        return not_understood(ctx.observations) or silence
    pd = api_clients.pd(ctx)
    members = _health(ctx, pd)
    own = [member for member in members if is_of(ctx, member, pod)]
    others = [member for member in members if member not in own]
    needed = _without_quorum(ctx, pod, others, len(members)) if any(may_vote(ctx, member) for member in own) else None
    if needed and stopped(ctx, "pd", pod) is None:
        return needed
    if is_of(ctx, pd.leader(), pod):
        handing_over = await _transfer(ctx, pd, pod, [member for member in others if member.healthy])
        if handing_over:
            return handing_over
    return spared(pod, "PD has a quorum without it" if not needed else "nothing of it runs")


async def _finish(ctx: ReconcileContext) -> Waiting | None:
    if not predicates.in_phase(ctx.tc, "pd", UPGRADE) or not ctx.status.pd.synced:
        return None
    return _loading(ctx, _health(ctx, api_clients.pd(ctx)))


def _forced(ctx: ReconcileContext) -> Evidence | None:
    def ask(pod: str) -> bool:
        return api_clients.pd_member(ctx, address_book(ctx.tc).pd_member(ordinal_of(pod))).votes()

    return None if ctx.status.pd.synced else forced(ctx, "pd", alone=_is_alone(ctx), ask=ask)


def _is_alone(ctx: ReconcileContext) -> bool:
    """True if only a single member is known."""
    return predicates.actual_replicas(ctx.tc, "pd") < 2 and not ctx.status.pd.peer_members


def _health(ctx: ReconcileContext, pd: PDClient) -> tuple[Health, ...]:
    """The health of PD's members.

    Raises Unavailable if the answer omits a member that this reconcile has seen: it would not count for the quorum, and
    its pod would seem dispensable. Raises AddressNotUnderstood if the owner of a member is ambiguous.
    """
    members = healths(ctx, pd, desired_replicas(ctx.tc, "pd"))
    seen = ctx.status.pd.members | ctx.status.pd.peer_members
    if omitted := unreported(members, {member.id: name for name, member in seen.items()}):
        what = f"PD no longer reports the health of {', '.join(omitted)}"
        raise Unavailable("GET", f"{pd.base_url}/pd/api/v1/health", what)
    require_understood_members(ctx.tc, [member for member in members if member.name])
    return members


def _without_quorum(ctx: ReconcileContext, pod: str, others: list[Health], total: int) -> NotDone | None:
    """Why the other members would be no quorum; None if they are one, or if PD has a single member (7.3 BETTER)."""
    healthy = sum(member.healthy for member in others)
    wanted = total // 2 + 1
    if total <= 1 or healthy >= wanted or _opted_out(ctx):
        return None
    what = f"without pod {pod}, only {healthy} of PD's {total} members would be healthy, but a quorum needs {wanted}"
    if len(others) >= wanted:
        ill = ", ".join(member.name or "a member that has not started" for member in others if not member.healthy)
        return Waiting("PDQuorum", f"{what}; waiting for {ill}", next_roll_poll(ctx, "pd"))
    removals = [removal_by_others(ctx, "pd", obj) for obj in pods_of(ctx, "pd")]
    if removed := "; ".join(filter(None, removals)):
        return Refused("PDQuorum", f"{what}; {removed}", next_roll_poll(ctx, "pd"))
    if desired_replicas(ctx.tc, "pd") > total:
        return Waiting("PDQuorum", f"{what}; waiting for PD's other pods to join", next_roll_poll(ctx, "pd"))
    way_out = f'scale PD to 3, or set the annotation {labels.PD_CHECK_QUORUM_BEFORE_UPGRADE}: "false"'
    return Refused("PDQuorum", f"{what}; {way_out}", next_roll_poll(ctx, "pd"))


def _opted_out(ctx: ReconcileContext) -> bool:
    return ctx.tc.metadata.annotations.get(labels.PD_CHECK_QUORUM_BEFORE_UPGRADE) == "false"


def _loading(ctx: ReconcileContext, members: list[Health] | tuple[Health, ...]) -> Waiting | None:
    """The wait for the first own member that has not loaded its regions; peers' members do not matter here."""
    for member in members:
        own = bool(member.client_urls) and not isinstance(member_owner(ctx.tc, member), Stranger)
        if own and not api_clients.pd_member(ctx, member.client_urls[0]).ready():
            if not api_clients.pd(ctx).is_bootstrapped():
                # the leader of a PD without stores is never ready: there are no regions to load
                return None
            return _wait_to_load(ctx, member)
    return None


def _wait_to_load(ctx: ReconcileContext, member: Health) -> Waiting:
    owner = member_owner(ctx.tc, member)
    pod = member.name if isinstance(owner, Stranger) else pod_name(ctx.tc, "pd", owner)
    logs, again = f"`kubectl logs {pod}` says why", f"`kubectl delete pod {pod}` makes it load them again"
    return Waiting(
        "PDLoading",
        f"waiting for PD member {member.name} to load its regions",
        next_roll_poll(ctx, "pd"),
        way_out=f"{logs}; while all other members are healthy, {again}",
    )


async def _transfer(ctx: ReconcileContext, pd: PDClient, pod: str, healthy: list[Health]) -> Waiting | None:
    """Transfer leadership and wait until PD reports the new leader; None if no other member is healthy."""
    target = successor(ctx, pod, healthy)
    if target is None:
        return None
    await hand_leadership(ctx, pd, pod, target)
    what = f"transferring PD leadership from pod {pod} to {target}"
    way_out = f"`pd-ctl member leader transfer {target}` says why PD refuses, `pd-ctl member` lists leader priorities"
    return Waiting("TransferringPDLeader", what, next_roll_poll(ctx, "pd"), way_out=way_out)


def successor(ctx: ReconcileContext, pod: str, healthy: list[Health]) -> str | None:
    """The next leader: highest ordinal above the pod (already restarted), else the lowest (restarts last), or a peer"""
    own = ordinal_of(pod)
    ordinals: dict[int, str] = {}
    peers: list[str] = []
    for member in healthy:
        owner = member_owner(ctx.tc, member)
        if isinstance(owner, Stranger):
            peers.append(member.name)
        else:
            ordinals[owner] = member.name
    above = [ordinal for ordinal in ordinals if ordinal > own]
    if above or ordinals:
        return ordinals[max(above) if above else min(ordinals)]
    return peers[0] if peers else None


def is_of(ctx: ReconcileContext, member: Health | Member, pod: str) -> bool:
    """True if a member belongs to a pod (F24)."""
    return member_owner(ctx.tc, member) == ordinal_of(pod)


def _leader(ctx: ReconcileContext) -> str:
    leader = ctx.status.pd.leader
    owner = member_owner(ctx.tc, leader) if leader else Stranger.PEER
    return "" if isinstance(owner, Stranger) else pod_name(ctx.tc, "pd", owner)


ROLLING = Rolling(
    _blocked,
    _unmet_condition,
    _prepare,
    ignored_pods,
    finish=_finish,
    spare=_spare,
    forced=_forced,
    leader=_leader,
)
