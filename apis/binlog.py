"""TiDB Binlog, which v8.4.0 removed: later versions of TiDB write none, and have no Pump."""

from apis import images

REMOVED_IN = "v8.4.0"


def is_gone(version: str) -> bool:
    """True if a version is known to have no binlogs; False if it cannot be parsed."""
    return images.order(version) != images.NEWEST and images.at_least(version, REMOVED_IN)


def goes(running: str, wanted: str) -> bool:
    """True if an upgrade loses it."""
    return is_gone(wanted) and not images.at_least(running, REMOVED_IN)
