"""Validation of objects: names, labels, required and immutable fields."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from kube.objects import Json
from ports import quantity
from sandbox.apiserver import json_path
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.names import annotation_errors, config_key_errors, key_errors, label_errors, name_errors
from sandbox.apiserver.pod_validation import pod_spec, template
from sandbox.apiserver.refusals import FieldError, forbidden_field, invalid_value, required, shown, unsupported
from sandbox.apiserver.rules import (
    Table,
    address,
    at_least,
    check,
    label,
    needed,
    one_of,
    record,
    share,
    subdomain,
    unless_empty,
)
from sandbox.apiserver.rules import selector as label_selector
from sandbox.apiserver.service_validation import ingress, service
from sandbox.selectors import matches

_MAX_CONFIG = 2**20
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_UNSELECTED = "`selector` does not match template `labels`"
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
    """All errors in a built-in object."""
    errors = list(metadata_errors(kind, tree))
    if check := _CHECKS.get(kind.key):
        errors += check(tree)
    if old is not None:
        errors += finalizer_errors(tree, old)
    if old is not None and (compare := _COMPARISONS.get(kind.key)):
        errors += compare(tree, old)
    return errors


def definition_errors(tree: Json) -> list[FieldError]:
    """All errors in a CustomResourceDefinition."""
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
    """All errors in the metadata of an object."""
    meta = tree["metadata"]
    yield from name_errors(kind.key, meta.get("name") or "")
    yield from label_errors(meta.get("labels") or {}, "metadata.labels")
    yield from annotation_errors(meta.get("annotations") or {}, "metadata.annotations")
    yield from _owner_errors(meta.get("ownerReferences") or (), "metadata.ownerReferences")
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        yield from key_errors(finalizer, "metadata.finalizers")
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", finalizer, detail)


def _owner_errors(owners: Sequence[Json], path: str) -> Iterator[FieldError]:
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                detail = "version must not be empty" if name == "apiVersion" else "must not be empty"
                yield invalid_value(f"{path}.{name}", "", detail)
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        found = f'Found "true" in references for {" and ".join(controllers)}'
        yield invalid_value(path, owners, f"Only one reference can have Controller set to true. {found}")


def finalizer_errors(tree: Json, old: Json) -> Iterator[FieldError]:
    """A deleted object must not get new finalizers."""
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
    for key in sorted((tree.get("data") or {}).keys() & (tree.get("binaryData") or {}).keys()):
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    size = sum(len(value.encode()) for name in ("data", "binaryData") for value in (tree.get(name) or {}).values())
    if size > _MAX_CONFIG:
        yield FieldError("FieldValueTooLong", "[]", f"Too long: may not be more than {_MAX_CONFIG} bytes")


def _secret(tree: Json) -> Iterator[FieldError]:
    yield from _config(tree)
    if tree.get("type") == "kubernetes.io/tls":
        missing = [key for key in ("tls.crt", "tls.key") if key not in (tree.get("data") or {})]
        yield from (required(f"data[{key}]") for key in missing)


def _stateful_set(tree: Json) -> Iterator[FieldError]:
    spec = tree["spec"]
    strategy = spec.get("updateStrategy") or {}
    if spec.get("podManagementPolicy") not in ("OrderedReady", "Parallel"):
        policy = spec.get("podManagementPolicy")
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy.get("type"), "RollingUpdate": rolling}
        yield invalid_value("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None and strategy["type"] == "OnDelete":
        shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid_value("spec.updateStrategy.rollingUpdate", shown, detail)
    elif rolling is not None:
        yield from check(rolling, "spec.updateStrategy.rollingUpdate", {"partition": at_least(0)})
    claims = spec.get("volumeClaimTemplates") or ()
    for index, claim in enumerate(claims):
        yield from _claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from check(spec, "spec", _STATEFUL_SET)
    yield from _selector(spec, "statefulset")
    volumes = (_claimed((claim.get("metadata") or {}).get("name", "")) for claim in claims)
    yield from template(spec.get("template") or {}, "spec.template", volumes)
    pods = (spec.get("template") or {}).get("spec") or {}
    yield from _always(pods)
    if pods.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in StatefulSet is not Supported"
        yield forbidden_field("spec.template.spec.activeDeadlineSeconds", detail)


def _claimed(name: str) -> Json:
    """The volume that a claim template adds to pods."""
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def _deployment(tree: Json) -> Iterator[FieldError]:
    strategy = tree["spec"].get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") not in (None, "Recreate", "RollingUpdate"):
        shown = {"Type": strategy["type"], "RollingUpdate": rolling}
        yield unsupported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
    elif strategy.get("type") == "Recreate" and rolling is not None:
        detail = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", detail)
    deadline, least = tree["spec"].get("progressDeadlineSeconds"), tree["spec"].get("minReadySeconds") or 0
    if deadline is not None and deadline <= least:
        yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from check(tree["spec"], "spec", {"revisionHistoryLimit": at_least(0)})
    yield from check(rolling or {}, "spec.strategy.rollingUpdate", _ROLLING)
    yield from _replicated(tree, "deployment")


def _replica_set(tree: Json) -> Iterator[FieldError]:
    yield from _replicated(tree, "replicaset")


def _replicated(tree: Json, kind: str) -> Iterator[FieldError]:
    spec = tree["spec"]
    yield from check(spec, "spec", {"replicas": at_least(0), "minReadySeconds": at_least(0)})
    yield from _selector(spec, kind)
    yield from template(spec.get("template") or {}, "spec.template")
    yield from _always((spec.get("template") or {}).get("spec") or {})


def _always(pods: Json) -> Iterator[FieldError]:
    """Require the restart policy Always."""
    policy = pods.get("restartPolicy")
    if policy not in (None, "Always"):
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))


def _selector(spec: Json, kind: str) -> Iterator[FieldError]:
    """Require a selector that is not empty and matches the labels of the template."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        yield invalid_value("spec.template.metadata.labels", labels or None, _UNSELECTED)
        return
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        yield invalid_value("spec.selector", selector, f"empty selector is invalid for {kind}")
        return
    wrong = list(label_selector(selector, "spec.selector"))
    yield from wrong
    if wrong:
        yield FieldError("FieldValueInvalid", "spec.selector", f"Invalid value: {shown(selector)}")
    elif not matches(selector, labels):
        yield invalid_value("spec.template.metadata.labels", labels or None, _UNSELECTED)


