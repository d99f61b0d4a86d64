"""The Kubernetes resources that this project uses, and their place in the API."""

from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the Kubernetes API: group, version and plural.

    `shared_by_namespace`: all objects of a namespace belong to one shard, because they depend on each other.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    shared_by_namespace: bool = field(default=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # resources are keys of most dictionaries: hashing four strings at each look-up would show up in a profile
        object.__setattr__(self, "_hash", hash((self.group, self.version, self.plural)))

    def __hash__(self) -> int:
        """The precomputed hash of group, version and plural."""
        return self._hash

    @property
    def api_version(self) -> str:
        """`v1` or `group/version`, as in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of group and version, e.g. `/api/v1` or `/apis/apps/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of a collection, an object or a subresource. An empty `namespace` means all namespaces.

        Names come from specs and are escaped, so that any name leads only to the object with this name.
        """
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        """`plural` or `plural.group`, for messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _segment(name: str) -> str:
    """A name as one path segment. `.` and `..` would lead elsewhere."""
    return quote(name, safe=":") if name.strip(".") else name.replace(".", "%2E")


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("", "v1", "events", "Event")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = Resource("batch", "v1", "jobs", "Job")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
VOLUME_ATTRIBUTES_CLASSES = Resource(
    "storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass", namespaced=False
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
ADVANCED_STATEFUL_SETS = Resource("apps.pingcap.com", "v1", "statefulsets", "StatefulSet")
# the StatefulSets of the kind that the operator does not use, for its clients (`controllers.wiring.addressed`)
OTHER_STATEFUL_SETS = Resource("apps.pingcap.com", "v1", "statefulsets", "StatefulSet")
TIDB_CLUSTERS = Resource("pingcap.com", "v1alpha1", "tidbclusters", "TidbCluster")
VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
DM_CLUSTERS = Resource("pingcap.com", "v1alpha1", "dmclusters", "DMCluster")
BACKUPS = Resource("pingcap.com", "v1alpha1", "backups", "Backup")
RESTORES = Resource("pingcap.com", "v1alpha1", "restores", "Restore")
BACKUP_SCHEDULES = Resource("pingcap.com", "v1alpha1", "backupschedules", "BackupSchedule", shared_by_namespace=True)
COMPACT_BACKUPS = Resource("pingcap.com", "v1alpha1", "compactbackups", "CompactBackup")
TIDB_MONITORS = Resource("pingcap.com", "v1alpha1", "tidbmonitors", "TidbMonitor")
TIDB_INITIALIZERS = Resource("pingcap.com", "v1alpha1", "tidbinitializers", "TidbInitializer")
TIDB_DASHBOARDS = Resource("pingcap.com", "v1alpha1", "tidbdashboards", "TidbDashboard")
TIDB_NG_MONITORINGS = Resource("pingcap.com", "v1alpha1", "tidbngmonitorings", "TidbNGMonitoring")
