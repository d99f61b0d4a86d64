"""The Jobs of a Restore, and the claim of an import (backup.md 4.5)."""

from apis.restores import Restore, RestoreSpec
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from member.backups import naming, pods
from member.backups.environment import BadJob, Secrets, job_env
from member.backups.pods import ManagerSettings, Mounted, Pod

_LIGHTNING_BIN = "/var/lib/lightning-bin"
_GRACE = 10
"""Seconds that BR has to end before it is killed."""


def restore_job(restore: Restore, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that restores a cluster with BR. Raises BadJob."""
    return _br_job(restore, tc, secrets, settings, prune=False)


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


def _br_job(restore: Restore, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings, *, prune: bool) -> Json:
    spec, meta = restore.spec, restore.metadata
    version = pods.tikv_version(tc)
    tls_args, tls_volumes = pods.tls(tc, spec.to, secrets)
    args = ["restore", f"--namespace={meta.namespace}", f"--restoreName={meta.name}"]
    args += ["--abort=true"] if prune else []
    args += [f"--tikvVersion={version}"] if version else []
    args += _mode(restore)
    made = Pod(
        container="restoreprune-manager" if prune else "restore",
        args=[*args, *tls_args],
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
    for each in below:
        if all(each.mount != other.mount for other in found):
            is_there = any(each.volume == other.volume for other in found)
            found.append(Mounted(None if is_there else each.volume, each.mount))
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