def _job(tree: Json) -> Iterator[FieldError]:
    spec = tree["spec"]
    yield from check(spec, "spec", _JOB)
    pods = spec.get("template") or {}
    yield from template(pods, "spec.template")
    if (pods.get("spec") or {}).get("restartPolicy") == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from _indexes(spec)


def _indexes(spec: Json) -> Iterator[FieldError]:
    if spec.get("backoffLimitPerIndex") is None:
        if spec.get("maxFailedIndexes") is not None:
            yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid_value(
            "spec.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode"
        )


def _pod(tree: Json) -> Iterator[FieldError]:
    yield from pod_spec(tree["spec"], "spec")


def _claim(tree: Json) -> Iterator[FieldError]:
    yield from _claim_spec(tree["spec"], "spec")


def _claim_spec(spec: Json, path: str) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from (unsupported(f"{path}.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required(f"{path}.resources[storage]")
    elif quantity.parse(size) <= 0:
        yield invalid_value(f"{path}.resources[storage]", str(size), "must be greater than zero")
    yield from check(spec, path, _CLAIM)


def _role(tree: Json) -> Iterator[FieldError]:
    for index, rule in enumerate(tree.get("rules") or ()):
        yield from needed(rule, f"rules[{index}]", "verbs", detail="verbs must contain at least one value")


def _role_binding(tree: Json) -> Iterator[FieldError]:
    for index, subject in enumerate(tree.get("subjects") or ()):
        yield from one_of("ServiceAccount", "User", "Group")(subject.get("kind", ""), f"subjects[{index}].kind")


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
    now, before = tree["spec"].get("template") or {}, old["spec"].get("template") or {}
    if now != before:
        inner = "spec" if now.get("spec") != before.get("spec") else "metadata"
        yield invalid_value(f"spec.template.{inner}", now.get(inner), _IMMUTABLE)


def _service_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    now, before = tree["spec"], old["spec"]
    if "ExternalName" in (now.get("type"), before.get("type")) or not before.get("clusterIP"):
        return
    given = now.get("clusterIP") or "None"
    # an invalid address has its own error
    if given != before["clusterIP"] and (given == "None" or not any(address(given, ""))):
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
    holds = quantity.parse(((old.get("status") or {}).get("capacity") or {}).get("storage", "0"))
    if asked < has and asked <= holds:
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")
    if (old.get("status") or {}).get("currentVolumeAttributesClassName") and not now.get("volumeAttributesClassName"):
        to = "nil" if now.get("volumeAttributesClassName") is None else "empty string"
        detail = f"update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden_field("spec.volumeAttributesClassName", detail)


def claimed_size(spec: Json) -> Decimal:
    """The bytes a claim asks for."""
    return quantity.parse(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


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
        now = tree.get("roleRef") or {}
        shown_now = {"APIGroup": now.get("apiGroup", ""), "Kind": now.get("kind", ""), "Name": now.get("name", "")}
        yield invalid_value("roleRef", shown_now, "cannot change roleRef")


def _revision_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    if tree.get("data") != old.get("data"):
        yield invalid_value("data", tree.get("data"), _IMMUTABLE)


def _storage_class_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if tree.get(name) != old.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")


def _volume_attributes_class(tree: Json) -> Iterator[FieldError]:
    if not tree.get("driverName"):
        yield required("driverName")
    if not tree.get("parameters"):
        yield required("parameters", "must contain at least one key/value pair")


def _volume_attributes_class_changes(tree: Json, old: Json) -> Iterator[FieldError]:
    for name in ("driverName", "parameters"):
        if tree.get(name) != old.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")


def _without(tree: Json, names: tuple[str, ...]) -> Json:
    return {key: value for key, value in tree.items() if key not in names}


_retention = unless_empty(one_of("Retain", "Delete"))
_ROLLING: Table = {"maxUnavailable": share(100), "maxSurge": share()}
_STATEFUL_SET: Table = {
    "replicas": at_least(0),
    "minReadySeconds": at_least(0),
    "serviceName": unless_empty(label),
    "persistentVolumeClaimRetentionPolicy": record({"whenDeleted": _retention, "whenScaled": _retention}),
    "ordinals": record({"start": at_least(0)}),
}
_JOB: Table = {
    "parallelism": at_least(0),
    "completions": at_least(0),
    "activeDeadlineSeconds": at_least(0),
    "backoffLimit": at_least(0),
    "backoffLimitPerIndex": at_least(0),
    "maxFailedIndexes": at_least(0),
    "ttlSecondsAfterFinished": at_least(0),
    "completionMode": one_of("NonIndexed", "Indexed"),
    "podReplacementPolicy": one_of("Failed", "TerminatingOrFailed"),
    "selector": label_selector,
}
_CLAIM: Table = {
    "storageClassName": unless_empty(subdomain),
    "volumeMode": one_of("Block", "Filesystem"),
    "volumeAttributesClassName": unless_empty(subdomain),
    "selector": label_selector,
}

_Check = Callable[[Json], Iterator[FieldError]]
_Comparison = Callable[[Json, Json], Iterator[FieldError]]

_CHECKS: dict[str, _Check] = {
    "pods": _pod,
    "services": service,
    "configmaps": _config,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "statefulsets.apps": _stateful_set,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "jobs.batch": _job,
    "ingresses.networking.k8s.io": ingress,
    "roles.rbac.authorization.k8s.io": _role,
    "clusterroles.rbac.authorization.k8s.io": _role,
    "volumeattributesclasses.storage.k8s.io": _volume_attributes_class,
    "rolebindings.rbac.authorization.k8s.io": _role_binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_binding,
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
    "volumeattributesclasses.storage.k8s.io": _volume_attributes_class_changes,
    "rolebindings.rbac.authorization.k8s.io": _role_ref_changes,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_ref_changes,
}
