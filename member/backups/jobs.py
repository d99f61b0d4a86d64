"""The Jobs of Backups, Restores and CompactBackups, and the claims of exports and imports (backup.md 3.9, 4.5, 6)."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from apis import log_backups
from apis.accessor import find
from apis.backups import Backup
from apis.compact_backups import SHARDED, CompactBackup
from apis.restores import Restore, RestoreSpec
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from member.backups import environment, naming, pods
from member.backups.environment import BadJob, Secrets, job_env
from member.backups.pods import ManagerSettings, Mounted, Pod
from member.labels import INSTANCE

_DUMPLING_BIN = "/var/lib/dumpling-bin"
TIKV_CTL_BIN = "/var/lib/kvctl-bin"
_INSTANCE = "Compact-Backup"
_TIKV_IMAGE = "pingcap/tikv"
_TOOLS = "tool-bin"
_LIGHTNING_BIN = "/var/lib/lightning-bin"
_PHASES: Mapping[str, int] = {naming.SNAPSHOT_RESTORE: 1, naming.LOG_RESTORE: 2}
"""The steps of a replication restore, as BR counts them."""
_GRACE = 10
"""Seconds that BR has to end before it is killed."""


def snapshot_job(backup: Backup, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that makes a snapshot backup of a cluster with BR. Raises BadJob."""
    pod = _br_pod(backup, tc, secrets, settings, ["--mode=snapshot"])
    return _job(backup, naming.backup_job_name(backup.metadata.name), pod)


def log_job(backup: Backup, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings, command: str) -> Json:
    """The Job for a subcommand of a log backup. Raises BadJob."""
    pod = _br_pod(backup, tc, secrets, settings, log_arguments(backup, command))
    return _job(backup, naming.log_job_name(backup.metadata.name, command), pod)


