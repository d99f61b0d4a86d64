"""What the server refuses in objects: names, labels, required and immutable fields."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from kube.objects import Json
from sandbox.apiserver import json_path
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.names import config_key_errors, label_errors, name_errors
from sandbox.apiserver.refusals import FieldError, forbidden_field, invalid_value, required, unsupported
from sandbox.quantities import quantity
from sandbox.selectors import matches

_IMMUTABLE = "field is immutable"
_STATEFUL_SET_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_SET_HELP = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_CLAIM_MUTABLE = ("volumeName", "resources", "volumeAttributesClassName", "storageClassName")
_CLAIM_HELP = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_POD_HELP = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_POD_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")


def built_in_errors(kind: Kind, tree: Json, old: Json | None) -> list[FieldError]:
    """Everything wrong with a built-in object."""
    errors = list(metadata_errors(kind, tree))
    if check := _CHECKS.get(kind.key):
        errors += check(tree)
    if old is not None:
        errors += finalizer_errors(tree, old)
    if old is not None and (compare := _COMPARISONS.get(kind.key)):
        errors += compare(tree, old)
    return errors


def definition_errors(tree: Json) -> list[FieldError]:
    """Everything wrong with a CustomResourceDefinition."""
    spec = tree["spec"]
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    errors = []
    if tree["metadata"]["name"] != f"{names.get('plural')}.{spec.get('group')}":
        detail = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", tree["metadata"]["name"], detail))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        shown_names = [version.get("name") for version in versions]
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", shown_names, detail))
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        if schema is None:
            errors.append(required(path, "schemas are required"))
        elif schema.get("type") != "object":
            errors.append(required(f"{path}.type", "must not be empty at the root"))
        errors += _column_errors(version, f"spec.versions[{index}].additionalPrinterColumns")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        errors.append(unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
    return errors


def _column_errors(version: Json, path: str) -> Iterator[FieldError]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        try:
            json_path.find(column.get("jsonPath") or "", {})
        except json_path.BadPath as error:
            yield invalid_value(f"{path}[{index}].jsonPath", column.get("jsonPath"), f"is an invalid path: {error}")


def metadata_errors(kind: Kind, tree: Json) -> Iterator[FieldError]:
    """Everything wrong with the metadata of an object."""
    meta = tree["metadata"]
    yield from name_errors(kind.key, meta.get("name") or "")
    yield from label_errors(meta.get("labels") or {}, "metadata.labels")
    for index, owner in enumerate(meta.get("ownerReferences") or ()):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield invalid_value(f"metadata.ownerReferences[{index}].{name}", "", "must not be empty")


def finalizer_errors(tree: Json, old: Json) -> Iterator[FieldError]:
    """Whoever is being deleted takes no new finalizers."""
    if not old["metadata"].get("deletionTimestamp"):
        return
    known = old["metadata"].get("finalizers") or ()
    if new := [each for each in tree["metadata"].get("finalizers") or () if each not in known]:
        listed = ", ".join(f'"{each}"' for each in new)
        why = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        yield forbidden_field("metadata.finalizers", why)


def _config(tree: Json) -> Iterator[FieldError]:
    for name in ("data", "binaryData"):
        yield from config_key_errors(tree.get(name) or (), name)


def _workload(tree: Json) -> Iterator[FieldError]:
    spec = tree["spec"]
    yield from _not_negative(spec, "replicas", "spec.replicas")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not spec.get("selector"):
        yield required("spec.selector")
    if not spec.get("selector") or not matches(spec["selector"], labels):
        yield invalid_value(
            "spec.template.metadata.labels", labels or None, "`selector` does not match template `labels`"
        )
    yield from _pod_spec((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")


def _job(tree: Json) -> Iterator[FieldError]:
    spec = (tree["spec"].get("template") or {}).get("spec") or {}
    yield from _pod_spec(spec, "spec.template.spec")
    if spec.get("restartPolicy") == "Always":
        yield unsupported("spec.template.spec.restartPolicy", "Always", ("OnFailure", "Never"))


def _pod(tree: Json) -> Iterator[FieldError]:
    yield from _pod_spec(tree["spec"], "spec")


def _pod_spec(spec: Json, path: str) -> Iterator[FieldError]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(container, f"{path}.{field}[{index}]")
    yield from _mounts(spec, volumes, path)


def _mounts(spec: Json, volumes: set[Any], path: str) -> Iterator[FieldError]:
    """Mounts must name a volume; in a StatefulSet's template a claim adds volumes, so only pods are checked."""
    if path != "spec":
        return
    for field in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(field) or ()):
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    place = f"{path}.{field}[{number}].volumeMounts[{index}].name"
                    yield FieldError("FieldValueNotFound", place, f'Not found: "{mount.get("name")}"')


def _container(container: Json, path: str) -> Iterator[FieldError]:
    for name in ("name", "image"):
        if not container.get(name):
            yield required(f"{path}.{name}")


