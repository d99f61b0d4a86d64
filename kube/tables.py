"""Tables, the format of `kubectl get`: a list without its objects (API concepts, "Receiving resources as Tables")."""

from typing import Any

import msgspec

from kube.errors import ApiError, Status

KIND = "Table"

_NAME = "name"
"""The format of the column with the object's name."""


class _Column(msgspec.Struct):
    format: str = ""


class _Row(msgspec.Struct):
    cells: list[Any]


class _Table(msgspec.Struct, rename="camel"):
    kind: str
    column_definitions: list[_Column] = []
    rows: list[_Row] | None = None


_TABLE = msgspec.json.Decoder(_Table)


def names_in(body: bytes, request: str) -> list[str]:
    """The names of the objects in a Table.

    Raises ApiError for an answer of another kind or without a name column, msgspec.DecodeError for invalid JSON.
    """
    table = _TABLE.decode(body)
    column = next((index for index, each in enumerate(table.column_definitions) if each.format == _NAME), None)
    if table.kind != KIND or column is None:
        what = "a Table without names" if table.kind == KIND else f"a {table.kind} instead of a Table"
        raise ApiError(Status(code=406, message=f"the server answered {what}"), request)
    return [str(row.cells[column]) for row in table.rows or () if column < len(row.cells)]
