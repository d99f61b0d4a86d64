"""Volumes of pods: claims from templates, and mounts (objects.md 3.7, 5)."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeGuard

from apis.component_specs import StorageClaim
from apis.problem import InvalidField
from apis.shared import Quantity, StorageVolume
from kube.objects import Json
from ports import quantity

ANNOTATIONS_VOLUME: Json = {
    "name": "annotations",
    "downwardAPI": {"items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]},
}
_LIFETIME = 3607
"""Seconds, as in Kubernetes: slightly above an hour, which identifies the requester."""
_NAME = "kube-api-access"
_GIB = 1024**3
_MIB = 1024**2


class HasStorage(Protocol):
    """A component with claims: their classes."""

    storage_class_name: str | None
    volume_attributes_class_name: str | None


class HasStorageVolumes(HasStorage, Protocol):
    """A component with a data claim and further volumes."""

    storage_volumes: list[StorageVolume]


class HasStorageClaims(Protocol):
    """A component whose claims are a single list."""

    storage_claims: list[StorageClaim]


# `isinstance` of a protocol inspects all base classes on each call: 5 % of an idle reconcile


def has_storage(spec: object) -> TypeGuard[HasStorage]:
    """True if a component has claims."""
    return hasattr(spec, "storage_class_name") and hasattr(spec, "volume_attributes_class_name")


def has_storage_claims(spec: object) -> TypeGuard[HasStorageClaims]:
    """True if the claims of a component are a single list."""
    return hasattr(spec, "storage_claims")


def _has_storage_volumes(spec: HasStorage) -> TypeGuard[HasStorageVolumes]:
    return hasattr(spec, "storage_volumes")


def mount(name: str, path: str, *, read_only: bool = False) -> Json:
    """A volume mount; `readOnly` is set only if true, as the API server stores it."""
    return {"name": name, "mountPath": path, "readOnly": True} if read_only else {"name": name, "mountPath": path}


def config_map_volume(name: str, config_map: str, key: str, path: str) -> Json:
    """A volume with one key of a ConfigMap as one file."""
    return {"name": name, "configMap": {"name": config_map, "items": [{"key": key, "path": path}]}}


def secret_volume(name: str, secret: str) -> Json:
    """A volume with a Secret as a directory."""
    return {"name": name, "secret": {"secretName": secret}}


def claim_template(
    name: str, size: Quantity | None, storage_class: str | None, attributes_class: str | None = None
) -> Json:
    """A volume claim template. A null class means the default class; a null size is omitted."""
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {}}
    if size is not None:
        spec["resources"] = {"requests": {"storage": size}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if attributes_class is not None:
        spec["volumeAttributesClassName"] = attributes_class
    return {"metadata": {"name": name}, "spec": spec}


def data_claim(name: str, size: Quantity | None, spec: HasStorage) -> Json:
    """The claim template of the data volume."""
    return claim_template(name, size, spec.storage_class_name, spec.volume_attributes_class_name)


def storage_claims(spec: HasStorageClaims) -> list[Json]:
    """The claim templates of storageClaims, which are numbered: `data0`, `data1` (objects.md 4.6)."""
    return [
        claim_template(
            storage_claim_name(index),
            ((each.resources or {}).get("requests") or {}).get("storage"),
            each.storage_class_name,
            each.volume_attributes_class_name,
        )
        for index, each in enumerate(spec.storage_claims)
    ]


def storage_claim_name(index: int) -> str:
    """The volume name of an entry of storageClaims."""
    return f"data{index}"


def storage_volume_name(component: str, name: str) -> str:
    """The template name of a storageVolumes entry: `<component>-<name>`."""
    return f"{component}-{name}"


def storage_volume_claims(component: str, spec: HasStorage) -> list[Json]:
    """The claim templates of storageVolumes. Without a class of their own they have the component's."""
    if not _has_storage_volumes(spec):
        return []
    return [
        claim_template(
            storage_volume_name(component, volume.name),
            volume.storage_size,
            volume.storage_class_name if volume.storage_class_name is not None else spec.storage_class_name,
            volume.volume_attributes_class_name
            if volume.volume_attributes_class_name is not None
            else spec.volume_attributes_class_name,
        )
        for volume in spec.storage_volumes
    ]