def _service(tree: Json) -> Iterator[FieldError]:
    spec = tree["spec"]
    ports = spec.get("ports") or ()
    if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        yield required("spec.ports")
    if spec["type"] not in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"):
        yield unsupported("spec.type", spec["type"], ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    if spec["type"] in ("NodePort", "LoadBalancer") and spec.get("clusterIP") == "None":
        yield invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services")
    for index, port in enumerate(ports):
        if not 1 <= port.get("port", 0) <= 65535:
            yield invalid_value(f"spec.ports[{index}].port", port.get("port"), "must be between 1 and 65535, inclusive")
        if len(ports) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")


def _claim(tree: Json) -> Iterator[FieldError]:
    spec = tree["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        yield required("spec.resources[storage]")


def _not_negative(tree: Json, name: str, path: str) -> Iterator[FieldError]:
    value = tree.get(name)
    if value is not None and value < 0:
        yield invalid_value(path, value, "must be greater than or equal to 0")


def _stateful_set_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if _without(tree["spec"], _STATEFUL_SET_MUTABLE) != _without(old["spec"], _STATEFUL_SET_MUTABLE):
        yield forbidden_field("spec", _STATEFUL_SET_HELP)


def _selector_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if tree["spec"].get("selector") != old["spec"].get("selector"):
        yield invalid_value("spec.selector", tree["spec"].get("selector"), _IMMUTABLE)


def _job_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    yield from _selector_changes(tree, old)
    for name in ("completions", "completionMode"):
        if tree["spec"].get(name) != old["spec"].get(name):
            yield invalid_value(f"spec.{name}", tree["spec"].get(name), _IMMUTABLE)
    if tree["spec"].get("template") != old["spec"].get("template"):
        yield invalid_value("spec.template", tree["spec"].get("template"), _IMMUTABLE)


def _service_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    now, before = tree["spec"], old["spec"]
    if "ExternalName" in (now.get("type"), before.get("type")) or not before.get("clusterIP"):
        return
    if now.get("clusterIP") != before["clusterIP"]:
        addresses = now.get("clusterIPs") or [now.get("clusterIP")]
        yield invalid_value("spec.clusterIPs[0]", addresses, "may not change once set")


def _claim_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    now, before = tree["spec"], old["spec"]
    bound = bool(before.get("volumeName"))
    set_late = not before.get("storageClassName") and not bound
    same_class = set_late or now.get("storageClassName") == before.get("storageClassName")
    same_volume = not bound or now.get("volumeName") == before["volumeName"]
    rest_is_same = _without(now, _CLAIM_MUTABLE) == _without(before, _CLAIM_MUTABLE)
    sizes_may_change = bound or now.get("resources") == before.get("resources")
    if not (same_class and same_volume and rest_is_same and sizes_may_change):
        yield forbidden_field("spec", _CLAIM_HELP)
    asked, has = claimed_size(now), claimed_size(before)
    holds = quantity(((old.get("status") or {}).get("capacity") or {}).get("storage", "0"))
    if asked < has and asked <= holds:
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")


def claimed_size(spec: Json) -> Decimal:
    """The bytes a claim asks for."""
    return quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _pod_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if _fixed_pod_spec(tree["spec"]) != _fixed_pod_spec(old["spec"]):
        yield forbidden_field("spec", _POD_HELP)


def _fixed_pod_spec(spec: Json) -> Json:
    fixed = _without(spec, _POD_MUTABLE)
    for field in ("containers", "initContainers"):
        fixed[field] = [_without(container, ("image",)) for container in spec.get(field) or ()]
    return fixed


def _volume_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    for source in ("local", "csi", "hostPath", "nfs"):
        if tree["spec"].get(source) != old["spec"].get(source):
            yield forbidden_field(
                "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"
            )


def _config_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    if not tree.get("immutable"):
        yield forbidden_field("immutable", "field is immutable when `immutable` is set")
    for name in ("data", "binaryData"):
        if tree.get(name) != old.get(name):
            yield forbidden_field(name, "field is immutable when `immutable` is set")


def _secret_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if tree.get("type") != old.get("type"):
        yield invalid_value("type", tree.get("type"), _IMMUTABLE)
    yield from _config_changes(tree, old)


def _role_ref_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if tree.get("roleRef") != old.get("roleRef"):
        yield invalid_value("roleRef", tree.get("roleRef"), "cannot change roleRef")


def _revision_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if tree.get("data") != old.get("data"):
        yield invalid_value("data", tree.get("data"), _IMMUTABLE)


def _storage_class_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if tree.get(name) != old.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")


def _without(tree: Json, names: tuple[str, ...]) -> Json:
    return {key: value for key, value in tree.items() if key not in names}


_Check = Callable[[Json], Iterator[FieldError]]
_Comparison = Callable[[Json, Json], Iterator[FieldError]]

_CHECKS: dict[str, _Check] = {
    "pods": _pod,
    "services": _service,
    "configmaps": _config,
    "secrets": _config,
    "persistentvolumeclaims": _claim,
    "statefulsets.apps": _workload,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "jobs.batch": _job,
}

_COMPARISONS: dict[str, _Comparison] = {
    "pods": _pod_changes,
    "services": _service_changes,
    "configmaps": _config_changes,
    "secrets": _secret_changes,
    "persistentvolumeclaims": _claim_changes,
    "persistentvolumes": _volume_changes,
    "statefulsets.apps": _stateful_set_changes,
    "deployments.apps": _selector_changes,
    "replicasets.apps": _selector_changes,
    "controllerrevisions.apps": _revision_changes,
    "jobs.batch": _job_changes,
    "storageclasses.storage.k8s.io": _storage_class_changes,
    "rolebindings.rbac.authorization.k8s.io": _role_ref_changes,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_ref_changes,
}
