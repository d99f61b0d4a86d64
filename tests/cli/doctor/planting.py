"""Planted causes, each on its own cluster, for the sandbox and for a real control plane. A plant has a change of the
spec of a small cluster, further actions, and the expected finding."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.client import Client
from kube.objects import Json
from kube.resources import STORAGE_CLASSES

Spec = Mapping[str, Any]


def _nothing(_client: Client, _namespace: str, _name: str) -> None:
    """The spec says it all."""


@dataclass(frozen=True, slots=True)
class Plant:
    """`reason` must be found on an object that `{name}` names, with a field and a value; `spec` is PD's."""

    reason: str
    spec: Spec = field(default_factory=dict)
    of_cluster: Spec = field(default_factory=dict)
    before: Callable[[Client, str, str], None] = _nothing
    object: str = "Pod {name}-pd-0"
    field_: str = ""
    value: str = ""
    severity: str = "Problem"
    beside: frozenset[str] = frozenset()
    """Further findings."""


def cluster(name: str, plant: Plant) -> Json:
    """A TidbCluster of one PD."""
    pd: Json = {
        "baseImage": "pingcap/pd",
        "replicas": 1,
        "requests": {"cpu": "1", "memory": "1Gi", "storage": "1Gi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
        "config": {},
    }
    spec: Json = {"version": "v8.5.2", "pd": pd | dict(plant.spec)} | dict(plant.of_cluster)
    return {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": name}, "spec": spec}


def _without_volumes(client: Client, _: str, name: str) -> None:
    _class(client, name, "kubernetes.io/no-provisioner", "WaitForFirstConsumer")


def _without_driver(client: Client, _: str, name: str) -> None:
    _class(client, name, "csi.example.com", "Immediate")


def _class(client: Client, name: str, provisioner: str, mode: str) -> None:
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    client.create(STORAGE_CLASSES, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"} | body)


def _volume(source: Json) -> Spec:
    return {
        "additionalVolumes": [{"name": "extra", **source}],
        "additionalVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
    }


def _storage(size: str = "1Gi", **more: str) -> Spec:
    return {"requests": {"cpu": "1", "memory": "1Gi", "storage": size}, **more}


_CLAIM = "PersistentVolumeClaim pd-{name}-pd-0"
_CLUSTER = "TidbCluster {name}"
_VARIABLE = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "nope", "key": "a"}}}
_ENDS = {"name": "beside", "image": "busybox:1.36", "command": ["/bin/sh", "-c", "echo no such table; exit 3"]}
_TOO_MUCH = {"cpu": "1000", "memory": "1Gi"}
_TOO_LARGE = {"cpu": "1", "memory": "9Ti"}
_BY_SPREAD = {"topologyKey": "example.com/rack", "maxSkew": 1}

