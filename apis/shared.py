"""Types shared by the custom resources of pingcap.com/v1alpha1 (api/shared-types.fields).

`X | None` means that absent differs from the zero value; a plain default means that it does not. Kubernetes sub-trees
stay dict trees, so that pod fields newer than this code survive. The annotation has what the CRD specifies beyond the
type, e.g. a format or a default (`apis.crd`).
"""

from collections.abc import Collection
from typing import Annotated, Literal, Self, TypeAlias

from msgspec import Meta, field

from apis.embedded import (
    FREE,
    Affinity,
    Condition,
    Container,
    ContainerSecurity,
    DnsConfig,
    LocalReference,
    Mount,
    PodClaim,
    PodSecurity,
    StatefulSetStatus,
    Toleration,
    Variable,
    VariablesFrom,
    Volume,
)
from apis.model import Json as Json  # noqa: PLC0414  (models import their base from here as well)
from apis.model import Metadata as Metadata  # noqa: PLC0414
from apis.model import Model as Model  # noqa: PLC0414

Config: TypeAlias = Annotated[
    str | Json, Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True}, extra={FREE: True})
]
"""Configuration of a component: TOML text or an object (objects.md 6.1)."""

Quantity: TypeAlias = Annotated[
    str | int,
    Meta(
        extra_json_schema={
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": (
                r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
                r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
            ),
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""A Kubernetes quantity such as `10Gi` (`ports.quantity` reads it)."""

Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339, UTC, seconds."""

NullableTime: TypeAlias = Annotated[str | None, Meta(extra_json_schema={"format": "date-time", "nullable": True})]
"""A time that v1.6 writes as null when it is not known."""

Conditions: TypeAlias = Annotated[list[Condition], Meta(extra_json_schema={"nullable": True})]
"""Kubernetes meta/v1 conditions of a component."""

Int32: TypeAlias = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
Int64: TypeAlias = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
Count: TypeAlias = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int32"})]
"""A number of pods, members or attempts."""


def crd_default(value: str | int | bool) -> Meta:
    """The default that the API server fills in when the key is absent and its parent is there."""
    return Meta(extra_json_schema={"default": value})


class ResourceRequirements(Model, kw_only=True):
    """Kubernetes core/v1 ResourceRequirements, inline. `requests.storage` is the size of the data volume."""

    claims: list[PodClaim] = []
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class Probe(Model, kw_only=True):
    """A probe that the operator completes (readiness of PD, TiKV, TiDB; liveness of Discovery)."""

    type: Literal["tcp", "command"] | None = None
    initial_delay_seconds: Count | None = None
    period_seconds: Annotated[Int32, Meta(ge=1)] | None = None


class SuspendAction(Model, kw_only=True):
    """The parts to suspend (lifecycle.md 12)."""

    suspend_stateful_set: bool = False


class TopologySpreadConstraint(Model, kw_only=True):
    """A spread rule; the operator fills in the selector (objects.md 3.4)."""

    topology_key: str
    max_skew: Annotated[Int32, crd_default(1)] = 1
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    match_labels: dict[str, str] = {}


TopologySpreadConstraints: TypeAlias = Annotated[
    list[TopologySpreadConstraint],
    Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topologyKey"]}),
]
"""At most one rule per topology key."""


class PodSettings(Model, kw_only=True):
    """The settings of every component for its pods, except resources (objects.md 3.3)."""

    image: str = ""
    version: str | None = None
    image_pull_policy: str | None = None
    image_pull_secrets: list[LocalReference] = []
    host_network: bool | None = None
    affinity: Affinity | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    node_selector: dict[str, str] = {}
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    tolerations: list[Toleration] = []
    pod_security_context: PodSecurity | None = None
    config_update_strategy: str | None = None
    env: list[Variable] = []
    env_from: list[VariablesFrom] = []
    init_containers: list[Container] = []
    additional_containers: list[Container] = []
    additional_volumes: list[Volume] = []
    additional_volume_mounts: list[Mount] = []
    dns_config: DnsConfig | None = None
    dns_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    stateful_set_update_strategy: str = ""
    pod_management_policy: str = ""
    topology_spread_constraints: TopologySpreadConstraints = []
    suspend_action: SuspendAction | None = None
    security_context: ContainerSecurity | None = None
    readiness_probe: Probe | None = None
    automount_service_account_token: bool | None = None


class ComponentSpec(PodSettings, kw_only=True):
    """The settings of every component for its pods; `requests.storage` is the size of the data volume."""

    claims: list[PodClaim] = []
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class ScalePolicy(Model, kw_only=True):
    """The number of ordinals that may be scaled at a time."""

    scale_in_parallelism: Annotated[Int32 | None, crd_default(1)] = 1
    scale_out_parallelism: Annotated[Int32 | None, crd_default(1)] = 1


class WorkloadSpec(ComponentSpec, kw_only=True):
    """The fields of every component that runs in a StatefulSet: all but Discovery."""

    replicas: Count
    base_image: str | None = None

    @property
    def service_account(self) -> str:
        """The ServiceAccount of the pods; if empty, the cluster's."""
        return ""

    @property
    def data_size(self) -> Quantity | None:
        """The size of the data volume; None where the user has not said."""
        return self.requests.get("storage")

    @property
    def data_size_path(self) -> str:
        """The path of that size in this spec."""
        return "requests.storage"

    @property
    def server_config(self) -> Config | None:
        """The configuration of the main container."""
        return None

    @property
    def config_path(self) -> str:
        """The path of that configuration in this spec."""
        return "config"

    @property
    def sidecars(self) -> tuple[str, ...]:
        """The containers that the operator generates besides the main one."""
        return ()

    @property
    def labels_of_servers(self) -> dict[str, str]:
        """The labels that each server gets, under the location of its node (SL-1)."""
        return {}

    @property
    def scaling_policy(self) -> ScalePolicy | None:
        """The number of pods that may be added or removed at a time; None if the component does not set it."""
        return None

    @property
    def spare_replicas(self) -> int:
        """Extra pods while volumes are replaced one pod at a time."""
        return 0

    def with_defaults(self) -> Self:
        """Fill in the defaults of unset fields (defaults-and-validation.md 2.1), except the image."""
        return self


class ServiceSpec(Model, kw_only=True):
    """The settings of a Service (objects.md 2)."""

    type: str = ""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    load_balancer_ip: str | None = field(name="loadBalancerIP", default=None)
    cluster_ip: str | None = field(name="clusterIP", default=None)
    port_name: str | None = None
    port: Annotated[Int32, Meta(ge=1, le=65535)] | None = None
    load_balancer_source_ranges: list[str] = []
    load_balancer_class: str | None = None


class StorageVolume(Model, kw_only=True):
    """A further volume of each pod (objects.md 5)."""

    name: str
    storage_class_name: str | None = None
    storage_size: str
    mount_path: str = ""
    volume_attributes_class_name: str | None = None


class Failover(Model, kw_only=True):
    """The clearing of failover records (lifecycle.md 9)."""

    recover_by_uid: str = field(name="recoverByUID", default="")


class LogTailerSpec(ResourceRequirements, kw_only=True):
    """The sidecars that print log files."""

    security_context: ContainerSecurity | None = None
    use_sidecar: bool = False
    sleep_time_seconds: Int64 | None = None


class TLSCluster(Model, kw_only=True):
    """TLS between components (objects.md 9.2)."""

    enabled: bool = False
    enable_discovery_mtls: bool = field(name="enableDiscoveryMTLS", default=False)


class TidbClusterRef(Model, kw_only=True):
    """Another TidbCluster (objects.md 8)."""

    namespace: str = ""
    name: str
    cluster_domain: str = ""


class StorageVolumeStatus(Model, kw_only=True):
    """Sizes and classes of one volume over all pods (lifecycle.md 5.8)."""

    bound_count: int = 0
    current_count: int = 0
    modified_count: int = 0
    current_capacity: Quantity = "0"
    modified_capacity: Quantity = "0"
    current_storage_class: str = ""
    modified_storage_class: str = ""
    resized_capacity: Quantity = "0"
    resized_count: int = 0
    name: str


class ComponentStatus(Model, kw_only=True):
    """The status that every component in a StatefulSet has (lifecycle.md 5)."""

    phase: str = ""
    stateful_set: StatefulSetStatus | None = None
    volumes: dict[str, StorageVolumeStatus] = {}
    conditions: Conditions = []

    @property
    def is_current(self) -> bool:
        """True if the last observation could renew it (F7)."""
        return True

    @property
    def servers(self) -> dict[str, bool] | None:
        """For each pod, True if its server reported that it serves; None if PD answers for all of them."""
        return None

    @property
    def health(self) -> list[bool]:
        """For each known member, True if it serves."""
        return list((self.servers or {}).values())

    def answers(self, running: Collection[str]) -> list[bool]:
        """For each request of the last observation to the data plane, True if it got a good answer.

        `running` are the pods that run: from the others no answer is expected.
        """
        if self.servers is None:
            return [self.is_current]
        return [serves for pod, serves in self.servers.items() if pod in running]

    @property
    def failed_pods(self) -> list[str]:
        """The pods that failover has replaced: each has a substitute."""
        return []

    @property
    def failures(self) -> int:
        """The number of members or stores recorded as lost by failover, whether or not they have a substitute yet."""
        return len(self.failed_pods)

    def is_available(self, replicas: int) -> bool:
        """True if enough of it serves for others to start, of a component with `replicas` in its spec (3.1)."""
        return self.runs and self.ready_replicas >= min(replicas, 1)

    @property
    def replaces_volumes(self) -> bool:
        """True if volumes are being replaced pod by pod (lifecycle.md 10.4)."""
        return False

    @property
    def runs(self) -> bool:
        """True if it was observed, has a StatefulSet and is not suspended."""
        return self.is_current and self.stateful_set is not None and self.phase != "Suspend"

    @property
    def ready_replicas(self) -> int:
        """The Ready pods of its StatefulSet."""
        return int((self.stateful_set or {}).get("readyReplicas") or 0)

    def forget_members(self) -> None:
        """Note that nothing runs and nothing is known of any member (lifecycle.md 12)."""
        self.stateful_set = None


class SyncedStatus(ComponentStatus, kw_only=True):
    """The status of a component that says itself whether its last observation succeeded."""

    synced: bool = False

    @property
    def is_current(self) -> bool:
        return self.synced


class PDMember(Model, kw_only=True):
    """A PD member as PD last reported it."""

    name: str
    id: str
    client_url: str = field(name="clientURL")
    health: bool
    last_transition_time: NullableTime = None


class UnjoinedMember(Model, kw_only=True):
    """A PD pod that is no member yet."""

    pod_name: str = ""
    pvc_uid: str = field(name="pvcUID", default="")
    pvc_uid_set: dict[str, Json] = field(name="pvcUIDSet", default_factory=dict)
    created_at: NullableTime = None


class TiKVStore(Model, kw_only=True):
    """A store as PD last reported it. `id` is decimal text: 64-bit ids do not survive JSON numbers."""

    id: str
    pod_name: str
    ip: str
    leader_count: Int32
    state: str
    last_transition_time: NullableTime = None
    leader_count_before_upgrade: Int32 | None = None

    @property
    def is_up(self) -> bool:
        """True if PD calls it Up."""
        return self.state == "Up"


class TiKVFailureStore(Model, kw_only=True):
    """A store replaced by failover."""

    pod_name: str = ""
    store_id: str = field(name="storeID", default="")
    pvc_uid_set: dict[str, Json] = field(name="pvcUIDSet", default_factory=dict)
    store_deleted: bool = False
    host_down: bool = False
    created_at: NullableTime = None
