"""From facts to the report of `status`. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from apis.accessor import Component, workloads
from apis.cluster import CHANGES_PENDING, OBSERVED, WITHOUT_EFFECT, Cluster, ClusterCondition
from apis.ordinals import desired_ordinals, desired_replicas, gated, ignored_slots
from apis.predicates import status_of
from apis.shared import ComponentStatus
from cli.tidb.clusters import Found
from cli.tidb.pods import ClusterPod
from cli.tidb.status import report
from cli.tidb.status.backups import backups_of, without_effect
from cli.tidb.status.facts import Facts
from cli.tidb.status.members import failures, members
from cli.tidb.status.report import Report, Summary
from kube.objects import Json, condition_of
from kube.resources import DM_CLUSTERS
from member.naming import pod_name
from member.observed.pod import is_in_advanced
from member.outcome import DONE

CERTIFICATES = "CertificatesValid"
_PROGRESSING = "Progressing"
_EVENTS = 5
"""The number of newest events in the report."""

_NOT_SEEN = "the operator has not looked at it yet"


def summary(found: Found) -> Summary:
    """A cluster in one line."""
    cluster, meta = found.cluster, found.object.metadata
    ready = _condition(cluster, "Ready")
    return Summary(
        kind=found.resource.kind,
        namespace=meta.namespace,
        name=meta.name,
        version=cluster.spec.version,
        created=meta.creation_timestamp or "",
        paused=cluster.spec.paused,
        ready=ready is not None and ready.status == "True",
        ready_since=(ready and ready.last_transition_time) or "",
        reason=ready.reason if ready else "",
        # the part after the semicolon is a separate wait here
        message=ready.message.partition("; ")[0] if ready else _NOT_SEEN,
        components=list(_components(cluster)),
        waits=list(_waits(cluster)),
    )


def report_of(facts: Facts) -> Report:
    """A cluster in full."""
    found = facts.found
    cluster = gated(found.cluster, any(is_in_advanced(pod.object) for pod in facts.pods))
    meta = found.object.metadata
    statuses = _statuses(cluster)
    return Report(
        **structs.asdict(summary(found)) | {"components": list(_components(cluster))},
        pods=list(_pods(cluster, facts.pods, statuses)),
        failures=[failure for name, status in statuses.items() for failure in failures(status, name)],
        volumes=[volume for name, status in statuses.items() for volume in _volumes(name, status)],
        without_effect=[
            *(condition.message for condition in cluster.status.conditions if _holds(condition, *WITHOUT_EFFECT)),
            *(f"{slot}: the cluster's StatefulSets are native" for slot in ignored_slots(cluster) if facts.pods),
            *without_effect(meta.namespace, meta.name, facts.backups, facts.schedules),
        ],
        pending=[each.message for each in cluster.status.conditions if _holds(each, CHANGES_PENDING)],
        certificates=_certificates(cluster),
        backups=backups_of(meta.namespace, meta.name, facts.backups, facts.schedules),
        monitors=[_monitor(monitor) for monitor in facts.monitors if _is_monitored_by(found, monitor)],
        events=_events(facts.events),
        unread=facts.unread,
    )


def _statuses(cluster: Cluster) -> Mapping[str, ComponentStatus]:
    found = ((workload.name, status_of(cluster, workload.name)) for workload in workloads(cluster))
    return {name: status for name, status in found if status is not None}


def _condition(cluster: Cluster, kind: str) -> ClusterCondition | None:
    return next((condition for condition in cluster.status.conditions if condition.type == kind), None)


def _holds(condition: ClusterCondition, *kinds: str) -> bool:
    return condition.type in kinds and condition.status == "True"


def _components(cluster: Cluster) -> Iterator[report.Component]:
    statuses = _statuses(cluster)
    for workload in workloads(cluster):
        status = statuses.get(workload.name)
        health = status.health if status else []
        last_seen, pods = _last_seen(status) if status else None, desired_ordinals(cluster, workload.name)
        yield report.Component(
            name=workload.name,
            ready=status.ready_replicas if status else 0,
            updated=int(((status.stateful_set if status else None) or {}).get("updatedReplicas") or 0),
            desired=_desired(cluster, workload),
            members=None if last_seen else len(health),
            healthy=None if last_seen else sum(health),
            phase=status.phase if status else "",
            version=workload.version,
            image=workload.image,
            last_seen=last_seen,
            slots=sorted(slot for slot in pods.slots if slot < pods.bound),
        )


def _last_seen(status: ComponentStatus) -> report.LastSeen | None:
    """The members in a status that the last observation could not refresh, else None."""
    observed = condition_of(status.conditions, OBSERVED)
    # for servers that report their own state, `synced` means that all are healthy
    unsynced = status.servers is None and not status.is_current and bool(status.health)
    if observed.get("status") != "False" and not unsynced:
        return None
    return report.LastSeen(len(status.health), sum(status.health), str(observed.get("lastTransitionTime") or ""))


def _desired(cluster: Cluster, component: Component) -> int:
    return 0 if component.suspended else desired_replicas(cluster, component.name)


def _waits(cluster: Cluster) -> Iterator[report.Wait]:
    """The waits of the cluster and of its components, each once.

    The cluster's wait is left out if it repeats one component's, and the components' if they repeat the cluster's, as
    while it is paused.
    """
    found = [
        wait
        for name, status in _statuses(cluster).items()
        if (wait := _wait(name, condition_of(status.conditions, _PROGRESSING)))
    ]
    whole = _wait("cluster", structs.asdict(progress)) if (progress := _condition(cluster, _PROGRESSING)) else None
    if whole and whole.message not in (f"{each.of}: {each.message}" for each in found):
        yield whole
        yield from (each for each in found if each.message != whole.message)
    else:
        yield from found


def _wait(of: str, condition: Json) -> report.Wait | None:
    """A condition Progressing as a wait; None without pending work."""
    reason = str(condition.get("reason") or "")
    if reason in ("", DONE):
        return None
    since = str(condition.get("lastTransitionTime") or condition.get("last_transition_time") or "")
    needs_user = condition.get("status") != "True"
    return report.Wait(of, reason, str(condition.get("message") or ""), since, needs_user)


def _pods(
    cluster: Cluster, pods: Iterable[ClusterPod], statuses: Mapping[str, ComponentStatus]
) -> Iterator[report.Pod]:
    """The existing pods with their members; then each component's missing pods."""
    known = {
        name: {pod: _unknown(each) if _last_seen(status) else each for pod, each in members(status).items()}
        for name, status in statuses.items()
    }
    there = set()
    for each in pods:
        there.add(each.name)
        member = known.get(each.component, {}).get(each.name)
        yield report.Pod(
            name=each.name,
            component=each.component,
            node=each.pod.spec.node_name,
            state=each.state,
            ready=each.pod.is_ready and not each.is_going,
            restarts=each.restarts,
            commands=each.commands,
            member=member if each.runs else _down(member),
        )
    for component in workloads(cluster):
        name = component.name
        wanted = [] if component.suspended else [pod_name(cluster, name, at) for at in desired_ordinals(cluster, name)]
        for pod in sorted({*wanted, *known.get(name, {})} - there):
            yield report.Pod(pod, name, "", "Missing", False, 0, [], _down(known.get(name, {}).get(pod)))