IN_BOTH: Mapping[str, Plant] = {
    "cpu": Plant(
        "InsufficientCPU",
        {"requests": _TOO_MUCH | {"storage": "1Gi"}, "limits": _TOO_MUCH},
        field_="spec.pd.requests.cpu",
        value="1000",
    ),
    "memory": Plant(
        "InsufficientMemory",
        {"requests": _TOO_LARGE | {"storage": "1Gi"}, "limits": _TOO_LARGE},
        field_="spec.pd.requests.memory",
        value="9Ti",
    ),
    "selector": Plant(
        "NoNodeMatches",
        {"nodeSelector": {"disk": "nvme"}},
        field_="spec.pd.nodeSelector",
        value="disk=nvme",
    ),
    "spread": Plant(
        "SpreadImpossible",
        {"topologySpreadConstraints": [_BY_SPREAD]},
        field_="spec.pd.topologySpreadConstraints",
    ),
    "scheduler": Plant(
        "SchedulerMissing",
        {"schedulerName": "nobody"},
        field_="spec.pd.schedulerName",
        value="nobody",
    ),
    "class": Plant(
        "StorageClassMissing",
        {"storageClassName": "nope"},
        object=_CLAIM,
        field_="spec.pd.storageClassName",
        value="nope",
        beside=frozenset({"Unschedulable"}),
    ),
    "volumes": Plant(
        "NoFreeVolume",
        {"storageClassName": "volumes"},
        before=_without_volumes,
        object=_CLAIM,
        field_="spec.pd.requests.storage",
        value="1Gi",
        beside=frozenset({"NoVolume"}),
    ),
    "driver": Plant(
        "ProvisionerSilent",
        {"storageClassName": "driver"},
        before=_without_driver,
        object=_CLAIM,
        field_="spec.pd.storageClassName",
        value="driver",
    ),
    "tag": Plant(
        "ImageNotFound",
        {"version": "v8.5.99-nope"},
        field_="spec.pd.version",
        value="pingcap/pd:v8.5.99-nope",
    ),
    "repository": Plant(
        "ImageForbidden",
        {"baseImage": "pingcap/private"},
        field_="spec.pd.baseImage",
        value="pingcap/private:v8.5.2",
    ),
    "pull-secret": Plant(
        "ImagePullSecretMissing",
        {"version": "v8.5.98-nope", "imagePullSecrets": [{"name": "nope"}]},
        field_="spec.pd.imagePullSecrets",
        value="nope",
        beside=frozenset({"ImageNotFound"}),
    ),
    "secret": Plant("SecretMissing", _volume({"secret": {"secretName": "nope"}}), field_="Secret", value="nope"),
    "variable": Plant("SecretMissing", {"env": [_VARIABLE]}, field_="Secret", value="nope"),
    "config-map": Plant("ConfigMapMissing", _volume({"configMap": {"name": "nope"}}), field_="ConfigMap", value="nope"),
    "crash": Plant(
        "CrashLoop",
        {"additionalContainers": [_ENDS]},
        # PD may answer for a moment between two ends of its neighbour, or never
        beside=frozenset({"QoSNotGuaranteed", "PDQuorumLost", "NotObserved"}),
    ),
    "priority": Plant(
        "PriorityClassMissing",
        {"priorityClassName": "nope"},
        object="StatefulSet {name}-pd",
        field_="spec.pd.priorityClassName",
        value="nope",
    ),
    "account": Plant(
        "ServiceAccountMissing",
        {"serviceAccount": "nope"},
        object="StatefulSet {name}-pd",
        field_="spec.pd.serviceAccount",
        value="nope",
    ),
    "certificates": Plant(
        "BadCertificate",
        of_cluster={"tlsCluster": {"enabled": True}},
        object="Secret certificates-pd-cluster-secret",
        beside=frozenset({"SecretMissing"}),
    ),
    "invalid": Plant(
        "InvalidSpec",
        {"storageVolumes": [{"name": "log", "storageSize": "much", "mountPath": "/log"}]},
        object=_CLUSTER,
        field_="spec.pd.storageVolumes[0].storageSize",
        value="much",
    ),
    "misspelled": Plant(
        "UnknownFields",
        {"affinity": {"podAntiAffinity": {"requiredDuringScheduling": []}}},
        object=_CLUSTER,
        field_="spec.pd.affinity.podAntiAffinity.requiredDuringScheduling",
        severity="Warning",
    ),
    "ignored": Plant(
        "FieldsIgnored",
        {"service": {"port": 2380}},
        object=_CLUSTER,
        field_="spec.pd.service.port",
        value="2380",
        severity="Warning",
    ),
    "overridden": Plant(
        "SettingsOverridden",
        {"config": {"data-dir": "/elsewhere"}},
        object=_CLUSTER,
        field_="spec.pd.config.data-dir",
        value='"/elsewhere"',
        severity="Warning",
    ),
    "paused": Plant(
        "Paused", of_cluster={"paused": True}, object=_CLUSTER, field_="spec.paused", value="true", severity="Warning"
    ),
    "join": Plant(
        "NoSuchCluster",
        of_cluster={"cluster": {"name": "other"}},
        object=_CLUSTER,
        field_="Ready",
    ),
    "quality": Plant(
        "QoSNotGuaranteed",
        {"requests": {"storage": "1Gi"}, "limits": {}},
        field_="spec.pd.limits",
        value="not set (container pd)",
        severity="Warning",
    ),
}
"""Causes that need only a spec and further objects; each is the name of its cluster."""
