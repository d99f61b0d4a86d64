"""Policies that refuse writes, as in real clusters: on images, labels and Services; a quota; a missing webhook.

They apply to every client. Each active policy remembers the state before its activation.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kube.objects import Json
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, SERVICES, STATEFUL_SETS, Resource
from sandbox.apiserver.refusals import Refusal, forbidden
from sandbox.apiserver.webhooks import Webhook

APPROVED = "example.com/approved"
"""The annotation of pod templates without which a policy refuses changes of a StatefulSet."""

_DENIED = "admission webhook denied the request"
_AWAY = (
    'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: '
    'Post "https://policy.default.svc:443/validate?timeout=10s": context deadline exceeded'
)


def _signed_images() -> Webhook:
    """Refuse new images; those that a workload had before count as signed, even after it is recreated."""
    signed: dict[tuple[Resource, str], set[str]] = {}

    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource in (STATEFUL_SETS, DEPLOYMENTS):
            known = signed.setdefault((resource, tree["metadata"]["name"]), _images(old or tree))
            _require(_images(tree) <= known, resource, tree, "unsigned image")

    return webhook


def _images(tree: Json) -> set[str]:
    return {container["image"] for container in tree["spec"]["template"]["spec"]["containers"]}


def _no_load_balancers() -> Webhook:
    def webhook(resource: Resource, tree: Json, _: Json | None) -> None:
        is_one = resource == SERVICES and tree["spec"].get("type") == "LoadBalancer"
        _require(not is_one, resource, tree, "a load balancer costs money")

    return webhook


def _no_teams() -> Webhook:
    """Refuse a label that the operator's objects, and their pods, never have."""

    def webhook(resource: Resource, tree: Json, _: Json | None) -> None:
        template = (tree.get("spec") or {}).get("template") or {}
        carriers = (tree, template) if resource in (STATEFUL_SETS, DEPLOYMENTS) else (tree,)
        given = [(each.get("metadata") or {}).get("labels") or {} for each in carriers]
        is_meant = resource in (STATEFUL_SETS, DEPLOYMENTS, SERVICES, CONFIG_MAPS)
        _require(not (is_meant and any("team" in each for each in given)), resource, tree, "no such team")

    return webhook


def _no_new_configuration() -> Webhook:
    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        is_new = resource == CONFIG_MAPS and (old is None or old.get("data") != tree.get("data"))
        _require(not is_new, resource, tree, "configuration is frozen")

    return webhook


def _approved() -> Webhook:
    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == STATEFUL_SETS and old is not None:
            annotations = (tree["spec"]["template"].get("metadata") or {}).get("annotations") or {}
            _require(APPROVED in annotations, resource, tree, f"{APPROVED} is missing")

    return webhook


def _quota_of_storage() -> Webhook:
    def webhook(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == PERSISTENT_VOLUME_CLAIMS and old is not None:
            one, other = (each["spec"]["resources"]["requests"]["storage"] for each in (tree, old))
            _require(one == other, resource, tree, "exceeded quota: requests.storage")

    return webhook


def _away() -> Webhook:
    def webhook(resource: Resource, _: Json, old: Json | None) -> None:
        if resource == STATEFUL_SETS and old is not None:
            raise Refusal(500, "InternalError", _AWAY)

    return webhook


def _require(holds: bool, resource: Resource, tree: Json, why: str) -> None:
    if not holds:
        raise forbidden(resource, tree["metadata"].get("name", ""), f"{_DENIED}: {why}")


POLICIES: Mapping[str, Callable[[], Webhook]] = MappingProxyType(
    {
        "signed-images": _signed_images,
        "no-load-balancers": _no_load_balancers,
        "no-teams": _no_teams,
        "no-new-configuration": _no_new_configuration,
        "approved": _approved,
        "quota-of-storage": _quota_of_storage,
        "away": _away,
    }
)
"""Policies by name; each call activates a new one."""