def _unknown(member: report.Member) -> report.Member:
    """A member that cannot be observed: only its id is still a fact."""
    return report.Member(member.id, "unknown", None, last_state=member.state)


def _down(member: report.Member | None) -> report.Member | None:
    """The member of a pod that does not run: it no longer serves, even if the data plane has yet to notice."""
    if member is None or not member.healthy:
        return member
    return report.Member(member.id, "down", False, last_state=member.state)


def _volumes(component: str, status: ComponentStatus) -> Iterator[report.Volume]:
    for volume in status.volumes.values():
        done = min(volume.modified_count, volume.resized_count)
        if done < volume.bound_count:
            capacity, volume_class = str(volume.modified_capacity), volume.modified_storage_class
            yield report.Volume(component, volume.name, volume.bound_count, done, capacity, volume_class)


def _certificates(cluster: Cluster) -> report.Certificates | None:
    condition = _condition(cluster, CERTIFICATES)
    return report.Certificates(condition.status == "True", condition.reason, condition.message) if condition else None


def _is_monitored_by(found: Found, monitor: Json) -> bool:
    """True if a TidbMonitor names the cluster."""
    meta, spec = found.object.metadata, monitor["spec"]
    named = (spec.get("dm") or {}) if found.resource == DM_CLUSTERS else spec
    own = monitor["metadata"]["namespace"]
    return any(
        (cluster.get("namespace") or own, cluster.get("name")) == (meta.namespace, meta.name)
        for cluster in named.get("clusters") or ()
    )


def _monitor(tree: Json) -> report.Monitor:
    ready = condition_of((tree.get("status") or {}).get("conditions") or (), "Ready")
    message = str(ready.get("message") or _NOT_SEEN)
    return report.Monitor(tree["metadata"]["name"], ready.get("status") == "True", message)


def _events(trees: Iterable[Json]) -> list[report.Event]:
    """The newest events, newest last."""
    return sorted(map(_event, trees), key=lambda each: each.time)[-_EVENTS:]


def _event(tree: Json) -> report.Event:
    # kube.events records first and last time, others only `eventTime`
    time = tree.get("lastTimestamp") or tree.get("eventTime") or tree["metadata"].get("creationTimestamp") or ""
    return report.Event(
        time=str(time),
        type=str(tree.get("type") or ""),
        reason=str(tree.get("reason") or ""),
        message=str(tree.get("message") or ""),
        count=int(tree.get("count") or 1),
    )
