"""The operator in a sandbox with a DMCluster, in one thread on a clock that is stepped."""

from collections.abc import Callable
from dataclasses import dataclass

from kube.objects import Json
from kube.resources import DM_CLUSTERS, STATEFUL_SETS
from ports.transport import ByteStream, ConnectionLost, Request, Response, Transport
from rehearsal.operator import Operator, Wrap
from sandbox.actor_system import NeverSettles
from sandbox.dataplane.dm.book import Book, Worker
from sandbox.dataplane.dm.master import DMMasterProcess
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import Member, PdCluster
from tests.operator_world import NAMESPACE, OperatorWorld, sample

NAME = "sync"


class DMWorld(OperatorWorld):
    """A world with DMClusters, and what tests ask of DM itself."""

    CLUSTERS = DM_CLUSTERS

    def bring_up(self, **spec: object) -> None:
        """The sample `dm`, `spec` laid onto it, Ready; nothing is counted yet."""
        cluster = sample("dm")
        cluster["spec"] |= spec
        self.apply(cluster)
        self.run_until_ready(NAME)
        self.forget()

    def set(self, **spec: object) -> None:
        """Merge into the spec."""
        self.change(NAME, **spec)

    def status(self, part: str) -> Json:
        """The status of `master` or `worker`."""
        found: Json = self.cluster(NAME).get("status", {}).get(part) or {}
        return found

    def size(self, component: str) -> int:
        """The replicas that a StatefulSet requests."""
        return self.replicas(component, NAME)

    def spec_of(self, component: str) -> Json:
        """The spec of a StatefulSet."""
        found: Json = self.get(STATEFUL_SETS, f"{NAME}-{component}")["spec"]
        return found

    # DM

    def master_processes(self) -> list[DMMasterProcess]:
        """The masters that serve."""
        urls = (f"http://{NAME}-dm-master-{ordinal}.{NAME}-dm-master-peer:8261" for ordinal in range(4))
        found = (self.world.data_plane.network.find(url, Origin(NAMESPACE)) for url in urls)
        return [each.process for each in found if each is not None and isinstance(each.process, DMMasterProcess)]

    def members(self) -> list[Member]:
        """The members of the masters' cluster; none while no master serves."""
        clusters = (each.cluster for each in self.master_processes() if each.cluster)
        found = next(clusters, None)
        return list(found.members.values()) if found else []

    @property
    def masters(self) -> PdCluster:
        """The cluster of the masters."""
        return next(each.cluster for each in self.master_processes() if each.cluster)

    @property
    def leader(self) -> str:
        """The master that leads."""
        leader = self.masters.leader
        return leader.name if leader else ""

    def lead(self, ordinal: int) -> None:
        """Make a master the leader."""
        wanted = f"{NAME}-dm-master-{ordinal}"
        cluster = self.masters
        cluster.transfer(next(each for each in cluster.members.values() if each.name == wanted))
        self.run_until(lambda: self.leader == wanted)

    def create_source(self, name: str) -> str:
        """Replicate a source; the worker that does so."""
        Book(self.masters.etcd, self.clock.now()).create_source(name)
        self.run_until(lambda: any(each.source == name for each in self.workers()))
        return next(each.name for each in self.workers() if each.source == name)

    def workers(self) -> list[Worker]:
        """The workers as the masters see them."""
        return Book(self.masters.etcd, self.clock.now()).workers()

    def asked(self, method: str) -> list[str]:
        """The paths of the requests that the operator has sent to DM with a method since `forget`."""
        return [
            request.url.partition("/apis/v1alpha1/")[2]
            for request in self.operator.dataplane.requests
            if request.method == method
        ]

    # Faults

    def replace_operator(self, wrap: Wrap, at: int | None = None) -> None:
        """A new process, behind a transport of the test's; `at`: the version that its caches begin with."""
        self.operator = Operator(self.world, self.clock, 3, kubernetes=wrap, at=at)

    def run_through(self, done: Callable[[], bool], restart: Callable[[], None], within: float = 120.0) -> None:
        """Run world and operator until a condition holds, with a new process after each crash."""
        end = self.clock.now() + within
        while not done():
            if self.clock.now() >= end:
                raise NeverSettles(f"not done within {within} s; {self.progressing}")
            try:
                self.run_until(done, end - self.clock.now())
            except Died:
                restart()


class Died(BaseException):
    """The process crashed in the middle of its work."""


@dataclass(slots=True)
class AtWrite:
    """Causes a fault at the n-th write: the process dies after it (`dies`), or its answer is lost."""

    transport: Transport
    number: int
    dies: bool
    seen: int = 0

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        answer = self.transport.request(request)
        if request.is_read or "/events" in request.url:
            return answer
        self.seen += 1
        if self.seen != self.number:
            return answer
        if self.dies:
            raise Died
        raise ConnectionLost(request.method, request.url, "the answer was lost")

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self.transport.stream(request, idle_timeout)
