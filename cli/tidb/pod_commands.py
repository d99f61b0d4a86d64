"""Telling the operator what to do with a single pod, and hearing what becomes of it (docs/operations.md, "One pod")."""

import re

from apis.components import component_type
from apis.pod_commands import DELETE_POD
from cli.failures import Failure
from cli.tidb.clusters import Found
from cli.tidb.pods import ClusterPod
from kube.client import Client
from kube.errors import Forbidden
from kube.objects import Object
from kube.resources import EVENTS, PODS
from member.observed.pod import Pod


def restart_command(component: str) -> str | None:
    """The annotation that restarts one pod of a component; None where the operator knows none."""
    commands = component_type(component).commands
    return next((key for key, values in commands.items() if DELETE_POD in values), None)


def command(client: Client, pod: ClusterPod, key: str, value: str) -> bool:
    """Annotate exactly this pod; whether it did not carry the command yet. Raises ApiError, TransportError, Failure."""
    meta = pod.object.metadata
    if pod.is_going:
        raise Failure(f"pod {meta.name} is being deleted; try again when it has come back")
    if meta.annotations.get(key) == value:
        return False
    client.patch(PODS, meta.name, meta.namespace, {"metadata": {"uid": meta.uid, "annotations": {key: value}}})
    return True


def has_come_back(before: ClusterPod, now: Object | None) -> bool:
    """Whether another pod of that name is there, and Ready."""
    if now is None or now.metadata.uid == before.object.metadata.uid or now.metadata.deletion_timestamp:
        return False
    return now.decode_as(Pod).is_ready


def last_word(client: Client, found: Found, pod: str) -> tuple[str, str]:
    """The last that the operator's events say of a pod, and when; empty when they say nothing, or may not be read.

    Raises ApiError, TransportError.
    """
    meta = found.object.metadata
    selector = f"involvedObject.kind={found.resource.kind},involvedObject.name={meta.name}"
    try:
        events = [each.decode() for each in client.list_page(EVENTS, meta.namespace, field_selector=selector).items]
    except Forbidden:
        return "", ""
    names = re.compile(rf"(?<![\w-]){re.escape(pod)}(?![\w-])")
    told = ((str(each.get("lastTimestamp") or ""), f"{each.get('reason')}: {each.get('message')}") for each in events)
    return max((each for each in told if names.search(each[1])), default=("", ""))


def news_of(client: Client, found: Found, pod: str, known: tuple[str, str]) -> str:
    """What the events say of a pod beyond what was known; that they say nothing, else. Raises as `last_word`."""
    said = last_word(client, found, pod)
    return said[1] if said != known else "the operator was told"
