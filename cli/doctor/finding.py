"""Causes, the signs by which they are recognised, and findings."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from cli.doctor.facts import Facts


class Severity(StrEnum):
    """PROBLEM: the cluster differs from its user's wishes. WARNING: it does not yet, but may."""

    PROBLEM = "Problem"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Sign:
    """An object that shows a cause: `Pod basic-pd-0`, a sentence, the field to change and its value.

    The sentence omits the object, so that one serves for many. `way_out` replaces the cause's if there is a better one.
    """

    object: str
    message: str
    field: str = ""
    value: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """An entry of the table; `signs` is pure."""

    reason: str
    way_out: str
    signs: Callable[[Facts], Iterable[Sign]]
    severity: Severity = Severity.PROBLEM


@dataclass(frozen=True, slots=True)
class Finding:
    """A recognised cause with all objects that show it in the same way."""

    severity: Severity
    reason: str
    objects: tuple[str, ...]
    message: str
    field: str
    value: str
    way_out: str
