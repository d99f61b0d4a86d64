"""The common part of TidbClusters and DMClusters (api/shared-types.fields).

A kind of cluster is a model below `Cluster`; its components are rows of `apis.components` that name it.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, field

from apis.component_specs import DiscoverySpec
from apis.embedded import Affinity, DnsConfig, LocalReference, PodSecurity, Toleration
from apis.shared import (
    Metadata,
    Model,
    NullableTime,
    SuspendAction,
    TLSCluster,
    TopologySpreadConstraints,
    crd_default,
)
from apis.unknown_fields import UNKNOWN_FIELDS


class DeprecatedService(Model, kw_only=True):
    """An entry of `spec.services`: the type of a component's Service. Deprecated, still read."""

    name: str = ""
    type: str = ""


class ClusterSpec(Model, kw_only=True):
    """The settings of `spec` for all components. The properties are fields of TidbClusters, and unset elsewhere."""

    discovery: DiscoverySpec | None = None
    paused: bool = False
    version: str = ""
    scheduler_name: str = ""
    pv_reclaim_policy: Annotated[str | None, crd_default("Retain")] = "Retain"
    image_pull_policy: Annotated[str, crd_default("IfNotPresent")] = "IfNotPresent"
    image_pull_secrets: list[LocalReference] = []
    config_update_strategy: str = ""
    enable_pv_reclaim: bool | None = field(name="enablePVReclaim", default=None)
    tls_cluster: TLSCluster | None = None
    host_network: bool | None = None
    affinity: Affinity | None = None
    priority_class_name: str | None = None
    node_selector: dict[str, str] = {}
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    tolerations: list[Toleration] = []
    dns_config: DnsConfig | None = None
    dns_policy: str = ""
    timezone: str = ""
    stateful_set_update_strategy: str = ""
    pod_management_policy: str = ""
    pod_security_context: PodSecurity | None = None
    topology_spread_constraints: TopologySpreadConstraints = []
    suspend_action: SuspendAction | None = None
    prefer_ipv6: bool = field(name="preferIPv6", default=False)

    @property
    def service_account(self) -> str:
        """The ServiceAccount of pods whose component names none."""
        return ""

    @property
    def services(self) -> Sequence[DeprecatedService]:
        """The types of Services, the old way."""
        return ()

    @property
    def enable_pvc_replace(self) -> bool | None:
        """True if volumes may be replaced pod by pod."""
        return None

    @property
    def cluster_domain(self) -> str:
        """The domain of Kubernetes, where pods are addressed with it."""
        return ""

    @property
    def across_k8s(self) -> bool:
        """True if the cluster has parts in several Kubernetes clusters."""
        return False


OBSERVED = "Observed"
"""The type of the condition of a component that says whether its members were read in the last reconcile."""
SETTINGS_OVERRIDDEN = "SettingsOverridden"
FIELDS_IGNORED = "FieldsIgnored"
CHANGES_PENDING = "ChangesPending"
"""The type of the condition that names the operator's own changes which wait for the user's next change."""
WITHOUT_EFFECT = (UNKNOWN_FIELDS, SETTINGS_OVERRIDDEN, FIELDS_IGNORED)
"""The types of conditions that name ineffective settings of the user."""


class ClusterCondition(Model, kw_only=True):
    """An entry of `status.conditions` (lifecycle.md 2.3)."""

    type: str
    status: str
    last_update_time: NullableTime = None
    last_transition_time: NullableTime = None
    reason: str = ""
    message: str = ""


class ClusterStatus(Model, kw_only=True):
    """The status as the operator last wrote it."""

    conditions: Annotated[list[ClusterCondition], Meta(extra_json_schema={"nullable": True})] = []

    @property
    def cluster_id(self) -> str:
        """The id of the PD cluster; empty without PD."""
        return ""


class Cluster(Model, kw_only=True):
    """A cluster: what the user wants, and what the operator last saw.

    `LABELLED_NAME` is the label `app.kubernetes.io/name` of its objects. `HAS_INSTANCE_LABEL`: the cluster's own label
    `app.kubernetes.io/instance` overrides the instance label of its objects.
    """

    LABELLED_NAME: ClassVar[str] = "tidb-cluster"
    HAS_INSTANCE_LABEL: ClassVar[bool] = True

    api_version: str = "pingcap.com/v1alpha1"
    kind: str
    metadata: Metadata
    spec: ClusterSpec
    status: ClusterStatus
