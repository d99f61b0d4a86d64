"""TiDB's tables in the keys and values of its cluster: enough SQL to create and query data.

Every column is text; the first one is the primary key. Unsupported statements are refused as by MySQL.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

from ports.sql import SqlRefused
from sandbox.dataplane.content import META, Content, KeyRange, meta_key, table_prefix

Rows = Sequence[Sequence[str]]
"""The result of a SELECT, column names first."""

_NAME = r"`?(\w+)`?"
_NAME_ALONE = r"`?\w+`?"
_TABLE = rf"{_NAME}\.{_NAME}"
_TEXT = r"'((?:[^'\\]|''|\\.)*)'"
_LITERAL = r"'(?:[^'\\]|''|\\.)*'|-?[\d.]+|NULL"
_VALUE = re.compile(rf"{_TEXT}|(-?[\d.]+)|(NULL)", re.IGNORECASE)
_ESCAPED = re.compile(r"''|\\(.)")

_MOVED = rf"UPDATE mysql\.tidb SET variable_value ?= ?{_TEXT} WHERE variable_name ?= ?{_TEXT}"  # noqa: S608  (a pattern)
_ASKED = rf"SELECT variable_value FROM mysql\.tidb WHERE variable_name ?= ?{_TEXT}"  # noqa: S608  (a pattern)

NO_SUCH_TABLE, NO_SUCH_SCHEMA, THERE_ALREADY, SCHEMA_THERE, DUPLICATE, SYNTAX = 1146, 1049, 1050, 1007, 1062, 1064
PD_TIMEOUT, UNAVAILABLE = 9001, 9005
_VARIABLES = {"tikv_gc_life_time": "10m0s"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `id` is also the number of its region, `numbered` means that its primary key is AUTO_INCREMENT."""

    schema: str
    name: str
    id: int
    columns: tuple[str, ...]
    numbered: bool = False

    @property
    def keys(self) -> KeyRange:
        """The range of its rows."""
        return KeyRange(table_prefix(self.id), table_prefix(self.id + 1))

    def key(self, primary: str) -> bytes:
        """The key of a row."""
        return table_prefix(self.id) + b"_r" + primary.encode()


class Regions(Protocol):
    """The regions of a cluster, by number."""

    def split(self) -> int:
        """Add a region for a table; return its number."""

    def is_led(self, region: int) -> bool:
        """True if a region can be read and written."""


class Tables:
    """The schemas and tables of one cluster."""

    def __init__(self, wall: Callable[[], float], regions: Regions) -> None:
        self.content = Content()
        self._wall = wall
        self._regions = regions
        self._is_led: Callable[[int], bool] = regions.is_led

    def through(self, is_led: Callable[[int], bool]) -> "Tables":
        """The same tables for a server that finds out itself which regions it can read and write."""
        seen = copy(self)
        seen._is_led = is_led
        return seen

    def now(self) -> int:
        """A timestamp."""
        return self.content.timestamp(self._wall())

    def schemas(self, version: int | None = None) -> list[str]:
        """The names of all user schemas."""
        names = (key[1:].decode() for key, _ in self.content.scan(META, version))
        return [name for name in names if "/" not in name]

    def tables(self, version: int | None = None) -> list[Table]:
        """All user tables, in order."""
        found = ((key[1:].decode(), value) for key, value in self.content.scan(META, version))
        return [_table(name, value) for name, value in found if "/" in name]

    def create_schema(self, name: str) -> None:
        """Create a schema; idempotent."""
        if name not in self.schemas():
            self.content.put(meta_key(name), b"{}", self.now())

    def create_table(self, schema: str, name: str, columns: Sequence[str], *, numbered: bool = False) -> Table:
        """Create a table with its own region."""
        made = Table(schema, name, self._regions.split(), tuple(columns), numbered)
        described = json.dumps({"id": made.id, "columns": made.columns, "numbered": numbered}).encode()
        self.content.put(meta_key(schema, name), described, self.now())
        return made

    def drop_table(self, table: Table) -> None:
        """Drop a table with its rows."""
        version = self.now()
        self.content.put(meta_key(table.schema, table.name), None, version)
        self.delete(table, version=version)

    def delete(self, table: Table, primary: str | None = None, *, version: int = 0) -> None:
        """Delete one row, or all rows of a table."""
        version = version or self.now()
        for key, _ in list(self.content.scan(table.keys)):
            if primary is None or key == table.key(primary):
                self.content.put(key, None, version)

    def rows(self, table: Table, version: int | None = None) -> list[list[str]]:
        """The rows of a table, in the order of their keys."""
        return [json.loads(value) for _, value in self.content.scan(table.keys, version)]

    def digest(self) -> str:
        """A digest of all user data: equal for equal schemas, tables and rows, whatever their ids."""
        told = [[table.schema, table.name, table.columns, self.rows(table)] for table in self.tables()]
        return hashlib.sha256(json.dumps([self.schemas(), told]).encode()).hexdigest()

    def execute(self, statement: str) -> Rows | None:
        """Execute a statement and return its result, if any. Raises SqlRefused."""
        words = " ".join(statement.split())
        for pattern, carry_out in _STATEMENTS:
            if match := pattern.fullmatch(words):
                answer: Rows | None = carry_out(self, *match.groups())
                return answer
        what = f'You have an error in your SQL syntax, or the sandbox does not know this statement; near "{statement}"'
        raise SqlRefused(SYNTAX, what)

    def table(self, schema: str, name: str) -> Table:
        """A table by name. Raises SqlRefused."""
        value = self.content.get(meta_key(schema, name))
        if value is None:
            raise SqlRefused(NO_SUCH_TABLE, f"Table '{schema}.{name}' doesn't exist")
        found = _table(f"{schema}/{name}", value)
        if not self._is_led(found.id):
            raise SqlRefused(UNAVAILABLE, "Region is unavailable")
        return found


