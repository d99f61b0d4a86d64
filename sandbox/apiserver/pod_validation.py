"""What the server refuses in the spec of a pod, or of a template of pods."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kube.objects import Json
from sandbox.apiserver.container_validation import SECURITY, containers, field_of_pod, resource_of_container
from sandbox.apiserver.names import SUBDOMAIN_HELP, annotation_errors, is_subdomain, key_errors, label_value_errors
from sandbox.apiserver.refusals import FieldError, duplicate, forbidden_field, invalid_value, required, unsupported
from sandbox.apiserver.rules import (
    Table,
    address,
    at_least,
    check,
    distinct,
    each,
    label,
    labels,
    needed,
    no_way_up,
    one_of,
    qualified,
    record,
    relative_path,
    selector,
    subdomain,
    within,
)
from sandbox.quantities import quantity

_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_RULES_OF_AFFINITY = "DuringSchedulingIgnoredDuringExecution"
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELDS_OF_FILES = tuple(f"metadata.{name}" for name in ("annotations", "labels", "name", "namespace", "uid"))
_LONGEST_DRIVER = 63
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
    yield from _without_servers(spec, path)
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
    elif operator == "Equal":
        yield from label_value_errors(toleration.get("value") or "", f"{path}.operator")
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
                yield from check(inner, f"{place}[{index}]{below}", _AFFINITY_TERM)
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
            yield from _node_values(term, f"{place}[{index}]")
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
        elif operator in ("Gt", "Lt") and len(values) != 1:
            yield required(f"{place}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        yield from key_errors(expression.get("key", ""), f"{place}.key")
    for index, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field(expression, f"{path}.matchFields[{index}]")


def _node_values(term: Json, path: str) -> Iterator[FieldError]:
    """Values that no label can have; where they are only preferred the real server lets them pass."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        for number, value in enumerate(expression.get("values") or ()):
            if expression.get("operator") in ("In", "NotIn"):
                yield from label_value_errors(value, f"{path}.matchExpressions[{index}].values[{number}]")


def _node_field(expression: Json, path: str) -> Iterator[FieldError]:
    operator, values, key = (expression.get(name) or "" for name in ("operator", "values", "key"))
    if operator not in ("In", "NotIn"):
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if key != "metadata.name":
        yield invalid_value(f"{path}.key", key, "not a valid field selector key")
    for index, value in enumerate(values):
        yield from subdomain(value, f"{path}.values[{index}]")


def _spread(constraints: Any, path: str) -> Iterator[FieldError]:
    seen = set()
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        yield from at_least(1, "must be greater than zero")(constraint.get("maxSkew", 0), f"{place}.maxSkew")
        yield from needed(constraint, place, "topologyKey", detail="can not be empty")
        how = constraint.get("whenUnsatisfiable", "")
        yield from one_of("DoNotSchedule", "ScheduleAnyway")(how, f"{place}.whenUnsatisfiable")
        yield from check(constraint, place, _SPREAD)
        if constraint.get("minDomains") is not None and how != "DoNotSchedule":
            detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + how
            yield invalid_value(f"{place}.minDomains", constraint["minDomains"], detail)
        pair = f"{{{constraint.get('topologyKey', '')}, {how}}}"
        if pair in seen:
            # the real server names the earlier of the two
            yield duplicate(f"{path}[{index - 1}].{{topologyKey, whenUnsatisfiable}}", pair)
        seen.add(pair)


def _security(spec: Json, path: str) -> Iterator[FieldError]:
    context = spec.get("securityContext") or {}
    yield from check(context, path, {**SECURITY, **_POD_SECURITY})
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        place, name = f"{path}.sysctls[{index}].name", sysctl.get("name", "")
        if not name:
            yield required(place)
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            yield invalid_value(place, name, f"must have at most 253 characters and match regex {_SYSCTL}")
        elif name in {each.get("name") for each in context["sysctls"][:index]}:
            yield duplicate(place, name)
        elif spec.get("hostNetwork") and name.startswith("net."):
            yield invalid_value(place, name, "may not be specified when 'hostNetwork' is true")


def _absolute(value: str, path: str) -> Iterator[FieldError]:
    if not value.startswith("/"):
        yield invalid_value(path, value, "must be an absolute path")


def _field_of_file(source: Json, path: str) -> Iterator[FieldError]:
    # all labels, or all annotations, are for files alone
    whole = source.get("fieldPath") in ("metadata.annotations", "metadata.labels")
    wrong = tuple(field_of_pod(source | {"fieldPath": "metadata.name"} if whole else source, path))
    yield from wrong
    if not wrong and "[" not in source["fieldPath"]:
        yield from one_of(*_FIELDS_OF_FILES)(source["fieldPath"], f"{path}.fieldPath")


def _field_files(files: Any, path: str) -> Iterator[FieldError]:
    # the real server leaves out the index, and that these are items
    place = path.rpartition(".")[0]
    for file in files:
        yield from record({"path": relative_path, "mode": within(0, 0o777)}, "path")(file, place)
        own, resource = file.get("fieldRef"), file.get("resourceFieldRef")
        if own is None and resource is None:
            yield required(place, "one of fieldRef and resourceFieldRef is required")
        if own is not None:
            yield from _field_of_file(own, f"{place}.fieldRef")
        if own is not None and resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(place, "resource", detail)
        elif resource is not None:
            yield from needed(resource, f"{place}.resourceFieldRef", "containerName")
            yield from resource_of_container(resource, f"{place}.resourceFieldRef")


