"""The definitions that v1.6 installs and a take-over keeps (docs/migration.md), as far as statuses go.

Ours have a status subresource for each kind, and room for conditions in each status.
"""

from functools import cache

from apis.crd import KINDS, definition
from kube.objects import Json

_SUBRESOURCES = ("TidbDashboard", "TidbNGMonitoring")
_NO_CONDITIONS = ("BackupSchedule", "CompactBackup", "TidbDashboard", "TidbMonitor", "TidbNGMonitoring")


@cache
def definitions_of_v16() -> tuple[Json, ...]:
    """The definitions of all kinds."""
    found = [definition(kind, status_subresource=kind.name in _SUBRESOURCES) for kind in KINDS]
    for each in found:
        if each["spec"]["names"]["kind"] in _NO_CONDITIONS:
            schema = each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            del schema["properties"]["status"]["properties"]["conditions"]
    return tuple(found)
