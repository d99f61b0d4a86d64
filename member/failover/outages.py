"""Detection of components that are out of service, from the observations of this reconcile (lifecycle.md 2.3).

A verdict waits until an outage has lasted some seconds, so that a leader election or a restart does not count. It then
holds until the outage ends. After a restart of the operator, the stored condition shows that the outage has begun.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import partial

from apis import predicates
from apis.accessor import workloads
from apis.components import component_type
from apis.ordinals import desired_replicas
from apis.shared import ComponentStatus
from apis.times import parse_time
from dataplane.errors import DataPlaneError, Unavailable
from kube.objects import Object, condition_of
from member.availability import BAD_TLS, REASONS, Seen, Server, Verdict, of_servers, of_silent_quorum
from member.context import ClusterContext
from member.labels import MEMBER_ID
from member.lifecycle.workload import Workload
from member.observed.claims import claims_of
from member.observed.nodes import NodeState, node_state
from member.observed.pod import OFTEN, Pod
from member.observed.pods import pods_of, ready_pods, wanted_pods
from member.observed.status import SUSPEND
from member.outcome import Done, Failed, NotDone, Outcome, Refused
from member.polling import seconds_since
from ports.transport import ConnectionRefused

AVAILABILITY = "availability"
"""The stage whose outcome triggers the next check of an outage."""

_GRACE = 10.0
"""Seconds for which an outage must last before it is reported."""

_GRACE_OF_RESTARTS = 40.0
"""The same while the operator restarts a pod of the component."""

_LOOK_AGAIN = 20.0
"""Seconds until the next check of an outage, as no event may report its end."""

_CRASHED_LATELY = 60.0
"""Seconds for which a repeatedly crashed container must run until it counts as running."""

_NOTICED = timedelta(seconds=60)
"""The longest time for which reads may still show a member as healthy after it has ended."""

ANSWERS = frozenset({"NoPrimary", "PDWithoutMicroservices"})
"""Reasons of observations that wait for something although the members answered."""

_NO_LEADER = "no leader"
"""What members of PD and of DM say without a leader, each in a different error."""

_OUT_OF_SERVICE = "out of service"
"""The kind of stopwatch that measures outages."""


def judge(ctx: ClusterContext, members: Iterable[Workload]) -> Outcome:
    """Store the verdicts in `ctx.unavailable`; the outcome sets the next check of an outage."""
    known = ctx.memory.stopwatches.known(_OUT_OF_SERVICE)
    concerned = {part.name for part in workloads(ctx.tc)}.union(known)
    looks = [look for member in members if member.name in concerned and (look := _judge(ctx, member, known))]
    return Done(retry_after=min(looks, default=None))


def _judge(ctx: ClusterContext, member: Workload, known: Collection[str]) -> float | None:
    """Seconds until the next check of one component; None if it serves. `known`: those that were out of service."""
    name, watches = member.name, ctx.memory.stopwatches
    verdict = _verdict(ctx, member) if _is_expected(ctx, name) else None
    if verdict is None:
        if name in known:
            watches.forget(_OUT_OF_SERVICE, name)
        return None
    stored = _stored(ctx, name)
    lasted = watches.look(_OUT_OF_SERVICE, name, ctx.deps.clock).seconds
    left = (_GRACE_OF_RESTARTS if name in ctx.memory.rolls.announced else _GRACE) - lasted
    if left > 0 and not (stored and _is_reported(stored)):
        return min(left, _LOOK_AGAIN)
    ctx.unavailable[name] = verdict
    if not is_observed(ctx, name):
        # replace the error of the call with the verdict that it leads to
        ctx.observations[name] = Failed(verdict.reason, verdict.message, _LOOK_AGAIN)
    return _LOOK_AGAIN


def _is_expected(ctx: ClusterContext, name: str) -> bool:
    """True if the component should serve, and its observation was not refused."""
    observed = ctx.observations.get(name)
    return (
        desired_replicas(ctx.tc, name) > 0
        and not isinstance(observed, Refused)
        and not predicates.in_phase(ctx.tc, name, SUSPEND)
    )


def _verdict(ctx: ClusterContext, member: Workload) -> Verdict | None:
    observed = ctx.observations.get(member.name)
    if isinstance(observed, Failed) and observed.reason == BAD_TLS:
        title = component_type(member.name).title
        return Verdict(member.name, BAD_TLS, f"The operator cannot ask {title}: {observed.message}.")
    return (member.outage or partial(no_server, component=member.name))(ctx)


def no_server(ctx: ClusterContext, component: str) -> Verdict | None:
    """The verdict on servers that have served before; None if one serves, or if that is unknown."""
    status = predicates.status_of(ctx.tc, component)
    if status is None or not is_observed(ctx, component) or any(status.health) or not has_served(ctx, component):
        return None
    pods = {pod.metadata.name: pod for pod in pods_of(ctx, component)}
    names = wanted_pods(ctx, component)
    silent = (Server(name, trouble_of_server(ctx, component, pods.get(name)) or "no answer") for name in names)
    return of_servers(seen_of_pods(ctx, component, silent))


class Voice(Enum):
    """The answer of a single member of a quorum."""

    VOTES = "it has a leader and takes part in the quorum"
    LEADERLESS = "it runs and knows no leader"
    REFUSES = "nothing listens"
    SILENT = "no answer"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a quorum as last read: `pod` is empty if it is in another cluster.

    `votes` calls this member alone; it raises DataPlaneError.
    """

    name: str
    id: str
    healthy: bool
    votes: Callable[[], bool]
    pod: str = ""


