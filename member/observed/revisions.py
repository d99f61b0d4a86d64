"""The StatefulSet revision that a pod runs, even if another client has changed its revision label (R27)."""

from collections.abc import Callable, Collection

from kube.objects import Json, Object
from kube.resources import CONTROLLER_REVISIONS
from kube.semantic import covers
from member import labels
from member.context import ClusterContext

_NAMED = ("containers", "initContainers", "volumes")
"""Lists in a pod's spec to which Kubernetes and webhooks add items."""
_NODES = ("nodeSelector", "affinity")
"""Fields that select nodes. Nothing adds to them, so a pod with more than the template is of another revision."""


def live_revisions(ctx: ClusterContext, stateful_set: Json) -> set[str]:
    """The names of the existing revisions of a StatefulSet. Raises ApiError, TransportError."""
    selector = labels.selector_text(stateful_set["spec"]["selector"].get("matchLabels") or {})
    found = ctx.deps.client.list_page(CONTROLLER_REVISIONS, ctx.namespace, label_selector=selector).items
    return {each.metadata.name for each in found}


def is_mislabelled(stateful_set: Json, pod: Object, revisions: Callable[[Json], Collection[str]]) -> bool:
    """True if a pod's label names no existing revision, although its spec contains all that the newest revision says.

    False during a roll. `revisions` is called only if needed.
    """
    status, told = stateful_set.get("status") or {}, pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH)
    if told == status.get("updateRevision") or status.get("currentRevision") != status.get("updateRevision"):
        return False
    if not _is_made_from(stateful_set["spec"]["template"]["spec"], pod):
        return False
    # a roll that was reverted leaves pods of a revision that is neither the current nor the newest one
    return not (told and told in revisions(stateful_set))


def _is_made_from(template: Json, pod: Object) -> bool:
    """True if a pod has everything that the template's spec says."""
    spec = pod.decode()["spec"]
    rest = {key: value for key, value in template.items() if key not in _NAMED}
    if any(spec.get(key) != template.get(key) for key in _NODES):
        return False
    return covers(spec, rest) and all(covers(_by_name(spec.get(key)), _by_name(template.get(key))) for key in _NAMED)


def _by_name(items: list[Json] | None) -> Json:
    """The items of a list by name, and their mounts by path: Kubernetes adds a mount for the account's token."""
    return {
        item["name"]: item | {"volumeMounts": {mount["mountPath"]: mount for mount in item.get("volumeMounts") or ()}}
        for item in items or ()
    }
