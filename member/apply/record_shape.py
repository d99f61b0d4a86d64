"""The shape of a record of the last write (objects.md 11.4), and the API server's defaults in live objects (11.7).

Anyone who may edit a StatefulSet can change its record; one with a different shape counts as no record.

The defaults only serve to distinguish the API server's additions from foreign edits. A default that is missing here
counts as an edit; undoing it does no harm, as the server adds it again.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.objects import Json
from ports.structs import convert


class _Shape(msgspec.Struct, rename="camel"):
    """A part of a record; fields that are not declared may have any value, as they are only compared."""


class _Named(_Shape):
    name: str


class _Container(_Named):
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Json] | None = None
    volume_mounts: list[_Named] | None = None


class _Selector(_Shape):
    match_labels: Json


class _Constraint(_Shape):
    label_selector: _Selector


class PodShape(_Shape):
    """The spec of a pod."""

    containers: list[_Container]
    init_containers: list[_Container] | None = None
    volumes: list[_Named] | None = None
    topology_spread_constraints: list[_Constraint] | None = None


class _Metadata(_Shape):
    annotations: dict[str, str] | None = None


class _Template(_Shape):
    spec: PodShape
    metadata: _Metadata | None = None


class _Claim(_Shape):
    metadata: _Named
    spec: Json


class _RollingUpdate(_Shape):
    partition: int = 0


class _Strategy(_Shape):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _Port(_Shape):
    port: int
    protocol: str = "TCP"


class _Keys(_Shape):
    labels: list[str] | None = None
    annotations: list[str] | None = None


class RecordShape(_Shape):
    """The spec of a StatefulSet or Service, and the keys of metadata that the user asked for."""

    template: _Template | None = None
    volume_claim_templates: list[_Claim] | None = None
    update_strategy: _Strategy | None = None
    ports: list[_Port] | None = None
    metadata: _Keys | None = None


def shaped_as(tree: object, shape: type[_Shape]) -> Json | None:
    """`tree` if it has this shape; else None."""
    try:
        convert(tree, shape)
    except msgspec.ValidationError:
        return None
    return tree if isinstance(tree, dict) else None


_CONSTANT: Mapping[str, Any] = {
    "apiVersion": "v1",
    "defaultMode": 420,
    "divisor": "0",
    "dnsPolicy": "ClusterFirst",
    "expirationSeconds": 3600,
    "failureThreshold": 3,
    "path": "/",
    "periodSeconds": 10,
    "procMount": "Default",
    "protocol": "TCP",
    "restartPolicy": "Always",
    "revisionHistoryLimit": 10,
    "schedulerName": "default-scheduler",
    "scheme": "HTTP",
    "successThreshold": 1,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "timeoutSeconds": 1,
    "volumeMode": "Filesystem",
    "whenDeleted": "Retain",
    "whenScaled": "Retain",
}

_DERIVED: Mapping[str, str] = {
    "hostPort": "containerPort",
    "requests": "limits",
    "serviceAccount": "serviceAccountName",
}
"""Fields whose default is the value of another field beside them."""

_PULLED: Mapping[str, str] = {"imagePullPolicy": "image", "pullPolicy": "reference"}
"""Fields whose default depends on the tag of the image in another field beside them."""

_OF_VOLUMES: Mapping[str, Json] = {
    "diskURI": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "gateway": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    "iqn": {"iscsiInterface": "default"},
    "monitors": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
}
"""Defaults in the source of a volume, by a field that only this type has. CephFS has the default user of RBD."""


_OF_PODS = ("restartPolicy", "terminationGracePeriodSeconds")
"""Fields with a default in pods only; in a container or a probe their absence means something else."""

_USERS_KEYS = ("annotations", "labels", "matchLabels", "nodeSelector", "options", "volumeAttributes")
"""Maps whose keys the user chooses; they are not fields."""


_WITH_DEFAULTS = frozenset({*_PULLED, *_DERIVED, *_CONSTANT, *(key for each in _OF_VOLUMES.values() for key in each)})
"""All fields with a known default."""


def is_default(key: str, value: Any, beside: Json) -> bool:
    """True if this value is the default of the field; `beside` is the tree that holds it."""
    if key in _PULLED:
        return bool(value == _pull_policy(str(beside.get(_PULLED[key]) or "")))
    if key in _DERIVED:
        return bool(value == beside.get(_DERIVED[key]))
    for mark, defaults in _OF_VOLUMES.items():
        if mark in beside and key in defaults:
            return bool(value == defaults[key])
    return key in _CONSTANT and bool(value == _CONSTANT[key])


def without_defaults(tree: Json) -> Json:
    """A pod template, or a part of it, without defaults; a field of which this is uncertain stays."""
    return {
        key: _bare(value) if isinstance(value, dict | list) and key not in _USERS_KEYS else value
        for key, value in tree.items()
        if key not in _WITH_DEFAULTS or not _is_added(key, value, tree)
    }


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return without_defaults(value)
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _is_added(key: str, value: Any, beside: Json) -> bool:
    if key in _OF_PODS and "containers" not in beside:
        return False
    # hostPort has a default only in pods on the host's network
    return key != "hostPort" and is_default(key, value, beside)


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"
