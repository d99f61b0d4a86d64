"""TiCDC's configuration file, and its settings by flags and environment (objects.md 4.7, 7.7). Pure."""

from apis import toml
from apis.accessor import component
from apis.tidbcluster import TidbCluster
from apis.toml import Table

_ELSEWHERE = frozenset({"tz", "gc-ttl", "log-level", "log-file"})
"""The keys that the script passes as flags or in the environment; if there are no others, there is no file (1.1)."""

_GC_TTL = 86400


def file(tc: TidbCluster) -> str:
    """The text of `ticdc.toml`; empty if there is none. Raises InvalidField; validation normally rejects it earlier."""
    tables = _tables(tc)
    rest = {key: value for key, value in tables.items() if key not in _ELSEWHERE}
    return "" if toml.same(rest, {}) else toml.dumps(tables)


def gc_ttl(tc: TidbCluster) -> int:
    """Seconds for which TiKV keeps data that TiCDC has not replicated yet."""
    given = _tables(tc).get("gc-ttl")
    return given if isinstance(given, int) and not isinstance(given, bool) else _GC_TTL


def log_file(tc: TidbCluster) -> str:
    """The path of the log file; empty for standard error."""
    return _text(tc, "log-file", "")


def log_level(tc: TidbCluster) -> str:
    """The log level."""
    return _text(tc, "log-level", "info")


def time_zone(tc: TidbCluster) -> str:
    """The time zone of the process."""
    return _text(tc, "tz", tc.spec.timezone or "UTC")


def _text(tc: TidbCluster, key: str, default: str) -> str:
    given = _tables(tc).get(key)
    return given if isinstance(given, str) else default


def _tables(tc: TidbCluster) -> Table:
    return component(tc, "ticdc").config_tables()
