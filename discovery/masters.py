"""Discovery's answers to DM masters (objects.md 10.4); the argument in `bootstrap` also applies to them.

A cluster is known to exist from its status, or from volume claims, which carry the ids of the masters whose data they
hold.
"""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from apis.dmcluster import DMCluster
from apis.identity import scheme
from dataplane.addresses import DM_MASTER_PEER_PORT, DM_MASTER_PORT
from dataplane.dm import LiveMaster
from dataplane.errors import DataPlaneError, Unavailable
from discovery.askers import Askers
from discovery.asking import Refused
from discovery.bootstrap import Claims, Evidence, desired_pods, is_ordered, leaving, not_the_turn, others_may_have_data
from discovery.memory import Memory
from ports.clock import Clock
from ports.transport import ConnectionRefused, RequestTimeout

_MASTER = "dm-master"
_LONGEST_READ = 1.0
_WAY_OUT = "restore a volume of a master, or give up all data: suspend the masters, delete their PVCs, and resume"


class DMClusters(Claims, Askers, Protocol):
    """Reads DMClusters, their pods and their claims."""

    def get(self, namespace: str, name: str) -> DMCluster:
        """The current cluster. Raises kube.errors.ApiError, TransportError."""

    def with_data(self, dc: DMCluster) -> Collection[str]:
        """The names of the claims that hold data of masters. Raises like `get`."""


class Masters(Protocol):
    """Reads the masters."""

    def masters(self, dc: DMCluster, timeout: float) -> Sequence[LiveMaster]:
        """The members that a cluster's masters list within `timeout` seconds. Raises DataPlaneError."""

    def answers(self, dc: DMCluster, ordinal: int, timeout: float) -> bool:
        """True unless the address of one master refuses connections. Raises no DataPlaneError."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A master; `address` is the peer address that it advertises."""

    cluster: str
    pod: str
    address: str


def asker(advertised: str) -> Asker:
    """The pod that advertises `<pod>.<cluster>-dm-master-peer:8291`. Raises Refused for any other address."""
    address = advertised.strip()
    host, _, port = address.rpartition(":")
    pod, _, service = host.partition(".")
    cluster = service.removesuffix("-dm-master-peer")
    ordinal = pod.removeprefix(f"{cluster}-dm-master-")
    if cluster == service or not cluster or "." in service or ordinal == pod or not ordinal.isdecimal() or not port:
        raise Refused(f"{address!r} is not an address <pod>.<cluster>-dm-master-peer:{DM_MASTER_PEER_PORT}")
    return Asker(cluster, pod, address)


