"""Which revision of its StatefulSet a pod runs, also where others have changed the label that tells (R27)."""

from collections.abc import Callable, Collection

from kube.objects import Json, Object
from kube.resources import CONTROLLER_REVISIONS
from kube.semantic import covers
from member import labels
from member.context import ClusterContext

_NAMED = ("containers", "initContainers", "volumes")
"""Lists of a pod's spec to which Kubernetes and others add items."""
_NODES = ("nodeSelector", "affinity")
"""What decides where a pod may run, to which nothing is added: one that has more of it is another one."""


def live_revisions(ctx: ClusterContext, stateful_set: Json) -> set[str]:
    """The names of the revisions that a StatefulSet has. Raises ApiError, TransportError."""
    selector = labels.selector_text(stateful_set["spec"]["selector"].get("matchLabels") or {})
    found = ctx.deps.client.list_page(CONTROLLER_REVISIONS, ctx.namespace, label_selector=selector).items
    return {each.metadata.name for each in found}


def is_mislabelled(stateful_set: Json, pod: Object, revisions: Callable[[Json], Collection[str]]) -> bool:
    """Whether a pod tells no revision, or one that there is not, but is made of all that the newest one says.

    Only while no roll goes on. `revisions` of the StatefulSet are asked for when needed.
    """
    status, told = stateful_set.get("status") or {}, pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH)
    if told == status.get("updateRevision") or status.get("currentRevision") != status.get("updateRevision"):
        return False
    if not _is_made_from(stateful_set["spec"]["template"]["spec"], pod):
        return False
    # a roll that was taken back leaves pods of a revision that is neither the current nor the newest one
    return not (told and told in revisions(stateful_set))


def _is_made_from(template: Json, pod: Object) -> bool:
    """Whether a pod has everything that a template's spec says."""
    spec = pod.decode()["spec"]
    rest = {key: value for key, value in template.items() if key not in _NAMED}
    if any(spec.get(key) != template.get(key) for key in _NODES):
        return False
    return covers(spec, rest) and all(covers(_by_name(spec.get(key)), _by_name(template.get(key))) for key in _NAMED)


def _by_name(items: list[Json] | None) -> Json:
    """Items of a list by name; what they mount goes by its path, since the token of a service account comes on top."""
    return {
        item["name"]: item | {"volumeMounts": {mount["mountPath"]: mount for mount in item.get("volumeMounts") or ()}}
        for item in items or ()
    }
