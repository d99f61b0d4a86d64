"""The present status of PD (lifecycle.md 5.1). Reads only."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TypeAlias, cast

from apis.component_statuses import PDStatus
from apis.components import component_names
from apis.identity import FORCE_PD_BOOTSTRAP, is_abandoned, known_cluster_ids
from apis.ordinals import desired_replicas
from apis.shared import PDMember, UnjoinedMember
from apis.times import stamp
from dataplane.addresses import Stranger, shown_url
from dataplane.errors import AddressNotUnderstood, BadTlsMaterial, DataPlaneError, Unavailable
from dataplane.pd import Health, Membership, PDReads, Store, unreported
from kube.objects import Object
from member import api_clients
from member.context import ReconcileContext
from member.naming import ordinal_of
from member.observed.claims import claimed_ids, claims_of, labelled_ids
from member.observed.pods import ready_pods
from member.observed.referenced_cluster import joined_cluster
from member.observed.status import observe_pods, transition_time
from member.observed.troubles import discovery_trouble
from member.outcome import Done, Failed, Outcome, Refused, Waiting
from member.ownership import Owner, owned_members, require_understood_owners
from member.pd.failover import ignored_pods
from member.polling import next_poll
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout

_Ahead: TypeAlias = tuple[Membership | None, tuple[Health, ...] | None, tuple[Store, ...] | None]
"""The answers of concurrent reads: members, their health, stores. None for an error."""

_NO_ANSWER = (ConnectionLost, ConnectionRefused, RequestTimeout)


def observe(ctx: ReconcileContext) -> Outcome:
    """Update `status.pd`.

    Returns Waiting while a new PD does not answer yet, Failed if a PD that has served does not answer, and Refused if a
    different PD answers.
    """
    if ctx.tc.spec.pd is None:
        return Done()
    status = ctx.status.pd
    status.synced = False
    pods = observe_pods(ctx, "pd", status, ignored_pods(ctx))
    if pods is None:
        return Done()
    if not ready_pods(pods) and desired_replicas(ctx.tc, "pd"):
        return Waiting("PDNotReady", "no PD pod is Ready yet")
    outcome = _ask(ctx, status, pods)
    if isinstance(outcome, Done):
        status.synced = True
        if status.leader and (status.unjoined_members or not _all_are_healthy(ctx, status)):
            # the Service may select a member that does not serve
            ctx.pd_url = api_clients.reachable_pd_member(ctx, status.leader.client_url)
    return outcome


def _all_are_healthy(ctx: ReconcileContext, status: PDStatus) -> bool:
    members = (*status.members.values(), *status.peer_members.values())
    return not ctx.unstarted_pd_members and all(member.health for member in members)


@dataclass(frozen=True, slots=True)
class _Answers:
    leader: str
    cluster_id: str
    healths: tuple[Health, ...]
    contradiction: Unavailable | None = None
    """Why the health report is no evidence of a quorum."""


def _ask(ctx: ReconcileContext, status: PDStatus, pods: Sequence[Object]) -> Outcome:
    known = known_cluster_ids(ctx.tc, claimed_ids(ctx))
    try:
        answers = _answers_of_any(ctx)
        if refused := _foreign(ctx, known, answers.cluster_id):
            return refused
        if answers.contradiction:
            raise answers.contradiction
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    except Unavailable as error:
        if known or isinstance(error.cause, RequestTimeout):
            return Failed("PDUnreachable", f"{error}{_peers_do_not(ctx)}")
        trouble = discovery_trouble(ctx)
        cause = f"Discovery, which it asks at its first start, does not run: {trouble}" if trouble else error
        joins = f", which is to join the PD of {joined}" if (joined := joined_cluster(ctx.tc)) else ""
        return Waiting("PDNotAnswering", f"PD does not answer yet{joins}: {cause}", next_poll(ctx, "pd"))
    except DataPlaneError as error:
        return Failed("PDUnreachable", f"{error}{_peers_do_not(ctx)}")
    return _note(ctx, status, pods, answers)


def _note(ctx: ReconcileContext, status: PDStatus, pods: Sequence[Object], answers: _Answers) -> Outcome:
    """Put the answers into the status; pods without a member only once every address is understood."""
    ctx.status.cluster_id = answers.cluster_id
    named = [health for health in answers.healths if health.name]
    ctx.unstarted_pd_members |= len(named) < len(answers.healths)
    owned = owned_members(ctx.tc, named)
    _set_members(ctx, status, owned, answers.leader)
    try:
        require_understood_owners(owned)
    except AddressNotUnderstood as error:
        return Failed("AddressNotUnderstood", str(error))
    status.unjoined_members = _unjoined(ctx, status, pods, {owner for _, owner in owned})
    return Done()


def _foreign(ctx: ReconcileContext, known: Sequence[str], cluster_id: str) -> Refused | None:
    """The refusal of a PD with another cluster id. Labels of the data count, because users can edit the status."""
    if not known or cluster_id in known or is_abandoned(ctx.tc, known) or labelled_ids(ctx) == {cluster_id}:
        return None
    return Refused(
        "ForeignPDCluster",
        f"PD reports cluster id {cluster_id}, but this cluster is {', '.join(known)}: no changes are made; restore the "
        f'volumes of the right PD, or abandon its data with the annotation {FORCE_PD_BOOTSTRAP}: "{known[0]}"',
    )


def _peers_do_not(ctx: ReconcileContext) -> str:
    """The addition to a message if PD has members in other clusters: `api_clients.pd` has asked them, too."""
    known = ctx.status.pd.peer_members
    outside = sorted(name for name, each in known.items() if not api_clients.reachable_pd_member(ctx, each.client_url))
    peers = sorted(known.keys() - outside)
    parts = [f"; nor do its members in other clusters answer: {', '.join(peers)}"] if peers else []
    if outside:
        # PD reports these names, so an attacker may have chosen them
        parts.append(
            f"; {len(outside)} of its members announce addresses that belong to no TidbCluster which shares this PD, "
            "and were not asked"
        )
    return "".join(parts)


def _answers_of_any(ctx: ReconcileContext) -> _Answers:
    """The answers of PD's Service, or of a single member if the Service selects one that does not serve.

    A member is Ready as soon as its container runs, so the Service sometimes selects an unhealthy one. Raises
    DataPlaneError.
    """
    try:
        return _answers(ctx, api_clients.pd_answers(ctx))
    except Unavailable as error:
        another = api_clients.responding_pd_member(ctx) if isinstance(error.cause, _NO_ANSWER) else None
        if another is None:
            raise
        # this member also answers the later requests of this reconcile
        return _answers(ctx, api_clients.pd_answers(ctx))


def _answers(ctx: ReconcileContext, pd: PDReads) -> _Answers:
    """Members and health. With stores, their reads for the later stages run concurrently.

    Raises DataPlaneError.
    """
    expected = desired_replicas(ctx.tc, "pd")
    ahead: _Ahead = (None, None, None)
    if of_stores := tuple(_reads_of_stores(ctx, pd)):
        reads: tuple[Callable[[], object], ...] = (pd.members, partial(pd.health, expected), *of_stores)
        ahead = cast("_Ahead", tuple(api_clients.ask_ahead(ctx, reads)[: len(ahead)]))
    members, health, ctx.listed_stores = ahead
    membership = members or pd.members()
    if membership.leader is None:
        # while PD's leader resigns, PD names none
        raise Unavailable("GET", f"{pd.base_url}/pd/api/v1/members", "PD has no leader")
    leader, cluster_id = membership.leader.name, str(membership.cluster_id or pd.cluster_id())
    healths = pd.health(expected) if health is None else health
    return _Answers(leader, cluster_id, healths, _contradiction(pd, membership, healths))


def _contradiction(pd: PDReads, membership: Membership, healths: Sequence[Health]) -> Unavailable | None:
    """The error of a health report that omits a listed member: absence is no evidence (R19)."""
    members = filter(None, (membership.leader, *membership.members))
    names = unreported(healths, {str(member.id): member.name or f"member {member.id}" for member in members})
    if not names:
        return None
    what = f"PD reports the health of {len(healths)} members, and not of {', '.join(names)}; ignoring its answer"
    return Unavailable("GET", f"{pd.base_url}/pd/api/v1/health", what)


def _reads_of_stores(ctx: ReconcileContext, pd: PDReads) -> Iterator[Callable[[], object]]:
    """The reads for existing stores, first of all stores, and further reads if there are to be fewer stores."""
    kinds = component_names(attrgetter("is_store"))
    sets = {name: ctx.tree(live)["spec"] for name in kinds if (live := ctx.stateful_set(name))}
    if sets:
        yield pd.all_stores
    for name, spec in sets.items():
        if spec.get("replicas", 1) > desired_replicas(ctx.tc, name):
            yield from pd.reads_before_removal(tiflash=name == "tiflash")


def _set_members(ctx: ReconcileContext, status: PDStatus, owned: Sequence[tuple[Health, Owner]], leader: str) -> None:
    now = ctx.deps.clock.wall()
    before = status.members | status.peer_members
    status.members, status.peer_members, status.leader = {}, {}, None
    for health, owner in owned:
        member = _member(health, before.get(health.name), now)
        (status.peer_members if isinstance(owner, Stranger) else status.members)[member.name] = member
        if member.name == leader:
            status.leader = member


def _member(health: Health, old: PDMember | None, now: datetime) -> PDMember:
    return PDMember(
        name=health.name,
        id=str(health.member_id),
        client_url=shown_url(health.client_urls[0]) if health.client_urls else "",
        health=health.healthy,
        last_transition_time=transition_time(old, old is not None and old.health == health.healthy, now),
    )


def _unjoined(
    ctx: ReconcileContext, status: PDStatus, pods: Sequence[Object], joined: Collection[Owner]
) -> dict[str, UnjoinedMember]:
    """The pods that are not among PD's members, with the time when this was first seen. `joined`: members' owners."""
    found = {}
    for pod in pods:
        name = pod.metadata.name
        if ordinal_of(name) in joined:
            continue
        old = status.unjoined_members.get(name)
        found[name] = UnjoinedMember(
            pod_name=name,
            pvc_uid_set={claim.metadata.uid: {} for claim in claims_of(ctx, pod)},
            created_at=old.created_at if old else stamp(ctx.deps.clock.wall()),
        )
    return found
