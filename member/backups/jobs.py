"""The Jobs of a Backup, and the claim of an export (backup.md 3.9, 3.11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apis import images
from apis.accessor import find
from apis.backup_shared import JobSpec
from apis.backups import Backup
from apis.identity import tls_enabled
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from member.backups import environment, naming
from member.backups.environment import BadJob, Secrets
from member.labels import SKIP_TLS_WHEN_CONNECT_TIDB

BR_IMAGE = "pingcap/br"
BR_BIN = "/var/lib/br-bin"
DUMPLING_BIN = "/var/lib/dumpling-bin"
CLUSTER_TLS = "/var/lib/cluster-client-tls"
CLIENT_TLS = "/var/lib/tidb-client-tls"

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  (a directory)
_TOKEN_SECONDS = 3607


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """What the process was told: the image of `backup-manager`, its own time zone, its namespace if it has no other."""

    image: str = "pingcap/tidb-backup-manager:latest"
    time_zone: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class _Mounted:
    """A volume, and where the main container sees it."""

    volume: Json
    mount: Json


def snapshot_job(backup: Backup, tc: TidbCluster, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that has BR back a cluster up. Raises BadJob."""
    spec, meta = backup.spec, backup.metadata
    version = tikv_version(tc)
    args = ["backup", f"--namespace={meta.namespace}", f"--backupName={meta.name}"]
    args += [f"--tikvVersion={version}"] if version else []
    args += ["--mode=snapshot"]
    mounted = []
    if tls_enabled(tc):
        args.append("--cluster-tls=true")
        mounted.append(_secret("cluster-client-tls", f"{tc.metadata.name}-cluster-client-secret", CLUSTER_TLS))
    if spec.from_ is not None and _speaks_tls(tc):
        args.append("--client-tls=true")
        args += ["--skipClientCA=true"] if _skips_authority(tc) else []
        secret = spec.from_.tls_client_secret_name or f"{tc.metadata.name}-tidb-client-secret"
        mounted.append(_secret("tidb-client-tls", secret, CLIENT_TLS))
    mounted.append(_Mounted({"name": "br-bin", "emptyDir": {}}, {"name": "br-bin", "mountPath": BR_BIN}))
    mounted += _local(spec)
    tool = _tool("br", _tool_image(spec.tool_image, BR_IMAGE, version), "BR", BR_BIN)
    env = environment.password_env(spec.from_, secrets, use_kms=spec.use_kms)
    env += environment.storage_env(spec, secrets, use_kms=spec.use_kms)
    env.append({"name": "BR_LOG_TO_TERM", "value": "1"})
    pod = _pod(spec, settings, args, env, mounted, tool=tool)
    return _job(backup, naming.backup_job_name(meta.name), "backup", pod, backoff_limit=0)


