"""Volumes of claims: binding, provisioning, expansion, reclaiming.

In front of a real control plane only the provisioning half runs, because the real controller binds.
"""

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from ports import quantity
from sandbox.cluster import Cluster
from sandbox.controllers.volume_attributes import ATTRIBUTES, PARAMETERS
from sandbox.owners import is_deleted
from sandbox.timings import Timings

PROVISIONER = "sandbox.local/disks"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes an administrator creates."""
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_PROVISIONER_NAMES = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
_PROTECTION = "kubernetes.io/pvc-protection"
_VOLUME_PROTECTION = "kubernetes.io/pv-protection"
_WAITING_FOR = "Waiting for a volume to be created by the external provisioner"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def standard_storage_class() -> Json:
    """The default class: provisions on the node of the scheduled pod, and allows expansion."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {_DEFAULT_CLASS: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


@dataclass(frozen=True, slots=True)
class _Settled:
    """A claim without pending work, with its class and its volume, each by key."""

    claim: Json
    class_key: str
    storage_class: Json | None
    volume_key: str
    volume: Json | None

    def lasts(self, classes: Mapping[str, Json], volumes: Mapping[str, Json]) -> bool:
        """True if class and volume are unchanged."""
        return classes.get(self.class_key) is self.storage_class and volumes.get(self.volume_key) is self.volume


def _settled(claim: Json, classes: Mapping[str, Json], volumes: Mapping[str, Json]) -> _Settled:
    spec = claim["spec"]
    class_key = f"/{spec.get('storageClassName') or ''}"
    volume_key = f"/{spec.get('volumeName') or _name(claim)}"
    return _Settled(claim, class_key, classes.get(class_key), volume_key, volumes.get(volume_key))


