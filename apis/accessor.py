"""One component as builders see it: cluster level and component level merged (defaults-and-validation.md 6).

`component(tc, "pd")` is the one place where a builder reads what both levels can say. What only one component knows,
such as `spec.tikv.storeLabels`, it reads from `tc.spec` itself. Trees that are handed out belong to the model: copy
before changing.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec

from apis import images
from apis.cluster import Cluster, ClusterSpec
from apis.component_specs import DiscoverySpec, PDMSSpec
from apis.components import ComponentType, component_type, component_types
from apis.config import put_if_absent, tables
from apis.identity import INSTANCE_LABEL, instance_name
from apis.shared import ComponentSpec, Config, Json, Quantity, TopologySpreadConstraint, WorkloadSpec
from apis.tidbcluster import TidbCluster
from apis.toml import Table

COMPONENT_LABEL = "app.kubernetes.io/component"
DEFAULT_HELPER_IMAGE = "busybox:1.26.2"
"""v1.6's. A newer one would change the pod template of every TiDB that logs slow queries, and roll it at take-over."""


T = TypeVar("T")


class AbsentComponent(LookupError):
    """Raised when a cluster's spec lacks the requested component."""


class Component(msgspec.Struct, frozen=True, dict=True):
    """A component of one cluster.

    `name` is its member type. `type` holds the facts that are the same in every cluster. What many builders and checks
    read of it is computed once.
    """

    name: str
    type: ComponentType
    tc: Cluster
    spec: ComponentSpec

    @cached_property
    def field(self) -> str:
        """The path of its spec."""
        return self.type.slot.field(self.tc.spec)

    @property
    def cluster(self) -> ClusterSpec:
        """The spec of the cluster."""
        return self.tc.spec

    @cached_property
    def workload(self) -> WorkloadSpec:
        """The spec of a component with replicas. Raises TypeError for Discovery."""
        if not isinstance(self.spec, WorkloadSpec):
            raise TypeError(f"{self.name} has no replicas of its own")
        return self.spec

    # The image, and the version it carries

    @cached_property
    def image(self) -> str:
        """The image of the main container; empty if the spec names none.

        Discovery has no image in the spec: it runs the operator's.
        """
        if isinstance(self.spec, DiscoverySpec):
            return ""
        if self.runs_image_field:
            return self.spec.image
        return images.with_version(self.workload.base_image or "", self.wanted_version) or self._image_of_pd()

    @cached_property
    def wanted_version(self) -> str:
        """The version that the spec chooses, the component's before the cluster's; empty when it chooses none."""
        return (self.tc.spec.version if self.spec.version is None else self.spec.version) or ""

    @cached_property
    def runs_image_field(self) -> bool:
        """True if the deprecated field `image` says what runs: no version is chosen, nor an image to add one to.

        The CRD fills in `baseImage`, so its default is not the user's choice (defaults-and-validation.md 2.1).
        """
        if not self.spec.image or self.wanted_version:
            return False
        return self.workload.base_image in (None, "", self.type.default_image)

    @property
    def version_field(self) -> str:
        """The path of the field that says which version runs."""
        if self.runs_image_field:
            return f"{self.field}.image"
        return "spec.version" if self.spec.version is None else f"{self.field}.version"

    def _image_of_pd(self) -> str:
        """The image of PD microservices without an image."""
        pd = find(self.tc, "pd") if isinstance(self.spec, PDMSSpec) else None
        return pd.image if pd else ""

    @property
    def version(self) -> str:
        """The version the image carries, for decisions: see `images.order`."""
        return images.version_of(self.image)

    @property
    def image_pull_policy(self) -> str:
        """The pull policy of the main container."""
        own = self.spec.image_pull_policy
        return self.tc.spec.image_pull_policy if own is None else own

    @property
    def image_pull_secrets(self) -> list[Json]:
        """The component's list, else the cluster's."""
        return self.spec.image_pull_secrets or self.tc.spec.image_pull_secrets

    # Where the pods run, and with which identity

    @property
    def host_network(self) -> bool:
        """True if pods use the network of their node."""
        return bool(_own(self.spec.host_network, self.tc.spec.host_network))

    @property
    def affinity(self) -> Json | None:
        """Replaced as a whole, never merged."""
        return _own(self.spec.affinity, self.tc.spec.affinity)

    @property
    def node_selector(self) -> dict[str, str]:
        """Merged by key."""
        return {**self.tc.spec.node_selector, **self.spec.node_selector}

    @property
    def tolerations(self) -> list[Json]:
        """The component's list, else the cluster's."""
        return self.spec.tolerations or self.tc.spec.tolerations

    @property
    def topology_spread_constraints(self) -> list[Json]:
        """For a pod spec: the component's list, else the cluster's, with selectors (objects.md 3.4)."""
        constraints = self.spec.topology_spread_constraints or self.tc.spec.topology_spread_constraints
        return [self._spread(constraint) for constraint in constraints]

    def _spread(self, constraint: TopologySpreadConstraint) -> Json:
        chosen = constraint.match_labels
        result: Json = {
            "maxSkew": max(constraint.max_skew, 1),
            "topologyKey": constraint.topology_key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {
                "matchLabels": {
                    "app.kubernetes.io/name": self.tc.LABELLED_NAME,
                    "app.kubernetes.io/managed-by": "tidb-operator",
                    COMPONENT_LABEL: chosen.get(COMPONENT_LABEL, self.type.label),
                    INSTANCE_LABEL: chosen.get(INSTANCE_LABEL, instance_name(self.tc) + self.type.instance_suffix),
                }
            },
        }
        if constraint.min_domains is not None:
            result["minDomains"] = constraint.min_domains
        if constraint.node_affinity_policy is not None:
            result["nodeAffinityPolicy"] = constraint.node_affinity_policy
        return result

    @property
    def priority_class_name(self) -> str | None:
        """None: the API server's default."""
        return _own(self.spec.priority_class_name, self.tc.spec.priority_class_name)

    @property
    def scheduler_name(self) -> str:
        """Empty: the API server's default."""
        return _own(self.spec.scheduler_name, self.tc.spec.scheduler_name)

    @property
    def pod_security_context(self) -> Json | None:
        """Replaced as a whole, never merged."""
        return _own(self.spec.pod_security_context, self.tc.spec.pod_security_context)

    @property
    def service_account(self) -> str:
        """The component's, else the cluster's; PD microservices too. Empty: the namespace's default."""
        own = "" if isinstance(self.spec, DiscoverySpec) else self.workload.service_account
        return own or self.tc.spec.service_account

    @property
    def automount_service_account_token(self) -> bool | None:
        """Component only; None is left out."""
        return self.spec.automount_service_account_token

    @property
    def dns_config(self) -> Json | None:
        """Replaced as a whole, never merged."""
        return _own(self.spec.dns_config, self.tc.spec.dns_config)

    @property
    def dns_policy(self) -> str:
        """Always written."""
        fallback = "ClusterFirstWithHostNet" if self.host_network else "ClusterFirst"
        return self.spec.dns_policy or self.tc.spec.dns_policy or fallback

    @property
    def termination_grace_period_seconds(self) -> int | None:
        """Component only; None is left out."""
        return self.spec.termination_grace_period_seconds

    # Metadata of the pods

    @property
    def labels(self) -> dict[str, str]:
        """The user's pod labels, merged by key. The four base labels win over these."""
        return {**self.tc.spec.labels, **self.spec.labels}

    @property
    def annotations(self) -> dict[str, str]:
        """The user's pod annotations, merged by key. These win over the operator's own."""
        return {**self.tc.spec.annotations, **self.spec.annotations}

    # Containers

    @property
    def security_context(self) -> Json | None:
        """The security context of the main container. The cluster has no default for it."""
        return self.spec.security_context

    @property
    def resources(self) -> Json:
        """The main container's requests, limits and claims without `storage`; empty parts are left out."""
        return container_resources(self.spec.requests, self.spec.limits, self.spec.claims)

    @property
    def storage_request(self) -> Quantity | None:
        """The size of the data volume."""
        return self.workload.data_size

    def env(self, builtin: Sequence[Json]) -> list[Json]:
        """`builtin`, then the user's entries of other names, in their order."""
        reserved = {entry["name"] for entry in builtin}
        return [*builtin, *(entry for entry in self.spec.env if entry["name"] not in reserved)]

    @property
    def env_from(self) -> list[Json]:
        """Component only."""
        return self.spec.env_from

    # Replacement of pods

    @property
    def pod_management_policy(self) -> str:
        """`OrderedReady` for exactly that word, else `Parallel`; Pump defaults to `OrderedReady`."""
        chosen = (
            self.spec.pod_management_policy or self.tc.spec.pod_management_policy or self.type.pod_management_policy
        )
        return "OrderedReady" if chosen == "OrderedReady" else "Parallel"

    @property
    def stateful_set_update_strategy(self) -> str:
        """`RollingUpdate` unless the user chose another."""
        return self.spec.stateful_set_update_strategy or self.tc.spec.stateful_set_update_strategy or "RollingUpdate"

    @property
    def config_update_strategy(self) -> str:
        """`InPlace` or `RollingUpdate`; a component's empty string means InPlace."""
        if self.type.configured_in_place:
            return "InPlace"
        own = self.spec.config_update_strategy
        return (self.tc.spec.config_update_strategy if own is None else own) or "InPlace"

    @property
    def suspended(self) -> bool:
        """True if the StatefulSet should be gone for now; the component's action replaces the cluster's."""
        action = _own(self.spec.suspend_action, self.tc.spec.suspend_action)
        return action is not None and action.suspend_stateful_set

    @property
    def scale_in_parallelism(self) -> int:
        """The number of pods that may be removed at a time; one for a component without a scale policy."""
        policy = self.workload.scaling_policy
        return (policy.scale_in_parallelism if policy else None) or 1

    @property
    def scale_out_parallelism(self) -> int:
        """The number of pods that may be added at a time; one for a component without a scale policy."""
        policy = self.workload.scaling_policy
        return (policy.scale_out_parallelism if policy else None) or 1

    # Configuration

    @property
    def config(self) -> Config | None:
        """The user's configuration; for TiFlash the server's part. Its proxy's is `tc.spec.tiflash.config.proxy`."""
        return self.workload.server_config

    def config_tables(self) -> Table:
        """The user's configuration with the operator's defaults, fresh; absent counts as empty (objects.md 1.1).

        Raises InvalidField, which validation finds first.
        """
        result = tables(self.config, self.type.config, self.config_field)
        for path, value in self.type.config.defaults.items():
            put_if_absent(result, path, value)
        return result

    @property
    def config_field(self) -> str:
        """The path of the configuration."""
        return f"{self.field}.{self.workload.config_path}"


