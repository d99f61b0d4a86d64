"""Where TiDB's slow log lies (objects.md 4.4)."""

import posixpath
from dataclasses import dataclass

from apis.component_specs import TiDBSpec
from kube.objects import Json
from member.objects import volumes

_VOLUME = "slowlog"
_MOUNT = volumes.mount(_VOLUME, "/var/log/tidb")


@dataclass(frozen=True, slots=True)
class SlowLog:
    """The file a sidecar prints, the mount of its volume, and the volume when it is made for this purpose."""

    path: str
    mount: Json
    own_volume: Json | None


def slow_log(spec: TiDBSpec) -> SlowLog | None:
    """The separate slow log; None when TiDB writes it into its general log.

    Raises InvalidField when it is to lie on a volume that does not exist, which validation finds first.
    """
    if spec.separate_slow_log is False:
        return None
    name = spec.slow_log_volume_name
    if not name:
        return SlowLog(f"{_MOUNT['mountPath']}/slowlog", _MOUNT, {"name": _VOLUME, "emptyDir": {}})
    field = "spec.tidb.slowLogVolumeName"
    mount = volumes.find_mount("tidb", name, spec.storage_volumes, spec.additional_volume_mounts, field)
    return SlowLog(posixpath.join(mount["mountPath"], name), mount, None)
