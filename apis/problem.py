"""A problem of a field in one sentence: its path, its value, and the way out."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

_LONGEST_VALUE = 120


@dataclass(frozen=True, slots=True)
class Problem:
    """An invalid field: its JSON path such as `spec.pdms[0].replicas`, its value, and the way out."""

    field: str
    value: object
    message: str

    def __str__(self) -> str:
        """`field: value: message`, the value in JSON and shortened; without it where there is none."""
        if self.value is None:
            return f"{self.field}: {self.message}"
        return f"{self.field}: {shown(self.value)}: {self.message}"


class InvalidField(Exception):
    """Raised when an object can't be read because of one field or several; `problems` has them all."""

    def __init__(self, field: str, value: object, message: str, *, others: Iterable[Problem] = ()) -> None:
        super().__init__(field, value, message)
        self.problem = Problem(field, value, message)
        self.problems = (self.problem, *others)

    def __str__(self) -> str:
        """The problems in one line."""
        return "; ".join(map(str, self.problems))


def shown(value: object) -> str:
    """A value of a manifest in a sentence: in JSON, shortened, without control characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if not text.isprintable():  # what would turn a line around, or a terminal's colours
        text = json.dumps(value, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
