"""Volume attributes classes of claims: the external resizer, and CSI drivers that change volumes in place.

The sandbox's own provisioner does not: like the sidecar of such a driver, the resizer ignores claims of it.
"""

import json
from collections.abc import Hashable, Mapping

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from sandbox.cluster import Cluster
from sandbox.owners import is_deleted
from sandbox.timings import Timings

PARAMETERS: Mapping[str, frozenset[str]] = {
    "ebs.csi.aws.com": frozenset({"type", "iops", "throughput"}),
    "disk.csi.azure.com": frozenset({"skuName", "DiskIOPSReadWrite", "DiskMBpsReadWrite"}),
    "pd.csi.storage.gke.io": frozenset({"iops", "throughput"}),
}
"""The parameters that a driver takes, by its name."""
ATTRIBUTES = "sandbox.local/attributes"
"""The annotation of a volume with the parameters that its driver has set, as JSON."""
_MODIFYING, _ERROR = "ModifyingVolume", "ModifyVolumeError"
_IN_PROGRESS, _PENDING, _INFEASIBLE = "InProgress", "Pending", "Infeasible"


class Resizer:
    """Brings volumes to the class in the spec of their claims, and reports the progress in their status."""

    name = "resizer"
    watches: tuple[Hashable, ...] = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES)

    def __init__(self, cluster: Cluster, timings: Timings) -> None:
        self._cluster = cluster
        self._timings = timings
        self._due: dict[str, tuple[str, float]] = {}
        """The class that a volume is changing to and the end of the change, by the UID of the claim."""
        self._changed: dict[str, float] = {}
        """The time of the last change of a volume, by its name."""

    def step(self) -> float | None:
        """Begin and end changes that are due; return when the next one is."""
        dues = [self._sync(claim) for claim in self._cluster.list(PERSISTENT_VOLUME_CLAIMS)]
        return min((due for due in dues if due is not None), default=None)

    def _sync(self, claim: Json) -> float | None:
        status, wanted = claim.get("status") or {}, claim["spec"].get("volumeAttributesClassName") or ""
        progress: Json = status.get("modifyVolumeStatus") or {}
        if is_deleted(claim) or status.get("phase") != "Bound":
            return None
        if not progress and wanted == (status.get("currentVolumeAttributesClassName") or ""):
            return None
        volume = self._cluster.get(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"])
        driver = ((volume or {}).get("spec") or {}).get("csi", {}).get("driver")
        if volume is None or driver not in PARAMETERS:
            return None
        is_in_progress = progress.get("status") == _IN_PROGRESS
        target = progress["targetVolumeAttributesClassName"] if is_in_progress and not wanted else wanted
        if not target or (
            progress.get("status") == _INFEASIBLE and progress["targetVolumeAttributesClassName"] == wanted
        ):
            return None
        return self._change(claim, volume, target)

    def _change(self, claim: Json, volume: Json, target: str) -> float | None:
        stored, progress = claim["status"], claim["status"].get("modifyVolumeStatus") or {}
        attributes = self._cluster.get(VOLUME_ATTRIBUTES_CLASSES, "", target)
        if attributes is None:
            self._report(claim, stored | {"modifyVolumeStatus": progress | {"status": _PENDING}})
            return None
        begun, due = self._due.get(claim["metadata"]["uid"], ("", 0.0))
        running = {"status": _IN_PROGRESS, "targetVolumeAttributesClassName": target}
        if begun != target or progress != running:
            due = self._cluster.clock.now() + self._timings.volume_modification
            if self._report(claim, _with(stored | {"modifyVolumeStatus": running}, _MODIFYING, "")):
                self._due[claim["metadata"]["uid"]] = (target, due)
            return due
        return due if self._cluster.clock.now() < due else self._ask_driver(claim, volume, attributes)

    def _ask_driver(self, claim: Json, volume: Json, attributes: Json) -> float | None:
        """Have the driver change the volume, and report its answer."""
        uid, stored, now = claim["metadata"]["uid"], claim["status"], self._cluster.clock.now()
        driver, name = volume["spec"]["csi"]["driver"], attributes["metadata"]["name"]
        if unknown := sorted(attributes["parameters"].keys() - PARAMETERS[driver]):
            infeasible = {"status": _INFEASIBLE, "targetVolumeAttributesClassName": name}
            message = f"parameters contain unknown parameter: {unknown[0]}"
            self._report(claim, _with(stored | {"modifyVolumeStatus": infeasible}, _ERROR, message))
            return None
        again = self._changed.get(_name(volume), -self._timings.volume_modification_pause)
        again += self._timings.volume_modification_pause
        if now < again:
            message = "volume has been modified too recently"
            self._report(claim, _with(stored, _ERROR, message))
            return again
        has = json.loads(volume["metadata"]["annotations"].get(ATTRIBUTES, "{}")) | attributes["parameters"]
        marks = {"metadata": {"annotations": {ATTRIBUTES: json.dumps(has)}}}
        if self._cluster.patch(PERSISTENT_VOLUMES, volume, marks | {"spec": {"volumeAttributesClassName": name}}):
            self._changed[_name(volume)] = now
            self._due.pop(uid, None)
            self._report(claim, _completed(stored) | {"currentVolumeAttributesClassName": name})
        return None

    def _report(self, claim: Json, status: Json) -> bool:
        """True if the API server has taken the status."""
        return self._cluster.set_status(PERSISTENT_VOLUME_CLAIMS, claim, status) is not None


def _with(status: Json, type_: str, message: str) -> Json:
    """The status with a condition."""
    others = [each for each in status.get("conditions") or () if each["type"] != type_]
    return status | {"conditions": [*others, {"type": type_, "status": "True", "message": message}]}


def _completed(status: Json) -> Json:
    left = [each for each in status.get("conditions") or () if each["type"] not in (_MODIFYING, _ERROR)]
    kept = {key: value for key, value in status.items() if key not in ("modifyVolumeStatus", "conditions")}
    return kept | ({"conditions": left} if left else {})


def _name(volume: Json) -> str:
    name: str = volume["metadata"]["name"]
    return name
