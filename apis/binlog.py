"""TiDB Binlog, which v8.4.0 has removed: TiDB writes none from then on, and there is no Pump of such a version."""

from apis import images

REMOVED_IN = "v8.4.0"


def is_gone(version: str) -> bool:
    """True if a version is known to be without; of one that is no number nobody knows."""
    return images.order(version) != images.NEWEST and images.at_least(version, REMOVED_IN)


def goes(running: str, wanted: str) -> bool:
    """True if an upgrade loses it."""
    return is_gone(wanted) and not images.at_least(running, REMOVED_IN)
