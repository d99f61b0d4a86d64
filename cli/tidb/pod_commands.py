"""Commands to the operator about a single pod, and their progress (docs/operations.md, "One pod")."""

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
    """The annotation that restarts one pod of a component; None if there is none."""
    commands = component_type(component).commands
    return next((key for key, values in commands.items() if DELETE_POD in values), None)


def command(client: Client, pod: ClusterPod, key: str, value: str) -> bool:
    """Annotate exactly this pod; True if it did not have the command yet. Raises ApiError, TransportError, Failure."""
    meta = pod.object.metadata
    if pod.is_going:
        raise Failure(f"pod {meta.name} is being deleted; try again when it is running again")
    if meta.annotations.get(key) == value:
        return False
    client.patch(PODS, meta.name, meta.namespace, {"metadata": {"uid": meta.uid, "annotations": {key: value}}})
    return True


def has_returned(before: ClusterPod, now: Object | None) -> bool:
    """True if a new pod with this name is Ready."""
    if now is None or now.metadata.uid == before.object.metadata.uid or now.metadata.deletion_timestamp:
        return False
    return now.decode_as(Pod).is_ready


def last_word(client: Client, found: Found, pod: str) -> tuple[str, str]:
    """The operator's last event about a pod, and its time; empty if there is none, or events are not readable.

    Raises ApiError, TransportError.
    """
    meta = found.object.metadata
    selector = f"involvedObject.kind={found.resource.kind},involvedObject.uid={meta.uid}"
    try:
        events = [item.decode() for item in client.list_page(EVENTS, meta.namespace, field_selector=selector).items]
    except Forbidden:
        return "", ""
    names = re.compile(rf"(?<![\w-]){re.escape(pod)}(?![\w-])")
    texts = (
        (str(event.get("lastTimestamp") or ""), f"{event.get('reason')}: {event.get('message')}") for event in events
    )
    return max((text for text in texts if names.search(text[1])), default=("", ""))


def news_of(client: Client, found: Found, pod: str, known: tuple[str, str]) -> str:
    """New events about a pod, or a sentence that there are none. Raises like `last_word`."""
    newest = last_word(client, found, pod)
    return newest[1] if newest != known else "the operator has the request"
