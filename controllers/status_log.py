"""Log lines about a newly written status of a cluster: failovers, and changes of Ready."""

from collections.abc import Iterator

import structlog

from controllers.conditions import READY
from kube.objects import Json, condition_of

_log = structlog.get_logger(__name__)


def log_news(old: Json, new: Json) -> None:
    """Log each failover that begins or ends, and a change of Ready."""
    before, now = dict(_failures(old)), dict(_failures(new))
    for (component, key), pod in now.items():
        if (component, key) not in before:
            _log.warning("failover recorded", component=component, pod=pod, lost=key)
    for (component, key), pod in before.items():
        if (component, key) not in now:
            _log.info("failover ended", component=component, pod=pod, lost=key)
    ready = _ready(new)
    if ready.get("status") != _ready(old).get("status"):
        _log.info("Ready changed", status=ready.get("status"), reason=ready.get("reason"), message=ready.get("message"))


def _failures(status: Json) -> Iterator[tuple[tuple[str, str], str]]:
    """The failure records: component, member or store, and pod."""
    for component, part in status.items():
        if not isinstance(part, dict):
            continue
        for records in (part.get("failureMembers"), part.get("failureStores")):
            for key, record in (records or {}).items():
                yield (component, key), record.get("podName", "")


def _ready(status: Json) -> Json:
    return condition_of(status.get("conditions") or [], READY)
