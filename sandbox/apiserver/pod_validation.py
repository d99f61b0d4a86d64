"""What the server refuses in the spec of a pod, or of a template of pods."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kube.objects import Json
from sandbox.apiserver.container_validation import containers
from sandbox.apiserver.names import annotation_errors, key_errors
from sandbox.apiserver.refusals import FieldError, duplicate, forbidden_field, invalid_value, required, unsupported
from sandbox.apiserver.rules import (
    Table,
    at_least,
    check,
    distinct,
    each,
    label,
    labels,
    needed,
    one_of,
    record,
    relative_path,
    subdomain,
    within,
)
from sandbox.quantities import quantity

_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_RULES_OF_AFFINITY = "DuringSchedulingIgnoredDuringExecution"
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def template(tree: Json, path: str, extra_volumes: Iterable[Json] = ()) -> Iterator[FieldError]:
    """A template of pods; `extra_volumes` are those that its owner adds."""
    meta = tree.get("metadata") or {}
    yield from annotation_errors(meta.get("annotations") or {}, f"{path}.annotations")
    yield from pod_spec(tree.get("spec") or {}, f"{path}.spec", extra_volumes)


def pod_spec(spec: Json, path: str, extra_volumes: Iterable[Json] = ()) -> Iterator[FieldError]:
    """The spec of a pod that gets some more volumes, which come first."""
    added = {volume["name"]: volume for volume in extra_volumes}
    own = [each for each in spec.get("volumes") or () if each.get("name") not in added]
    volumes = [*added.values(), *own]
    yield from _volumes(volumes, f"{path}.volumes")
    yield from containers(spec, path, {each.get("name", "") for each in volumes})
    yield from check(spec, path, _POD)
    yield from _security(spec, f"{path}.securityContext")


def _volumes(volumes: list[Json], path: str) -> Iterator[FieldError]:
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        given = [name for name in volume if name != "name" and volume[name] is not None]
        known = [name for name in _SOURCES if name in given]
        for name in known[1:]:
            yield forbidden_field(f"{place}.{name}", "may not specify more than 1 volume type")
        if not given:
            yield required(place, "must specify a volume type")
        elif len(known) == 1:
            yield from check(volume, place, _SOURCES)
        yield from needed(volume, place, "name")
        if volume.get("name"):
            yield from label(volume["name"], f"{place}.name")
    yield from distinct((volume.get("name"), f"{path}[{index}].name") for index, volume in enumerate(volumes))


def _size(value: Any, path: str) -> Iterator[FieldError]:
    if quantity(value) < 0:
        yield forbidden_field(path, "SizeLimit field must be a valid resource quantity")


def _toleration(toleration: Json, path: str) -> Iterator[FieldError]:
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect")
    if toleration.get("key"):
        yield from key_errors(toleration["key"], f"{path}.key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{path}.effect", effect or "", detail)
    if operator == "Exists" and toleration.get("value"):
        yield invalid_value(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def _affinity(affinity: Json, path: str) -> Iterator[FieldError]:
    if node := affinity.get("nodeAffinity"):
        yield from _node_affinity(node, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for name in ("required", "preferred"):
            place = f"{path}.{kind}.{name}{_RULES_OF_AFFINITY}"
            for index, term in enumerate(rules.get(f"{name}{_RULES_OF_AFFINITY}") or ()):
                yield from _weight(term, f"{place}[{index}]") if name == "preferred" else ()
                inner = term.get("podAffinityTerm") or {} if name == "preferred" else term
                below = ".podAffinityTerm" if name == "preferred" else ""
                yield from _topology_key(inner, f"{place}[{index}]{below}.topologyKey")


def _weight(term: Json, path: str) -> Iterator[FieldError]:
    if not 1 <= term.get("weight", 0) <= 100:
        yield invalid_value(f"{path}.weight", term.get("weight", 0), "must be in the range 1-100")


def _topology_key(term: Json, path: str) -> Iterator[FieldError]:
    key = term.get("topologyKey") or ""
    if not key:
        yield required(path, "can not be empty")
    yield from key_errors(key, path)


def _node_affinity(affinity: Json, path: str) -> Iterator[FieldError]:
    wanted = affinity.get(f"required{_RULES_OF_AFFINITY}")
    if wanted is not None:
        place = f"{path}.required{_RULES_OF_AFFINITY}.nodeSelectorTerms"
        if not wanted.get("nodeSelectorTerms"):
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(wanted.get("nodeSelectorTerms") or ()):
            yield from _node_term(term, f"{place}[{index}]")
    for index, term in enumerate(affinity.get(f"preferred{_RULES_OF_AFFINITY}") or ()):
        place = f"{path}.preferred{_RULES_OF_AFFINITY}[{index}]"
        yield from _weight(term, place)
        yield from _node_term(term.get("preference") or {}, f"{place}.preference")


def _node_term(term: Json, path: str) -> Iterator[FieldError]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or ()
        if operator not in _NODE_OPERATORS:
            yield invalid_value(f"{place}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield forbidden_field(
                f"{place}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
        yield from key_errors(expression.get("key", ""), f"{place}.key")


def _spread(constraints: Any, path: str) -> Iterator[FieldError]:
    seen = set()
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        yield from at_least(1, "must be greater than zero")(constraint.get("maxSkew", 0), f"{place}.maxSkew")
        yield from needed(constraint, place, "topologyKey", detail="can not be empty")
        how = constraint.get("whenUnsatisfiable", "")
        yield from one_of("DoNotSchedule", "ScheduleAnyway")(how, f"{place}.whenUnsatisfiable")
        pair = f"{{{constraint.get('topologyKey', '')}, {how}}}"
        if pair in seen:
            # the real server names the earlier of the two
            yield duplicate(f"{path}[{index - 1}].{{topologyKey, whenUnsatisfiable}}", pair)
        seen.add(pair)


def _security(spec: Json, path: str) -> Iterator[FieldError]:
    context = spec.get("securityContext") or {}
    numbers: Table = dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), within(0, 2**31 - 1))
    yield from check(context, path, numbers)
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        place, name = f"{path}.sysctls[{index}].name", sysctl.get("name", "")
        if not name:
            yield required(place)
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            yield invalid_value(place, name, f"must have at most 253 characters and match regex {_SYSCTL}")
        elif spec.get("hostNetwork") and name.startswith("net."):
            yield invalid_value(place, name, "may not be specified when 'hostNetwork' is true")


_ITEM = record({"path": relative_path}, "key", "path")
_FIELD_FILE = record({"path": relative_path, "fieldRef": record({}, "fieldPath")}, "path")
_FILES: Table = {"items": each(_ITEM), "defaultMode": within(0, 0o777)}
_SOURCES: Table = {
    "emptyDir": record({"sizeLimit": _size}),
    "hostPath": record({}, "path"),
    "secret": record(_FILES, "secretName"),
    "configMap": record(_FILES, "name"),
    "persistentVolumeClaim": record({}, "claimName"),
    "downwardAPI": record({"items": each(_FIELD_FILE), "defaultMode": within(0, 0o777)}),
    "projected": record({"defaultMode": within(0, 0o777)}),
    "nfs": record({}, "server", "path"),
    "csi": record({}, "driver"),
    "ephemeral": record({}, "volumeClaimTemplate"),
}
"""The sources of volumes that the sandbox looks into."""

_POD: Table = {
    "restartPolicy": one_of("Always", "OnFailure", "Never"),
    "dnsPolicy": one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "activeDeadlineSeconds": within(1, 2**31 - 1),
    "nodeSelector": labels,
    "hostname": label,
    "subdomain": label,
    "serviceAccountName": subdomain,
    "tolerations": each(_toleration),
    "affinity": _affinity,
    "topologySpreadConstraints": _spread,
}
