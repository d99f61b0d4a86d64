"""The Jobs of a Backup, and the claim of an export (backup.md 3.9, 3.11)."""

from collections.abc import Sequence

from apis import log_backups
from apis.backups import Backup
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from member.backups import naming, pods
from member.backups.environment import BadJob, Secrets, job_env
from member.backups.pods import ManagerSettings, Pod

_DUMPLING_BIN = "/var/lib/dumpling-bin"


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
    made = Pod(
        container="backup",
        args=[*args, *mode, *tls_args],
        env=[*job_env(spec, spec.from_, secrets), {"name": "BR_LOG_TO_TERM", "value": "1"}],
        mounted=[*tls_volumes, pods.program_volume("br", pods.BR_BIN), *pods.local_volume(spec)],
        tool=pods.br(spec, version),
    )
    return pods.pod_spec(spec, settings, made)


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
    made = Pod(container="backup", args=args, env=job_env(spec, spec.from_, secrets), mounted=mounted, tool=tool)
    return _job(backup, naming.backup_job_name(meta.name), pods.pod_spec(spec, settings, made))


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