def stop_job(backup: Backup, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that stops the log backup of a deleted Backup. Raises BadJob."""
    pod = _br_pod(backup, tc, secrets, settings, log_arguments(backup, log_backups.STOP))
    return _job(backup, naming.stop_job_name(backup.metadata.name), pod)


def log_arguments(backup: Backup, command: str) -> list[str]:
    """The program's arguments for a subcommand."""
    spec = backup.spec
    given = {
        log_backups.START: ("commit-ts", spec.commit_ts),
        log_backups.TRUNCATE: ("truncate-until", spec.log_truncate_until),
    }
    flag, value = given.get(command, ("", ""))
    return ["--mode=log", f"--subcommand={command}", *([f"--{flag}={value}"] if value else [])]


def _br_pod(backup: Backup, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings, mode: Sequence[str]) -> Json:
    spec, meta = backup.spec, backup.metadata
    version = pods.tikv_version(tc)
    tls_args, tls_volumes = pods.tls(tc, spec.from_, secrets)
    args = ["backup", f"--namespace={meta.namespace}", f"--backupName={meta.name}"]
    args += [f"--tikvVersion={version}"] if version else []
    pod = Pod(
        container="backup",
        args=[*args, *mode, *tls_args],
        env=[*job_env(spec, spec.from_, secrets), {"name": "BR_LOG_TO_TERM", "value": "1"}],
        mounted=[*tls_volumes, pods.program_volume("br", pods.BR_BIN), *pods.local_volume(spec)],
        tool=pods.br(spec, version),
    )
    return pods.pod_spec(spec, settings, pod)


def export_job(backup: Backup, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that exports a database with Dumpling. Raises BadJob."""
    spec, meta = backup.spec, backup.metadata
    if spec.from_ is None or not (spec.s3 or spec.gcs):
        raise BadJob("UnsupportedStorageType", "an export needs spec.from, and spec.s3 or spec.gcs")
    kind, bucket = ("s3", spec.s3.bucket) if spec.s3 else ("gcs", spec.gcs.bucket if spec.gcs else "")
    args = ["export", f"--namespace={meta.namespace}", f"--backupName={meta.name}"]
    tls_args, mounted = pods.tls(None, spec.from_, secrets)
    args += [f"--bucket={bucket}", f"--storageType={kind}", *tls_args]
    tool = None
    if spec.tool_image:
        mounted.append(pods.program_volume("dumpling", _DUMPLING_BIN))
        tool = pods.tool_container("dumpling", spec.tool_image, "Dumpling", _DUMPLING_BIN)
    mounted.append(pods.claim_volume(naming.BACKUP, spec.from_))
    pod = Pod(container="backup", args=args, env=job_env(spec, spec.from_, secrets), mounted=mounted, tool=tool)
    return _job(backup, naming.backup_job_name(meta.name), pods.pod_spec(spec, settings, pod))


def clean_job(backup: Backup, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that removes the files of a Backup. Raises BadJob."""
    spec, meta = backup.spec, backup.metadata
    made = Pod(
        container="backup",
        args=["clean", f"--namespace={meta.namespace}", f"--backupName={meta.name}"],
        env=job_env(spec, None, secrets),
        mounted=pods.local_volume(spec),
    )
    pod = pods.pod_spec(spec, settings, made)
    name = naming.clean_job_name(meta.name)
    return pods.job(meta, backup.kind, naming.BACKUP, name, pod, backoff_limit=6, component="clean")


def export_claim(backup: Backup) -> Json:
    """The claim for the volume with an export's archive. Raises BadJob."""
    if backup.spec.from_ is None:
        raise BadJob("CreatePVCFailed", "an export needs spec.from")
    return pods.claim(backup.metadata, naming.BACKUP, backup.spec, backup.spec.from_)


def _job(backup: Backup, name: str, pod: Json) -> Json:
    return pods.job(backup.metadata, backup.kind, naming.BACKUP, name, pod, backoff_limit=0)


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
    job = pods.job(labelled, compact.kind, naming.BACKUP, meta.name, pod, backoff_limit=spec.max_retry_times)
    return _sharded(compact, job) if spec.mode == SHARDED else job


def _sharded(compact: CompactBackup, job: Json) -> Json:
    """The Job with a pod for each shard: all run at once, and a failed one stops no other (CMP-7)."""
    spec, labels, template = compact.spec, naming.sharded_labels(compact.metadata), job["spec"]["template"]
    count = spec.shard_count or 1
    shards = {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "maxFailedIndexes": count,
        "backoffLimitPerIndex": spec.max_retry_times,
        "template": template
        | {
            "metadata": template["metadata"] | {"labels": labels},
            "spec": template["spec"] | {"restartPolicy": "Never"},
        },
    }
    return job | {"metadata": job["metadata"] | {"labels": labels}, "spec": shards}


def restore_job(restore: Restore, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that restores a cluster with BR. Raises BadJob."""
    return _br_job(restore, tc, secrets, settings, prune=False)


def step_job(restore: Restore, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings, step: str) -> Json:
    """The Job of a step of a replication restore (RPL-10). Raises BadJob."""
    meta, phase = restore.metadata, _PHASES[step]
    labels = meta.labels | {naming.STEP_LABEL: step, naming.UID_LABEL: meta.uid}
    labelled = structs.replace(restore, metadata=structs.replace(meta, labels=labels))
    job = _br_job(labelled, tc, secrets, settings, prune=False, more=[f"--replicationPhase={phase}"])
    job["metadata"]["name"] = naming.step_job_name(meta.name, step)
    return job


def job_names(restore: Restore) -> list[str]:
    """The names of the Jobs that write into the cluster, except the pruning one."""
    name = restore.metadata.name
    if restore.spec.is_replication:
        return [naming.step_job_name(name, step) for step in _PHASES]
    return [naming.restore_job_name(name)]


def prune_job(restore: Restore, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that removes the remains of a failed restore with BR. Raises BadJob."""
    return _br_job(restore, tc, secrets, settings, prune=True)


def import_job(restore: Restore, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that imports an archive with TiDB Lightning. Raises BadJob."""
    spec, meta = restore.spec, restore.metadata
    if spec.to is None:
        raise BadJob("UnsupportedStorageType", "an import needs spec.to")
    args = ["import", f"--namespace={meta.namespace}", f"--restoreName={meta.name}"]
    tls_args, mounted = pods.tls(None, spec.to, secrets)
    args += [f"--backupPath={_archive(restore)}", *tls_args]
    tool = None
    if spec.tool_image:
        mounted.append(pods.program_volume("lightning", _LIGHTNING_BIN))
        tool = pods.tool_container("lightning", spec.tool_image, "Lightning", _LIGHTNING_BIN, "tidb-lightning")
    mounted.append(pods.claim_volume(naming.RESTORE, spec.to))
    made = Pod(container="restore", args=args, env=job_env(spec, spec.to, secrets), mounted=mounted, tool=tool)
    pod = pods.pod_spec(spec, settings, made)
    return pods.job(meta, restore.kind, naming.RESTORE, naming.restore_job_name(meta.name), pod, backoff_limit=0)


def import_claim(restore: Restore) -> Json:
    """The claim for the volume to which an archive is unpacked. Raises BadJob."""
    if restore.spec.to is None:
        raise BadJob("CreatePVCFailed", "an import needs spec.to")
    return pods.claim(restore.metadata, naming.RESTORE, restore.spec, restore.spec.to)


def _br_job(
    restore: Restore,
    tc: TidbCluster,
    secrets: Secrets,
    settings: ManagerSettings,
    *,
    prune: bool,
    more: Sequence[str] = (),
) -> Json:
    spec, meta = restore.spec, restore.metadata
    version = pods.tikv_version(tc)
    tls_args, tls_volumes = pods.tls(tc, spec.to, secrets)
    args = ["restore", f"--namespace={meta.namespace}", f"--restoreName={meta.name}"]
    args += ["--abort=true"] if prune else []
    args += [f"--tikvVersion={version}"] if version else []
    args += _mode(restore)
    made = Pod(
        container="restoreprune-manager" if prune else "restore",
        args=[*args, *more, *tls_args],
        env=[*job_env(spec, spec.to, secrets), {"name": "BR_LOG_TO_TERM", "value": "1"}],
        mounted=[*tls_volumes, pods.program_volume("br", pods.BR_BIN), *_local_volumes(spec)],
        tool=pods.br(spec, version),
        additional=not prune,
    )
    pod = pods.pod_spec(spec, settings, made) | {"terminationGracePeriodSeconds": _GRACE}
    name = naming.prune_job_name(meta.name) if prune else naming.restore_job_name(meta.name)
    return pods.job(meta, restore.kind, naming.RESTORE, name, pod, backoff_limit=spec.backoff_limit)


def _local_volumes(spec: RestoreSpec) -> list[Mounted]:
    """The volumes of the backup and of the snapshot that a log restore starts from; v1.6 omits the second."""
    found = pods.local_volume(spec)
    below = pods.local_volume(spec.pitr_full_backup_storage_provider) if spec.restore_mode == "pitr" else []
    for mounted in below:
        if all(mounted.mount != other.mount for other in found):
            is_there = any(mounted.volume == other.volume for other in found)
            found.append(Mounted(None if is_there else mounted.volume, mounted.mount))
    return found


def _mode(restore: Restore) -> list[str]:
    spec = restore.spec
    if spec.restore_mode != "pitr":
        return ["--mode=snapshot"]
    return ["--mode=pitr", *([f"--pitrRestoredTs={spec.pitr_restored_ts}"] if spec.pitr_restored_ts else [])]


def _archive(restore: Restore) -> str:
    """The URL of the archive to import. Raises BadJob."""
    spec = restore.spec
    scheme, path = ("s3://", spec.s3.path) if spec.s3 else ("gcs://", spec.gcs.path if spec.gcs else "")
    if not path:
        raise BadJob("UnsupportedStorageType", "an import needs the path of an archive, in spec.s3 or spec.gcs")
    return path if path.startswith(scheme) else f"{scheme}{path}"