def _table(name: str, value: bytes) -> Table:
    described = json.loads(value)
    schema, _, own = name.partition("/")
    return Table(schema, own, described["id"], tuple(described["columns"]), described["numbered"])


def _create_schema(tables: Tables, if_not_exists: str | None, name: str) -> None:
    if name in tables.schemas() and not if_not_exists:
        raise SqlRefused(SCHEMA_THERE, f"Can't create database '{name}'; database exists")
    tables.create_schema(name)


def _drop_schema(tables: Tables, if_exists: str | None, name: str) -> None:
    if name not in tables.schemas():
        if if_exists:
            return
        raise SqlRefused(NO_SUCH_SCHEMA, f"Unknown database '{name}'")
    for table in tables.tables():
        if table.schema == name:
            tables.drop_table(table)
    tables.content.put(meta_key(name), None, tables.now())


def _create_table(tables: Tables, if_not_exists: str | None, schema: str, name: str, columns: str) -> None:
    if schema not in tables.schemas():
        raise SqlRefused(NO_SUCH_SCHEMA, f"Unknown database '{schema}'")
    if tables.content.get(meta_key(schema, name)) is not None:
        if if_not_exists:
            return
        raise SqlRefused(THERE_ALREADY, f"Table '{schema}.{name}' already exists")
    definitions = [each.split() for each in re.sub(r"\([^)]*\)", "", columns).split(",")]
    names = (first.strip("`") for first, *_ in definitions)
    numbered = "AUTO_INCREMENT" in (word.upper() for word in definitions[0])
    tables.create_table(
        schema, name, [each for each in names if each.upper() not in ("PRIMARY", "KEY")], numbered=numbered
    )


def _drop_table(tables: Tables, if_exists: str | None, schema: str, name: str) -> None:
    if if_exists and tables.content.get(meta_key(schema, name)) is None:
        return
    tables.drop_table(tables.table(schema, name))


def _use(tables: Tables, name: str) -> None:
    if name not in tables.schemas():
        raise SqlRefused(NO_SUCH_SCHEMA, f"Unknown database '{name}'")


def _literals(_: Tables, values: str) -> Rows:
    found = list(_values(values))
    return [found, found]


def _about_table(tables: Tables, schema: str, name: str) -> None:
    """Accept a statement that changes neither columns nor rows, e.g. about an index."""
    tables.table(schema, name)


def _insert(tables: Tables, verb: str, schema: str, name: str, rows: str) -> None:
    table, version = tables.table(schema, name), tables.now()
    columns, values = re.split("VALUES", rows, maxsplit=1, flags=re.IGNORECASE)
    named = [each.strip("`() ") for each in columns.split(",")] if columns else table.columns
    if unknown := next((each for each in named if each not in table.columns), None):
        raise SqlRefused(1054, f"Unknown column '{unknown}' in 'field list'")
    for number, values_of_row in enumerate(_tuples(values), 1):
        if len(values_of_row) != len(named):
            raise SqlRefused(1136, f"Column count doesn't match value count at row {number}")
        given = dict(zip(named, values_of_row, strict=True))
        primary = table.columns[0]
        if primary not in given:
            given[primary] = _next_number(tables, table)
        row = [given.get(column, "NULL") for column in table.columns]
        key = table.key(row[0])
        if verb.upper() == "INSERT" and tables.content.get(key) is not None:
            raise SqlRefused(DUPLICATE, f"Duplicate entry '{row[0]}' for key '{name}.PRIMARY'")
        tables.content.put(key, json.dumps(row).encode(), version)


