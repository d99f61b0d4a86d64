"""Admission of a client's object: known fields, defaults, allocations, validation."""

from dataclasses import dataclass, field

import msgspec

from kube.objects import Json
from kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
    STORAGE_CLASSES,
    Resource,
)
from sandbox.apiserver import defaults, new_pods, schemas, services, structural, validation
from sandbox.apiserver.kinds import Custom, Kind
from sandbox.apiserver.refusals import FieldError, Refusal, bad_request, forbidden, invalid, invalid_value
from sandbox.apiserver.world import World

_NOTHING = Resource("", "", "", "")
"""Rejected patches name no kind."""

_PROTECTIONS = {
    PERSISTENT_VOLUME_CLAIMS: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUMES: "kubernetes.io/pv-protection",
}
"""The finalizers that keep storage while it is in use."""

_CANNOT_GROW = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def known_fields(kind: Kind, tree: Json) -> list[str]:
    """Drop the fields that the kind does not have, in place; return their paths. Raises Refusal (400)."""
    if kind.custom:
        schemas.check_types(tree, kind.resource, only_metadata=True)
        return structural.prune(tree, kind.custom.schema)
    return schemas.drop_unknown(tree, kind.resource)


@dataclass(slots=True)
class FieldCheck:
    """The treatment of unknown fields: `Strict` rejects them, `Warn` drops and reports them, `Ignore` drops them."""

    mode: str = "Warn"
    warnings: list[str] = field(default_factory=list)

    def sent(self, kind: Kind, tree: Json) -> None:
        """Check a whole object that a client sent, in place. Raises Refusal (400)."""
        if error := self._error(known_fields(kind, tree)):
            resource = kind.resource
            what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            raise bad_request(f"{what}: {error}")

    def patched(self, kind: Kind, tree: Json) -> None:
        """Check the result of a patch, in place. Raises Refusal (422)."""
        before = msgspec.json.encode(tree).decode()
        try:
            error = self._error(known_fields(kind, tree))
        except Refusal as refused:
            error = refused.message.partition(": ")[2]
        if error:
            raise invalid(_NOTHING, "", [invalid_value("patch", before, error)])

    def _error(self, unknown: list[str]) -> str:
        texts = [f'unknown field "{path}"' for path in unknown]
        if texts and self.mode == "Strict":
            return f"strict decoding error: {', '.join(texts)}"
        if self.mode == "Warn":
            self.warnings += texts
        return ""


def mutate(world: World, kind: Kind, tree: Json, old: Json | None) -> None:
    """Let webhooks change `tree`, which replaces `old` (None: it is new), in place."""
    for webhook in world.webhooks:
        webhook(kind.resource, tree, old)


def admit(world: World, kind: Kind, tree: Json, old: Json | None) -> None:
    """Default, allocate and validate `tree`, which replaces `old` (None: it is new). Raises Refusal (422)."""
    errors = _custom(kind, kind.custom, tree, old) if kind.custom else _built_in(world, kind, tree, old)
    if errors:
        raise invalid(kind.resource, tree["metadata"].get("name", ""), errors)


def _custom(kind: Kind, custom: Custom, tree: Json, old: Json | None) -> list[FieldError]:
    structural.apply_defaults(tree, custom.schema)
    errors = [*validation.metadata_errors(kind, tree), *structural.errors(tree, custom.schema)]
    if old is not None:
        errors += validation.finalizer_errors(tree, old)
    if not errors or old is None:
        return errors
    # ratcheting: an old mistake that has not changed may stay
    known = structural.errors(old, custom.schema)
    return [error for error in errors if error not in known]


def _built_in(world: World, kind: Kind, tree: Json, old: Json | None) -> list[FieldError]:
    if kind.resource == SERVICES and old:
        services.keep_allocations(tree.setdefault("spec", {}), old.get("spec") or {})
    defaults.apply_defaults(kind.key, tree)
    if kind.resource == PERSISTENT_VOLUME_CLAIMS and old is None:
        _default_storage_class(world, tree)
    if old is None and (protection := _PROTECTIONS.get(kind.resource)):
        finalizers = tree["metadata"].get("finalizers") or []
        tree["metadata"]["finalizers"] = [*finalizers, *({protection} - set(finalizers))]
    if kind.resource == PODS and old is None:
        new_pods.give_priority(world, tree)
        new_pods.give_account(world, tree)
    errors = validation.built_in_errors(kind, tree, old)
    if errors:
        return errors
    if kind.resource == PERSISTENT_VOLUME_CLAIMS and old is not None:
        _check_growth(world, kind, tree, old)
    if kind.resource == SERVICES and (old is None or tree["spec"] != old.get("spec")):
        # allocation reads all other Services: a thousand clusters have five thousand
        return services.allocate(tree["spec"], _other_services(world, tree))
    if kind.resource == CUSTOM_RESOURCE_DEFINITIONS:
        return validation.definition_errors(tree)
    return []


def _other_services(world: World, tree: Json) -> list[Json]:
    uid = tree["metadata"].get("uid")
    stored = world.storage.objects(SERVICES.plural)
    return [service.tree().get("spec") or {} for service in stored if service.uid != uid]


def _check_growth(world: World, kind: Kind, claim: Json, old: Json) -> None:
    """Allow a claim to grow only if it is bound and its class permits it. Raises Refusal (403)."""
    if validation.claimed_size(claim["spec"]) <= validation.claimed_size(old["spec"]):
        return
    name = claim["metadata"]["name"]
    if (old.get("status") or {}).get("phase") != "Bound":
        raise forbidden(kind.resource, name, "Only bound persistent volume claims can be expanded")
    stored = world.storage.get(str(STORAGE_CLASSES), claim["spec"].get("storageClassName") or "")
    if stored is None or not stored.tree().get("allowVolumeExpansion"):
        raise forbidden(kind.resource, name, _CANNOT_GROW)


def _default_storage_class(world: World, claim: Json) -> None:
    if claim["spec"].get("storageClassName") is not None:
        return
    for stored in world.storage.objects(str(STORAGE_CLASSES)):
        annotations = stored.tree()["metadata"].get("annotations") or {}
        if annotations.get(_DEFAULT_CLASS) == "true":
            claim["spec"]["storageClassName"] = stored.name
