"""Moves one pod off a node by a command to the operator, once no other pod of its cluster is being changed."""

from apis.pod_commands import NONE
from cli.failures import Failure
from cli.progress import Row
from cli.tidb.clusters import find_cluster
from cli.tidb.drain.plan import Candidate, Step
from cli.tidb.pod_commands import command, has_returned, last_word, news_of
from cli.tidb.pods import ClusterPod, list_pods
from cli.tidb.session import Session
from cli.tidb.status.reporting import summary
from cli.tidb.waiting import Sight, wait_until_done
from kube.client import Client
from kube.objects import Object
from kube.resources import NODES, PODS
from member.observed.command_annotations import commands_of
from member.observed.pod import Pod


def cordon(client: Client, node: Object, *, on: bool) -> None:
    """Cordon or uncordon the node. Raises ApiError, TransportError."""
    if bool(node.decode()["spec"].get("unschedulable")) is not on:
        meta = node.metadata
        client.patch(NODES, meta.name, "", {"metadata": {"uid": meta.uid}, "spec": {"unschedulable": on}})


def take_back(client: Client, candidate: Candidate) -> bool:
    """Withdraw the command of a pod; True if it had one. Raises ApiError, TransportError."""
    meta = candidate.pod.object.metadata
    annotations = {each.key: None for each in commands_of(candidate.pod.object) if each.value != NONE}
    if annotations:
        client.patch(PODS, meta.name, meta.namespace, {"metadata": {"uid": meta.uid, "annotations": annotations}})
    return bool(annotations)


def move(session: Session, node: str, step: Step, candidate: Candidate, timeout: float | None) -> None:
    """Move one pod, once no other of its component is missing; the operator checks the same again.

    Raises Failure, ApiError, TransportError.
    """
    meta, client = candidate.pod.object.metadata, session.client
    name = f"{step.namespace}/{step.pod}"
    wait_until_done(session, name, lambda: _others(client, step), timeout)
    # read live, because the previous steps may have taken minutes
    live = client.find(PODS, step.pod, step.namespace)
    if live is None or live.metadata.uid != meta.uid:
        return
    known = last_word(client, candidate.found, step.pod)
    key, _, value = step.command.partition("=")
    command(client, ClusterPod(step.component, live, live.decode_as(Pod)), key, value)
    wait_until_done(session, name, lambda: _moved(session, node, candidate, known), timeout)


def _others(client: Client, step: Step) -> Sight:
    """The state of the rest of the cluster: Ready as a whole, with no other change in progress."""
    found = find_cluster(client, step.namespace, step.cluster)
    others = [pod for pod in list_pods(client, found.cluster) if pod.name != step.pod]
    ill = [pod.name for pod in others if pod.is_going or not pod.pod.is_ready]
    moving = [pod.name for pod in others if any(one.value != NONE for one in commands_of(pod.object))]
    head = summary(found)
    if ill:
        why = f"waiting for {', '.join(ill)} to be Ready"
    elif moving:
        why = f"waiting for {', '.join(moving)} to be moved"
    else:
        why = "" if head.ready else f"waiting for {found.name} to be Ready: {head.message}"
    return Sight([Row(step.component, 0, 1, why or "all others serve")], not why)


def _moved(session: Session, node: str, candidate: Candidate, known: tuple[str, str]) -> Sight:
    """The state of the move. Raises Failure if the pod returned to the node, ApiError, TransportError."""
    before = candidate.pod
    now = session.client.find(PODS, before.name, before.object.metadata.namespace)
    is_done = has_returned(before, now)
    if now is not None and is_done and now.decode_as(Pod).spec.node_name == node:
        raise Failure(f"pod {before.name} came back to {node}: is it cordoned still?")
    return Sight([Row(before.component, int(is_done), 1, _state(session, candidate, now, known))], is_done)


def _state(session: Session, candidate: Candidate, now: Object | None, known: tuple[str, str]) -> str:
    before = candidate.pod
    if now is not None and now.metadata.uid != before.object.metadata.uid:
        pod = now.decode_as(Pod)
        if has_returned(before, now):
            return f"runs on {pod.spec.node_name}"
        return pod.trouble or "starting again"
    return news_of(session.client, candidate.found, before.name, known)
