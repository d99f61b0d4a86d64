"""Label selectors (informers-workqueue.md LST-4)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class SelectorError(ValueError):
    """Raised for a malformed selector; the message quotes the requirement."""

    def __init__(self, requirement: str) -> None:
        super().__init__(f"unable to parse label selector requirement {requirement!r}")


class Operator(Enum):
    """The operator of a requirement."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "!"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. GREATER and LESS have one value, an integer."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if the labels satisfy the condition."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.GREATER:
                return _is_integer(value) and int(value or 0) > int(self.values[0])
            case Operator.LESS:
                return _is_integer(value) and int(value or 0) < int(self.values[0])


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements. Without any it selects everything."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if the labels satisfy every requirement."""
        return not self.selects_nothing and all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector(selects_nothing=True)


def parse_selector(text: str) -> Selector:
    """Parse `k=v,k!=v,k in (a,b),k notin (a,b),k,!k,k>1,k<1`; empty selects everything. Raises SelectorError."""
    if not text.strip():
        return EVERYTHING
    return Selector(tuple(_parse(part.strip()) for part in _OUTER_COMMA.split(text)))


_KEY = r"(?P<key>(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_INTEGER = r"-?[0-9]+"

_OUTER_COMMA = re.compile(r",(?![^(]*\))")
_SET = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUALITY = re.compile(rf"{_KEY}\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})")
_ORDER = re.compile(rf"{_KEY}\s*(?P<operator>[<>])\s*(?P<value>{_INTEGER})")
_PRESENCE = re.compile(rf"(?P<operator>!?)\s*{_KEY}")


def _parse(text: str) -> Requirement:
    if match := _SET.fullmatch(text):
        values = tuple(value.strip() for value in match["values"].split(","))
        if not all(re.fullmatch(_VALUE, value) for value in values):
            raise SelectorError(text)
        return Requirement(match["key"], Operator(match["operator"]), values)
    if match := _EQUALITY.fullmatch(text):
        operator = Operator.NOT_IN if match["operator"] == "!=" else Operator.IN
        return Requirement(match["key"], operator, (match["value"],))
    if match := _ORDER.fullmatch(text):
        return Requirement(match["key"], Operator(match["operator"]), (match["value"],))
    if match := _PRESENCE.fullmatch(text):
        return Requirement(match["key"], Operator.ABSENT if match["operator"] else Operator.EXISTS)
    raise SelectorError(text)


def _is_integer(value: str | None) -> bool:
    return value is not None and re.fullmatch(_INTEGER, value) is not None