def export_job(backup: Backup, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that has Dumpling export a database. Raises BadJob."""
    spec, meta = backup.spec, backup.metadata
    if spec.from_ is None or not (spec.s3 or spec.gcs):
        raise BadJob("UnsupportedStorageType", "an export needs spec.from, and spec.s3 or spec.gcs")
    kind, bucket = ("s3", spec.s3.bucket) if spec.s3 else ("gcs", spec.gcs.bucket if spec.gcs else "")
    args = ["export", f"--namespace={meta.namespace}", f"--backupName={meta.name}"]
    args += [f"--bucket={bucket}", f"--storageType={kind}"]
    mounted = []
    if spec.from_.tls_client_secret_name:
        args.append("--client-tls=true")
        mounted.append(_secret("tidb-client-tls", spec.from_.tls_client_secret_name, CLIENT_TLS))
    tool = None
    if spec.tool_image:
        mounted.append(
            _Mounted({"name": "dumpling-bin", "emptyDir": {}}, {"name": "dumpling-bin", "mountPath": DUMPLING_BIN})
        )
        tool = _tool("dumpling", spec.tool_image, "Dumpling", DUMPLING_BIN)
    claim = {"claimName": naming.claim_name(spec.from_)}
    mounted.append(
        _Mounted({"name": "backup", "persistentVolumeClaim": claim}, {"name": "backup", "mountPath": "/backup"})
    )
    env = environment.password_env(spec.from_, secrets, use_kms=spec.use_kms)
    env += environment.storage_env(spec, secrets, use_kms=spec.use_kms)
    pod = _pod(spec, settings, args, env, mounted, tool=tool)
    return _job(backup, naming.backup_job_name(meta.name), "backup", pod, backoff_limit=0)


def clean_job(backup: Backup, secrets: Secrets, settings: ManagerSettings) -> Json:
    """The Job that removes the files of a Backup. Raises BadJob."""
    spec, meta = backup.spec, backup.metadata
    args = ["clean", f"--namespace={meta.namespace}", f"--backupName={meta.name}"]
    env = environment.storage_env(spec, secrets, use_kms=spec.use_kms)
    pod = _pod(spec, settings, args, env, _local(spec))
    return _job(backup, naming.clean_job_name(meta.name), "clean", pod, backoff_limit=6)


def export_claim(backup: Backup) -> Json:
    """The claim of the volume on which an export is archived; nobody owns it, since exports share it."""
    spec, meta = backup.spec, backup.metadata
    if spec.from_ is None:
        raise BadJob("CreatePVCFailed", "an export needs spec.from")
    claim: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": spec.storage_size}}}
    if spec.storage_class_name is not None:
        claim["storageClassName"] = spec.storage_class_name
    if spec.volume_attributes_class_name is not None:
        claim["volumeAttributesClassName"] = spec.volume_attributes_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": naming.claim_name(spec.from_),
            "namespace": meta.namespace,
            "labels": naming.claim_labels(meta),
        },
        "spec": claim,
    }


def tikv_version(tc: TidbCluster) -> str:
    """The version of TiKV; empty when the cluster has none of its own."""
    tikv = find(tc, "tikv")
    return images.version_of(tikv.image) if tikv else ""


def _speaks_tls(tc: TidbCluster) -> bool:
    """Whether SQL clients use TLS."""
    tidb = tc.spec.tidb
    enabled = tidb is not None and tidb.tls_client is not None and tidb.tls_client.enabled
    return enabled and SKIP_TLS_WHEN_CONNECT_TIDB not in tc.metadata.annotations


def _skips_authority(tc: TidbCluster) -> bool:
    tidb = tc.spec.tidb
    return bool(tidb and tidb.tls_client and tidb.tls_client.skip_internal_client_ca)


def _tool_image(chosen: str, usual: str, version: str) -> str:
    """The image of a tool: without a tag of its own it has that of TiKV. A registry's port is no tag."""
    reference = images.parse(chosen or usual)
    if reference.tag or reference.digest:
        return str(reference)
    return images.with_version(str(reference), version)


def _tool(name: str, image: str, title: str, directory: str) -> Json:
    """The init container that copies a program to where the main container finds it."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c"],
        "args": [f"cp /{name} {directory}/{name}; echo '{title} copy finished'"],
        "volumeMounts": [{"name": f"{name}-bin", "mountPath": directory}],
    }


def _secret(name: str, secret: str, path: str) -> _Mounted:
    volume = {"name": name, "secret": {"secretName": secret}}
    return _Mounted(volume, {"name": name, "mountPath": path, "readOnly": True})


def _local(spec: JobSpec) -> list[_Mounted]:
    return [_Mounted(spec.local.volume, spec.local.volume_mount)] if spec.local else []


def _pod(
    spec: JobSpec,
    settings: ManagerSettings,
    args: Sequence[str],
    env: Sequence[Json],
    mounted: Sequence[_Mounted],
    *,
    tool: Json | None = None,
) -> Json:
    """The spec of the pod; what the user gave for all Jobs is laid on it."""
    volumes = [each.volume for each in mounted] + spec.additional_volumes
    mounts = [each.mount for each in mounted] + spec.additional_volume_mounts
    if spec.automount_service_account_token is False:
        volumes.append(_token_volume())
        mounts.append({"name": "kube-api-access", "mountPath": _TOKEN_PATH, "readOnly": True})
    main: Json = {
        "name": "backup",
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "args": list(args),
        "env": environment.with_users(env, spec.env, settings.time_zone),
        "volumeMounts": mounts,
        "resources": spec.resources,
    }
    pod: Json = {
        "serviceAccountName": spec.service_account or naming.SERVICE_ACCOUNT,
        "restartPolicy": "Never",
        "containers": [{key: value for key, value in main.items() if value or key == "resources"}],
        "volumes": volumes,
        "tolerations": spec.tolerations,
        "imagePullSecrets": spec.image_pull_secrets,
        "affinity": spec.affinity,
        "securityContext": spec.pod_security_context,
        "priorityClassName": spec.priority_class_name,
    }
    if tool is not None:
        pod["initContainers"] = [tool | {"resources": spec.resources}]
    given = {key: value for key, value in pod.items() if value}
    if spec.automount_service_account_token is not None:
        given["automountServiceAccountToken"] = spec.automount_service_account_token
    return given


def _token_volume() -> Json:
    """What Kubernetes would have mounted: the program needs the API, whatever the pod is otherwise denied."""
    token = {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
    return {"name": "kube-api-access", "projected": {"sources": [token, authority, namespace]}}


def _job(backup: Backup, name: str, component: str, pod: Json, *, backoff_limit: int) -> Json:
    meta = backup.metadata
    labels = naming.job_labels(meta, component)
    template: Json = {"metadata": {"labels": labels}, "spec": pod}
    if annotations := naming.job_annotations(meta):
        template["metadata"]["annotations"] = annotations
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": naming.owned(meta, backup.api_version, backup.kind, name, labels),
        "spec": {"backoffLimit": backoff_limit, "template": template},
    }


def finished(job: Mapping[str, object]) -> str:
    """How a Job has ended, `Complete` or `Failed`; empty while it goes on."""
    return next((kind for kind in ("Complete", "Failed") if condition_of_job(job, kind)), "")


def condition_of_job(job: Mapping[str, object], kind: str) -> Json:
    """The condition of a Job that is True; empty when there is none."""
    status = job.get("status")
    conditions: Sequence[Json] = (status.get("conditions") or ()) if isinstance(status, dict) else ()
    return next((each for each in conditions if each.get("type") == kind and each.get("status") == "True"), {})
