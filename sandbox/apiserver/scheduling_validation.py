"""Validation of scheduling constraints: tolerations, affinity, spread."""

from collections.abc import Iterator
from typing import Any

from kube.objects import Json
from sandbox.apiserver.names import key_errors, label_value_errors
from sandbox.apiserver.refusals import FieldError, duplicate, invalid_value, required, unsupported
from sandbox.apiserver.rules import (
    Table,
    at_least,
    check,
    each,
    label,
    needed,
    one_of,
    qualified,
    requirement,
    selector,
    subdomain,
)

_RULES_OF_AFFINITY = "DuringSchedulingIgnoredDuringExecution"
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def toleration(tree: Json, path: str) -> Iterator[FieldError]:
    """A toleration of a pod."""
    operator, effect = tree.get("operator") or "Equal", tree.get("effect")
    if tree.get("key"):
        yield from key_errors(tree["key"], f"{path}.key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{path}.operator", operator, detail)
    if tree.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{path}.effect", effect or "", detail)
    if operator == "Exists" and tree.get("value"):
        yield invalid_value(f"{path}.operator", tree["value"], "value must be empty when `operator` is 'Exists'")
    elif operator == "Equal":
        yield from label_value_errors(tree.get("value") or "", f"{path}.operator")
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def affinity(tree: Json, path: str) -> Iterator[FieldError]:
    """Affinity to nodes, and to or against other pods."""
    if node := tree.get("nodeAffinity"):
        yield from _node_affinity(node, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = tree.get(kind) or {}
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
        yield from requirement(expression, f"{path}.matchExpressions[{index}]", _NODE_OPERATORS)
    for index, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field(expression, f"{path}.matchFields[{index}]")


def _node_values(term: Json, path: str) -> Iterator[FieldError]:
    """Values that no label can have; in preferences the real server accepts them."""
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


def spread(constraints: Any, path: str) -> Iterator[FieldError]:
    """Topology spread constraints."""
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
            # the real server names the earlier one of the two
            yield duplicate(f"{path}[{index - 1}].{{topologyKey, whenUnsatisfiable}}", pair)
        seen.add(pair)


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
