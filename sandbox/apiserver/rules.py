"""Rules for single fields, in the words of Kubernetes, and tables of rules.

A rule takes a value and its path. A table has the rules of an object's fields, and applies only to fields that are set.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from kube.objects import Json
from sandbox.apiserver import names
from sandbox.apiserver.refusals import FieldError, duplicate, forbidden_field, invalid_value, required, unsupported

Rule = Callable[[Any, str], Iterable[FieldError]]
Table = Mapping[str, Rule]

NOT_NEGATIVE = "must be greater than or equal to 0"
_SELECTS = ("In", "NotIn", "Exists", "DoesNotExist")
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_PORTS = "must be between 1 and 65535, inclusive"


def check(tree: Json, path: str, table: Table) -> Iterator[FieldError]:
    """The errors of the set fields, in the order of the table."""
    for name, rule in table.items():
        value = tree.get(name)
        if value is not None:
            yield from rule(value, f"{path}.{name}")


def needed(tree: Json, path: str, *fields: str, detail: str = "") -> Iterator[FieldError]:
    """Errors for fields that are missing or empty."""
    for name in fields:
        if not tree.get(name):
            yield required(f"{path}.{name}", detail)


def record(table: Table, *fields: str) -> Rule:
    """A rule for an object with required `fields`."""

    def rule(value: Any, path: str) -> Iterator[FieldError]:
        yield from needed(value, path, *fields)
        yield from check(value, path, table)

    return rule


def each(rule: Rule) -> Rule:
    """Apply a rule to each item of a list."""

    def of_items(values: Any, path: str) -> Iterator[FieldError]:
        for index, value in enumerate(values):
            yield from rule(value, f"{path}[{index}]")

    return of_items


def unless_empty(rule: Rule) -> Rule:
    """Treat an empty value or 0 as unset."""
    return lambda value, path: rule(value, path) if value else ()


def one_of(*values: str) -> Rule:
    """Allow only the given words."""
    return lambda value, path: [] if value in values else [unsupported(path, value, values)]


def at_least(low: int, detail: str = NOT_NEGATIVE) -> Rule:
    """Require a minimum."""
    return lambda value, path: [] if value >= low else [invalid_value(path, value, detail)]


def within(low: int, high: int) -> Rule:
    """Require a number within a range."""
    detail = f"must be between {low} and {high}, inclusive"
    return lambda value, path: [] if low <= value <= high else [invalid_value(path, value, detail)]


def share(most: float = math.inf) -> Rule:
    """Require a count or a percentage."""

    def rule(value: Any, path: str) -> Iterator[FieldError]:
        if isinstance(value, int):
            yield from at_least(0)(value, path)
        elif not (percent := re.fullmatch("([0-9]+)%", value)):
            yield invalid_value(path, value, _NO_PERCENT)
        elif int(percent[1]) > most:
            yield invalid_value(path, value, f"must not be greater than {most:g}%")

    return rule


def port(value: Any, path: str) -> Iterator[FieldError]:
    """The number of a port."""
    if not 1 <= value <= 65535:
        yield invalid_value(path, value, _PORTS)


def port_name(value: Any, path: str) -> Iterator[FieldError]:
    """The name of a container's port."""
    if len(value) > 15:
        yield invalid_value(path, value, "must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", value):
        yield invalid_value(path, value, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    elif not re.search("[a-z]", value):
        yield invalid_value(path, value, "must contain at least one letter (a-z)")
    if "--" in value:
        yield invalid_value(path, value, "must not contain consecutive hyphens")
    if value[:1] == "-" or value[-1:] == "-":
        yield invalid_value(path, value, "must not begin or end with a hyphen")


def port_or_name(value: Any, path: str) -> Iterable[FieldError]:
    """A port, by number or name."""
    return port_name(value, path) if isinstance(value, str) else port(value, path)


def label(value: Any, path: str) -> Iterable[FieldError]:
    """A name without dots."""
    return names.dns_label(value, path)


def subdomain(value: Any, path: str) -> Iterable[FieldError]:
    """A name that may contain dots."""
    return names.dns_subdomain(value, path)


def labels(value: Any, path: str) -> Iterable[FieldError]:
    """Labels, or a selector's labels."""
    return names.label_errors(value, path)


def qualified(value: Any, path: str) -> Iterable[FieldError]:
    """A name with an optional domain before a slash."""
    return names.key_errors(value, path)


def selector(value: Any, path: str) -> Iterator[FieldError]:
    """A label selector."""
    yield from labels(value.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(value.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{index}]"
        yield from requirement(expression, place, _SELECTS)
        for number, each_value in enumerate(expression.get("values") or ()):
            yield from names.label_value_errors(each_value, f"{place}.values[{number}]")


def requirement(expression: Json, path: str, operators: tuple[str, ...]) -> Iterator[FieldError]:
    """A selector's expression with one of these operators."""
    operator, values = expression.get("operator") or "", expression.get("values") or ()
    if operator not in operators:
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield forbidden_field(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    yield from qualified(expression.get("key") or "", f"{path}.key")


def address(value: Any, path: str) -> Iterator[FieldError]:
    """An IP address."""
    try:
        ip_address(value)
    except ValueError:
        yield invalid_value(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def outside_address(value: Any, path: str) -> Iterator[FieldError]:
    """An IP address that can be outside the cluster."""
    if wrong := list(address(value, path)):
        yield from wrong
    elif ip_address(value).is_unspecified:
        yield invalid_value(path, value, f"may not be unspecified ({value})")
    elif ip_address(value).is_loopback:
        yield invalid_value(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")


def network(value: Any, path: str) -> Iterator[FieldError]:
    """A range of addresses, with or without surrounding blanks."""
    value = value.strip()
    try:
        found = ip_network(value, strict=False)
    except ValueError:
        found = None
    if found is None or "/" not in value:
        yield invalid_value(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    elif ip_address(value.partition("/")[0]) != found.network_address:
        yield invalid_value(path, value, "must not have bits set beyond the prefix length")


def relative_path(value: Any, path: str) -> Iterator[FieldError]:
    """A relative path without `..`."""
    if value.startswith("/"):
        yield invalid_value(path, value, "must be a relative path")
    yield from no_way_up(value, path)


def no_way_up(value: Any, path: str) -> Iterator[FieldError]:
    """A path without `..`."""
    if ".." in value.split("/"):
        yield invalid_value(path, value, "must not contain '..'")


def distinct(values: Iterable[tuple[str | None, str]]) -> Iterator[FieldError]:
    """Require distinct values, given with their paths; empty ones may repeat."""
    seen = set()
    for value, path in values:
        if value and value in seen:
            yield duplicate(path, value)
        seen.add(value)
