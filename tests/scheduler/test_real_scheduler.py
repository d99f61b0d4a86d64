"""The real kube-scheduler asks the extender's process (scheduler-deployment.md 2.6, 2.8)."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from apis.crd import TIDB_CLUSTER, definition
from kube.client import Client
from kube.config import load
from kube.connecting import connect_directly
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICE_ACCOUNTS,
    TIDB_CLUSTERS,
)
from ports.clock import SystemClock
from ports.randomness import SeededRandomness
from tests.controlplane.processes import BINARIES, ControlPlane, free_port, require_or_reason, running
from tests.scheduler import worlds
from tests.scheduler.worlds import node, shuffled

CONFIG = Path(__file__).parents[2] / "manifests" / "scheduler" / "deployment.yaml"
RUNS = 12
"""Clusters, of which all are placed at the same time."""

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]


class Place:
    """An API server, a kube-scheduler with the configuration that we ship, and the extender, which can be killed."""

    def __init__(self, control_plane: ControlPlane, admin: Client, directory: Path) -> None:
        self.admin = admin
        self._control_plane, self._directory = control_plane, directory
        self._port = free_port()
        self._extender: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def scheduling(self) -> Iterator[None]:
        """Both processes run."""
        self.start_extender()
        config = self._directory / "tidb-scheduler.yaml"
        config.write_text(_configuration(self._port, self._control_plane.kubeconfig("scheduler")))
        command = [str(BINARIES / "kube-scheduler"), f"--config={config}", f"--secure-port={free_port()}"]
        command += ["--bind-address=127.0.0.1", f"--cert-dir={self._directory / 'certs-tidb-scheduler'}"]
        with (self._directory / "tidb-scheduler.log").open("wb") as log:
            scheduler = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            scheduler.kill()
            scheduler.wait()
            self.kill_extender()

    def start_extender(self) -> None:
        """Start the extender's process."""
        flags = [f"-kubeconfig={self._control_plane.kubeconfig()}", f"-port={self._port}"]
        command = [sys.executable, "-m", "scheduler", *flags, f"-metrics-addr=127.0.0.1:{free_port()}"]
        with (self._directory / "extender.log").open("ab") as log:
            self._extender = subprocess.Popen(command, stdout=log, stderr=log)

    def kill_extender(self) -> None:
        """End it at once."""
        if self._extender is not None:
            self._extender.kill()
            self._extender.wait()

    def nodes_of(self, namespace: str) -> dict[str, str]:
        """The node of each pod, empty while it has none."""
        pods = self.admin.list_page(PODS, namespace).items
        return {each.metadata.name: each.decode()["spec"].get("nodeName", "") for each in pods}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Three nodes on a control plane of one's own, whose other controllers do not run."""
    if reason := require_or_reason():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("scheduling")
    with running(directory, api_only=True) as control_plane:
        environ: dict[str, str] = {}
        config = load(str(control_plane.kubeconfig()), environ, SystemClock())
        connection = connect_directly(config, environ, SystemClock(), timeout=10.0, user_agent="test")
        connection.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TIDB_CLUSTER))
        for name in "abc":
            _add_node(connection.client, name)
        place = Place(control_plane, connection.client, directory)
        with place.scheduling():
            yield place
        connection.transport.close()


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The connection outlives each test."""


def test_2_6_five_pds_on_three_nodes_are_2_2_1_in_every_order_and_with_the_extender_killed(place: Place) -> None:
    draws = SeededRandomness(1)
    namespaces = [f"run-{run}" for run in range(RUNS)]
    for namespace in namespaces:
        _add_cluster(place.admin, namespace, pd=5)
    for namespace, ordinal in [(each, n) for n in range(5) for each in namespaces]:
        name = shuffled([f"db-pd-{n}" for n in range(5)], SeededRandomness(namespace))[ordinal]
        _add_pod(place.admin, namespace, name, "pd")
        if draws.integer(0, 20) == 0:
            place.kill_extender()
            place.start_extender()
    _wait(lambda: all(all(place.nodes_of(each).values()) for each in namespaces), 100)
    for namespace in namespaces:
        nodes = list(place.nodes_of(namespace).values())
        assert [1, 2, 2] == sorted(nodes.count(each) for each in "abc"), namespace


def test_2_6_three_are_1_1_1_and_one_too_many_waits_and_tells_why(place: Place) -> None:
    _add_cluster(place.admin, "three", pd=3)
    for ordinal in range(3):
        _add_pod(place.admin, "three", f"db-tikv-{ordinal}", "tikv")
        _add_pod(place.admin, "three", f"db-pd-{ordinal}", "pd", among=["a", "b"])
    _wait(lambda: list(place.nodes_of("three").values()).count("") == 1, 60)
    found = place.nodes_of("three")
    assert ["a", "b", "c"] == sorted(found[f"db-tikv-{ordinal}"] for ordinal in range(3))
    waiting = next(name for name, where in found.items() if not where)
    why = "unable to schedule to topology: a (1 pd pods), b (1 pd pods), max pods per topology: 1"
    for reason in ("FailedScheduling", "HAScheduling"):
        _wait(partial(_is_told, place, waiting, reason, why), 30)


def _is_told(place: Place, pod: str, reason: str, why: str) -> bool:
    events = [each.decode() for each in place.admin.list_page(EVENTS, "three").items]
    mine = [each for each in events if each.get("involvedObject", {}).get("name") == pod and each["reason"] == reason]
    return any(why in each.get("message", "") for each in mine)


def _configuration(port: int, kubeconfig: Path) -> str:
    """The one that we ship, for this machine."""
    documents = yaml.safe_load_all(CONFIG.read_text())
    config: Json = yaml.safe_load(next(iter(documents))["data"]["scheduler.yaml"])
    config["leaderElection"] = {"leaderElect": False}
    config["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000}
    config["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}/scheduler"
    return yaml.safe_dump(config)


def _add_node(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    free = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}
    admin.patch(NODES, name, "", {"status": {"allocatable": free, "capacity": free}}, subresource="status")


def _add_cluster(admin: Client, namespace: str, pd: int) -> None:
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    admin.create(SERVICE_ACCOUNTS, account, namespace)
    cluster = worlds.cluster(pd={"replicas": pd})
    cluster["metadata"]["namespace"] = namespace
    _wait(lambda: _created(admin, cluster, namespace), 30)


def _created(admin: Client, cluster: Json, namespace: str) -> bool:
    """Its definition is served a moment after it was made."""
    try:
        admin.create(TIDB_CLUSTERS, cluster, namespace)
    except NotFound:
        return False
    return True


def _add_pod(admin: Client, namespace: str, name: str, component: str, among: list[str] | None = None) -> None:
    """A pod with a claim that is bound to a volume which is reached from everywhere."""
    claim = worlds.claim(name, component, {"namespace": namespace, "annotations": {_BOUND: "yes"}})
    volume = f"{namespace}-{name}"
    claim["spec"] |= {"volumeName": volume, "storageClassName": ""}
    uid = admin.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace).metadata.uid
    admin.create(PERSISTENT_VOLUMES, _volume(volume, namespace, claim["metadata"]["name"], uid))
    bound = {"status": {"phase": "Bound"}}
    admin.patch(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], namespace, bound, subresource="status")
    pod = worlds.pod(name, component, namespace=namespace)
    pod["spec"] |= {"tolerations": [{"operator": "Exists"}], "volumes": [_mounted(claim["metadata"]["name"])]}
    if among:
        pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _one_of(among)}}
    admin.create(PODS, pod, namespace)


_BOUND = "pv.kubernetes.io/bind-completed"


def _mounted(claim: str) -> Json:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}


def _one_of(names: list[str]) -> Json:
    rule = {"key": worlds.HOST, "operator": "In", "values": names}
    return {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}


def _volume(name: str, namespace: str, claim: str, uid: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim, "uid": uid},
            "csi": {"driver": "example.com", "volumeHandle": name},
        },
    }


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    """Other processes work in real time."""
    deadline = time.monotonic() + seconds  # noqa: TID251
    while not condition():
        assert time.monotonic() < deadline, "took too long"  # noqa: TID251
        time.sleep(0.2)  # noqa: TID251
