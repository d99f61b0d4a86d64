"""Label selectors of workloads, Services and affinities."""

from collections.abc import Mapping

from kube.objects import Json


def matches(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """True if labels satisfy a LabelSelector (matchLabels and matchExpressions); None selects nothing."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if not wanted.items() <= labels.items():
        return False
    return all(requirement_holds(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def requirement_holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    """True if a requirement of a selector or node affinity holds. Raises ValueError for an unknown operator."""
    value = labels.get(requirement["key"])
    values: list[str] = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
        case unknown:
            raise ValueError(f"unknown selector operator {unknown!r} for key {requirement['key']!r}")