class Provisioner:
    """Provisions a volume for each claim of this provisioner's class once its node is chosen, and expands volumes."""

    name = "provisioner"
    watches: tuple[Hashable, ...] = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES)

    def __init__(self, cluster: Cluster, timings: Timings) -> None:
        self._cluster = cluster
        self._timings = timings
        self.names = {PROVISIONER, *PARAMETERS}
        """The provisioners that it acts for."""
        self._seen: dict[str, float] = {}
        self._settled: dict[int, _Settled] = {}
        """Claims without pending work, by the identities of their trees."""
        self._kept: dict[str, Json] = {}
        """The volumes, by key, that need not be reclaimed."""

    def step(self) -> float | None:
        """Provision and expand what is due; return when the next volume is."""
        classes, volumes = self._cluster.by_key(STORAGE_CLASSES), self._cluster.by_key(PERSISTENT_VOLUMES)
        before, self._settled = self._settled, {}
        due = []
        for claim in self._cluster.list(PERSISTENT_VOLUME_CLAIMS):
            settled = before.get(id(claim))
            if settled is None or not settled.lasts(classes, volumes):
                settled = _settled(claim, classes, volumes)
                time = None if is_deleted(claim) else self._sync(claim, settled.storage_class)
                if time is not None:
                    due.append(time)
                    continue
            self._settled[id(claim)] = settled
        for key in sorted(key for key, volume in volumes.items() if self._kept.get(key) is not volume):
            self._reclaim(volumes[key])
        self._kept = volumes
        return min(due, default=None)

    def _sync(self, claim: Json, storage_class: Json | None) -> float | None:
        if storage_class is None or storage_class.get("provisioner") not in self.names:
            return None
        if claim["spec"].get("volumeName"):
            self._expand(claim)
            return None
        meta = claim["metadata"]
        node = (meta.get("annotations") or {}).get(_SELECTED_NODE, "")
        if not node and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
            return None
        due = self._seen.setdefault(meta["uid"], self._cluster.clock.now() + self._timings.volume_provision)
        if self._cluster.clock.now() < due:
            return due
        if self._cluster.get(PERSISTENT_VOLUMES, "", _name(claim)) is None:
            self._cluster.create(PERSISTENT_VOLUMES, _volume(claim, storage_class, node))
        return None

    def _expand(self, claim: Json) -> None:
        """Raise the capacity of volume and claim to the request."""
        volume = self._cluster.get(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"])
        if volume is None or claim.get("status", {}).get("phase") != "Bound":
            return
        wanted = (claim["spec"].get("resources", {}).get("requests") or {}).get("storage", "0")
        if quantity.parse(volume["spec"]["capacity"]["storage"]) < quantity.parse(wanted):
            self._cluster.patch(PERSISTENT_VOLUMES, volume, {"spec": {"capacity": {"storage": _provided(wanted)}}})
        before: Json = claim.get("status", {})
        if quantity.parse((before.get("capacity") or {}).get("storage", "0")) < quantity.parse(wanted):
            self._cluster.set_status(
                PERSISTENT_VOLUME_CLAIMS, claim, before | {"capacity": {"storage": _provided(wanted)}}
            )

    def _reclaim(self, volume: Json) -> None:
        """Delete a released volume if its policy says so."""
        if volume.get("status", {}).get("phase") != "Released" or is_deleted(volume):
            return
        is_ours = (volume["metadata"].get("annotations") or {}).get(_PROVISIONED_BY) in self.names
        if is_ours and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._cluster.delete(PERSISTENT_VOLUMES, volume)


class VolumeBinder:
    """Binds claims and volumes, sets the default class and releases volumes (the real controller's half)."""

    name = "volume-binder"
    watches: tuple[Hashable, ...] = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, PODS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._refused: set[str] = set()

    def step(self) -> float | None:
        """Bind all claims that can be bound."""
        for claim in self._cluster.list(PERSISTENT_VOLUME_CLAIMS):
            if is_deleted(claim):
                self._unprotect(claim)
            else:
                self._sync(claim)
        for volume in self._cluster.list(PERSISTENT_VOLUMES):
            self._sync_volume(volume)
            self._unprotect_volume(volume)
        return None

    def _sync(self, claim: Json) -> None:
        if claim["spec"].get("storageClassName") is None:
            default = self._default_class()
            if default is not None:
                named = {"spec": {"storageClassName": default}}
                self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, claim, named)
            return
        name = claim["spec"].get("volumeName")
        if not name:
            volume = self._volume_for(claim)
            if volume is not None:
                marks = {_BIND_COMPLETED: "yes", _BOUND_BY_CONTROLLER: "yes"}
                named = {"volumeName": volume["metadata"]["name"]}
                bound = {"metadata": {"annotations": marks}, "spec": named}
                self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, claim, bound)
            else:
                self._ask_provisioner(claim)
            return
        volume = self._cluster.get(PERSISTENT_VOLUMES, "", name)
        before: Json = claim.get("status", {})
        if volume is None or before.get("phase") == "Bound":
            return
        status = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
        self._cluster.set_status(PERSISTENT_VOLUME_CLAIMS, claim, before | status)

    def _ask_provisioner(self, claim: Json) -> None:
        """Annotate a claim that needs a volume now with its provisioner, once."""
        storage_class = self._cluster.get(STORAGE_CLASSES, "", claim["spec"]["storageClassName"])
        annotations = claim["metadata"].get("annotations") or {}
        if storage_class is None:
            self._refuse(claim)
            return
        if _PROVISIONER_NAMES[0] in annotations:
            return
        if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not annotations.get(_SELECTED_NODE):
            return
        provisioner = storage_class["provisioner"]
        named = {"metadata": {"annotations": dict.fromkeys(_PROVISIONER_NAMES, provisioner)}}
        if self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, claim, named) is not None:
            self._cluster.event(claim, "Normal", "ExternalProvisioning", f"{_WAITING_FOR} '{provisioner}'")

    def _refuse(self, claim: Json) -> None:
        """Warn once about a class that does not exist; an empty name requests no class."""
        name, uid = claim["spec"]["storageClassName"], claim["metadata"]["uid"]
        if name and uid not in self._refused:
            self._refused.add(uid)
            what = f'storageclass.storage.k8s.io "{name}" not found'
            self._cluster.event(claim, "Warning", "ProvisioningFailed", what)

    def _default_class(self) -> str | None:
        for storage_class in self._cluster.list(STORAGE_CLASSES):
            if (storage_class["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true":
                name: str = storage_class["metadata"]["name"]
                return name
        return None

    def _volume_for(self, claim: Json) -> Json | None:
        """The volume that names this claim."""
        meta = claim["metadata"]
        for volume in self._cluster.list(PERSISTENT_VOLUMES):
            reference = volume["spec"].get("claimRef") or {}
            if (reference.get("namespace"), reference.get("name")) != (meta["namespace"], meta["name"]):
                continue
            if reference.get("uid", meta["uid"]) == meta["uid"]:
                return volume
        return None

    def _sync_volume(self, volume: Json) -> None:
        reference = volume["spec"].get("claimRef")
        before: Json = volume.get("status", {})
        phase = "Available"
        if reference:
            claim = self._cluster.get(PERSISTENT_VOLUME_CLAIMS, reference["namespace"], reference["name"])
            there = claim is not None and reference.get("uid", claim["metadata"]["uid"]) == claim["metadata"]["uid"]
            gone = not there and before.get("phase") in ("Bound", "Released")
            phase = "Released" if gone else "Bound" if there else before.get("phase", "Available")
        if before.get("phase") != phase:
            self._cluster.set_status(PERSISTENT_VOLUMES, volume, before | {"phase": phase})

    def _unprotect_volume(self, volume: Json) -> None:
        """Release a deleted volume that no claim uses."""
        finalizers = volume["metadata"].get("finalizers") or []
        if is_deleted(volume) and _VOLUME_PROTECTION in finalizers and volume["status"]["phase"] != "Bound":
            left = [each for each in finalizers if each != _VOLUME_PROTECTION]
            self._cluster.patch(PERSISTENT_VOLUMES, volume, {"metadata": {"finalizers": left}})

    def _unprotect(self, claim: Json) -> None:
        """Release a deleted claim that no pod uses."""
        finalizers = claim["metadata"].get("finalizers") or []
        if _PROTECTION not in finalizers:
            return
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        used = any(
            volume.get("persistentVolumeClaim", {}).get("claimName") == name
            for pod in self._cluster.list(PODS, namespace)
            if pod["spec"].get("nodeName")
            for volume in pod["spec"].get("volumes") or ()
        )
        if not used:
            left = [each for each in finalizers if each != _PROTECTION]
            self._cluster.patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"finalizers": left}})


def _provided(wanted: str) -> str:
    """A cloud's size for a request: whole gibibytes, in its own notation."""
    return f"{math.ceil(quantity.parse(wanted) / 2**30)}Gi"


def _name(claim: Json) -> str:
    """The name of the volume for a claim."""
    return f"pvc-{claim['metadata']['uid']}"


def _volume(claim: Json, storage_class: Json, node: str) -> Json:
    meta = claim["metadata"]
    wanted = (claim["spec"].get("resources", {}).get("requests") or {}).get("storage", "1Gi")
    spec: Json = {
        "capacity": {"storage": _provided(wanted)},
        "accessModes": claim["spec"]["accessModes"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }
    provisioner, annotations = storage_class["provisioner"], {_PROVISIONED_BY: storage_class["provisioner"]}
    if provisioner in PARAMETERS:
        spec["csi"] = {"driver": provisioner, "volumeHandle": f"vol-{meta['uid']}"}
        annotations[ATTRIBUTES] = json.dumps(storage_class.get("parameters") or {})
    else:
        spec["hostPath"] = {"path": f"/sandbox/{meta['uid']}"}
    if node:
        on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": _name(claim), "annotations": annotations},
        "spec": spec,
    }
