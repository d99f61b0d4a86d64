"""The silent, slow or outdated parts while the operator decides: the columns of the table in docs/rules/silence.md."""

from enum import Enum


class Column(Enum):
    """A silence, as the head of the table words it."""

    SILENT = "silent"
    SLOW = "slow"
    HALF = "half cut off"
    MINORITY = "half silent"
    OPERATOR = "operator cut off"
    NODE = "node cut off"
    CACHE = "cache old"
