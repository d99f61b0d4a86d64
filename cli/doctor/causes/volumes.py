"""Volume claims that have no volume, or have lost it (scheduler-deployment.md 13.1, 13.2)."""

from collections.abc import Iterator
from datetime import timedelta

from cli.doctor.facts import Facts, field_of, is_deleted, is_true, name_of
from cli.doctor.finding import Cause, Severity, Sign
from kube.objects import Json
from kube.resources import NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES
from ports.quantity import parse

_PATIENCE = timedelta(minutes=3)
"""How long a provisioner may take for a volume."""

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_HOSTNAME = "kubernetes.io/hostname"


def _pending(facts: Facts) -> Iterator[Json]:
    for claim in facts.claims:
        if (claim.get("status") or {}).get("phase", "Pending") == "Pending" and not is_deleted(claim):
            yield claim


def _claim(tree: Json) -> str:
    return f"PersistentVolumeClaim {name_of(tree)}"


def _class_of(facts: Facts, claim: Json) -> Json:
    """The storage class of a claim; empty if it does not exist."""
    named = claim["spec"].get("storageClassName")
    return next((storage_class for storage_class in facts.all(STORAGE_CLASSES) if name_of(storage_class) == named), {})


def _without_class(facts: Facts) -> Iterator[Sign]:
    for each in _pending(facts):
        named = each["spec"].get("storageClassName")
        if named and facts.knows(STORAGE_CLASSES) and not _class_of(facts, each):
            there = ", ".join(sorted(facts.names(STORAGE_CLASSES))) or "none"
            message = f"the storage class does not exist; there are: {there}"
            yield Sign(_claim(each), message, field_of(facts, each, "storageClassName"), named)


