"""A cluster of real servers, as a user changes and asks it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cli import certs
from cli.awaited import see
from cli.manifests import Manifest
from kube.objects import Json, condition_of
from kube.resources import PODS, SECRETS, TIDB_CLUSTERS
from ports.transport import Request, TransportError
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import Certificate
from sandbox.world import World
from tests.certificates import KEYS
from tests.e2e.waiting import eventually

NAME = "real"
NAMESPACE = "default"
WITHIN = 300.0
"""Seconds for one change: real servers need some, and maintainers' machines are busy."""


@dataclass(frozen=True, slots=True)
class Place:
    """A sandbox with an operator, and a directory for files."""

    world: World
    directory: Path

    def create(self, version: str, *, tls: bool = False, **components: Json) -> "RealCluster":
        """Create a cluster; it is not Ready yet."""
        spec: Json = {"version": version, "pvReclaimPolicy": "Retain", "configUpdateStrategy": "RollingUpdate"}
        spec |= {name: {"baseImage": f"pingcap/{name}", "config": {}} | part for name, part in components.items()}
        if tls:
            spec["tlsCluster"] = {"enabled": True}
        meta = {"name": NAME, "namespace": NAMESPACE}
        tree = {"apiVersion": TIDB_CLUSTERS.api_version, "kind": TIDB_CLUSTERS.kind, "metadata": meta, "spec": spec}
        client = self.world.client()
        for secret in certs.secrets([Manifest(NAME, tree)], self.directory / "ca"):
            client.create(SECRETS, secret, NAMESPACE)
        client.create(TIDB_CLUSTERS, tree, NAMESPACE)
        return RealCluster(self.world)


@dataclass(frozen=True, slots=True)
class RealCluster:
    """The cluster of a place."""

    world: World

    @property
    def status(self) -> Json:
        """As the operator writes it."""
        tree = self.world.client().get(TIDB_CLUSTERS, NAME, NAMESPACE).decode()
        found: Json = tree.get("status") or {}
        return found

    def change(self, **spec: object) -> None:
        """Edit the spec."""
        self.world.client().patch(TIDB_CLUSTERS, NAME, NAMESPACE, {"spec": spec})

    def waits(self, done: Callable[[], bool] = lambda: True, within: float = WITHIN) -> None:
        """Wait until the cluster is Ready, no work is left, and something is `done`."""
        eventually(lambda: done() and self.is_at_rest(), within, self.sentences)

    def is_at_rest(self) -> bool:
        """True if it is Ready and the operator has nothing left to do for its spec."""
        found = self.world.client().get(TIDB_CLUSTERS, NAME, NAMESPACE)
        progress = condition_of(self.status.get("conditions") or (), "Progressing")
        return see(TIDB_CLUSTERS, found).is_done and progress.get("reason") == "Done"

    def sentences(self) -> list[str]:
        """Its conditions, for a failure's message."""
        conditions = self.status.get("conditions") or ()
        return [f"{each['type']}={each['status']}: {each.get('message', '')}" for each in conditions]

    def condition(self, kind: str) -> Json:
        """One of its conditions."""
        return condition_of(self.status.get("conditions") or (), kind)

    def pods(self, component: str) -> dict[str, Json]:
        """Its pods by name."""
        trees = [each.decode() for each in self.world.client().list_page(PODS, NAMESPACE).items]
        label = "app.kubernetes.io/component"
        return {tree["metadata"]["name"]: tree for tree in trees if tree["metadata"]["labels"].get(label) == component}

    def images(self, component: str) -> set[str]:
        """The tags of its containers."""
        pods = self.pods(component).values()
        return {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in pods}

    def pd(self, path: str, ordinal: int = 0, *, tls: bool = False) -> Json:
        """The answer of a PD member; empty without one."""
        host = f"{NAME}-pd-{ordinal}.{NAME}-pd-peer.{NAMESPACE}.svc"
        url = f"http{'s' if tls else ''}://{host}:2379/pd/api/v1/{path}"
        try:
            response = self.world.data_plane_transport(self._origin(tls)).request(Request("GET", url, timeout=5.0))
        except TransportError:
            return {}
        answer: Json = msgspec.json.decode(response.body) if response.status == 200 else {}
        return answer

    def members(self, ordinal: int = 0, *, tls: bool = False) -> set[str]:
        """The names of PD's members, as one of them says; empty for one that has joined and not started yet."""
        return {member.get("name", "") for member in self.pd("members", ordinal, tls=tls).get("members") or ()}

    def leader(self) -> str:
        """The name of PD's leader; empty without one."""
        for ordinal in range(5):
            if name := (self.pd("members", ordinal).get("leader") or {}).get("name", ""):
                return str(name)
        return ""

    def stores(self) -> list[Json]:
        """TiKV's and TiFlash's stores that PD counts as Up."""
        found = [each["store"] | each["status"] for each in self.pd("stores").get("stores") or ()]
        return [store for store in found if store["state_name"] == "Up"]

    def lose_node_of(self, pod: str) -> Callable[[], None]:
        """Stop the machine of a pod; the result starts it again."""
        return self.world.faults.node_gone(self.world.kubelet.node_of(NAMESPACE, pod).name)

    def _origin(self, tls: bool) -> Origin:
        if not tls:
            return Origin()
        data = self.world.client().get(SECRETS, f"{NAME}-cluster-client-secret", NAMESPACE).decode()["data"]
        ca, cert, key = (_text(data[name]) for name in KEYS)
        return Origin(certificate=Certificate(ca, cert, key))


def _text(encoded: str) -> str:
    return msgspec.json.decode(f'"{encoded}"', type=bytes).decode()
