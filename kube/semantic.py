"""Semantic equality of objects, and the patch for a difference (objects.md 11.1).

Throughout: null, `{}`, `[]`, and zero in a plain field equal absence; zero in an optional field is a value; quantities
compare by value; the order of a list matters, except in lists that Kubernetes treats as sets. Pure functions; arguments
are not changed.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from kube.objects import Json
from ports import quantity

_QUANTITIES = frozenset({"resources", "requests", "limits", "capacity", "storage", "sizeLimit", "divisor"})
"""Fields whose text values, at any depth, are quantities."""

_OPAQUE = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "binaryData"})
"""Maps with user-defined keys: an empty text is a value in them, and no key has a special meaning."""

_OPTIONAL = frozenset(
    {
        "activeDeadlineSeconds",
        "allocateLoadBalancerNodePorts",
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "backoffLimit",
        "blockOwnerDeletion",
        "completions",
        "controller",
        "defaultMode",
        "deletionGracePeriodSeconds",
        "enableServiceLinks",
        "expirationSeconds",
        "fsGroup",
        "gracePeriodSeconds",
        "hostUsers",
        "immutable",
        "ingressClassName",
        "maxSurge",
        "maxUnavailable",
        "minAvailable",
        "minDomains",
        "mode",
        "optional",
        "parallelism",
        "partition",
        "priority",
        "privileged",
        "progressDeadlineSeconds",
        "readOnlyRootFilesystem",
        "replicas",
        "revisionHistoryLimit",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "runtimeClassName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "storageClassName",
        "suspend",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "ttlSecondsAfterFinished",
    }
)
"""Fields that Kubernetes treats as optional: an explicit zero, false or empty text differs from absence."""

_SETS = frozenset(
    {
        "accessModes",
        "add",
        "drop",
        "hostAliases",
        "imagePullSecrets",
        "loadBalancerSourceRanges",
        "matchExpressions",
        "matchFields",
        "namespaces",
        "nodeSelectorTerms",
        "ports",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "supplementalGroups",
        "sysctls",
        "tolerations",
        "topologySpreadConstraints",
        "values",
        "volumeClaimTemplates",
        "volumeMounts",
        "volumes",
    }
)
"""Lists without a significant order. The order of `env` is insignificant too, unless a variable refers to an earlier
one.
"""


def semantically_equal(one: Any, other: Any) -> bool:
    """True if two trees have the same meaning."""
    return _same(one, other, _IN_FIELDS)


def covers(live: Json, desired: Json) -> bool:
    """True if `live` contains everything in `desired`; it may have more (defaults, foreign keys)."""
    return merge_patch(live, desired, None) is None


def merge_patch(live: Json, desired: Json, applied: Json | None) -> Json | None:
    """The merge patch that brings `live` to `desired`; None if there is no difference.

    `applied` is what was last written, None if unknown: its fields that are no longer desired are removed. Fields of
    other clients survive. A list that differs is replaced whole.
    """
    return _patch(live, desired, applied or {}, _IN_FIELDS) or None


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    """How to read the values below a field; `below` names the fields whose values are read otherwise."""

    below: Mapping[str, "_Context"] = field(default_factory=dict)


_IN_QUANTITIES, _IN_OPAQUE = _Context(), _Context()
_IN_FIELDS = _Context(dict.fromkeys(_QUANTITIES, _IN_QUANTITIES) | dict.fromkeys(_OPAQUE, _IN_OPAQUE))


def _patch(live: Json, desired: Json, applied: Json, context: _Context) -> Json:
    patch: Json = {}
    for key, wanted in desired.items():
        there, before = live.get(key), applied.get(key)
        # nearly all fields are equal: one comparison skips them
        if there == wanted or not _says(key, wanted, context):
            continue
        below = context.below.get(key, context)
        if isinstance(wanted, list) and _is_set(key, wanted, context):
            there, before = _in_order_of(wanted, there), _in_order_of(wanted, before)
        if isinstance(wanted, dict) and isinstance(there, dict):
            if inner := _patch(there, wanted, _tree(before), below):
                patch[key] = inner
        elif not _holds(there, wanted, before, below):
            patch[key] = wanted
    return patch | _removals(live, desired, applied, context) if applied else patch


def _removals(live: Json, desired: Json, applied: Json, context: _Context) -> Json:
    removals: Json = {}
    for key, before in applied.items():
        there, wanted = live.get(key), desired.get(key)
        # nearly all fields stay as they were applied: one comparison skips them
        if before == wanted or _says(key, wanted, context):
            continue
        if not _says(key, before, context) or not _says(key, there, context):
            continue
        if key in _OPAQUE and context is _IN_FIELDS and isinstance(there, dict):
            # other clients put their own keys here
            if inner := _removals(there, {}, _tree(before), _IN_OPAQUE):
                removals[key] = inner
        else:
            removals[key] = None
    return removals


def _holds(live: Any, wanted: Any, before: Any, context: _Context) -> bool:
    if live == wanted:
        return True
    if isinstance(wanted, dict) and isinstance(live, dict):
        return not _patch(live, wanted, _tree(before), context)
    if isinstance(wanted, list) and isinstance(live, list):
        if len(wanted) != len(live):
            return False
        earlier = before if isinstance(before, list) and len(before) == len(wanted) else [None] * len(wanted)
        return all(_holds(there, item, old, context) for there, item, old in zip(live, wanted, earlier, strict=True))
    return bool(_normal(live, context) == _normal(wanted, context))


def _sort_key(value: Any) -> str:
    """A sort key that puts equal values side by side."""
    if isinstance(value, dict):
        return str(sorted((key, _sort_key(inner)) for key, inner in value.items()))
    return str([_sort_key(inner) for inner in value]) if isinstance(value, list) else repr(value)


def _is_set(key: str, value: Any, context: _Context) -> bool:
    if context is not _IN_FIELDS or not isinstance(value, list):
        return False
    return key in _SETS or (key == "env" and not _refers(value))


def _refers(env: list[Any]) -> bool:
    """True if the order of the variables matters: one refers to another, or two have the same name."""
    names = [str(each.get("name")) for each in env]
    return len(set(names)) < len(names) or any("$(" in str(each.get("value")) for each in env)


def _in_order_of(wanted: list[Any], there: Any) -> Any:
    """A list that is a set, in the order of another list, as far as their items share names."""
    if not isinstance(there, list) or len(there) != len(wanted):
        return there
    by_name = {_name(each): each for each in there}
    names = [_name(each) for each in wanted]
    return [by_name[name] for name in names] if len(by_name) == len(there) and by_name.keys() == set(names) else there


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    return str(item.get("name") or item.get("mountPath") or _tree(item.get("metadata")).get("name"))


def _tree(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _same(one: Any, other: Any, context: _Context) -> bool:
    """True if two values are equal after normalisation, which only differing values need."""
    # equal values have the same meaning, and most values are equal
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same_field(key, one.get(key), other.get(key), context) for key in one | other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair, context) for pair in zip(one, other, strict=True))
    return bool(_normal(one, context) == _normal(other, context))


def _same_field(key: str, one: Any, other: Any, context: _Context) -> bool:
    # most fields of two differing objects are equal: one comparison skips them
    if one == other:
        return True
    says = _says(key, one, context)
    if not says or not _says(key, other, context):
        return says is _says(key, other, context)
    if _is_set(key, one, context) or _is_set(key, other, context):
        return bool(_normal({key: one}, context) == _normal({key: other}, context))
    return _same(one, other, context.below.get(key, context))


def _normal(value: Any, context: _Context) -> Any:
    """`value` without insignificant fields, and with quantities as numbers."""
    if isinstance(value, dict):
        found = {k: _normal(v, context.below.get(k, context)) for k, v in value.items() if _says(k, v, context)}
        return {k: sorted(v, key=_sort_key) if _is_set(k, value[k], context) else v for k, v in found.items()}
    if isinstance(value, list):
        return [_normal(item, context) for item in value]
    if context is _IN_QUANTITIES and isinstance(value, str | int | float):
        with suppress(ValueError):
            return quantity.parse(value)
    return value


def _says(key: str, value: Any, context: _Context) -> bool:
    """True if a field with this value differs in meaning from an absent one."""
    if value is None:
        return False
    if isinstance(value, dict):
        below = context.below.get(key, context)
        return any(map(_says, value.keys(), value.values(), repeat(below)))
    if isinstance(value, list):
        return bool(value)
    return bool(value) or context is not _IN_FIELDS or key in _OPTIONAL or key in _QUANTITIES