def _dns_option(option: Json, path: str) -> Iterator[FieldError]:
    if not option.get("name"):
        yield required(path, "must not be empty")


def _search(domain: str, path: str) -> Iterator[FieldError]:
    if not is_subdomain(domain.removesuffix(".").replace("_", "-")):
        yield invalid_value(path, domain, SUBDOMAIN_HELP)


def _label_or_none(value: str, path: str) -> Iterable[FieldError]:
    return label(value, path) if value else ()


def _driver(name: str, path: str) -> Iterator[FieldError]:
    if len(name) > _LONGEST_DRIVER:
        yield FieldError("FieldValueTooLong", path, f"Too long: may not be more than {_LONGEST_DRIVER} bytes")
    yield from subdomain(name.lower(), path)


def _projected(volume: Json, path: str) -> Iterator[FieldError]:
    yield from check(volume, path, {"defaultMode": within(0, 0o777), "sources": each(record(_PROJECTED))})
    seen = set()
    for source in volume.get("sources") or ():
        parts = [part for part in source.values() if part]
        for file in (*(item for part in parts for item in part.get("items") or ()), *parts):
            if (where := file.get("path")) and where in seen:
                yield invalid_value(path, where, "conflicting duplicate paths")
            seen.add(where)


def _without_servers(spec: Json, path: str) -> Iterator[FieldError]:
    if spec.get("dnsPolicy") != "None":
        return
    if spec.get("dnsConfig") is None:
        yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif not spec["dnsConfig"].get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{path}.dnsConfig.nameservers", detail)


def _dns(config: Json, path: str) -> Iterator[FieldError]:
    for name, most in (("nameservers", 3), ("searches", 32)):
        if len(given := config.get(name) or ()) > most:
            yield invalid_value(f"{path}.{name}", given, f"must not have more than {most} {name}")
    yield from check(config, path, _DNS)


def _token(source: Json, path: str) -> Iterator[FieldError]:
    if source.get("expirationSeconds", 3600) < 600:
        detail = "may not specify a duration less than 10 minutes"
        yield invalid_value(f"{path}.expirationSeconds", source["expirationSeconds"], detail)
    yield from needed(source, path, "path")
    # the real server leaves out which source it is
    yield from relative_path(source.get("path") or "", f"{path.rpartition('.sources[')[0]}.path")


_AFFINITY_TERM: Table = {
    "labelSelector": selector,
    "namespaceSelector": selector,
    "namespaces": each(label),
}
_SPREAD: Table = {
    "labelSelector": selector,
    "minDomains": at_least(1, "must be greater than zero"),
    "nodeAffinityPolicy": one_of("Honor", "Ignore"),
    "nodeTaintsPolicy": one_of("Honor", "Ignore"),
    "matchLabelKeys": each(qualified),
}
_POD_SECURITY: Table = {
    "fsGroup": within(0, 2**31 - 1),
    "fsGroupChangePolicy": one_of("Always", "OnRootMismatch"),
    "seLinuxChangePolicy": one_of("MountOption", "Recursive"),
    "supplementalGroups": each(within(0, 2**31 - 1)),
    "supplementalGroupsPolicy": one_of("Merge", "Strict"),
}
_DNS: Table = {"nameservers": each(address), "searches": each(_search), "options": each(_dns_option)}
_ITEM = record({"path": relative_path, "mode": within(0, 0o777)}, "key", "path")
_FILES: Table = {"items": each(_ITEM), "defaultMode": within(0, 0o777)}
_PROJECTED: Table = {
    "secret": record(_FILES, "name"),
    "configMap": record(_FILES, "name"),
    "downwardAPI": record({"items": _field_files}),
    "serviceAccountToken": _token,
}
_HOST_PATHS = ("BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_SOURCES: Table = {
    "emptyDir": record({"sizeLimit": _size}),
    "hostPath": record({"type": one_of("", *_HOST_PATHS), "path": no_way_up}, "path"),
    "secret": record(_FILES, "secretName"),
    "configMap": record(_FILES, "name"),
    "persistentVolumeClaim": record({}, "claimName"),
    "downwardAPI": record({"items": _field_files, "defaultMode": within(0, 0o777)}),
    "projected": _projected,
    "nfs": record({"path": _absolute}, "server", "path"),
    "csi": record({"driver": _driver}, "driver"),
    "image": record({"pullPolicy": one_of("Always", "IfNotPresent", "Never")}, "reference"),
    "ephemeral": record({}, "volumeClaimTemplate"),
}
"""The sources of volumes that the sandbox looks into."""

_ALIAS: Table = {"ip": address, "hostnames": each(subdomain)}
_POD: Table = {
    "restartPolicy": one_of("Always", "OnFailure", "Never"),
    "dnsPolicy": one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "activeDeadlineSeconds": within(1, 2**31 - 1),
    "nodeSelector": labels,
    "hostname": _label_or_none,
    "subdomain": _label_or_none,
    "serviceAccountName": subdomain,
    "tolerations": each(_toleration),
    "affinity": _affinity,
    "topologySpreadConstraints": _spread,
    "dnsConfig": _dns,
    "hostAliases": each(lambda value, path: check({"ip": ""} | value, path, _ALIAS)),
    "readinessGates": each(
        lambda value, path: check({"conditionType": ""} | value, path, {"conditionType": qualified})
    ),
    "nodeName": subdomain,
}
