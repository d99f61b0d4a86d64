"""The common part of all stores: they register with PD, then send heartbeats until they end
(dataplane-apis.md 15.2).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.stores import Heartbeat, NodeState, Store, StoreRefused
from sandbox.dataplane.processes import Disk, Exit, Launch


@dataclass(slots=True)
class StoreData:
    """A store's data on its disk."""

    cluster_id: int
    store: int


class StoreMembership:
    """The registration of one process as a store."""

    def __init__(
        self,
        launch: Launch,
        deps: Dependencies,
        disk: Disk,
        pd: str,
        make: Callable[[int, Heartbeat], Store],
        *,
        bootstraps: bool,
    ) -> None:
        """`pd` are PD's addresses, `make` creates the store for an id. Without `bootstraps` it waits for another store
        to do so.
        """
        self._launch = launch
        self._deps = deps
        self._disk = disk
        self._pd = pd
        self._make = make
        self._bootstraps = bootstraps
        self._cluster: PdCluster | None = None
        self.refusal: Exit | None = None
        """Why PD refuses the store, so that its process ends."""

    @property
    def cluster(self) -> PdCluster | None:
        """The cluster that has accepted the store."""
        return self._cluster

    @property
    def is_registered(self) -> bool:
        """True if PD has accepted the store."""
        return self._cluster is not None

    @property
    def store(self) -> Store | None:
        """The store in PD; None before it is registered."""
        data = self._disk.data
        if self._cluster is None or not isinstance(data, StoreData):
            return None
        return next((store for store in self._cluster.stores.all() if store.id == data.store), None)

    def keep(self, now: float) -> float:
        """Register or send a heartbeat; return the seconds until the next time."""
        return self._report(now) if self._cluster is not None else self._register(now)

    def died(self) -> None:
        """Record that the process has ended."""
        data = self._disk.data
        if self._cluster is not None and isinstance(data, StoreData):
            self._cluster.stores.died(data.store, self._deps.clock.now())

    def _register(self, now: float) -> float:
        timings = self._deps.timings
        cluster = find_pd(self._pd, self._launch, self._deps)
        if cluster is None or not (self._bootstraps or cluster.stores.bootstrapped):
            return timings.dependency_retry
        data = self._disk.data
        if isinstance(data, StoreData) and data.cluster_id != cluster.id:
            self.refusal = Exit(1, f"cluster ID mismatch, local {data.cluster_id} != remote {cluster.id}")
            return timings.store_heartbeat
        if not isinstance(data, StoreData):
            data = StoreData(cluster.id, cluster.stores.allocate())
            self._disk.data = data
        try:
            cluster.stores.register(self._make(data.store, self._beat(now)), now)
        except StoreRefused as refused:
            self.refusal = Exit(1, refused.message)
            return timings.store_heartbeat
        self._cluster = cluster
        return timings.store_heartbeat

    def _report(self, now: float) -> float:
        cluster = find_pd(self._pd, self._launch, self._deps)
        data = self._disk.data
        if cluster is not None and isinstance(data, StoreData) and cluster is self._cluster:
            store = self.store
            if store is not None and store.node_state is not NodeState.REMOVED:
                cluster.stores.heartbeat(data.store, self._beat(now))
        return self._deps.timings.store_heartbeat

    def _beat(self, now: float) -> Heartbeat:
        return Heartbeat(now, self._deps.clock.wall().timestamp())
