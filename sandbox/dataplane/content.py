"""The content of a cluster's regions: keys and values, with the versions that TiKV keeps.

Replication is not modelled: there is one copy, and while a region has no leader its content cannot be read. Each table
has its own region, as TiDB splits them.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

_META = b"m"
_TABLE = b"t"
_LOGICAL_BITS = 18


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from `start` up to but excluding `end`; an empty `end` means no limit."""

    start: bytes
    end: bytes

    def __contains__(self, key: bytes) -> bool:
        """True if a key is in the range."""
        return self.start <= key and (not self.end or key < self.end)


def region_range(index: int, count: int) -> KeyRange:
    """The keys of a region: the first has those before all tables, each other region has a table."""
    start = table_prefix(index) if index else b""
    return KeyRange(start, table_prefix(index + 1) if index + 1 < count else b"")


def table_prefix(table: int) -> bytes:
    """The prefix of all keys of a table."""
    return _TABLE + table.to_bytes(8, "big")


@dataclass(slots=True)
class Content:
    """All keys of a cluster. A version is a TSO; a value of None is a deletion."""

    last: int = 0
    """The newest allocated timestamp."""
    _keys: list[bytes] = field(default_factory=list)
    _versions: dict[bytes, list[tuple[int, bytes | None]]] = field(default_factory=dict)

    def timestamp(self, wall: float) -> int:
        """A TSO for a time in seconds, later than all earlier ones."""
        self.last = max(int(wall * 1000) << _LOGICAL_BITS, self.last + 1)
        return self.last

    def put(self, key: bytes, value: bytes | None, version: int) -> None:
        """Write a key, or delete it."""
        if key not in self._versions:
            insort(self._keys, key)
            self._versions[key] = []
        self._versions[key].append((version, value))

    def get(self, key: bytes, version: int | None = None) -> bytes | None:
        """The value of a key at a version (default: newest); None if there is none."""
        for at, value in reversed(self._versions.get(key, ())):
            if version is None or at <= version:
                return value
        return None

    def changes(self, after: int, until: int) -> list[tuple[int, bytes, bytes | None]]:
        """The writes after one TSO up to another, in order: version, key, value."""
        found = ((at, key, value) for key, versions in self._versions.items() for at, value in versions)
        return sorted((each for each in found if after < each[0] <= until), key=lambda each: each[0])

    def scan(self, keys: KeyRange, version: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The keys of a range in order, with their values at a version."""
        for key in self._keys:
            if key in keys and (value := self.get(key, version)) is not None:
                yield key, value


def meta_key(*names: str) -> bytes:
    """The key of TiDB's record of a schema, or of a table in it."""
    return _META + "/".join(names).encode()


META = KeyRange(_META, _TABLE)
"""The range of the schemas."""
