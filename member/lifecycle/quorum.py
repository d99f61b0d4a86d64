"""What PD members and DM masters share: leaving and joining a quorum, and restarts in silence (lifecycle.md 6.1, 8.3).

`next_step` is pure: no member leaves through itself or while it leads.

etcd keeps the peer URL with which a member joined, and only `etcdctl member update` changes it. A member that joined
before `spec.tlsCluster.enabled` changed is therefore out of reach for others. A single member needs no peers, so the
URL does no harm until a second member joins.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from apis.components import component_type
from apis.identity import scheme, tls_enabled
from apis.ordinals import OrdinalSet, desired_replicas
from dataplane.errors import Conflict, DataPlaneError, Unavailable
from kube.actions import Action
from member import labels
from member.context import ClusterContext
from member.evidence import Evidence, spec_or_wait, unobservable
from member.lifecycle.pod_removal import PodRemoval
from member.naming import ordinal_of
from member.observed.claims import PodWithVolumes
from member.observed.nodes import Activity, cached_activity
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Done, Refused, Wait, Waiting
from member.polling import next_poll
from ports.transport import ConnectionRefused


@dataclass(frozen=True, slots=True)
class Voter:
    """A member; `ordinal` is None for a member in another cluster."""

    id: int
    name: str
    ordinal: int | None
    healthy: bool
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """No such member exists."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer the leadership to another member first."""

    to: Voter


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the member."""

    voter: Voter


@dataclass(frozen=True, slots=True)
class StandsIn:
    """The member must stay, as only `others` healthy ones would remain, fewer than wanted."""

    others: int


Step: TypeAlias = Gone | Wait | StandsIn | Transfer | Remove


def next_step(
    voters: Sequence[Voter], ordinal: int, wanted: int = 0, of: str = "PD", staying: OrdinalSet | None = None
) -> Step:
    """The next step to remove this ordinal's member; `wanted` healthy own members must remain (F28, I8, I9, I12).

    The leadership goes to one of the `staying` ordinals, if any of them is healthy.
    """
    leaving = next((voter for voter in voters if voter.ordinal == ordinal), None)
    if leaving is None:
        return Gone()
    rest = [voter for voter in voters if voter is not leaving]
    ill = [voter for voter in rest if not voter.healthy]
    healthy = len(rest) - len(ill)
    if healthy <= len(rest) // 2:
        return Wait(f"{healthy} of the {len(rest)} {of} members that would remain are healthy, which is not a quorum")
    if ill and leaving.healthy:
        names = ", ".join(voter.name or "a member that has not started" for voter in ill)
        return Wait(f"waiting for {names} to be healthy before removing {leaving.name} from {of}")
    own = sum(voter.healthy and voter.ordinal is not None for voter in rest)
    if own < wanted and leaving.name:
        # a member without a name has never started and serves no client
        return StandsIn(own)
    return Transfer(_successor(rest, ordinal, staying)) if leaving.leads else Remove(leaving)


def _successor(rest: Sequence[Voter], ordinal: int, staying: OrdinalSet | None) -> Voter:
    """The next leader: the healthy own member with the lowest ordinal, or the highest if the lowest is above `ordinal`.

    A member that leaves next would pass the leadership on. Without own healthy members, one in another cluster.
    """
    healthy = [voter for voter in rest if voter.healthy]
    if staying is not None:
        healthy = [each for each in healthy if each.ordinal is not None and each.ordinal in staying] or healthy
    own = sorted((voter.ordinal, voter.name, voter) for voter in healthy if voter.ordinal is not None)
    if not own:
        return min(healthy, key=lambda voter: voter.name)
    return own[0][2] if own[0][0] < ordinal else own[-1][2]


_ILL = "ill while it leaves"
_JOINING = "joining while it leaves"

_JOINS_WITHIN = 30.0
"""Seconds within which a pod that Discovery has allowed to start becomes a member, or never does."""


def may_join(removal: PodRemoval, component: str, of: str) -> Waiting | None:
    """The wait for a pod that is not yet a member but may be joining at this moment (8.3 BETTER).

    If a second member joins and its pod is then removed, the remaining single member loses its quorum for good. From
    now on Discovery does not let the pod join; a permission that it received earlier takes effect within 30 s. `of` is
    the name of the cluster that it joins: PD or DM.
    """
    ctx, pod = removal.ctx, removal.pod
    if removal.begun or pod is None or not pod.decode_as(Pod).spec.node_name:
        return None
    if ctx.memory.stopwatches.look(_JOINING, pod.metadata.uid, ctx.deps.clock).seconds >= _JOINS_WITHIN:
        return None
    what = f"pod {removal.name} may just be joining {of}; waiting {_JOINS_WITHIN:.0f} s for that before it is removed"
    return Waiting("ScalingIn", what, next_poll(ctx, component))


def remaining(removal: PodRemoval, component: str, *, serves: bool, period: float) -> int:
    """The number of members that must remain; 0 if the leaving one has been unhealthy for `period` seconds.

    `serves` is True if the leaving member is healthy or has already left.
    """
    ctx, stopwatches = removal.ctx, removal.ctx.memory.stopwatches
    if serves:
        stopwatches.forget(_ILL, removal.name)
        return desired_replicas(ctx.tc, component)
    ill_for = stopwatches.look(_ILL, removal.name, ctx.deps.clock).seconds
    return 0 if ill_for >= period else desired_replicas(ctx.tc, component)


async def take_out(
    removal: PodRemoval, component: str, of: str, what: str, remove: Callable[[Evidence], Action[None]]
) -> Waiting | None:
    """Take a member out of its quorum. Returns the wait for what prevents it, None once the member is out.

    `what` and `of` are for messages: a member of PD, a master of DM. `remove` makes the action from its evidence.
    """
    soon = next_poll(removal.ctx, component)
    wanted = spec_or_wait(removal.ctx, soon)
    if isinstance(wanted, Waiting):
        return wanted
    await removal.note()
    try:
        await remove(wanted)
    except Conflict as error:
        return Waiting("ScalingIn", f"{of} refused to remove the {what} of pod {removal.name}: {error}", soon)
    return None


def comes_first(removal: PodRemoval, component: str, what: str, lost: Sequence[str]) -> Waiting | None:
    """The wait until lost members are replaced, and until pods with higher ordinals are deleted.

    `lost` holds the pods of the lost members.
    """
    if lost:
        waiting = f"waiting for the lost {what} of {', '.join(lost)} to be replaced before scaling in"
        return Waiting("ScalingIn", waiting, next_poll(removal.ctx, component))
    names = (pod.metadata.name for pod in pods_of(removal.ctx, component))
    leaving = [name for name in names if ordinal_of(name) not in removal.staying]
    if above := [name for name in leaving if ordinal_of(name) > removal.ordinal]:
        return Waiting("ScalingIn", f"waiting for pod {', '.join(above)} to be deleted")
    return None


Joined: TypeAlias = tuple[str, int, Sequence[str]]
"""The name of a member, its id in etcd, and its peer URLs."""


def outdated(ctx: ClusterContext, component: str, members: Iterable[Joined]) -> Waiting | None:
    """The wait for the user to update an outdated peer URL before the component grows; None if none is outdated."""
    wanted, title = f"{scheme(ctx.tc)}://", component_type(component).title
    for name, ident, urls in members:
        if not urls or any(url.startswith(wanted) for url in urls):
            continue
        new = wanted + urls[0].partition("://")[2]
        what = f"{title} member {name} has joined as {urls[0]}, where no other can reach it since TLS was switched"
        update = f"etcdctl member update {ident:x} --peer-urls={new}"
        return Waiting("PeerURLOutdated", f"{what}; run `{update}` before {title} grows", next_poll(ctx, component))
    return None


WAY_OUT = f'the annotation {labels.FORCE_UPGRADE}: "true"'
"""What users can set if the operator waits for a component that does not answer."""


def forced(ctx: ClusterContext, component: str, *, alone: bool, ask: Callable[[str], object]) -> Evidence | None:
    """Evidence that a component does not report its members, if its pods may be restarted nevertheless; else None.

    The user allows that with the annotation. Without it, only a member that is `alone` may be restarted, as it has no
    quorum to lose. It may still serve, and the new image may be broken, so two cases qualify: nothing listens at its
    port, or TLS is being switched, during which it can answer no call. `ask` calls the member of a pod.

    Without the annotation a lone member stays while its node is cut off, or while certificates that its new pod needs
    are missing or unusable.
    """
    if ctx.tc.metadata.annotations.get(labels.FORCE_UPGRADE) == "true":
        return unobservable(ctx, component)
    lacks_certificates = isinstance(ctx.outcomes.get("certificates", Done()), Refused)
    if not alone or lacks_certificates:
        return None
    pods = pods_of(ctx, component)
    if any(cached_activity(ctx, component, pod) is Activity.UNHEARD for pod in pods):
        return None
    if _switches_tls(ctx, component) or all(_is_closed(ask, pod.metadata.name) for pod in pods):
        return unobservable(ctx, component)
    return None


def _switches_tls(ctx: ClusterContext, component: str) -> bool:
    """True if a pod mounts its component's certificate though the cluster has TLS off, or lacks it though TLS is on."""
    pods = (pod.decode_as(PodWithVolumes).spec.volumes for pod in pods_of(ctx, component))
    return any((f"{component}-tls" in {volume.name for volume in volumes}) != tls_enabled(ctx.tc) for volumes in pods)


def _is_closed(ask: Callable[[str], object], pod: str) -> bool:
    """True if nothing listens at a member's port, as while its start script waits."""
    try:
        ask(pod)
    except Unavailable as error:
        return isinstance(error.cause, ConnectionRefused)
    except DataPlaneError:
        pass
    return False
