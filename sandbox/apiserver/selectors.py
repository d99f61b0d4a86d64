"""Label and field selectors of list, watch and deletecollection."""

import re
from collections.abc import Callable, Iterator

from sandbox.apiserver.refusals import Refusal, bad_request
from sandbox.apiserver.storage import Stored

Predicate = Callable[[Stored], bool]
"""True if an object matches."""

_REQUIREMENT = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[\w./-]+)
      | (?P<set_key>[\w./-]+)\s+(?P<set_op>in|notin)\s*\((?P<values>[^)]*)\)
      | (?P<key>[\w./-]+)\s*(?P<op>==|=|!=|>|<)\s*(?P<value>[\w.-]*)
      | (?P<present>[\w./-]+)
    )\s*(?:,|$)""",
    re.VERBOSE,
)


def everything(_: Stored) -> bool:
    """Select all objects."""
    return True


def parse(labels: str, fields: str, known_fields: tuple[str, ...]) -> Predicate:
    """The conjunction of a label and a field selector. Raises Refusal (400)."""
    requirements = [*_label_requirements(labels), *_field_requirements(fields, known_fields)]
    if not requirements:
        return everything
    return lambda stored: all(holds(stored) for holds in requirements)


def _label_requirements(text: str) -> Iterator[Predicate]:
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if not match or match.end() == position:
            raise bad_request(f"unable to parse requirement: found '{text[position:]}', expected: identifier")
        position = match.end()
        yield _label_requirement(match)


def _label_requirement(found: re.Match[str]) -> Predicate:
    if found["absent"]:
        key = found["absent_key"]
        return lambda stored: key not in stored.labels
    if found["present"]:
        key = found["present"]
        return lambda stored: key in stored.labels
    if found["set_key"]:
        key, values = found["set_key"], {value.strip() for value in found["values"].split(",")}
        if found["set_op"] == "in":
            return lambda stored: stored.labels.get(key) in values
        return lambda stored: stored.labels.get(key) not in values
    return _comparison(found["key"], found["op"], found["value"])


def _comparison(key: str, operator: str, value: str) -> Predicate:
    if operator == "!=":
        return lambda stored: stored.labels.get(key) != value
    if operator in "==":
        return lambda stored: stored.labels.get(key) == value
    if not value.isdecimal():
        raise bad_request(f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, must be an integer")
    bound, greater = int(value), operator == ">"

    def holds(stored: Stored) -> bool:
        label = stored.labels.get(key, "")
        return label.isdecimal() and (int(label) > bound if greater else int(label) < bound)

    return holds


def _field_requirements(text: str, known: tuple[str, ...]) -> Iterator[Predicate]:
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"(?P<path>[^=!]+?)(?P<op>==|!=|=)(?P<value>.*)", term)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, value = match["path"], match["value"]
        if path not in ("metadata.name", "metadata.namespace", *known):
            raise _unknown_field(path, known)
        yield _field_requirement(path, value, equal=match["op"] != "!=")


def _field_requirement(path: str, value: str, *, equal: bool) -> Predicate:
    return lambda stored: (stored.fields.get(path, "") == value) is equal


def _unknown_field(path: str, known: tuple[str, ...]) -> Refusal:
    if known:
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