def _next_number(tables: Tables, table: Table) -> str:
    """The primary key of a row that omits it. Raises SqlRefused."""
    if not table.numbered:
        raise SqlRefused(1364, f"Field '{table.columns[0]}' doesn't have a default value")
    return str(max((int(row[0]) for row in tables.rows(table)), default=0) + 1)


def _delete(tables: Tables, schema: str, name: str, primary: str | None) -> None:
    tables.delete(tables.table(schema, name), next(_values(primary)) if primary else None)


def _select(tables: Tables, what: str, schema: str, name: str) -> Rows:
    table = tables.table(schema, name)
    rows = tables.rows(table)
    return [table.columns, *rows] if what == "*" else [["COUNT(*)"], [str(len(rows))]]


def _show(tables: Tables) -> Rows:
    return [["Database"], *([each] for each in tables.schemas())]


def _show_tables(tables: Tables, schema: str) -> Rows:
    return [[f"Tables_in_{schema}"], *([table.name] for table in tables.tables() if table.schema == schema)]


def _variable(tables: Tables, name: str) -> Rows:
    there = tables.content.get(_variable_key(name))
    value = there.decode() if there is not None else _VARIABLES.get(name)
    return [["variable_value"], *([[value]] if value is not None else [])]


def _set_variable(tables: Tables, value: str, name: str) -> None:
    tables.content.put(_variable_key(name), _unescaped(value).encode(), tables.now())


def _variable_key(name: str) -> bytes:
    # a schema of TiDB's own, which users do not see
    return f"a/mysql.tidb/{name}".encode()


def _tuples(text: str) -> Iterator[list[str]]:
    """Parse `(1, 'a'), (2, 'b')` as rows."""
    for inner in re.findall(rf"\(((?:{_TEXT}|[^()'])*)\)", text):
        yield list(_values(inner[0]))


def _values(text: str) -> Iterator[str]:
    for match in _VALUE.finditer(text):
        yield _unescaped(match[1]) if match[1] is not None else match[2] or "NULL"


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: found[1] or "'", text)


def _statement(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_STATEMENTS: Sequence[tuple[re.Pattern[str], Callable[..., Rows | None]]] = (
    (_statement(rf"CREATE (?:DATABASE|SCHEMA) (IF NOT EXISTS )?{_NAME}"), _create_schema),
    (_statement(rf"DROP (?:DATABASE|SCHEMA) (IF EXISTS )?{_NAME}"), _drop_schema),
    (_statement(rf"CREATE TABLE (IF NOT EXISTS )?{_TABLE} ?\((.+)\)"), _create_table),
    (_statement(rf"DROP TABLE (IF EXISTS )?{_TABLE}"), _drop_table),
    (_statement(rf"USE {_NAME}"), _use),
    (_statement(rf"CREATE (?:UNIQUE )?INDEX {_NAME_ALONE} ON {_TABLE} ?\(.+\)"), _about_table),
    (_statement(rf"ALTER TABLE {_TABLE} ADD (?:UNIQUE )?(?:INDEX|KEY) .+"), _about_table),
    (_statement(rf"ANALYZE TABLE {_TABLE}"), _about_table),
    (_statement(rf"TRUNCATE TABLE {_TABLE}"), lambda tables, *table: tables.delete(tables.table(*table))),
    (_statement(rf"SELECT ((?:{_LITERAL})(?: ?, ?(?:{_LITERAL}))*)"), _literals),
    (_statement("BEGIN|START TRANSACTION|COMMIT"), lambda _: None),
    (_statement(rf"(INSERT|REPLACE) INTO {_TABLE} ?((?:\([\w`, ]+\) ?)?VALUES.+)"), _insert),
    (_statement(_ASKED), _variable),
    (_statement(_MOVED), _set_variable),
    (_statement(rf"DELETE FROM {_TABLE}(?: WHERE \w+ ?= ?(.+))?"), _delete),  # noqa: S608  (a pattern)
    (_statement(rf"SELECT (\*|COUNT\(\*\)) FROM {_TABLE}"), _select),  # noqa: S608  (a pattern)
    (_statement("SHOW DATABASES"), _show),
    (_statement(f"SHOW TABLES FROM {_NAME}"), _show_tables),
    (_statement("SHOW MASTER STATUS"), lambda tables: [["Position"], [str(tables.now())]]),
)
