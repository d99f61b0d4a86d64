"""Objects of the kinds that the operator makes, each with one field set to one of many values.

The published definitions list the fields. The tests do not know which values are valid: both API servers must agree.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from ports.randomness import Randomness
from sandbox.apiserver import schemas
from tests.contract.bodies import job, service
from tests.contract.objects import claim, claim_spec, config_map, deployment, pod, stateful_set

_T = TypeVar("_T")

Path = tuple[str | int, ...]
"""Names of fields and indices of lists, from the outermost one on."""


@dataclass(frozen=True, slots=True)
class Case:
    """One object: `base` with `value` at `path`. `field` is the tested field inside the value."""

    title: str
    resource: Resource
    base: Json
    path: Path
    value: Any
    field: str

    @property
    def name(self) -> str:
        """Such as `Pod spec.containers[0].env = [{"name":"a"}]`."""
        return f"{self.title} {_text(self.path)} = {msgspec.json.encode(self.value).decode()}"

    @property
    def body(self) -> Json:
        """The object to send."""
        made: Json = _placed(self.base, self.path, self.value)
        return made


def cases() -> Iterator[Case]:
    """All objects, in the order of the definitions; no two have the same name."""
    for title, (resource, base, places) in _OBJECTS.items():
        for place in places:
            yield from _cases_at(title, resource, base, place)


def drawn(all_: Iterable[Case], count: int, randomness: Randomness) -> list[Case]:
    """At most `count` of the cases, by chance: each field of each object once before any is there again."""
    by_field: dict[tuple[str, str], list[Case]] = {}
    for case in _shuffled(list(all_), randomness):
        by_field.setdefault((case.title, case.field), []).append(case)
    turns = itertools.zip_longest(*_shuffled(list(by_field.values()), randomness))
    return list(itertools.islice((case for turn in turns for case in turn if case is not None), count))


def _shuffled(items: Sequence[_T], randomness: Randomness) -> list[_T]:
    return sorted(items, key=lambda _: randomness.uniform(0, 1))


_SPEC: Path = ("spec",)
_POD = pod("x", volumes=[{"name": "a"}])
_TYPES_OF_SERVICES = ("ClusterIP", "NodePort", "LoadBalancer")

_OBJECTS: Mapping[str, tuple[Resource, Json, tuple[Path, ...]]] = {
    "Pod": (PODS, _POD, (_SPEC, ("spec", "containers", 0))),
    "StatefulSet": (STATEFUL_SETS, stateful_set("x"), (_SPEC,)),
    "Deployment": (DEPLOYMENTS, deployment("x"), (_SPEC,)),
    **{
        f"Service of type {type_}": (SERVICES, service([{"port": 1}], "x", type=type_), (_SPEC, ("spec", "ports", 0)))
        for type_ in _TYPES_OF_SERVICES
    },
    "PersistentVolumeClaim": (PERSISTENT_VOLUME_CLAIMS, claim("x"), (_SPEC,)),
    "Job": (JOBS, job("x"), (_SPEC,)),
    "indexed Job": (JOBS, job("x", completionMode="Indexed", completions=3), (_SPEC,)),
    "ConfigMap": (CONFIG_MAPS, config_map("x"), ((), ("metadata",))),
}
"""By title: the resource, a good object, and the places in it whose fields are set one by one."""

_LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "what says which object it is": ("ConfigMap.apiVersion", "ConfigMap.kind", "ConfigMap.metadata"),
    "an API server writes it, nobody sends it": (
        "ObjectMeta.creationTimestamp",
        "ObjectMeta.deletionGracePeriodSeconds",
        "ObjectMeta.deletionTimestamp",
        "ObjectMeta.generation",
        "ObjectMeta.managedFields",
        "ObjectMeta.resourceVersion",
        "ObjectMeta.selfLink",
        "ObjectMeta.uid",
        "PersistentVolumeClaim.status",
    ),
    "in other cases as the spec of a pod": ("StatefulSetSpec.template", "DeploymentSpec.template", "JobSpec.template"),
    "there are no nodes with Windows": (
        "PodSpec.os",
        "PodSecurityContext.windowsOptions",
        "SecurityContext.windowsOptions",
    ),
    "volumes of clouds and vendors long gone": tuple(
        f"Volume.{source}"
        for source in (
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cephfs",
            "cinder",
            "fc",
            "flexVolume",
            "flocker",
            "gcePersistentDisk",
            "gitRepo",
            "glusterfs",
            "iscsi",
            "photonPersistentDisk",
            "portworxVolume",
            "quobyte",
            "rbd",
            "scaleIO",
            "storageos",
            "vsphereVolume",
        )
    ),
    "no TidbCluster reaches it": (
        "PodSpec.ephemeralContainers",
        "PodSpec.hostnameOverride",
        "PodSpec.nodeName",
        "PodSpec.overhead",
        "PodSpec.resourceClaims",
        "PodSpec.resources",
        "PodSpec.schedulingGates",
        "PodSpec.schedulingGroup",
        "Container.resizePolicy",
        "Container.restartPolicyRules",
        "Container.volumeDevices",
        "ResourceRequirements.claims",
        "JobSpec.podFailurePolicy",
        "JobSpec.successPolicy",
        "PersistentVolumeClaimTemplate.metadata",
        "PersistentVolumeClaimSpec.dataSource",
        "PersistentVolumeClaimSpec.dataSourceRef",
    ),
    "a dry run of the real server does not look whether the port is one": ("ServicePort.nodePort",),
    "the sandbox has addresses of both families": ("ServiceSpec.ipFamilies", "ServiceSpec.ipFamilyPolicy"),
    "the sandbox is known to be kinder there": (
        "CSIVolumeSource.nodePublishSecretRef",
        "EnvVarSource.fileKeyRef",
        "EphemeralVolumeSource.volumeClaimTemplate",
        "JobSpec.backoffLimitPerIndex",
        "JobSpec.managedBy",
        "JobSpec.manualSelector",
        "JobSpec.maxFailedIndexes",
        "JobSpec.selector",
        "Lifecycle.stopSignal",
        "ObjectMeta.generateName",
        "PodAffinityTerm.matchLabelKeys",
        "PodAffinityTerm.mismatchLabelKeys",
        "PodSecurityContext.seLinuxChangePolicy",
        "PodSpec.preemptionPolicy",
        "PodSpec.priority",
        "PodSpec.runtimeClassName",
        "ResourceFieldSelector.divisor",
        "SecurityContext.procMount",
        "ServiceSpec.clusterIPs",
        "TopologySpreadConstraint.matchLabelKeys",
        "VolumeMount.mountPropagation",
        "VolumeMount.recursiveReadOnly",
    ),
}
"""Fields that no case sets, as pairs of definition and name, by the reason."""
_FIELDS_LEFT_OUT = frozenset(itertools.chain.from_iterable(_LEFT_OUT.values()))

_BEGUN: Mapping[str, tuple[Json, ...]] = {
    "AppArmorProfile": ({"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "a"}),
    "ClusterTrustBundleProjection": ({"name": "a"}, {"signerName": "a.b/c"}),
    "ConfigMapEnvSource": ({"name": "a"},),
    "ConfigMapKeySelector": ({"name": "a"},),
    "ConfigMapProjection": ({"name": "a"},),
    "ConfigMapVolumeSource": ({"name": "a"},),
    "Container": ({"image": "a"}, {"image": "a", "restartPolicy": "Always"}),
    "ContainerPort": ({"containerPort": 1},),
    "DeploymentStrategy": ({}, {"type": "RollingUpdate"}),
    "DownwardAPIVolumeFile": ({}, {"fieldRef": {"fieldPath": "metadata.name"}}),
    "EnvFromSource": ({}, {"configMapRef": {"name": "a"}}),
    "HostAlias": ({"ip": "10.0.0.1"},),
    "LabelSelectorRequirement": ({"operator": "Exists"}, {"operator": "In", "values": ["a"]}),
    "NodeSelectorRequirement": ({"operator": "Exists"}, {"operator": "In", "values": ["a"]}),
    "ObjectFieldSelector": ({"fieldPath": "metadata.name"},),
    "PersistentVolumeClaim": ({"metadata": {"name": "a"}, "spec": claim_spec()},),
    "PersistentVolumeClaimSpec": (claim_spec(),),
    "PodAffinityTerm": ({}, {"labelSelector": {"matchLabels": {"a": "a"}}}),
    "PodCertificateProjection": ({"signerName": "a.b/c", "keyType": "ED25519", "credentialBundlePath": "a"},),
    "Probe": ({}, {"tcpSocket": {"port": 1}}),
    "ResourceFieldSelector": ({"resource": "limits.cpu"}, {"resource": "limits.cpu", "containerName": "main"}),
    "SeccompProfile": ({"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "a"}),
    "SecretEnvSource": ({"name": "a"},),
    "SecretKeySelector": ({"name": "a"},),
    "SecretProjection": ({"name": "a"},),
    "SecretVolumeSource": ({"secretName": "a"},),
    "StatefulSetUpdateStrategy": ({}, {"type": "RollingUpdate"}),
    "Toleration": ({"key": "a"}, {"operator": "Exists"}),
    "TopologySpreadConstraint": (
        {"whenUnsatisfiable": "DoNotSchedule"},
        {"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "a"}}},
    ),
}
"""What an object needs beyond its definition; without it, every value of a field would be refused alike."""

_UNIONS: Mapping[str, tuple[str | int, ...]] = {
    "Quantity": ("1", "0", "-1", "1500m", "1Gi", "x", 2),
    "IntOrString": (1, 0, -1, 70000, "http", "50%", "150%", "a_b", ""),
}
"""Definitions of values that may have more than one JSON type."""

_NUMBERS = (1, 0, -1, 300, 70000)
_KEYS = ("a b", "a.b/c", "/a", "kubernetes.io/hostname")
_RESOURCES = ("cpu", "memory", "storage", "ephemeral-storage", "a", "a.b/c", "a b")
_TIME = "2026-01-01T00:00:00Z"
_TEXTS = ("a", "", "A", "a b", "a_b", "a.b", "a/b", "/a", "../a", "1", "1Gi", "10.0.0.1", "None", "a" * 64, "a" * 254)
"""The values for every field that may hold a text."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "accessModes": ("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"),
    "add": ("NET_ADMIN", "ALL"),
    "clusterIP": ("10.0.0.0", "::1"),
    "clusterIPs": ("10.0.0.0", "::1"),
    "completionMode": ("Indexed", "NonIndexed"),
    "dnsPolicy": ("Default", "ClusterFirst", "ClusterFirstWithHostNet"),
    "drop": ("ALL",),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule"),
    "externalIPs": ("127.0.0.1", "::1", "0.0.0.0"),
    "externalTrafficPolicy": ("Local", "Cluster"),
    "fieldPath": ("metadata.name", "metadata.labels", "metadata.labels['a']", "status.podIP", "spec.nodeName"),
    "finalizers": ("kubernetes.io/x", "foregroundDeletion", "orphan"),
    "fsGroupChangePolicy": ("OnRootMismatch", "Always"),
    "image": ("a:1", " a", "a@sha256:1"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "internalTrafficPolicy": ("Local", "Cluster"),
    "ip": ("10.0.0.0/8", "::1"),
    "ipFamilies": ("IPv4", "IPv6"),
    "ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack"),
    "key": ("a.b/c", "kubernetes.io/hostname", "node.kubernetes.io/unreachable"),
    "keyType": ("RSA3072", "ECDSAP256", "ED25519"),
    "loadBalancerSourceRanges": ("10.0.0.0/8", "10.0.0.1/8", " 10.0.0.0/8"),
    "managedBy": ("a.b/c", "kubernetes.io/job-controller"),
    "medium": ("Memory", "HugePages", "HugePages-2Mi"),
    "mountPropagation": ("None", "Bidirectional", "HostToContainer"),
    "nameservers": ("::1",),
    "name": ("http", "A=b", "kernel.shm_rmid_forced", "net.core.somaxconn"),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"),
    "podManagementPolicy": ("OrderedReady", "Parallel"),
    "podReplacementPolicy": ("TerminatingOrFailed", "Failed"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "priorityClassName": ("system-node-critical", "system-cluster-critical"),
    "procMount": ("Default", "Unmasked"),
    "protocol": ("TCP", "UDP", "SCTP", "HTTP"),
    "appProtocol": ("kubernetes.io/h2c", "http"),
    "recursiveReadOnly": ("Disabled", "Enabled", "IfPossible"),
    "resource": ("limits.cpu", "requests.memory", "limits.ephemeral-storage", "requests.hugepages-2Mi"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "runtimeClassName": ("runc",),
    "scheme": ("HTTP", "HTTPS", "http"),
    "seLinuxChangePolicy": ("Recursive", "MountOption"),
    "serviceAccountName": ("default",),
    "serviceAccount": ("default",),
    "sessionAffinity": ("ClientIP",),
    "stopSignal": ("SIGTERM", "SIGKILL"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "topologyKey": ("kubernetes.io/hostname", "topology.kubernetes.io/zone"),
    "trafficDistribution": ("PreferClose", "PreferSameNode", "PreferSameZone"),
    "type": (
        "RuntimeDefault",
        "Localhost",
        "Unconfined",
        "ClusterIP",
        "NodePort",
        "LoadBalancer",
        "ExternalName",
        "Recreate",
        "RollingUpdate",
        "OnDelete",
        "Directory",
        "DirectoryOrCreate",
        "Socket",
    ),
    "volumeMode": ("Filesystem", "Block"),
    "whenDeleted": ("Retain", "Delete"),
    "whenScaled": ("Retain", "Delete"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
}
"""Additional values for the fields of a name, most of them valid."""


def _cases_at(title: str, resource: Resource, base: Json, place: Path) -> Iterator[Case]:
    owner, node = _definition_at(schemas.name_of(resource), place)
    for name, property_ in _fields(owner, node):
        path = (*place, name)
        if path == ("spec", "containers"):
            continue
        told: set[bytes] = set()
        for inner, value in _values(property_, name):
            encoded = msgspec.json.encode(value)
            if encoded not in told:
                told.add(encoded)
                yield Case(title, resource, base, path, value, _text(path) + inner)


def _definition_at(name: str, path: Path) -> tuple[str, Json]:
    """The short name of the definition at a place, and the definition."""
    node: Json = {"$ref": name}
    for step in path:
        inner = schemas.resolve(node)
        node = inner["items"] if isinstance(step, int) else inner["properties"][step]
    return _short(node), schemas.resolve(node)


def _short(node: Json) -> str:
    return str(node.get("$ref", "")).rpartition(".")[2]


def _fields(owner: str, node: Json) -> Iterator[tuple[str, Json]]:
    for name, property_ in node.get("properties", {}).items():
        if f"{owner}.{name}" not in _FIELDS_LEFT_OUT:
            yield name, property_


def _values(node: Json, name: str) -> Iterator[tuple[str, Any]]:
    """Values of a field of this name, each with the path of the tested part."""
    owner = _short(node)
    if owner in _UNIONS:
        yield from (("", value) for value in _UNIONS[owner])
        return
    node = schemas.resolve(node)
    match node.get("type"):
        case "array":
            yield from _lists(node["items"], name)
        case "object" if "properties" in node:
            yield from _objects(owner, node)
        case "object":
            yield from (("", value) for value in _maps(node["additionalProperties"], name))
        case type_:
            yield from (("", value) for value in _scalars(str(type_), str(node.get("format")), name))


def _scalars(type_: str, format_: str, name: str) -> Sequence[str | int | bool]:
    if type_ == "boolean":
        return (True, False)
    if type_ == "string":
        formatted = {"date-time": (_TIME,), "byte": ("YQ==",)}.get(format_, ())
        return (*_TEXTS, *_WORDS.get(name, ()), *formatted)
    return _NUMBERS


def _lists(items: Json, name: str) -> Iterator[tuple[str, list[Any]]]:
    yield "", []
    for item in _begun(items):
        yield "", [item, item]
    for inner, value in _values(items, name):
        yield f"[0]{inner}", [value]


def _maps(items: Json, name: str) -> Iterator[Json]:
    yield {}
    if _short(items) == "Quantity":
        yield from ({key: value} for key in _RESOURCES for value in _UNIONS["Quantity"])
        return
    good = _begun(items)[0]
    yield from ({key: good} for key in (*_TEXTS, *_KEYS))
    yield from ({"a": value} for _, value in _values(items, name))


def _objects(owner: str, node: Json) -> Iterator[tuple[str, Json]]:
    yield "", {}
    for begun in _begun_objects(owner, node):
        yield "", begun
        for name, property_ in _fields(owner, node):
            for inner, value in _values(property_, name):
                yield f".{name}{inner}", begun | {name: value}


def _begun(node: Json) -> list[Any]:
    """The least that is likely to be good."""
    owner = _short(node)
    if owner in _UNIONS:
        return [_UNIONS[owner][0]]
    node = schemas.resolve(node)
    match node.get("type"):
        case "array":
            return [_begun(node["items"])[:1]]
        case "object" if "properties" in node:
            return _begun_objects(owner, node)
        case "object":
            return [{}]
        case type_:
            return [_TIME if node.get("format") == "date-time" else _scalars(str(type_), "", "")[0]]


def _begun_objects(owner: str, node: Json) -> list[Json]:
    required = {name: _begun(node["properties"][name])[0] for name in node.get("required", ())}
    return [required | more for more in _BEGUN.get(owner, ({},))]


def _placed(tree: Any, path: Path, value: Any) -> Any:
    """The tree with a value at a path; the tree itself stays as it is."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        return [*tree[:step], _placed(tree[step], tuple(rest), value), *tree[step + 1 :]]
    return tree | {step: _placed(tree.get(step), tuple(rest), value)}


def _text(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
