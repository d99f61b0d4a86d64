"""The context of one reconcile of a cluster: what stages read, and the clients through which they act.

The spec is defaulted in memory and never written. The status is this reconcile's working copy; the sync patches it at
the end if it differs from the stored one. Listers are caches: an object that they lack may exist (F1).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import msgspec

from apis.cluster import Cluster
from apis.consent import BY_CONSENT, ReferencePolicy
from apis.decoding import decode_json
from apis.dmcluster import DMCluster, DMClusterStatus
from apis.tidbcluster import TidbCluster, TidbClusterStatus
from dataplane.addresses import Address
from dataplane.clients import DataPlane
from dataplane.pd import Store
from dataplane.tls import TlsMaterial
from kube.apply import Applier
from kube.client import Client
from kube.events import EventRecorder
from kube.objects import Json, Object
from kube.reading import Lister, NotedLister, Readings
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, Resource
from kube.secret_reads import Reader, SecretReads
from member.availability import Verdict
from member.backups.pods import ManagerSettings
from member.memory import CertificateBook, ClusterMemory
from member.outcome import Outcome, Refused
from ports.clock import Clock
from ports.randomness import Randomness, SecretRandomness

T = TypeVar("T")

RESOURCES: Mapping[str, Resource] = {each.kind: each for each in (TIDB_CLUSTERS, DM_CLUSTERS)}
"""The resources of clusters, by kind."""


@dataclass(frozen=True, slots=True)
class Listers:
    """The caches that stages read.

    A lister of a cluster-scoped resource is None if the operator has no access; steps that need it are skipped
    (lifecycle.md 1.4). `persistent_volumes` holds only volumes with the operator's labels. If `restores` is None, no
    Restore needs a cluster.
    """

    config_maps: Lister
    deployments: Lister
    persistent_volume_claims: Lister
    pods: Lister
    role_bindings: Lister
    roles: Lister
    service_accounts: Lister
    services: Lister
    stateful_sets: Lister
    tidb_clusters: Lister
    persistent_volumes: Lister | None = None
    nodes: Lister | None = None
    storage_classes: Lister | None = None
    restores: Lister | None = None

    def through(self, readings: Readings) -> "Listers":
        """The same listers, with their answers recorded in `readings`."""
        given = [getattr(self, each.name) for each in fields(self)]
        return Listers(*[lister and NotedLister(lister, readings) for lister in given])


@dataclass(frozen=True, slots=True)
class FailoverSettings:
    """Settings of failover: whether and when lost members are replaced (lifecycle.md 9.1). Periods in seconds."""

    auto: bool = True
    pd_period: float = 300.0
    tikv_period: float = 300.0
    tidb_period: float = 300.0
    detect_node_failure: bool = False
    pod_hard_recovery_period: float = 86400.0
    tiflash_period: float = 300.0
    dm_master_period: float = 300.0
    dm_worker_period: float = 300.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the process that stages need."""

    discovery_image: str
    failover: FailoverSettings = FailoverSettings()
    replaces_volumes: bool = False
    modifies_volumes: bool = False
    """True if a volume gets another storage class in place, where its driver can do that."""
    advanced_stateful_sets: bool = False
    """True if pods are in StatefulSets of apps.pingcap.com/v1, which skip the ordinals in delete slots."""
    rechecks: bool = False
    """True if each decision is repeated with the same inputs and compared, for tests."""
    backup_manager: ManagerSettings = field(default_factory=ManagerSettings)
    references: ReferencePolicy = BY_CONSENT
    """The references into other namespaces that need no consent of the owner."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The clients, caches and settings that stages work with.

    `certificates` is shared: what the process has found in the certificates of all clusters.
    """

    client: Client
    secrets: SecretReads
    applier: Applier
    dataplane: DataPlane
    recorder: EventRecorder
    clock: Clock
    settings: Settings
    listers: Listers
    certificates: CertificateBook = field(default_factory=CertificateBook)
    passwords: Randomness = field(default_factory=SecretRandomness)


@dataclass(frozen=True, slots=True)
class LabelledPods:
    """The cached pods with the labels of a cluster, by name: its own pods, and foreign ones.

    `found` is the answer of the cache with both, after so many `changes`.
    """

    changes: int
    found: Sequence[Object]
    own: Sequence[Object]
    others: Sequence[Object]


class Held(Enum):
    """How far the operator maintains a cluster at its last valid spec, while the present spec is not valid."""

    NO = "no"
    OBSERVING = "this process has not seen it"
    REMAKING = "missing objects are recreated"


