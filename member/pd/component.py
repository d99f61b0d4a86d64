"""PD: the first component; all others wait for it (lifecycle.md 6.1)."""

from collections.abc import Iterator
from functools import partial

from apis import predicates
from apis.components import component_type
from apis.identity import known_cluster_ids
from apis.ordinals import desired_ordinals
from apis.pod_commands import PD_TRANSFER_LEADER, REPLACE_VOLUME, REPLACEMENT_BEGUN
from apis.validation import changes
from dataplane.addresses import Stranger
from kube.actions import Emit
from kube.events import WARNING
from member import api_clients
from member.availability import Verdict
from member.context import ReconcileContext
from member.evidence import member_gone
from member.failover.outages import Member, silent_quorum
from member.failover.steps import named
from member.lifecycle import quorum
from member.lifecycle.scaling import ScaleOut, Scaling
from member.lifecycle.workload import Workload
from member.naming import ordinal_of, pod_name
from member.objects.config_map import in_use_config_map_name
from member.observed.claims import claimed_ids
from member.observed.referenced_cluster import observe_joined_pd
from member.outcome import Done, Outcome, Waiting
from member.ownership import own_member, owned_members
from member.pd import commands, desired, failover, rolling, scaling
from member.pd.status import observe
from member.polling import next_poll

_NO_FILE = changes.Running(configs={"pd": {}})


def _serving(ctx: ReconcileContext) -> Outcome:
    members = ctx.status.pd.members
    if predicates.all_members_ready(ctx.tc, "pd"):
        return Done(f"{len(members)} of {len(members)} members are healthy")
    ill = sorted(name for name, member in members.items() if not member.health)
    there = max(len(members), ctx.tc.spec.pd.replicas if ctx.tc.spec.pd else 0)
    away = [named(ctx, "pd", pod) for pod in sorted(ctx.status.pd.unjoined_members)]
    what, awaited = f"{len(members) - len(ill)} of {there} members are healthy", ", ".join([*ill, *away])
    return Waiting("PDUnhealthy", f"{what}; waiting for {awaited}" if awaited else what, next_poll(ctx, "pd"))


def _all_healthy(ctx: ReconcileContext) -> Waiting | None:
    """The wait before another member joins: every present pod must be a healthy member (8.3 BETTER).

    Lost pods need not be, nor pods that leave before they have joined, which Discovery keeps out. While there is no
    cluster, Discovery lets no pod begin one before all wanted pods have asked it (F40).
    """
    if not _has_begun(ctx):
        return None
    pd, lost = ctx.status.pd, failover.replaced(ctx)
    if not ctx.unstarted_pd_members:
        wanted = desired_ordinals(ctx.tc, "pd")
        lost |= {pod for pod in pd.unjoined_members if ordinal_of(pod) not in wanted}
    joined = len(pd.members) >= predicates.actual_replicas(ctx.tc, "pd") - len(lost)
    ill = {name for name, member in pd.members.items() if not member.health} | (pd.unjoined_members.keys() - lost)
    if pd.synced and joined and not ill:
        return _outdated_peer_url(ctx)
    names = f": {', '.join(named(ctx, 'pd', pod) for pod in sorted(ill))}" if ill else ""
    what = f"waiting for all present PD members to be healthy before adding another{names}"
    return Waiting("PDUnhealthy", what, next_poll(ctx, "pd"))


def _outdated_peer_url(ctx: ReconcileContext) -> Waiting | None:
    """The wait for a peer URL that predates a change of TLS.

    Only a single member is checked: several can reach each other.
    """
    if len(ctx.status.pd.members) != 1:
        return None
    members = api_clients.pd(ctx).members().members
    return quorum.outdated(ctx, "pd", ((member.name, member.id, member.peer_urls) for member in members))


def _has_begun(ctx: ReconcileContext) -> bool:
    """True if there is evidence that the PD cluster exists."""
    pd, stores = ctx.status.pd, ctx.status.tikv.stores
    known = known_cluster_ids(ctx.tc, claimed_ids(ctx)) or stores or pd.members or pd.peer_members
    return bool(known) or ctx.tc.spec.cluster is not None


def _is_member(ctx: ReconcileContext, pod: str) -> bool:
    return own_member(ctx.tc, ctx.status.pd.members.values(), ordinal_of(pod)) is not None


def _outage(ctx: ReconcileContext) -> Verdict | None:
    """The verdict on a PD that does not answer. Its members in other clusters have no pods here."""
    return silent_quorum(ctx, "pd", _voters(ctx))


def _voters(ctx: ReconcileContext) -> Iterator[Member]:
    pd = ctx.status.pd
    for member, owner in owned_members(ctx.tc, (pd.members | pd.peer_members).values()):
        pod = "" if isinstance(owner, Stranger) else pod_name(ctx.tc, "pd", owner)
        yield Member(member.name, member.id, member.health, partial(api_clients.pd_member_votes, ctx, member), pod)


async def _housekeeping(ctx: ReconcileContext) -> Outcome | None:
    await report_fixed_settings(ctx)
    return await scaling.remove_strays(ctx)


_OUT = ScaleOut(limit=lambda _: 1, allowed=_all_healthy, is_member=_is_member, volumes_unused=member_gone)

PD = Workload(
    name="pd",
    observe=observe,
    outage=_outage,
    observe_elsewhere=observe_joined_pd,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    scaling=Scaling(_OUT, scaling.SCALE_IN),
    rolling=rolling.ROLLING,
    failover=failover.failover,
    # a stray member keeps other members from joining, so its removal can't wait until all pods are Ready
    housekeeping=_housekeeping,
    commands={
        REPLACE_VOLUME: commands.replace_volume,
        REPLACEMENT_BEGUN: commands.replace_volume,
        PD_TRANSFER_LEADER: commands.transfer_leader,
    },
)


async def report_fixed_settings(ctx: ReconcileContext) -> None:
    """Emit an event, once, about settings that v1.6 left out of the file and that will now appear in it.

    They have no effect: a running PD uses its stored values (defaults-and-validation.md 4.2).
    """
    found: frozenset[str] = frozenset()
    if changes.without_effect(ctx.tc, _NO_FILE):
        found = frozenset(changes.without_effect(ctx.tc, _file_in_use(ctx)))
    if found and found != ctx.memory.without_effect:
        what = f"{', '.join(sorted(found))}: has no effect on a running PD; change it with pd-ctl"
        await Emit(ctx.owner, WARNING, "NoEffectOnRunningPD", what)
    ctx.memory.without_effect = found


def _file_in_use(ctx: ReconcileContext) -> changes.Running:
    """The file that the pods use; empty if there are no pods."""
    live = ctx.stateful_set("pd")
    if live is None:
        return changes.Running()
    body = live.decode()
    config_map = ctx.listers.config_maps.get(ctx.namespace, in_use_config_map_name(ctx.tc, "pd", body))
    data = config_map.decode().get("data") or {} if config_map else {}
    file = component_type("pd").config.file
    return changes.observe({"pd": body}, {"pd": data[file]} if file in data else {})
