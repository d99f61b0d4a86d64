"""The Job of a CompactBackup (backup.md 6)."""

from msgspec import structs

from apis.accessor import find
from apis.compact_backups import CompactBackup
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from member.backups import environment, naming, pods
from member.backups.environment import Secrets
from member.backups.pods import ManagerSettings, Mounted, Pod
from member.labels import INSTANCE

TIKV_CTL_BIN = "/var/lib/kvctl-bin"

_INSTANCE = "Compact-Backup"
_TIKV_IMAGE = "pingcap/tikv"
_TOOLS = "tool-bin"


def compaction_job(compact: CompactBackup, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that has tikv-ctl compact a part of a log, in pods that are started again. Raises BadJob."""
    spec, meta = compact.spec, compact.metadata
    mounts = [{"name": _TOOLS, "mountPath": path} for path in (pods.BR_BIN, TIKV_CTL_BIN)]
    tool_volumes = map(Mounted, ({"name": _TOOLS, "emptyDir": {}}, None), mounts)
    made = Pod(
        container="backup-manager",
        args=["compact", f"--namespace={meta.namespace}", f"--resourceName={meta.name}"],
        env=environment.storage_env(spec, secrets, use_kms=spec.use_kms),
        mounted=[*tool_volumes, *pods.local_volume(spec)],
    )
    version, tikv = pods.tikv_version(tc), find(tc, "tikv")
    tikv_image = pods.tool_image(spec.tikv_image, tikv.image if tikv else _TIKV_IMAGE, version)
    tools = (
        pods.br(spec, version),
        pods.tool_container("tikv-ctl", tikv_image, "tikv-ctl", TIKV_CTL_BIN),
    )
    containers = [each | {"volumeMounts": mounts, "resources": spec.resources} for each in tools]
    pod = pods.pod_spec(spec, settings, made) | {"restartPolicy": "OnFailure", "initContainers": containers}
    labelled = structs.replace(meta, labels={**meta.labels, INSTANCE: _INSTANCE})
    return pods.job(labelled, compact.kind, naming.BACKUP, meta.name, pod, backoff_limit=spec.max_retry_times)
