"""Objects whose deletion hangs."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from cli.doctor.facts import Facts, is_deleted, is_true, name_of
from cli.doctor.finding import Cause, Sign
from kube.objects import Json
from kube.resources import BACKUPS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from member.backups.naming import FINALIZER

_PATIENCE = timedelta(minutes=5)
"""How long after its grace period an object may still exist."""

_GUARDS: Mapping[str, str] = {
    "kubernetes.io/pvc-protection": "a pod still uses it",
    "foregroundDeletion": "what it owns is deleted first",
    FINALIZER: "its files in the storage are deleted first",
}
"""What common finalizers wait for."""


def _leaving(facts: Facts) -> Iterator[tuple[Resource | None, Json]]:
    """Objects that should be gone by now."""
    candidates: list[tuple[Resource | None, Json]] = [(None, facts.cluster)]
    candidates += [(PODS, pod) for pod in facts.pods]
    candidates += [(STATEFUL_SETS, stateful_set) for stateful_set in facts.stateful_sets]
    candidates += [(PERSISTENT_VOLUME_CLAIMS, claim) for claim in facts.claims]
    candidates += [(BACKUPS, backup) for backup in facts.all(BACKUPS)]
    for resource, each in candidates:
        if is_deleted(each) and facts.lasts(each["metadata"]["deletionTimestamp"], _PATIENCE):
            yield resource, each


def _kept(facts: Facts) -> Iterator[Sign]:
    for resource, each in _leaving(facts):
        if finalizers := each["metadata"].get("finalizers") or []:
            why = [f"{name} ({_GUARDS[name]})" if name in _GUARDS else name for name in finalizers]
            kind = resource.kind if resource else facts.kind
            message = f"was deleted at {each['metadata']['deletionTimestamp']}, and is kept by {', '.join(why)}"
            yield Sign(f"{kind} {name_of(each)}", message, "metadata.finalizers", ", ".join(finalizers))


def _terminating(facts: Facts) -> Iterator[Sign]:
    for resource, each in _leaving(facts):
        if resource is not PODS or each["metadata"].get("finalizers"):
            continue
        node = str((each.get("spec") or {}).get("nodeName") or "")
        lost = bool(node) and not is_true(facts.nodes.get(node, {}), "Ready")
        message = f"was deleted, and node {node} {'does not answer' if lost else 'has not ended its processes'}"
        yield Sign(f"Pod {name_of(each)}", message, "spec.nodeName", node)


CAUSES = (
    Cause(
        "DeletionStuck",
        "Remove what it waits for. Remove a finalizer by hand only if its controller is gone for good.",
        _kept,
    ),
    Cause(
        "PodTerminating",
        "If the machine is gone for good, delete its Node object. Else look at the kubelet of the node.",
        _terminating,
    ),
)
