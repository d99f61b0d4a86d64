"""A component's `config` as tables (objects.md 6.1, defaults-and-validation.md 7).

A user writes TOML text or an object. Text is kept as it is. An object has passed through JSON, which does not
distinguish floats, and may use names of v1.6's typed schema that differ from the configuration file; this module
corrects both. No key is ever dropped.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from apis import toml
from apis.config_schema import ConfigSchema
from apis.problem import InvalidField
from apis.shared import Config, Json
from apis.toml import Table


def tables(config: Config | None, schema: ConfigSchema, field: str) -> Table:
    """The configuration as fresh tables that the caller may change; empty if absent.

    Raises InvalidField at `field` if the text is not TOML.
    """
    if config is None:
        return {}
    if isinstance(config, str):
        try:
            return toml.loads(config)
        except ValueError as error:
            raise InvalidField(field, _excerpt(config, error), f"is not valid TOML: {error}") from None
    result = _copy(config)
    for path, name in schema.renamed.items():
        if path.partition(".")[0] in result:
            _rename(result, path, name)
    for path in schema.floats:
        # isinstance treats a bool as an int
        if path.partition(".")[0] in result and type(get(result, path)) is int:
            _to_float(result, path)
    return result


def get(table: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None when it is absent or a table on the way is not a table."""
    *parents, name = path.split(".")
    for parent in parents:
        below = table.get(parent)
        if not isinstance(below, Mapping):
            return None
        table = below
    return table.get(name)


def find(table: Mapping[str, Any], path: str) -> Iterator[tuple[str, object]]:
    """The values at a dotted path in lower case, each with its path as it is written.

    PD and TiDB decode keys in any case.
    """
    name, _, rest = path.partition(".")
    for key, value in table.items():
        if key.lower() != name:
            continue
        if not rest:
            yield key, value
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{below}", found) for below, found in find(value, rest))


def put(table: Table, path: str, value: object) -> None:
    """Set the value at a dotted path, making the tables on the way.

    Raises InvalidField when something on the way is not a table; validation finds that first.
    """
    *parents, name = path.split(".")
    walked: list[str] = []
    for parent in parents:
        walked.append(parent)
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise InvalidField(".".join(walked), table, f"must be a table, because {path} is set in it")
    table[name] = value


def put_if_absent(table: Table, path: str, value: object) -> None:
    """Set the value at a dotted path unless there is one. Raises InvalidField as `put` does."""
    if get(table, path) is None:
        put(table, path, value)


def drop(table: Table, path: str) -> None:
    """Remove the value at a dotted path, if there is one. Tables that become empty stay."""
    parent, name = _holder(table, path)
    if parent is not None:
        del parent[name]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    """Fresh tables: `over` laid onto `base`; tables merge, every other value, lists too, is replaced."""
    result = _copy(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            result[key] = merge(below, value)
        else:
            result[key] = _copy_value(value)
    return result


def _holder(table: Table, path: str) -> tuple[Table | None, str]:
    """The table with the value at `path` (None if there is no value), and the path's last name."""
    parent_path, _, name = path.rpartition(".")
    parent = get(table, parent_path) if parent_path else table
    return (parent if isinstance(parent, dict) and name in parent else None), name


def _rename(table: Table, path: str, new_name: str) -> None:
    parent, name = _holder(table, path)
    if parent is not None:
        parent[new_name] = parent.pop(name)


def _to_float(table: Table, path: str) -> None:
    parent, name = _holder(table, path)
    if parent is not None:
        parent[name] = float(parent[name])


def _copy(table: Mapping[str, Any]) -> Json:
    return {key: _copy_value(value) for key, value in table.items()}


def _copy_value(value: object) -> object:
    if isinstance(value, Mapping):
        return _copy(value)
    if isinstance(value, list):
        return [_copy_value(item) for item in value]
    return value


def _excerpt(text: str, error: ValueError) -> str:
    """The line of the syntax error, or the beginning of the text."""
    words = str(error).partition("(at line ")[2].split(",")
    lines = text.splitlines()
    if words[0].isdigit() and 0 < int(words[0]) <= len(lines):
        return lines[int(words[0]) - 1]
    return text[:80]
