"""The annotations by which users command single pods, and their values (lifecycle.md 13)."""

from collections.abc import Mapping
from typing import Final

EVICT_LEADER: Final = "tidb.pingcap.com/evict-leader"
EVICT_LEADER_FOR_RESIZE: Final = "tidb.pingcap.com/evict-leader-for-resize"
PD_TRANSFER_LEADER: Final = "tidb.pingcap.com/pd-transfer-leader"
TIDB_GRACEFUL_SHUTDOWN: Final = "tidb.pingcap.com/tidb-graceful-shutdown"
REPLACE_VOLUME: Final = "tidb.pingcap.com/replace-volume"
REPLACEMENT_BEGUN: Final = "tidb.pingcap.com/volume-replacement-begun"
"""The operator's record: a replacement begun by `REPLACE_VOLUME` continues, even if the command is withdrawn."""

NONE: Final = "none"
"""Drain the pod, and keep it."""

DELETE_POD: Final = "delete-pod"
"""Drain the pod, then restart it."""

PodCommands = Mapping[str, frozenset[str]]
"""Annotations with their values, in order of precedence: the first one applies."""

_NONE_OR_DELETE = frozenset({NONE, DELETE_POD})
_TRUE = frozenset({"true"})

OF_PD: PodCommands = {REPLACE_VOLUME: _TRUE, REPLACEMENT_BEGUN: _TRUE, PD_TRANSFER_LEADER: _NONE_OR_DELETE}
OF_TIFLASH: PodCommands = {REPLACE_VOLUME: _TRUE, REPLACEMENT_BEGUN: _TRUE}
OF_TIKV: PodCommands = {
    REPLACE_VOLUME: _TRUE,
    REPLACEMENT_BEGUN: _TRUE,
    EVICT_LEADER: _NONE_OR_DELETE,
    EVICT_LEADER_FOR_RESIZE: _NONE_OR_DELETE,
}
OF_TIDB: PodCommands = {REPLACE_VOLUME: _TRUE, TIDB_GRACEFUL_SHUTDOWN: _NONE_OR_DELETE}


def replaces_volumes(annotations: Mapping[str, str]) -> bool:
    """True if a command to replace the volumes of a pod is set or under way."""
    return REPLACE_VOLUME in annotations or REPLACEMENT_BEGUN in annotations