def _without_default(facts: Facts) -> Iterator[Sign]:
    marked = [
        (storage_class["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS)
        for storage_class in facts.all(STORAGE_CLASSES)
    ]
    for each in _pending(facts):
        unnamed = each["spec"].get("storageClassName") is None and not each["spec"].get("volumeName")
        if unnamed and facts.knows(STORAGE_CLASSES) and "true" not in marked:
            message = "names no storage class, and no class is the default"
            yield Sign(_claim(each), message, field_of(facts, each, "storageClassName"))


def _refused(facts: Facts) -> Iterator[Sign]:
    for each in _pending(facts):
        events = facts.events(each, "PersistentVolumeClaim", "ProvisioningFailed")
        if events and _class_of(facts, each):
            named = str(each["spec"].get("storageClassName"))
            yield Sign(
                _claim(each),
                f"the provisioner can't make the volume: {events[-1].message.strip()}",
                field_of(facts, each, "storageClassName"),
                named,
            )


def _without_provisioner(facts: Facts) -> Iterator[Sign]:
    for each in _pending(facts):
        found = _class_of(facts, each)
        provisioner = found.get("provisioner", "")
        waits = found.get("volumeBindingMode") == "WaitForFirstConsumer"
        asked = not waits or _SELECTED_NODE in (each["metadata"].get("annotations") or {})
        late = facts.lasts(each["metadata"].get("creationTimestamp"), _PATIENCE)
        silent = not facts.events(each, "PersistentVolumeClaim", "ProvisioningFailed")
        if provisioner and provisioner != _NO_PROVISIONER and asked and late and silent:
            message = f"the provisioner {provisioner} does not make a volume"
            yield Sign(_claim(each), message, field_of(facts, each, "storageClassName"), name_of(found))


def _without_volumes(facts: Facts) -> Iterator[Sign]:
    for each in _pending(facts):
        found = _class_of(facts, each)
        if found.get("provisioner") != _NO_PROVISIONER or not facts.knows(PERSISTENT_VOLUMES):
            continue
        wanted = str(((each["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))
        free = [volume for volume in facts.all(PERSISTENT_VOLUMES) if _is_free(volume, name_of(found), wanted)]
        if not free:
            message = f"no PersistentVolume of the class {name_of(found)} is free and has {wanted}"
            yield Sign(_claim(each), message, field_of(facts, each, "requests.storage"), wanted)


def _is_free(volume: Json, storage_class: str, wanted: str) -> bool:
    spec, phase = volume["spec"], (volume.get("status") or {}).get("phase")
    size = str((spec.get("capacity") or {}).get("storage", "0"))
    return phase == "Available" and spec.get("storageClassName") == storage_class and parse(size) >= parse(wanted)


def _lost(facts: Facts) -> Iterator[Sign]:
    for claim in facts.claims:
        if (claim.get("status") or {}).get("phase") == "Lost":
            volume = str(claim["spec"].get("volumeName", ""))
            yield Sign(_claim(claim), "its volume no longer exists", "spec.volumeName", volume)


def _of_lost_nodes(facts: Facts) -> Iterator[Sign]:
    """Local volumes whose only node is gone or silent."""
    volumes = {name_of(each): each for each in facts.all(PERSISTENT_VOLUMES)}
    for claim in facts.claims:
        volume = volumes.get(str(claim["spec"].get("volumeName", "")), {})
        nodes = _nodes_of(volume)
        if not nodes or not facts.knows(NODES) or is_deleted(claim):
            continue
        if not any(is_true(facts.nodes[name], "Ready") for name in nodes if name in facts.nodes):
            what = "is not Ready" if any(name in facts.nodes for name in nodes) else "no longer exists"
            message = f"its volume can be reached from one node alone, which {what}"
            yield Sign(_claim(claim), message, "PersistentVolume.spec.nodeAffinity", ", ".join(nodes))


def _nodes_of(volume: Json) -> tuple[str, ...]:
    """The hosts that can reach a volume; empty if it is not bound to hosts."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    terms = [term.get("matchExpressions") or () for term in required.get("nodeSelectorTerms") or ()]
    values = (each["values"] for term in terms for each in term if each["key"] == _HOSTNAME)
    return tuple(name for names in values for name in names)


def _growing(facts: Facts) -> Iterator[Sign]:
    for claim in facts.claims:
        events = facts.events(claim, "PersistentVolumeClaim", "VolumeResizeFailed")
        wanted = str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))
        there = str(((claim.get("status") or {}).get("capacity") or {}).get("storage", wanted))
        if events and parse(there) < parse(wanted):
            message = f"can't grow from {there}: {events[-1].message.strip()}"
            yield Sign(_claim(claim), message, field_of(facts, claim, "requests.storage"), wanted)


def _modifying(facts: Facts) -> Iterator[Sign]:
    """Claims whose driver does not give them their volume attributes class."""
    for claim in facts.claims:
        status, wanted = claim.get("status") or {}, str(claim["spec"].get("volumeAttributesClassName") or "")
        progress = status.get("modifyVolumeStatus") or {}
        errors = [each for each in status.get("conditions") or () if each.get("type") == "ModifyVolumeError"]
        if progress.get("status") == "Pending":
            yield Sign(_claim(claim), "its class does not exist", "spec.volumeAttributesClassName", wanted)
        elif errors and progress.get("targetVolumeAttributesClassName") == wanted:
            message = f"its storage driver reports: {str(errors[-1].get('message', '')).strip()}"
            yield Sign(_claim(claim), message, "spec.volumeAttributesClassName", wanted)


CAUSES = (
    Cause(
        "StorageClassMissing",
        "Create it, or correct `storageClassName`: claims that have no volume yet are then recreated.",
        _without_class,
    ),
    Cause(
        "NoDefaultStorageClass",
        'Set `storageClassName`, or mark a class: annotation `storageclass.kubernetes.io/is-default-class: "true"`.',
        _without_default,
    ),
    Cause(
        "ProvisioningFailed",
        "Do as its message asks: quota of the cloud, parameters of the class, zones.",
        _refused,
    ),
    Cause(
        "ProvisionerSilent",
        "Install the CSI driver, or look at the log of its controller.",
        _without_provisioner,
    ),
    Cause(
        "NoFreeVolume",
        "Add volumes, ask for less, or free a Released one: remove `spec.claimRef` once its data is not needed.",
        _without_volumes,
    ),
    Cause(
        "ClaimLost",
        "Delete claim and pod if the other replicas have the data; else restore a backup.",
        _lost,
    ),
    Cause(
        "VolumeNodeGone",
        "Bring the node back. If it is gone for good, replace the volume: docs/operations.md.",
        _of_lost_nodes,
    ),
    Cause(
        "VolumeCannotGrow",
        "Do as the message of the driver asks.",
        _growing,
        Severity.WARNING,
    ),
    Cause(
        "VolumeCannotBeModified",
        "Do as the message of the driver asks, restore the former class, or name a class that the driver takes.",
        _modifying,
        Severity.WARNING,
    ),
)
