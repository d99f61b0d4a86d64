"""The nodes of the world and their heartbeats."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from kube.objects import Json
from kube.resources import LEASES, NODES
from sandbox.cluster import Cluster
from sandbox.conditions import with_condition
from sandbox.kubelet.faults import KubeletFaults
from sandbox.kubelet.stored_images import StoredImages
from sandbox.quantities import canonical
from sandbox.stamps import micro_stamp, stamp
from sandbox.timings import Timings

LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40
_TTL = "node.alpha.kubernetes.io/ttl"
_SYSTEM: Json = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    "osImage": "sandbox",
    "kernelVersion": "0.0.0",
    "containerRuntimeVersion": "sandbox://0.0.0",
    "kubeletVersion": "v1.36.3",
    "kubeProxyVersion": "",
}
"""The system information of a simulated machine."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A simulated machine."""

    name: str
    address: str
    zone: str
    region: str = "sandbox"
    cpu: str = "64"
    memory: str = "256Gi"
    pods: int = 250
    labels: dict[str, str] = field(default_factory=dict)

    def tree(self) -> Json:
        """The Node object."""
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": self.zone,
            "topology.kubernetes.io/region": self.region,
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels | self.labels, "annotations": {_TTL: "0"}},
            "spec": {},
        }


def three_nodes() -> tuple[NodeSpec, ...]:
    """Three machines in three zones."""
    return tuple(NodeSpec(f"node-{index}", f"192.168.0.{index + 10}", f"zone-{index}") for index in range(3))


class Nodes:
    """Registers the machines, reports for them and renews their Leases: a separate actor."""

    name = "nodes"
    watches: tuple[Hashable, ...] = (NODES,)

    def __init__(self, cluster: Cluster, specs: Iterable[NodeSpec], timings: Timings) -> None:
        self._cluster = cluster
        self._heartbeat = timings.node_heartbeat
        self._renewal = timings.node_lease_renewal
        self._grace = timings.node_monitor_grace
        self._silent_since: dict[str, float] = {}
        self._due = self._renewal_due = 0.0
        self._reported: dict[str, tuple[Json, NodeSpec, bool, Sequence[Json]]] = {}
        """By name: the last Node without anything left to report, its machine, whether this was alive, its images."""
        self.specs = {spec.name: spec for spec in specs}
        self.images = StoredImages()
        self.faults = KubeletFaults()

    def step(self) -> float:
        """Register, report, and renew Leases when that is due; return when to run again."""
        now = self._cluster.clock.now()
        self._silent_since = {
            name: self._silent_since.get(name, now) for name in self.specs if self.faults.is_silent(name)
        }
        for spec in self.specs.values():
            node = self._cluster.get(NODES, "", spec.name)
            if node is not None:
                self._report(spec, node, now)
            elif not self.faults.is_silent(spec.name):
                self._cluster.create(NODES, spec.tree())
        if now >= self._renewal_due:
            self._renew()
            self._renewal_due = now + self._renewal
        if now >= self._due:
            self._due = now + self._heartbeat
        missed = (since + self._grace for since in self._silent_since.values())
        return min([self._due, self._renewal_due, *(time for time in missed if time > now)])

    def _report(self, spec: NodeSpec, node: Json, now: float) -> None:
        silent_since = self._silent_since.get(spec.name)
        if silent_since is not None and now < silent_since + self._grace:
            return
        alive = silent_since is None
        known, reported, was_alive, listed = self._reported.get(spec.name, (None, None, False, ()))
        before: Json = node.get("status", {})
        if known is None:
            self.images.recall(spec.name, before.get("images") or ())
        images = self.images.listed(spec.name) if alive else before.get("images", ())
        if known is node and reported is spec and was_alive == alive and listed is images:
            return
        # as the API server keeps quantities, or each report would be a change
        capacity = {"cpu": canonical(spec.cpu), "memory": canonical(spec.memory), "pods": str(spec.pods)}
        conditions = with_condition(
            before.get("conditions"),
            "Ready",
            alive or None,
            stamp(self._cluster.clock.wall()),
            reason="KubeletReady" if alive else "NodeStatusUnknown",
            message="kubelet is posting ready status" if alive else "Kubelet stopped posting node status.",
        )
        wanted = {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": conditions,
            "nodeInfo": _SYSTEM | {"machineID": spec.name, "systemUUID": spec.name, "bootID": spec.name},
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "addresses": [{"type": "InternalIP", "address": spec.address}, {"type": "Hostname", "address": spec.name}],
        } | ({"images": images} if images else {})
        if any(before.get(key) != value for key, value in wanted.items()):
            self._cluster.set_status(NODES, node, before | wanted)
        else:
            self._reported[spec.name] = node, spec, alive, images

    def _renew(self) -> None:
        """Renew the Leases of the nodes that are not silent."""
        for name in self.specs:
            if self.faults.is_silent(name):
                continue
            renewed = micro_stamp(self._cluster.clock.wall())
            spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": renewed}
            self._cluster.put(
                LEASES,
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
                    "spec": spec,
                },
            )