def silent_quorum(ctx: ClusterContext, component: str, members: Iterable[Member]) -> Verdict | None:
    """The verdict on a quorum that gives no common answer; calls each member alone."""
    observed = ctx.observations.get(component)
    if not isinstance(observed, NotDone) or not (members := tuple(members)):
        return None
    outage, stored = component_type(component).outage, _stored(ctx, component)
    before = stored.conditions if stored else []
    since = parse_time(str(condition_of(before, "Observed").get("lastTransitionTime") or ""))
    voices = [_voice(member.votes) for member in members]
    servers = (
        Server(each.pod or each.name, _trouble_of_member(ctx, component, each, voice, since))
        for each, voice in zip(members, voices, strict=True)
    )
    seen = replace(
        seen_of_pods(ctx, component, servers),
        answer=observed.message,
        leaderless=Voice.LEADERLESS in voices or _NO_LEADER in observed.message,
        was_lost=bool(outage) and condition_of(before, "Ready").get("reason") == (outage.reason if outage else ""),
    )
    return of_silent_quorum(seen)


def _voice(votes: Callable[[], bool]) -> Voice:
    try:
        return Voice.VOTES if votes() else Voice.LEADERLESS
    except DataPlaneError as error:
        if _NO_LEADER in str(error):
            return Voice.LEADERLESS
        is_refused = isinstance(error, Unavailable) and isinstance(error.cause, ConnectionRefused)
        return Voice.REFUSES if is_refused else Voice.SILENT


def _trouble_of_member(
    ctx: ClusterContext, component: str, member: Member, voice: Voice, since: datetime | None
) -> str:
    """Why a member cannot vote; empty if it may.

    A running container and a Ready pod prove nothing: without its data, a member waits in its start script. `since` is
    when the members were last read.
    """
    if not member.pod or voice in (Voice.VOTES, Voice.LEADERLESS):
        return ""
    pod = next((each for each in pods_of(ctx, component) if each.metadata.name == member.pod), None)
    if pod is None or (trouble := trouble_of_server(ctx, component, pod)):
        return trouble if pod else "its pod is missing"
    if _is_on_new_volume(ctx, pod, member.id):
        return "its volume is new and does not have its data"
    started = parse_time(pod.decode_as(Pod).running_since(component))
    has_restarted = not member.healthy or not (started and since) or started > since - _NOTICED
    return "its container waits in its start script" if voice is Voice.REFUSES and has_restarted else ""


def _is_on_new_volume(ctx: ClusterContext, pod: Object, member_id: str) -> bool:
    """True if the member's claim is not the one that carries the member's id, on which it ran before (11.4)."""
    labelled = {claim.metadata.labels.get(MEMBER_ID, "") for claim in claims_of(ctx, pod)}
    return bool(labelled) and member_id not in labelled


def seen_of_pods(ctx: ClusterContext, component: str, servers: Iterable[Server]) -> Seen:
    """The input of a verdict: `servers`, and what Kubernetes reports of the pods."""
    return Seen(
        row=component_type(component),
        servers=tuple(servers),
        ready=len(ready_pods(pods_of(ctx, component))),
        wanted=desired_replicas(ctx.tc, component),
    )


def is_observed(ctx: ClusterContext, component: str) -> bool:
    """True if this reconcile has read the members of a component."""
    observed = ctx.observations.get(component)
    return isinstance(observed, Done) or (observed is not None and observed.reason in ANSWERS)


def has_served(ctx: ClusterContext, component: str) -> bool:
    """True if the component has served before; a cluster that is starting has no outage."""
    if component in ctx.memory.stopwatches.known(_OUT_OF_SERVICE):
        return True
    stored = _stored(ctx, component)
    return stored is not None and (any(stored.health) or _is_reported(stored))


def _stored(ctx: ClusterContext, component: str) -> ComponentStatus | None:
    return component_type(component).status(ctx.stored_status)


def _is_reported(stored: ComponentStatus) -> bool:
    ready = condition_of(stored.conditions, "Ready")
    return ready.get("status") == "False" and ready.get("reason") in REASONS


def trouble_of_server(ctx: ClusterContext, component: str, pod: Object | None) -> str:
    """Why the server in a pod cannot run, according to Kubernetes; empty if it seems to run."""
    if pod is None:
        return "its pod is missing"
    seen = pod.decode_as(Pod)
    if node_state(ctx, pod) is NodeState.NOT_READY:
        return f"node {seen.spec.node_name} is not Ready"
    if pod.metadata.deletion_timestamp:
        return "its pod is being deleted"
    since = seen.running_since(component)
    if not since:
        return seen.trouble or seen.crashes or f"its pod is {seen.status.phase or 'Pending'}"
    crashed = seen.restarts(component) >= OFTEN and seconds_since(since, ctx.deps.clock.wall()) < _CRASHED_LATELY
    return f"its container was restarted {seen.restarts(component)} times" if crashed else ""
