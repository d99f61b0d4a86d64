"""One reconcile of one cluster: what the stages see and through what they act.

The spec is defaulted in memory and never written. The status is this reconcile's working copy; the sync patches it at
the end when it differs from what is stored. Listers are caches: what they lack may only be unseen (F1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeAlias

from apis.cluster import Cluster
from apis.consent import BY_CONSENT, ReferencePolicy
from apis.dmcluster import DMCluster, DMClusterStatus
from apis.tidbcluster import TidbCluster, TidbClusterStatus
from dataplane.addresses import Address
from dataplane.clients import DataPlane
from dataplane.pd import Store
from dataplane.tls import TlsMaterial
from kube.apply import Applier
from kube.client import Client
from kube.events import EventRecorder
from kube.objects import Object
from kube.reading import Lister, Readings
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, Resource
from kube.secret_reads import Reader, SecretReads
from member.availability import Verdict
from member.backups.pods import ManagerSettings
from member.memory.certificate_book import CertificateBook
from member.memory.cluster import ClusterMemory
from member.naming import member_name
from member.outcome import Outcome
from ports.clock import Clock
from ports.randomness import Randomness, SecretRandomness

RESOURCES: Mapping[str, Resource] = {each.kind: each for each in (TIDB_CLUSTERS, DM_CLUSTERS)}
"""The kinds of clusters, by name."""


@dataclass(frozen=True, slots=True)
class Listers:
    """The caches that stages read.

    Those of cluster-scoped resources are None when the operator has no access to them: what needs them is skipped
    (lifecycle.md 1.4). Of volumes, only those labelled as ours are cached. Without `restores`, none needs a cluster.
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
        """The same listers, whose answers are noted."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return Listers(**{name: lister and readings.through(lister) for name, lister in given.items()})


@dataclass(frozen=True, slots=True)
class FailoverSettings:
    """Whether and when lost members are replaced (lifecycle.md 9.1). Periods are seconds."""

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
    """What the process was told at its start and the stages need."""

    discovery_image: str
    failover: FailoverSettings = FailoverSettings()
    replaces_volumes: bool = False
    rechecks: bool = False
    """Whether what is decided once is decided again on the same inputs, and compared: for tests."""
    backup_manager: ManagerSettings = field(default_factory=ManagerSettings)
    references: ReferencePolicy = BY_CONSENT
    """Which references into other namespaces need no consent of the owner."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What stages work with: the ways to the outside, the caches, and what the process was told.

    `certificates`: what it has found of those of all clusters.
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


class Held(Enum):
    """How far a cluster is cared for at its last valid spec, while the present one is not valid."""

    NO = "no"
    OBSERVING = "this process has not seen it"
    REMAKING = "what is gone is made again"


@dataclass(slots=True)
class ClusterContext:
    """One reconcile of a cluster, whatever its kind.

    `owner` is the cached object; `tc` its decoded and defaulted form, with the working copy of the status.
    `observations` holds what looking at each component gave, `outcomes` what the stages answered so far. `pods` are
    those of each component, as they were when first looked at. `owner_lives`: a live read of this reconcile has found
    the cluster. `removed` are the components that run although the spec has them no more; `tc` has them as they run.
    `unavailable` are the verdicts on components that are out of service. `missing_certificates` says which Secrets of
    TLS are of no use, where running pods are to mount other ones than now.
    `rolls_to_come` are those whose pods are to be restarted, or may be for all that is known, and that have not begun.
    While the cluster is `held`, `owner` and `tc` have its last valid spec. `memory` outlives the reconcile. `readings`
    are what the caches have answered.
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
    held: Held = Held.NO
    memory: ClusterMemory = field(default_factory=ClusterMemory)
    pods: dict[str, Sequence[Object]] = field(default_factory=dict)
    tls: TlsMaterial | None = field(default=None, repr=False)
    readings: Readings = field(default_factory=Readings, repr=False)

    @property
    def resource(self) -> Resource:
        """The kind of the cluster."""
        return RESOURCES[self.tc.kind]

    @property
    def listers(self) -> Listers:
        """The caches that stages read."""
        return self.deps.listers

    @property
    def settings(self) -> Settings:
        """What the process was told at its start."""
        return self.deps.settings

    @property
    def namespace(self) -> str:
        """The namespace of the cluster and of all that is made for it."""
        return self.owner.metadata.namespace

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return self.owner.metadata.name

    @property
    def reader(self) -> Reader:
        """On whose behalf Secrets are read."""
        return self.resource, self.owner.key

    def secret(self, name: str) -> Object | None:
        """A Secret beside the cluster, read live. Its next change brings the cluster back.

        Raises ApiError, TransportError.
        """
        return self.deps.secrets.find(self.reader, name, self.namespace)

    def stateful_set(self, component: str) -> Object | None:
        """The cached StatefulSet of a component."""
        return self.listers.stateful_sets.get(self.namespace, member_name(self.tc, component))


OwnContext: TypeAlias = Any
"""In what components bring to the frames that serve them all: the context of their own kind of cluster."""

OwnCluster: TypeAlias = Any
"""As `OwnContext`: the cluster."""


@dataclass(slots=True)
class ReconcileContext(ClusterContext):
    """One reconcile of a TidbCluster.

    `pd_url`: a member of PD to ask instead of the Service, which may lead to one that is ill. `unstarted_pd_members`:
    whether PD, when asked, had members that never started. `reference_refusal`: what keeps the cluster from the one
    that it joins, once `api_clients.reference_refusal` has looked. `stores` are those that PD lists, once it was asked,
    but the ones that are Tombstone, as they were when components were observed.
    """

    tc: TidbCluster
    stores: tuple[Store, ...] = ()
    pd_url: Address | None = None
    unstarted_pd_members: bool = False
    reference_refusal: str | None = None

    @property
    def status(self) -> TidbClusterStatus:
        """The working copy of the status."""
        return self.tc.status


@dataclass(slots=True)
class DMContext(ClusterContext):
    """One reconcile of a DMCluster.

    `responding_master` is the pod whose master is asked where the Service leads to none that serves.
    """

    tc: DMCluster
    responding_master: str = ""

    @property
    def status(self) -> DMClusterStatus:
        """The working copy of the status."""
        return self.tc.status