def storage_volume_mounts(component: str, volumes: Sequence[StorageVolume]) -> list[Json]:
    """The mounts of the storageVolumes that have a path."""
    return [mount(storage_volume_name(component, v.name), v.mount_path) for v in volumes if v.mount_path]


def find_mount(
    component: str, volume: str, storage: Sequence[StorageVolume], additional: Sequence[Json], field: str
) -> Json:
    """The mount of a volume that the user names for log files, from storageVolumes or the additional mounts.

    Raises InvalidField, at `field`, if there is none.
    """
    name = storage_volume_name(component, volume)
    for entry in storage_volume_mounts(component, storage):
        if entry["name"] == name:
            return entry
    for entry in additional:
        if entry["name"] == volume:
            return entry
    message = f"no volume of this name is mounted; add it to spec.{component}.storageVolumes with a mountPath"
    raise InvalidField(field, volume, message)


def start_script(component: str) -> str:
    """The path of a component's start script in its container."""
    return f"/usr/local/bin/{component}_start_script.sh"


def config_volumes(component: str, config_map: str) -> list[Json]:
    """The volumes with configuration and start script, both from the component's ConfigMap."""
    return [
        config_map_volume("config", config_map, "config-file", f"{component}.toml"),
        config_map_volume("startup-script", config_map, "startup-script", f"{component}_start_script.sh"),
    ]


def config_mounts(component: str) -> list[Json]:
    """The mounts of `config_volumes`."""
    return [
        mount("config", f"/etc/{component}", read_only=True),
        mount("startup-script", "/usr/local/bin", read_only=True),
    ]


ANNOTATIONS_MOUNT = mount("annotations", "/etc/podinfo", read_only=True)
"""Start scripts read the pod's annotation `runmode` from here."""


def tls_directory(name: str) -> str:
    """The mount directory of the certificate volume `name`, e.g. `/var/lib/pd-tls` for `pd-tls`."""
    return f"/var/lib/{name}"


def certificate_files(name: str) -> tuple[str, str, str]:
    """The CA, certificate and key files of the certificate volume `name`."""
    directory = tls_directory(name)
    return f"{directory}/ca.crt", f"{directory}/tls.crt", f"{directory}/tls.key"


def certificate_mounts(secrets: Mapping[str, str]) -> list[Json]:
    """The mounts of certificate volumes. `secrets` maps volume names to Secrets."""
    return [mount(name, tls_directory(name), read_only=True) for name in secrets]


def secret_mounts(stateful_set: Json) -> frozenset[str]:
    """The Secrets that the pods of a StatefulSet mount as volumes."""
    listed = stateful_set["spec"]["template"]["spec"].get("volumes") or ()
    return frozenset(each["secret"]["secretName"] for each in listed if "secret" in each)


def certificate_volumes(secrets: Mapping[str, str]) -> list[Json]:
    """The certificate volumes. `secrets` maps volume names to Secrets."""
    return [secret_volume(name, secret) for name, secret in secrets.items()]


TOKEN_MOUNT = mount(_NAME, "/var/run/secrets/kubernetes.io/serviceaccount", read_only=True)
"""The path where programs expect the token."""


def token_volume() -> Json:
    """The volume that Kubernetes would mount by default: token, CA and namespace."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[Json] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _LIFETIME}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": _NAME, "projected": {"sources": sources}}


def capacity(limits: Mapping[str, Quantity]) -> str:
    """The storage limit in the notation of TiKV and TiFlash, whose GB and MB are binary; `0` means no limit."""
    limit = quantity.parse(limits.get("storage", 0))
    if limit != int(limit):
        return "0"
    size = int(limit)
    if size == 0:
        return "0"
    return f"{size // _GIB}GB" if size % _GIB == 0 else f"{size // _MIB}MB"