@dataclass(slots=True)
class ClusterContext:
    """One reconcile of a cluster of any kind.

    `owner` is the cached object; `tc` is its decoded and defaulted form, with the working copy of the status. While the
    cluster is `held`, both have its last valid spec. `memory` outlives the reconcile.

    `observations` holds the outcome of observing each component, `outcomes` the outcomes of the stages so far. `pods`
    are the pods of each component, as first read in this reconcile. `labelled_pods` are the pods with the cluster's
    labels, as last read. `readings` records the answers of the caches.
    `owner_lives`: a live read of this reconcile has found the cluster.

    `removed` are components that run although the spec lacks them; `tc` has them as they run. `unavailable` are the
    verdicts on components that are out of service. `missing_certificates` names unusable TLS Secrets that running pods
    would mount after their next restart. `rolls_to_come` are components whose pods will or may have to be restarted,
    and whose roll has not begun. `volume_turns` names, by component, the pod that waits for the new storage class of
    its volumes before it restarts. `refused_upgrades` are components that do not take the version in the spec, and why.
    """

    owner: Object
    tc: Cluster
    deps: Dependencies
    observations: dict[str, Outcome] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    owner_lives: bool = False
    removed: frozenset[str] = frozenset()
    unavailable: dict[str, Verdict] = field(default_factory=dict)
    missing_certificates: str = ""
    rolls_to_come: set[str] = field(default_factory=set)
    volume_turns: dict[str, str] = field(default_factory=dict)
    refused_upgrades: dict[str, Refused] = field(default_factory=dict)
    held: Held = Held.NO
    memory: ClusterMemory = field(default_factory=ClusterMemory)
    pods: dict[str, Sequence[Object]] = field(default_factory=dict)
    labelled_pods: LabelledPods | None = None
    tls: TlsMaterial | None = field(default=None, repr=False)
    readings: Readings = field(default_factory=Readings, repr=False)
    _stored_status: Any = field(default=None, repr=False)
    _trees: dict[Object, Json] = field(default_factory=dict, repr=False)
    namespace: str = field(init=False)
    """The namespace of the cluster and of all its objects."""
    name: str = field(init=False)
    """The name of the cluster."""
    listers: Listers = field(init=False, repr=False)
    """The caches that stages read."""
    status: Any = field(init=False, repr=False)
    """The working copy of the status, which is part of `tc`."""

    def __post_init__(self) -> None:
        """Take the names from the owner; stages replace it only by newer versions of the same object."""
        self.namespace, self.name = self.owner.metadata.namespace, self.owner.metadata.name
        self.listers, self.status = self.deps.listers, self.tc.status

    @property
    def resource(self) -> Resource:
        """The resource of the cluster's kind."""
        return RESOURCES[self.tc.kind]

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self.deps.settings

    @property
    def reader(self) -> Reader:
        """The cluster as a reader of Secrets: their changes trigger its reconcile."""
        return self.resource, self.owner.key

    def tree(self, cached: Object) -> Json:
        """A cached object as a tree that its readers share in this reconcile. They must not change it."""
        tree = self._trees.get(cached)
        if tree is None:
            tree = self._trees[cached] = cached.decode()
        elif self.deps.settings.rechecks and tree != cached.decode():
            raise AssertionError(f"a reader has changed {cached!r}")
        return tree

    def designed(self, what: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """The immutable result of `make`, which reads nothing but the cluster's metadata and spec, and `what`.

        It is made once for each spec.
        """
        return self.memory.designs.of(self.tc, what, make, rechecks=self.deps.settings.rechecks)

    def designed_tree(self, what: tuple[Hashable, ...], make: Callable[[], Json]) -> Json:
        """Like `designed`; each caller gets a fresh tree."""
        tree: Json = msgspec.json.decode(self.designed(what, lambda: msgspec.json.encode(make())))
        return tree

    @property
    def stored_status(self) -> Any:
        """The status that this reconcile started with; its type depends on the cluster's kind."""
        if self._stored_status is None:
            self._stored_status = decode_json(self.owner.raw, type(self.tc), is_checked=True).status
        return self._stored_status

    def secret(self, name: str) -> Object | None:
        """Read a Secret of the cluster's namespace live. Its next change triggers a reconcile.

        Raises ApiError, TransportError.
        """
        return self.deps.secrets.find(self.reader, name, self.namespace)

    def stateful_set(self, component: str) -> Object | None:
        """The StatefulSet of a component, from the cache."""
        return self.listers.stateful_sets.get(self.namespace, f"{self.name}-{component}")


OwnContext: TypeAlias = Any
"""The context of the component's own kind of cluster, in signatures of verbs that serve several kinds."""

OwnCluster: TypeAlias = Any
"""Like `OwnContext`, for the cluster."""


@dataclass(slots=True)
class ReconcileContext(ClusterContext):
    """One reconcile of a TidbCluster.

    `pd_url`: a member of PD to call instead of the Service, which may lead to an unhealthy one. `unstarted_pd_members`:
    True if PD has reported members that never started. `reference_refusal`: why the cluster may not join the one that
    it refers to, once `api_clients.reference_refusal` has run. `stores`: the stores that PD listed when components were
    observed, without Tombstones. `listed_stores`: all of them, if they were requested together with PD's members.
    """

    tc: TidbCluster
    stores: tuple[Store, ...] = ()
    listed_stores: tuple[Store, ...] | None = None
    pd_url: Address | None = None
    unstarted_pd_members: bool = False
    reference_refusal: str | None = None
    status: TidbClusterStatus = field(init=False, repr=False)


@dataclass(slots=True)
class DMContext(ClusterContext):
    """One reconcile of a DMCluster.

    `responding_master` is the pod whose master is called if the Service leads to none that serves.
    """

    tc: DMCluster
    responding_master: str = ""
    status: DMClusterStatus = field(init=False, repr=False)
