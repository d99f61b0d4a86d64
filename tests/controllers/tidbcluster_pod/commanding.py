"""A world in which pods get commands, and checks on it."""

from dataplane.addresses import Address
from dataplane.pd import PDClient, Store
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from sandbox.conditions import holds
from tests.operator_world import NAMESPACE, OperatorWorld

PREFIX = "tidb.pingcap.com/"


class Commanded(OperatorWorld):
    """The operator, a cluster `basic`, and users who command single pods."""

    def tell(self, pod: str, **annotations: str | None) -> None:
        """Annotate a pod; `_` stands for `-`, None removes."""
        keys = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.admin.patch(PODS, pod, NAMESPACE, {"metadata": {"annotations": keys}})

    def told(self, pod: str) -> set[str]:
        """The commands that a pod carries."""
        found = self.get(PODS, pod)["metadata"].get("annotations") or {}
        return {key.removeprefix(PREFIX) for key in found if "evict" in key or "transfer" in key}

    def uid(self, pod: str) -> str:
        """The UID of a pod; empty while it does not exist."""
        return str(self.get(PODS, pod)["metadata"]["uid"]) if self.exists(PODS, pod) else ""

    def is_back(self, pod: str, before: str) -> bool:
        """True if a pod has been recreated, and is Ready."""
        return self.uid(pod) not in ("", before) and pod in self.ready()

    def ready(self, component: str = "") -> set[str]:
        """The pods that are Ready."""
        return {
            pod["metadata"]["name"]
            for pod in self.every(PODS)
            if holds(pod, "Ready")
            and "deletionTimestamp" not in pod["metadata"]
            and f"basic-{component}" in pod["metadata"]["name"]
        }

    @property
    def pd(self) -> PDClient:
        """PD, as users reach it."""
        return PDClient(self.world.data_plane_transport(), Address("http://basic-pd.default:2379"))

    def store(self, pod: str) -> Store:
        """The store of a TiKV pod that is not Tombstone."""
        (found,) = [store for store in self.pd.stores() if store.address.startswith(f"{pod}.")]
        return found

    @property
    def evicting(self) -> set[int]:
        """The stores that PD has an evict-leader scheduler for."""
        return set(self.pd.evicting_stores())

    @property
    def evictions(self) -> Json:
        """`status.tikv.evictLeader`."""
        found: Json = self.cluster()["status"]["tikv"].get("evictLeader") or {}
        return found

    def reasons(self) -> list[str]:
        """The reasons of the events about commands, in the order of their first occurrence."""
        found = (each["reason"] for each in self.events())
        return list(dict.fromkeys(reason for reason in found if not reason.startswith("Successful")))

    def deletions(self) -> list[str]:
        """The operator's deletions since `forget`."""
        return [write.removeprefix("delete ") for write in self.writes() if write.startswith("delete")]

    def asked_of_pd(self) -> list[str]:
        """The operator's requests to PD since `forget`."""
        return [f"{each.method} {each.url.rpartition('/pd/api/v1/')[2]}" for each in self.operator.dataplane.writes()]

    def claim(self, name: str) -> str:
        """The UID of a volume claim."""
        return str(self.get(PERSISTENT_VOLUME_CLAIMS, name)["metadata"]["uid"])
