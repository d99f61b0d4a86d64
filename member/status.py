"""What all members' status sync has in common (lifecycle.md 4.7, 5).

Everything here is a reading: StatefulSet, pods and volumes in, status out. Times move only when what they date moved.
"""

from collections.abc import Sequence
from datetime import datetime

from apis.ordinals import desired_replicas
from apis.shared import Json
from apis.tidbcluster import PDStatus, TiDBStatus, TiKVStatus
from kube.objects import Object
from member import labels
from member.pods import pods_of
from member.round import Round

NORMAL = "Normal"
SCALE = "Scale"
UPGRADE = "Upgrade"


def phase(wanted: int, live: Json, pods: Sequence[Object], previous: str) -> str:
    """The phase of a component from its StatefulSet and pods (4.7).

    An empty updateRevision, as after a re-creation, says nothing: the previous phase stays (F10).
    """
    if not (live.get("status") or {}).get("updateRevision"):
        return previous or NORMAL
    if wanted != live["spec"].get("replicas"):
        return SCALE
    return UPGRADE if is_upgrading(live, pods) else NORMAL


def is_rolling(live: Json) -> bool:
    """Whether the StatefulSet has another revision than the one that all its pods ran when it last came to rest."""
    status = live.get("status") or {}
    return bool(status.get("updateRevision")) and status.get("currentRevision") != status["updateRevision"]


def is_upgrading(live: Json, pods: Sequence[Object]) -> bool:
    """Whether some pod runs, or is about to run, another revision than the newest (4.7)."""
    status = live.get("status") or {}
    if is_rolling(live):
        return True
    replicas_settled = live["spec"].get("replicas") == status.get("replicas")
    if live["metadata"].get("generation", 0) > status.get("observedGeneration", 0) and replicas_settled:
        return True
    revisions = [pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) for pod in pods]
    return all(revisions) and any(revision != status.get("updateRevision") for revision in revisions)


def image_of(live: Json, container: str) -> str:
    """The image of a container of the StatefulSet's template, empty when there is none of that name."""
    containers = live["spec"]["template"]["spec"]["containers"]
    return next((c.get("image", "") for c in containers if c["name"] == container), "")


def stamp(now: datetime) -> str:
    """A time as status fields hold it."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def transition_time(old: object, same: bool, now: datetime) -> str:
    """When the state of a member last moved: the recorded time while it is the same, else now."""
    recorded = getattr(old, "last_transition_time", None)
    return recorded if same and recorded else stamp(now)


def with_progress(conditions: Sequence[Json], holds: bool, reason: str, message: str, now: datetime) -> list[Json]:
    """A component's conditions with `Progressing` set (meta/v1 Condition); its time moves when its status moves."""
    status = "True" if holds else "False"
    old = next((c for c in conditions if c.get("type") == "Progressing"), None)
    if old and (old["status"], old["reason"], old["message"]) == (status, reason, message):
        return list(conditions)
    since = old["lastTransitionTime"] if old and old["status"] == status else stamp(now)
    new = {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
    return [*(c for c in conditions if c.get("type") != "Progressing"), new]


def observe_pods(round_: Round, kind: str, status: PDStatus | TiKVStatus | TiDBStatus) -> list[Object] | None:
    """Bring up to date what Kubernetes knows of a component; its pods, or None when it has no StatefulSet."""
    live = round_.stateful_set(kind)
    if live is None:
        return None
    body, pods = live.decode(), pods_of(round_, kind)
    status.stateful_set = body.get("status")
    status.phase = phase(desired_replicas(round_.tc, kind), body, pods, status.phase)
    status.image = image_of(body, kind)
    return pods
