"""A TidbCluster and its PD, as discovery reads them."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from apis.tidbcluster import TidbCluster
from dataplane.clients import DataPlane
from dataplane.errors import DataPlaneError, Unavailable
from dataplane.pd import Member, Membership
from discovery.app import App
from discovery.masters import DMDiscovery
from discovery.reading import LiveDMClusters, LiveMasters
from discovery.service import Discovery
from kube.client import Client
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ConnectionRefused
from tests.dataplane.scripted import ScriptedTransport

SERVICE = "http://demo-pd.default:2379"


def cluster(
    *, status: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, **spec: Any
) -> TidbCluster:
    """The cluster `demo` in `default`, by default with three PD replicas."""
    tree = {
        "metadata": {"name": "demo", "namespace": "default", "uid": "u1", "annotations": annotations or {}},
        "spec": {"pd": {"replicas": 3}} | spec,
        "status": status or {},
    }
    return msgspec.convert(tree, TidbCluster)


def address(ordinal: int, domain: str = "") -> str:
    """The peer address of a PD pod of `demo` as the start script sends it: with a newline."""
    return f"demo-pd-{ordinal}.demo-pd-peer.default.svc{domain}:2380\n"


def member(ordinal: int, name: str = "") -> Member:
    """A member that advertises the addresses of a pod of `demo`."""
    host = f"demo-pd-{ordinal}.demo-pd-peer.default.svc"
    return Member(name or f"demo-pd-{ordinal}", ordinal + 1, (f"http://{host}:2379",), (f"http://{host}:2380",))


def membership(*ordinals: int, cluster_id: int = 7) -> Membership:
    """A PD with these pods of `demo` as members."""
    return Membership(cluster_id, tuple(map(member, ordinals)), None, None)


def refused(url: str) -> Unavailable:
    """The error at an address where no server listens."""
    cause = ConnectionRefused("GET", url, "connection refused")
    return Unavailable("GET", url, cause.cause, cause)


@dataclass
class World:
    """Answers discovery's reads; `answers` are PD's by URL, and no server listens at other URLs."""

    tc: TidbCluster | Exception
    answers: dict[str, Membership | DataPlaneError] = field(default_factory=dict)
    asked: list[tuple[str, float]] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)
    each_read_takes: float = 0.0
    labelled: frozenset[str] = frozenset()
    lists: int = 0
    given_up: frozenset[str] = frozenset()
    pods: dict[str, str] = field(default_factory=dict)
    """The doubts about pods."""

    def doubt(self, namespace: str, workload: str, pod: str, source: str) -> str:
        """The doubt about a pod, or empty."""
        return self.pods.get(pod, "")

    def get(self, namespace: str, name: str) -> TidbCluster:
        """The cluster; raises its error if it has one."""
        if isinstance(self.tc, Exception):
            raise self.tc
        assert (namespace, name) == (self.tc.metadata.namespace, self.tc.metadata.name)
        return self.tc

    def is_given_up(self, namespace: str, claim: str) -> bool:
        """True if the claim `namespace/name` is in `given_up`."""
        return f"{namespace}/{claim}" in self.given_up

    def claimed(self, tc: TidbCluster) -> frozenset[str]:
        """The cluster ids in the labels of the volume claims."""
        self.lists += 1
        return self.labelled

    def members(self, tc: TidbCluster, url: str, timeout: float) -> Membership:
        """The members that the PD at `url` lists."""
        self.asked.append((url, timeout))
        self.clock.step(min(self.each_read_takes, timeout))
        answer = self.answers.get(url) or refused(url)
        if isinstance(answer, DataPlaneError):
            raise answer
        return answer

    def discovery(self) -> Discovery:
        """A discovery service of `default` that has just started."""
        return Discovery(self, self, self.clock, "default")

    def app(self) -> App:
        """Discovery's HTTP API without any DMCluster."""
        nothing = ScriptedTransport()
        client, dataplane = Client(nothing, user_agent="test"), DataPlane(lambda _: nothing, OpenFence(), self.clock)
        masters = DMDiscovery(LiveDMClusters(client), LiveMasters(client, dataplane), self.clock, "default")
        return App(self.discovery(), masters)
