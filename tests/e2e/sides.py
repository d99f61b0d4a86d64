"""One cluster on a control plane, read without the operator, and its twin in the simulator, which gets the same
changes. The twin's operator is the production one, in one thread and virtual time, and is never killed: the cluster
should reach the twin's end state."""

from collections.abc import Callable

import msgspec

from kube.client import Client
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.context import Settings
from sandbox.conditions import condition, holds
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.world import DataPlaneWorld, World
from simulate.engine import worlds
from simulate.engine.engine import Engine
from simulate.judge.end_state import Leaves, end_state

NAME = worlds.NAME

_PATIENCE = 600.0
_SETTLED = 60.0

_OF_EVERY_NAMESPACE = frozenset({"kube-root-ca.crt"})
_NEWER = ".status.terminatingReplicas"
"""Fields that only newer control planes report for Deployments."""


class Side:
    """The cluster in a namespace of a world."""

    def __init__(self, client: Client, world: World | DataPlaneWorld, namespace: str) -> None:
        """`client` is the admin's; `world` has the nodes."""
        self.client = client
        self.namespace = namespace
        self._world = world

    def all(self, resource: Resource) -> list[Json]:
        """The objects of the namespace, or of the world, as if the namespace were the simulator's."""
        page = self.client.list_page(resource, self.namespace if resource.namespaced else "")
        items = (item for item in page.items if item.metadata.name not in _OF_EVERY_NAMESPACE)
        return [_moved(item.decode(), self.namespace) for item in items]

    @property
    def cluster(self) -> Json:
        """The TidbCluster."""
        return self.client.get(TIDB_CLUSTERS, NAME, self.namespace).decode()

    @property
    def is_settled(self) -> bool:
        """True if the cluster is Ready, no work is left, and the operator has seen the newest spec."""
        tree = self.cluster
        progress = condition((tree.get("status") or {}).get("conditions"), "Progressing") or {}
        return holds(tree, "Ready") and progress.get("reason") == "Done" and self._as_declared(tree)

    def _as_declared(self, tree: Json) -> bool:
        """True if the StatefulSets match the spec, so that Ready is not about the previous spec."""
        for component in ("pd", "tikv", "tidb"):
            try:
                live = self.client.get(STATEFUL_SETS, f"{NAME}-{component}", self.namespace).decode()
            except NotFound:
                # larger volumes: it is recreated around its pods
                return False
            image = live["spec"]["template"]["spec"]["containers"][-1]["image"]
            wanted = (tree["spec"][component]["replicas"], tree["spec"]["version"])
            if (live["spec"]["replicas"], image.rpartition(":")[2]) != wanted:
                return False
            if live["status"].get("currentRevision") != live["status"].get("updateRevision"):
                return False
        return True

    def lose(self, pod: str) -> None:
        """Its processes end."""
        self._world.data_plane.crash(self.namespace, pod)

    def lack_image(self, version: str) -> None:
        """No registry has the images of a version."""
        self._world.kubelet.faults.missing_images.add(f"*:{version}")

    def pods(self, component: str) -> dict[str, str]:
        """The pods of a component and their UIDs."""
        return {
            pod.metadata.name: pod.metadata.uid
            for pod in self.client.list_page(PODS, self.namespace).items
            if pod.metadata.labels.get("app.kubernetes.io/component") == component
        }

    def images(self) -> set[str]:
        """The versions that the pods of the database run."""
        pods = [pod.decode() for pod in self.client.list_page(PODS, self.namespace).items]
        return {
            container["image"].rpartition(":")[2]
            for pod in pods
            for container in pod["spec"]["containers"]
            if container["name"] in ("pd", "tikv", "tidb")
        }

    def members(self) -> set[str]:
        """PD's members, as PD knows them."""
        return {member.name for member in self._pd.members.values()}

    def pd_ids(self) -> dict[str, str]:
        """The ids of PD's members by pod, as the status says."""
        return {name: str(member["id"]) for name, member in self.cluster["status"]["pd"]["members"].items()}

    def stores(self, state: str = "Up") -> set[str]:
        """The pods of the stores in a state, as the status says."""
        return {s["podName"] for s in self.cluster["status"]["tikv"]["stores"].values() if s["state"] == state}

    def evicting(self) -> set[int]:
        """The stores whose leaders PD keeps away."""
        return set(self._pd.stores.evicting)

    def claims(self) -> set[str]:
        """The UIDs of the volume claims."""
        return {claim.metadata.uid for claim in self.client.list_page(PERSISTENT_VOLUME_CLAIMS, self.namespace).items}

    def sizes(self, component: str) -> set[str]:
        """The capacities of a component's volumes."""
        claims = [claim.decode() for claim in self.client.list_page(PERSISTENT_VOLUME_CLAIMS, self.namespace).items]
        return {c["status"]["capacity"]["storage"] for c in claims if f"-{component}-" in c["metadata"]["name"]}

    def end_state(self) -> Leaves:
        """The compared parts of two worlds."""
        found = end_state(self.all, self._pd, self._world.clock.now())
        return {path: value for path, value in found.items() if not path.endswith(_NEWER)}

    @property
    def _pd(self) -> PdCluster:
        found = self._world.data_plane.pd_cluster(self.namespace, NAME)
        assert found is not None
        return found


class Twin:
    """A cluster in the simulator."""

    def __init__(self, settings: Settings) -> None:
        """A world without clusters. `settings` are its operator's options."""
        self._engine = Engine(settings=settings)
        self.side = Side(self._engine.admin, self._engine.world, worlds.NAMESPACE)
        self._engine.start_operator()

    def work_until(self, done: Callable[[Side], bool]) -> None:
        """Let time pass until a condition holds, and until all other work is done."""
        reached = self._engine.run_until(lambda: done(self.side), _PATIENCE)
        assert reached, f"in the simulator: {self._engine.condition('Progressing')}"
        self._engine.run(_SETTLED)


def _moved(tree: Json, namespace: str) -> Json:
    """An object as if it were in the namespace of the simulator."""
    text = msgspec.json.encode(tree).replace(namespace.encode(), worlds.NAMESPACE.encode())
    moved: Json = msgspec.json.decode(text)
    return moved
