"""BR's command line. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from sandbox.dataplane.tables import Table

_LOGICAL_BITS = 18


@dataclass(frozen=True, slots=True)
class Request:
    """Sub-commands, e.g. `backup full`; options by name (the last one counts); table filters."""

    words: tuple[str, ...]
    options: Mapping[str, str]
    filters: tuple[str, ...] = ()

    def option(self, name: str) -> str:
        """The value of an option, or empty."""
        return self.options.get(name, "")

    @property
    def title(self) -> str:
        """The title of progress messages."""
        verb, scope = self.words[0].title(), self.words[-1]
        return f"{ {'db': 'Database', 'table': 'Table'}.get(scope, 'Full') } {verb}".strip()

    def means(self, schema: str, table: str = "") -> bool:
        """True if the filters include a table or, without a table, might include one of the schema."""
        if self.filters:
            return self._passes(schema, table)
        return self.option("db") in ("", schema) and (not table or self.option("table") in ("", table))

    def means_table(self, table: Table) -> bool:
        """True if the filters include a table."""
        return self.means(table.schema, table.name)

    def _passes(self, schema: str, table: str) -> bool:
        """The result of the last matching filter; `!` excludes."""
        for pattern in reversed(self.filters):
            of_schema, _, of_table = pattern.removeprefix("!").partition(".")
            if _matches(schema, of_schema) and (not table or _matches(table, of_table)):
                return not pattern.startswith("!")
        return False


def _matches(name: str, pattern: str) -> bool:
    """True if a part of a filter (`a*`, or `/^a.*$/`) matches a name."""
    is_regex = len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")
    return bool(re.search(pattern[1:-1], name)) if is_regex else fnmatchcase(name, pattern)


def moment(text: str) -> int:
    """A TSO, or a time with its zone, as a TSO; 0 for an empty text. Raises ValueError."""
    if not text or text.isdecimal():
        return int(text or 0)
    return int(datetime.fromisoformat(text).timestamp() * 1000) << _LOGICAL_BITS


def parse(arguments: Sequence[str]) -> Request:
    """Parse a command line, e.g. `backup full --pd=… --filter 'a.*'`."""
    words: list[str] = []
    options: dict[str, str] = {}
    filters: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            words.append(argument)
            continue
        name, given, value = argument.lstrip("-").partition("=")
        if name in ("filter", "f"):
            filters.append(value if given else next(rest, ""))
        else:
            options[name] = value if given else "true"
    return Request(tuple(words), options, tuple(filters))
