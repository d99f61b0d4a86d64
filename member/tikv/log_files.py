"""Where TiKV's separate log files lie (objects.md 4.3)."""

import posixpath
from dataclasses import dataclass

from apis import images
from apis.accessor import component
from apis.component_specs import TiKVSpec
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.objects import volumes

_DATA_MOUNT = volumes.mount("tikv", "/var/lib/tikv")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file that a sidecar prints: the sidecar's name, the file, and the mount of its volume."""

    sidecar: str
    path: str
    mount: Json


def log_files(tc: TidbCluster, spec: TiKVSpec) -> list[LogFile]:
    """The log files that the user wants printed apart, in the order of their sidecars.

    Raises InvalidField when a file is to lie on a volume that does not exist, which validation finds first.
    """
    current = images.at_least(component(tc, "tikv").version, "v5.0.0")
    rocksdb = "rocksdb.info" if current else "db/LOG"
    raft = "raftdb.info" if current else "raft/LOG"
    files = []
    if spec.separate_rocks_db_log:
        field = "spec.tikv.rocksDBLogVolumeName"
        files.append(_log_file("rocksdblog", rocksdb, spec, spec.rocks_db_log_volume_name, field))
    if spec.separate_raft_log:
        field = "spec.tikv.raftLogVolumeName"
        files.append(_log_file("raftlog", raft, spec, spec.raft_log_volume_name, field))
    return files


def _log_file(sidecar: str, name: str, spec: TiKVSpec, volume: str, field: str) -> LogFile:
    mount = _DATA_MOUNT
    if volume:
        mount = volumes.find_mount("tikv", volume, spec.storage_volumes, spec.additional_volume_mounts, field)
    return LogFile(sidecar, posixpath.join(mount["mountPath"], name), mount)
