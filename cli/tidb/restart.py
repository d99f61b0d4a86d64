"""`kubectl tidb restart`: restarts a component or one pod through the operator (scheduler-deployment.md 12.5).

The plugin deletes nothing. A component is rolled because its pods' annotations change; one pod is restarted by a
command to the operator, which moves leaders away first.
"""

import argparse
from collections.abc import Iterator, Sequence

from apis.accessor import workloads
from apis.pod_commands import DELETE_POD
from apis.times import stamp
from cli.failures import Failure
from cli.progress import Row
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.command import Command
from cli.tidb.pod_commands import command, has_returned, last_word, news_of, restart_command
from cli.tidb.pods import ClusterPod, list_pods
from cli.tidb.session import Session
from cli.tidb.status.reporting import summary
from cli.tidb.waiting import Sight, wait_until_done
from kube.client import JSON_PATCH
from kube.objects import Json
from kube.resources import PODS

RESTARTED_AT = "tidb.pingcap.com/restartedAt"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")
    parser.add_argument("what", metavar="COMPONENT|POD", help="such as tikv, or basic-tikv-1")
    parser.add_argument("--wait", action="store_true", help="show progress until the pods have been restarted")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="with --wait: give up after so long")


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    found = find_cluster(session.client, session.namespace, given.cluster)
    pods = list_pods(session.client, found.cluster)
    names = [workload.name for workload in workloads(found.cluster)]
    if given.what in names:
        return _restart_component(session, found, given)
    pod = next((each for each in pods if each.name == given.what), None)
    if pod is None:
        known = ", ".join([*names, *(each.name for each in pods if each.component in names)])
        raise Failure(f"{found.name} has neither a component nor a pod {given.what}; it has {known}")
    return _restart_pod(session, found, pod, given)


def _restart_component(session: Session, found: Found, given: argparse.Namespace) -> int:
    component, now = given.what, stamp(session.clock.wall())
    meta = found.object.metadata
    patch = list(_annotating(found, component, now))
    session.client.patch(found.resource, meta.name, meta.namespace, patch, content_type=JSON_PATCH)
    document = found.identity | {"component": component, "restartedAt": now}
    paused = found.cluster.spec.paused
    begins = "when it is resumed" if paused else "pod by pod"
    session.output.show(document, lambda: [f"{component} of {found.name} is being restarted, {begins}"])
    if given.wait:
        name = f"{meta.name} {component}"
        wait_until_done(session, name, lambda: _roll(session, found, component, now), given.timeout)
    return 0


def _annotating(found: Found, component: str, now: str) -> Iterator[Json]:
    """Patches for the spec of this component of exactly this cluster."""
    own = next(workload for workload in workloads(found.cluster) if workload.name == component)
    path = "/" + own.field.replace("[", "/").replace("]", "").replace(".", "/") + "/annotations"
    yield {"op": "replace", "path": "/metadata/uid", "value": found.object.metadata.uid}
    if own.spec.annotations:
        yield {"op": "add", "path": f"{path}/{RESTARTED_AT.replace('/', '~1')}", "value": now}
    else:
        yield {"op": "add", "path": path, "value": {RESTARTED_AT: now}}


def _roll(session: Session, found: Found, component: str, now: str) -> Sight:
    """The number of restarted pods, and what the next one waits for."""
    meta = found.object.metadata
    seen = find_cluster(session.client, meta.namespace, found.text)
    report = summary(seen)
    wanted = next((each.desired for each in report.components if each.name == component), 0)
    pods = [pod for pod in list_pods(session.client, seen.cluster) if pod.component == component]
    done = sum(_is_of_restart(pod, now) for pod in pods)
    wait = next((each for each in reversed(report.waits) if each.of in (component, "cluster")), None)
    if done == wanted == len(pods):
        return Sight([Row(component, done, wanted, "restarted")], is_done=True)
    state = f"{wait.reason}: {wait.message}" if wait else "about to begin"
    return Sight([Row(component, done, wanted, state)], is_done=False)


def _is_of_restart(pod: ClusterPod, now: str) -> bool:
    return pod.object.metadata.annotations.get(RESTARTED_AT) == now and pod.pod.is_ready and not pod.is_going


def _restart_pod(session: Session, found: Found, pod: ClusterPod, given: argparse.Namespace) -> int:
    key = restart_command(pod.component)
    if key is None:
        way_out = f"restart all of them: kubectl tidb restart {given.cluster} {pod.component}"
        raise Failure(f"the operator restarts no single pod of {pod.component}; {way_out}")
    known = last_word(session.client, found, pod.name)
    begun = command(session.client, pod, key, DELETE_POD)
    document = found.identity | {"pod": pod.name, "command": f"{key}={DELETE_POD}"}
    how = "is being restarted" if begun else "is already being restarted"
    session.output.show(document, lambda: [f"pod/{pod.name} {how}"])
    if given.wait:
        wait_until_done(session, pod.name, lambda: _look_at(session, found, pod, known), given.timeout)
    return 0


def _look_at(session: Session, found: Found, pod: ClusterPod, known: tuple[str, str]) -> Sight:
    """The state of a pod's restart, with the operator's events meanwhile. Raises ApiError, TransportError."""
    now = session.client.find(PODS, pod.name, pod.object.metadata.namespace)
    is_done = has_returned(pod, now)
    state = "restarted" if is_done else news_of(session.client, found, pod.name, known)
    return Sight([Row(pod.component, int(is_done), 1, state)], is_done)


RESTART = Command(
    _run,
    _add_arguments,
    details="The operator does it, with all of its checks: leaders are moved away, one pod at a time.",
)
