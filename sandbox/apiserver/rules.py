"""Rules for single fields, in the words of Kubernetes, and tables of them.

A rule takes a value and its path; tables hold the rules of an object's fields, which apply to fields that are set.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from kube.objects import Json
from sandbox.apiserver import names
from sandbox.apiserver.refusals import FieldError, duplicate, invalid_value, required, unsupported

Rule = Callable[[Any, str], Iterable[FieldError]]
Table = Mapping[str, Rule]

NOT_NEGATIVE = "must be greater than or equal to 0"
_PORTS = "must be between 1 and 65535, inclusive"


def check(tree: Json, path: str, table: Table) -> Iterator[FieldError]:
    """What the rules say about the fields that are set, in the order of the table."""
    for name, rule in table.items():
        value = tree.get(name)
        if value is not None:
            yield from rule(value, f"{path}.{name}")


def needed(tree: Json, path: str, *fields: str, detail: str = "") -> Iterator[FieldError]:
    """Fields that are missing or empty."""
    for name in fields:
        if not tree.get(name):
            yield required(f"{path}.{name}", detail)


def record(table: Table, *fields: str) -> Rule:
    """An object whose `fields` are needed."""

    def rule(value: Any, path: str) -> Iterator[FieldError]:
        yield from needed(value, path, *fields)
        yield from check(value, path, table)

    return rule


def each(rule: Rule) -> Rule:
    """The items of a list."""

    def of_items(values: Any, path: str) -> Iterator[FieldError]:
        for index, value in enumerate(values):
            yield from rule(value, f"{path}[{index}]")

    return of_items


def one_of(*values: str) -> Rule:
    """One of some words."""
    return lambda value, path: [] if value in values else [unsupported(path, value, values)]


def at_least(low: int, detail: str = NOT_NEGATIVE) -> Rule:
    """A number that is not too small."""
    return lambda value, path: [] if value >= low else [invalid_value(path, value, detail)]


def within(low: int, high: int) -> Rule:
    """A number of a range."""
    detail = f"must be between {low} and {high}, inclusive"
    return lambda value, path: [] if low <= value <= high else [invalid_value(path, value, detail)]


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
    """A port by its number or its name."""
    return port_name(value, path) if isinstance(value, str) else port(value, path)


def label(value: Any, path: str) -> Iterable[FieldError]:
    """A name without dots."""
    return names.dns_label(value, path)


def subdomain(value: Any, path: str) -> Iterable[FieldError]:
    """A name that may hold dots."""
    return names.dns_subdomain(value, path)


def labels(value: Any, path: str) -> Iterable[FieldError]:
    """Labels, and what selects by them."""
    return names.label_errors(value, path)


def network(value: Any, path: str) -> Iterator[FieldError]:
    """A range of addresses."""
    try:
        ip_network(value, strict=False)
    except ValueError:
        yield invalid_value(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def relative_path(value: Any, path: str) -> Iterator[FieldError]:
    """A path that stays below where it starts."""
    if value.startswith("/"):
        yield invalid_value(path, value, "must be a relative path")
    if ".." in value.split("/"):
        yield invalid_value(path, value, "must not contain '..'")


def distinct(values: Iterable[tuple[str | None, str]]) -> Iterator[FieldError]:
    """Values, each with its path, of which none may come twice; empty ones may."""
    seen = set()
    for value, path in values:
        if value and value in seen:
            yield duplicate(path, value)
        seen.add(value)
