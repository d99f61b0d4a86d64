"""Every component with TLS on a real control plane, where our data plane answers over TLS (objects.md 9)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cli import certs
from cli.manifests import Manifest
from kube.objects import Json, condition_of
from kube.resources import PODS, SECRETS, TIDB_CLUSTERS
from meta.certificates import CERTIFICATES_VALID
from tests.e2e import operators
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, conditions, create_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.controlplane, pytest.mark.timeout(600)]

NAME = "everything"
_SOON = ("--resync-duration=8s", "--tikv-failover-period=3s")


@pytest.fixture
def place(real: Place) -> Place:
    """In the sandbox the simulator and tests/controllers/tidbcluster/test_tls.py cover it."""
    return real


class Cluster:
    """A sample in a namespace, by default the one with all components."""

    def __init__(self, place: Place, namespace: str, directory: Path, name: str = NAME) -> None:
        self._place = place
        self._namespace = namespace
        tree = sample(name)
        tree["metadata"]["namespace"] = namespace
        tree["spec"]["pd"]["config"] = '[schedule]\nmax-store-down-time = "12s"\n'
        for secret in certs.secrets([Manifest(name, tree)], directory / "ca"):
            place.client.create(SECRETS, secret, namespace)
        create_cluster(place.client, tree, namespace)

    def change(self, done: Callable[[], bool], **spec: object) -> None:
        """The user's action, and the time until it is `done` and no work is left."""
        self._place.client.patch(TIDB_CLUSTERS, NAME, self._namespace, {"spec": spec})
        eventually(lambda: done() and self._is_at_rest(), 240.0, self.told)

    def images(self, version: str) -> int:
        """The number of pods that run an image of a version."""
        pods = [each.decode() for each in self._place.client.list_page(PODS, self._namespace).items]
        return sum(any(each["image"].endswith(f":{version}") for each in pod["spec"]["containers"]) for pod in pods)

    def lose(self, pod: str) -> None:
        """Its processes end."""
        self._place.data_plane.crash(self._namespace, pod)

    def stores(self, state: str) -> set[str]:
        """The pods of TiKV's stores in a state."""
        stores = (self._tree().get("status") or {}).get("tikv", {}).get("stores") or {}
        return {each["podName"] for each in stores.values() if each["state"] == state}

    def told(self) -> list[str]:
        """The messages of the conditions."""
        return conditions(self._place.client, NAME, self._namespace)

    def _is_at_rest(self) -> bool:
        found = (self._tree().get("status") or {}).get("conditions") or []
        return condition_of(found, "Progressing").get("reason") == "Done"

    def _tree(self) -> Json:
        return self._place.client.get(TIDB_CLUSTERS, NAME, self._namespace).decode()


@pytest.mark.rule("objects-9")
def test_every_component_with_tls_is_upgraded_scaled_and_failed_over(
    place: Place, namespace: str, tmp_path: Path
) -> None:
    with operators.running(place.new_log(), place.environment(), *_SOON) as operator:
        cluster = Cluster(place, namespace, tmp_path)
        await_ready(place, operator, NAME, namespace, within=120.0)

        # TiProxy has its own versions
        cluster.change(lambda: not cluster.images("v8.5.2"), version="v8.5.3")
        stores = {f"{NAME}-tikv-{each}" for each in range(4)}
        cluster.change(lambda: stores == cluster.stores("Up"), tikv={"replicas": 4}, tidb={"replicas": 1})

        def is_replaced() -> bool:
            cluster.lose(f"{NAME}-tikv-1")
            return f"{NAME}-tikv-4" in cluster.stores("Up")

        eventually(is_replaced, 120.0, cluster.told)
    assert [] == [event for event in operator.events if event["level"] in ("error", "critical")]


@pytest.mark.rule("objects-9.1")
def test_a_secret_is_named_within_ten_seconds_of_its_deletion_and_change(
    place: Place, namespace: str, tmp_path: Path
) -> None:
    def said() -> Json:
        status = place.client.get(TIDB_CLUSTERS, "tls", namespace).decode().get("status") or {}
        return condition_of(status.get("conditions") or (), CERTIFICATES_VALID)

    def names(what: str) -> bool:
        return said()["status"] == "False" and f"Secret {namespace}/{secret}{what}" in said()["message"]

    secret = "tls-tikv-cluster-secret"
    with operators.running(place.new_log(), place.environment()) as operator:
        Cluster(place, namespace, tmp_path, "tls")
        await_ready(place, operator, "tls", namespace, within=120.0)
        good = place.client.get(SECRETS, secret, namespace).decode()
        place.client.delete(SECRETS, secret, namespace)
        eventually(lambda: names(" does not exist"), 10.0, said)

        again = {"metadata": {"name": secret}, "type": good["type"], "data": good["data"]}
        place.client.create(SECRETS, again, namespace)
        eventually(lambda: said()["status"] == "True", 10.0, said)

        place.client.patch(SECRETS, secret, namespace, {"data": {"tls.key": None}})
        eventually(lambda: names(", key tls.key: missing"), 10.0, said)