def _own(own: T | None, cluster: T) -> T:
    return cluster if own is None else own


def component(tc: Cluster, name: str) -> Component:
    """The component of a member type.

    Raises AbsentComponent when the spec does not have it.
    """
    found = find(tc, name)
    if found is None:
        raise AbsentComponent(f"{tc.kind} {tc.metadata.namespace}/{tc.metadata.name} has no spec for {name}")
    return found


def find(tc: Cluster, name: str) -> Component | None:
    """The component of a member type, None when the spec does not have it."""
    row = component_type(name)
    spec = row.slot.spec(tc.spec)
    return None if spec is None else Component(name, row, tc, spec)


def components(tc: Cluster) -> list[Component]:
    """The components the spec has, Discovery always, in the order of the table."""
    rows = component_types(tc.kind)
    return [Component(row.name, row, tc, spec) for row in rows if (spec := row.slot.spec(tc.spec)) is not None]


def workloads(tc: Cluster) -> list[Component]:
    """The components of the spec that run in a StatefulSet, in the order of the table."""
    rows = component_types(tc.kind)
    return [
        Component(row.name, row, tc, spec) for row in rows if isinstance(spec := row.slot.spec(tc.spec), WorkloadSpec)
    ]


def container_resources(
    requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], claims: Sequence[Json] = ()
) -> Json:
    """Resources of a container without `storage`, which is the size of a volume; empty parts are left out."""
    result: Json = {
        "requests": {name: quantity for name, quantity in requests.items() if name != "storage"},
        "limits": {name: quantity for name, quantity in limits.items() if name != "storage"},
        "claims": list(claims),
    }
    return {part: content for part, content in result.items() if content}


def helper_image(tc: Cluster) -> str:
    """The image of tailers and init containers (objects.md 3.2)."""
    if not isinstance(tc, TidbCluster):
        return DEFAULT_HELPER_IMAGE
    tailer = tc.spec.tidb.slow_log_tailer if tc.spec.tidb else None
    own = tc.spec.helper.image if tc.spec.helper else None
    return own or (tailer.image if tailer else None) or DEFAULT_HELPER_IMAGE


def helper_image_pull_policy(tc: Cluster) -> str:
    """The pull policy of tailers (objects.md 3.2)."""
    if not isinstance(tc, TidbCluster):
        return tc.spec.image_pull_policy
    tailer = tc.spec.tidb.slow_log_tailer if tc.spec.tidb else None
    own = tc.spec.helper.image_pull_policy if tc.spec.helper else None
    return own or (tailer.image_pull_policy if tailer else None) or tc.spec.image_pull_policy
