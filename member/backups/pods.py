"""The common parts of the pods of all Jobs (backup.md 3.11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apis import images
from apis.accessor import find
from apis.backup_shared import ArchiveSpec, JobSpec, TiDBAccessConfig
from apis.identity import skips_sql_authority, speaks_sql_tls, tls_enabled
from apis.shared import Json, Metadata
from apis.storage_providers import StorageProvider
from apis.tidbcluster import TidbCluster
from member.backups import environment, naming
from member.backups.environment import BadJob, Secrets
from member.naming import cluster_client_secret

API_VERSION = "pingcap.com/v1alpha1"
MANAGER_IMAGE = "tidb-operator-py-backup-manager:latest"
"""The Dockerfile's stage `backup-manager`."""
BR_IMAGE = "pingcap/br"
BR_BIN = "/var/lib/br-bin"

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  (a directory)
_TOKEN_SECONDS = 3607
_KEYS = ("ca.crt", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Settings of the process: the image of `backup-manager`, its time zone, and its namespace if it has only one."""

    image: str = MANAGER_IMAGE
    time_zone: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume and its mount in the main container; the volume is None if another entry already has it."""

    volume: Json | None
    mount: Json


def tikv_version(tc: TidbCluster) -> str:
    """The version of TiKV; empty when the cluster has none of its own."""
    tikv = find(tc, "tikv")
    return images.version_of(tikv.image) if tikv else ""


def tool_image(chosen: str, usual: str, version: str) -> str:
    """The image of a tool; without a tag it gets TiKV's. The port of a registry is no tag."""
    reference = images.parse(chosen or usual)
    if reference.tag or reference.digest:
        return str(reference)
    return images.with_version(str(reference), version)


def br(spec: JobSpec, version: str) -> Json:
    """The init container that provides BR, in TiKV's version unless the user sets another."""
    return tool_container("br", tool_image(spec.tool_image, BR_IMAGE, version), "BR", BR_BIN)


def tool_container(name: str, image: str, title: str, directory: str, program: str = "") -> Json:
    """The init container that copies a program to a volume of the main container; `name` is the default name."""
    program = program or name
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c"],
        "args": [f"cp /{program} {directory}/{program}; echo '{title} copy finished'"],
        "volumeMounts": [{"name": f"{name}-bin", "mountPath": directory}],
    }


def secret_volume(name: str, secret: str, path: str) -> Mounted:
    """A Secret as files."""
    volume = {"name": name, "secret": {"secretName": secret}}
    return Mounted(volume, {"name": name, "mountPath": path, "readOnly": True})


def local_volume(spec: StorageProvider) -> list[Mounted]:
    """The volume with the files, if they are on a volume."""
    return [Mounted(spec.local.volume, spec.local.volume_mount)] if spec.local else []


@dataclass(frozen=True, kw_only=True, slots=True)
class Pod:
    """The differences between the pods of Jobs: the main container, its volumes, and the init container with a tool."""

    container: str
    args: Sequence[str]
    env: Sequence[Json]
    mounted: Sequence[Mounted] = ()
    tool: Json | None = None
    additional: bool = True


def pod_spec(spec: JobSpec, settings: ManagerSettings, made: Pod) -> Json:
    """The spec of the pod, overlaid with the user's settings for all Jobs; volumes are optional."""
    volumes = [mounted.volume for mounted in made.mounted if mounted.volume]
    mounts = [mounted.mount for mounted in made.mounted]
    if made.additional:
        volumes += spec.additional_volumes
        mounts += spec.additional_volume_mounts
    if spec.automount_service_account_token is False:
        volumes.append(_token_volume())
        mounts.append({"name": "kube-api-access", "mountPath": _TOKEN_PATH, "readOnly": True})
    main: Json = {
        "name": made.container,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "args": list(made.args),
        "env": environment.with_users(made.env, spec.env, settings.time_zone),
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
    if made.tool is not None:
        pod["initContainers"] = [made.tool | {"resources": spec.resources}]
    given = {key: value for key, value in pod.items() if value}
    if spec.automount_service_account_token is not None:
        given["automountServiceAccountToken"] = spec.automount_service_account_token
    return given


def _token_volume() -> Json:
    """The token that Kubernetes would mount: the program needs the API even if the pod has no token by default."""
    token = {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}}
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
    return {"name": "kube-api-access", "projected": {"sources": [token, authority, namespace]}}


def job(
    meta: Metadata, kind: str, family: str, name: str, pod: Json, *, backoff_limit: int, component: str = ""
) -> Json:
    """A Job of an object of a kind; `component` is the component of its labels, by default its family."""
    labels = naming.job_labels(meta, family, component or family)
    template: Json = {"metadata": {"labels": labels}, "spec": pod}
    if annotations := naming.job_annotations(meta):
        template["metadata"]["annotations"] = annotations
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": naming.owned(meta, API_VERSION, kind, name, labels),
        "spec": {"backoffLimit": backoff_limit, "template": template},
    }


