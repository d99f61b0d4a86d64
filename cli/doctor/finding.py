"""What a cause is, by what it shows, and what is told of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from cli.doctor.facts import Facts


class Severity(StrEnum):
    """PROBLEM: the cluster is not as its user wants it. WARNING: it is, and something may cost it that."""

    PROBLEM = "Problem"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Sign:
    """One object on which a cause shows: `Pod basic-pd-0`, a sentence, the field to change and its value.

    The sentence does not name the object, so that one is enough for many. `way_out` is given where there is a better
    one than that of the cause.
    """

    object: str
    message: str
    field: str = ""
    value: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of the table: `means` and `way_out` are for the documentation, too; `signs` is pure."""

    reason: str
    means: str
    way_out: str
    signs: Callable[[Facts], Iterable[Sign]]
    severity: Severity = Severity.PROBLEM


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that was found, with all objects on which it shows in the same way."""

    severity: Severity
    reason: str
    objects: tuple[str, ...]
    message: str
    field: str
    value: str
    way_out: str
