"""The served built-in kinds and their features."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube import resources as known
from kube.objects import Json
from kube.resources import Resource

ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")

RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_POD_OPTIONS = {
    "attach": Resource("", "v1", "podattachoptions", "PodAttachOptions"),
    "exec": Resource("", "v1", "podexecoptions", "PodExecOptions"),
    "portforward": Resource("", "v1", "podportforwardoptions", "PodPortForwardOptions"),
    "proxy": Resource("", "v1", "podproxyoptions", "PodProxyOptions"),
}
"""The options of the subresources that lead into containers."""
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The location of the scale subresource's three values, as paths of keys."""

    spec_replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column of a custom resource."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Custom:
    """One served version of a CustomResourceDefinition."""

    crd: str
    schema: Json
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A served resource. `fields` are the selectable fields besides metadata.name and metadata.namespace."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    has_generation: bool = False
    scale: ScalePaths | None = None
    fields: tuple[str, ...] = ()
    extra_subresources: Mapping[str, Resource] = field(default_factory=dict)
    custom: Custom | None = None
    key: str = field(init=False)
    """`plural.group`, the key under which all versions of the resource are stored."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", str(self.resource))

    @property
    def subresources(self) -> tuple[str, ...]:
        """The names of the subresources, sorted."""
        names = set(self.extra_subresources)
        if self.has_status:
            names.add("status")
        if self.scale:
            names.add("scale")
        return tuple(sorted(names))


_ALL = ("all",)

BUILT_IN = (
    Kind(
        known.PODS,
        "pod",
        ("po",),
        _ALL,
        has_status=True,
        has_generation=True,
        fields=_POD_FIELDS,
        extra_subresources={
            "binding": Resource("", "v1", "bindings", "Binding"),
            "eviction": Resource("policy", "v1", "evictions", "Eviction"),
            "log": known.PODS,
            **_POD_OPTIONS,
        },
    ),
    Kind(known.SERVICES, "service", ("svc",), _ALL, has_status=True, fields=("spec.clusterIP", "spec.type")),
    Kind(known.ENDPOINTS, "endpoints", ("ep",)),
    Kind(known.CONFIG_MAPS, "configmap", ("cm",)),
    Kind(known.SECRETS, "secret", fields=("type",)),
    Kind(known.EVENTS, "event", ("ev",), fields=_EVENT_FIELDS),
    Kind(known.SERVICE_ACCOUNTS, "serviceaccount", ("sa",)),
    Kind(known.PERSISTENT_VOLUME_CLAIMS, "persistentvolumeclaim", ("pvc",), has_status=True),
    Kind(known.PERSISTENT_VOLUMES, "persistentvolume", ("pv",), has_status=True),
    Kind(RESOURCE_QUOTAS, "resourcequota", ("quota",), has_status=True),
    Kind(known.NODES, "node", ("no",), has_status=True, fields=("spec.unschedulable",)),
    Kind(
        known.NAMESPACES,
        "namespace",
        ("ns",),
        has_status=True,
        fields=("status.phase",),
        extra_subresources={"finalize": known.NAMESPACES},
    ),
    Kind(
        known.STATEFUL_SETS,
        "statefulset",
        ("sts",),
        _ALL,
        has_status=True,
        has_generation=True,
        scale=ScalePaths(),
    ),
    Kind(
        known.DEPLOYMENTS,
        "deployment",
        ("deploy",),
        _ALL,
        has_status=True,
        has_generation=True,
        scale=ScalePaths(),
    ),
    Kind(
        known.REPLICA_SETS,
        "replicaset",
        ("rs",),
        _ALL,
        has_status=True,
        has_generation=True,
        scale=ScalePaths(),
        fields=("status.replicas",),
    ),
    Kind(known.CONTROLLER_REVISIONS, "controllerrevision"),
    Kind(known.JOBS, "job", (), _ALL, has_status=True, has_generation=True, fields=("status.successful",)),
    Kind(known.ROLES, "role"),
    Kind(known.ROLE_BINDINGS, "rolebinding"),
    Kind(known.CLUSTER_ROLES, "clusterrole"),
    Kind(known.CLUSTER_ROLE_BINDINGS, "clusterrolebinding"),
    Kind(known.STORAGE_CLASSES, "storageclass", ("sc",)),
    Kind(known.VOLUME_ATTRIBUTES_CLASSES, "volumeattributesclass", ("vac",)),
    Kind(known.LEASES, "lease"),
    Kind(ENDPOINT_SLICES, "endpointslice", has_generation=True),
    Kind(INGRESSES, "ingress", ("ing",), has_status=True, has_generation=True),
    Kind(PRIORITY_CLASSES, "priorityclass", ("pc",), has_generation=True),
    Kind(POD_DISRUPTION_BUDGETS, "poddisruptionbudget", ("pdb",), has_status=True, has_generation=True),
    Kind(
        known.CUSTOM_RESOURCE_DEFINITIONS,
        "customresourcedefinition",
        ("crd", "crds"),
        ("api-extensions",),
        has_status=True,
        has_generation=True,
    ),
)