def claim(meta: Metadata, family: str, spec: ArchiveSpec, access: TiDBAccessConfig) -> Json:
    """The claim for an archive's volume. It has no owner, because exports and imports share it."""
    wanted: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": spec.storage_size}}}
    if spec.storage_class_name is not None:
        wanted["storageClassName"] = spec.storage_class_name
    if spec.volume_attributes_class_name is not None:
        wanted["volumeAttributesClassName"] = spec.volume_attributes_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": naming.claim_name(family, access),
            "namespace": meta.namespace,
            "labels": naming.claim_labels(meta, family),
        },
        "spec": wanted,
    }


def secret_names(storage: StorageProvider, access: TiDBAccessConfig | None, tc: TidbCluster | None) -> list[str]:
    """The Secrets that a Job refers to: for storage, SQL and certificates."""
    of_tls = [certificate.secret for certificate in certificates(tc, access)]
    return [*environment.secret_names(storage, access), *of_tls]


def tls(tc: TidbCluster | None, access: TiDBAccessConfig | None, secrets: Secrets) -> tuple[list[str], list[Mounted]]:
    """The arguments and volumes for TLS; see `clients`. Raises BadJob."""
    found = certificates(tc, access)
    require_certificates(found, secrets)
    mounted = [secret_volume(certificate.volume, certificate.secret, certificate.path) for certificate in found]
    return [word for certificate in found for word in certificate.args], mounted


def claim_volume(family: str, access: TiDBAccessConfig) -> Mounted:
    """The volume with an archive."""
    claimed = {"name": family, "persistentVolumeClaim": {"claimName": naming.claim_name(family, access)}}
    return Mounted(claimed, {"name": family, "mountPath": "/backup"})


def program_volume(name: str, directory: str) -> Mounted:
    """The volume to which a tool is copied for the main container."""
    return Mounted({"name": f"{name}-bin", "emptyDir": {}}, {"name": f"{name}-bin", "mountPath": directory})


def finished(job: Mapping[str, object]) -> str:
    """The end of a Job, `Complete` or `Failed`; empty while it runs."""
    return next((kind for kind in ("Complete", "Failed") if condition_of_job(job, kind)), "")


def condition_of_job(job: Mapping[str, object], kind: str) -> Json:
    """The condition of a Job that is True; empty if none is."""
    status = job.get("status")
    conditions: Sequence[Json] = (status.get("conditions") or ()) if isinstance(status, dict) else ()
    return next(
        (condition for condition in conditions if condition.get("type") == kind and condition.get("status") == "True"),
        {},
    )


@dataclass(frozen=True, slots=True)
class Certificate:
    """A TLS client certificate: the program's arguments, the Secret, its volume and its mount path."""

    args: Sequence[str]
    secret: str
    volume: str
    path: str
    keys: Sequence[str] = _KEYS


def certificates(tc: TidbCluster | None, access: TiDBAccessConfig | None) -> list[Certificate]:
    """The certificates of a Job.

    With a cluster and `access`: for components and SQL; without a cluster only for SQL.
    """
    found: list[Certificate] = []
    if tc is not None and tls_enabled(tc):
        found.append(_certificate("cluster-client-tls", cluster_client_secret(tc), "--cluster-tls=true"))
    if access is None:
        return found
    secret = access.tls_client_secret_name or ""
    if tc is None and secret:
        found.append(_certificate("tidb-client-tls", secret, "--client-tls=true"))
    elif tc is not None and speaks_sql_tls(tc):
        secret = secret or f"{tc.metadata.name}-tidb-client-secret"
        trusts_any = ["--skipClientCA=true"] if skips_sql_authority(tc) else []
        found.append(_certificate("tidb-client-tls", secret, "--client-tls=true", *trusts_any))
    return found


def require_certificates(found: Sequence[Certificate], secrets: Secrets) -> None:
    """Check that the Secrets exist and have all necessary keys (backup.md 3.11). Raises BadJob.

    A pod with a missing Secret would wait without any report.
    """
    for certificate in found:
        held = secrets.get(certificate.secret)
        if held is None:
            keys = ", ".join(certificate.keys)
            message = f"Secret {certificate.secret} does not exist; create it in this namespace with {keys}"
            raise BadJob("GetTLSSecretFailed", f"{message}: the certificate of a client")
        if lacks := [key for key in certificate.keys if not held.get(key)]:
            message = (
                f"Secret {certificate.secret} lacks the key {' and '.join(lacks)} of a client's certificate; add it"
            )
            raise BadJob("tlsKeyNotExist", message)


def _certificate(volume: str, secret: str, *args: str) -> Certificate:
    """A certificate; if the client trusts any server, it needs no CA."""
    keys = _KEYS[1:] if "--skipClientCA=true" in args else _KEYS
    return Certificate(args, secret, volume, f"/var/lib/{volume}", keys)