class DMDiscovery:
    """Answers the start scripts of the masters in one namespace. Thread-safe."""

    def __init__(self, clusters: DMClusters, masters: Masters, clock: Clock, namespace: str) -> None:
        self._clusters = clusters
        self._masters = masters
        self._clock = clock
        self._namespace = namespace
        self._lock = threading.Lock()
        self._memories: dict[str, Memory] = {}

    def new(self, advertised: str, source: str) -> str:
        """The flag for starting the master that advertises an address: `--join=...` or `--initial-cluster=...`.

        `source` is the IP address of the request. Raises Refused, kube.errors.ApiError, TransportError.
        """
        pod = asker(advertised)
        arrived = self._clock.now()
        dc = self._clusters.get(self._namespace, pod.cluster)
        if dc.spec.master is None:
            raise Refused(f"DMCluster {self._namespace}/{pod.cluster} has no spec.master")
        try:
            masters = self._masters.masters(dc, _LONGEST_READ)
        except DataPlaneError as error:
            if doubt := self._clusters.doubt(self._namespace, f"{pod.cluster}-{_MASTER}", pod.pod, source):
                raise Refused(f"{doubt}; {error}") from error
            with self._lock:
                self._memory(dc).note_question(pod.pod, arrived)
            return self._begin(dc, pod, error)
        return self._join(dc, pod, masters)

    def _memory(self, dc: DMCluster) -> Memory:
        """The memory of this cluster; a recreated cluster with the same name starts with an empty one."""
        memory = self._memories.get(dc.metadata.name)
        if memory is None or memory.uid != dc.metadata.uid:
            memory = self._memories[dc.metadata.name] = Memory(dc.metadata.uid)
        return memory

    def _join(self, dc: DMCluster, pod: Asker, found: Sequence[LiveMaster]) -> str:
        urls = [master.peer_urls[0] for master in found if master.name != pod.pod and master.peer_urls]
        if not urls:
            raise Refused(f"DM-master lists no member other than {pod.pod} itself")
        pods = desired_pods(dc, _MASTER)
        if reason := leaving(dc, pod.pod, pods, self._clusters, _MASTER):
            raise Refused(reason)
        record = dc.status.master.failure_members.get(pod.pod)
        if record and not record.member_deleted and all(master.name != pod.pod for master in found):
            # its new master would never serve, and would let no other join
            raise Refused(f"{pod.pod} is being replaced: waiting for its volume to be deleted, and for a new pod")
        with self._lock:
            self._memory(dc).note_answer(pod.pod, self._clock.now())
        clients = (url.replace(f":{DM_MASTER_PEER_PORT}", f":{DM_MASTER_PORT}") for url in urls)
        return f"--join={','.join(clients)}"

    def _begin(self, dc: DMCluster, pod: Asker, silence: DataPlaneError) -> str:
        pods = desired_pods(dc, _MASTER)
        present = self._present(dc, pods[1:]) if pod.pod in pods[:1] else {}

        def others_first() -> str:
            memory = self._memory(dc)
            evidence = Evidence(memory.empty(self._clock.now()), present, "", memory.bootstrapping)
            ordered = is_ordered(dc, _MASTER)
            return not_the_turn(pod.pod, pods, evidence) or others_may_have_data(
                pod.pod, pods, evidence, ordered=ordered
            )

        with self._lock:
            reason = _exists(dc) or _sign_of_life(silence) or others_first()
        if not reason:
            # read last: a namespace has many claims, and pods ask every second until they may start
            reason = _proof_in_volumes(self._clusters.with_data(dc))
        if not reason:
            with self._lock:
                reason = others_first()
                if not reason:
                    self._memory(dc).note_beginning(pod.pod, self._clock.now())
        if reason:
            raise Refused(f"{reason}; {silence}")
        return f"--initial-cluster={pod.pod}={scheme(dc)}://{pod.address}"

    def _present(self, dc: DMCluster, pods: Sequence[str]) -> dict[str, str]:
        """The pods that show signs of life at their own addresses; probed only if pods start one by one."""
        if not is_ordered(dc, _MASTER):
            return {}
        ordinals = {pod: int(pod.rpartition("-")[2]) for pod in pods}
        return {pod: "it answers" for pod, at in ordinals.items() if self._masters.answers(dc, at, _LONGEST_READ)}


def _exists(dc: DMCluster) -> str:
    """Proof in the status that the cluster exists although no master answers; empty without one."""
    if known := sorted(dc.status.master.members):
        return f"a cluster with the masters {', '.join(known)} exists, but none of them answers; {_WAY_OUT}"
    return ""


def _proof_in_volumes(with_data: Collection[str]) -> str:
    """Proof in the volumes that the cluster exists; empty without one."""
    if with_data:
        return f"volumes with the data of masters exist ({', '.join(sorted(with_data))}), but none answers; {_WAY_OUT}"
    return ""


def _sign_of_life(error: DataPlaneError) -> str:
    """The sign of life in an error; empty for silence: a Service without endpoints may drop packets, which proves
    nothing.
    """
    silent = isinstance(error, Unavailable) and isinstance(error.cause, ConnectionRefused | RequestTimeout)
    return "" if silent else "a master that cannot list the others may be running"
