"""The real kube-scheduler with the extender's process (scheduler-deployment.md 2.6, 2.8)."""

import contextlib
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trustme
import yaml

from apis.crd import TIDB_CLUSTER, definition
from kube.client import Client
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
    Resource,
)
from kube.user_config import load
from ports.clock import SystemClock
from ports.randomness import Randomness, SeededRandomness
from tests.controlplane.processes import BINARIES, ControlPlane, free_port, require_or_reason, running
from tests.scheduler import worlds
from tests.scheduler.worlds import node, shuffled

CONFIG = Path(__file__).parents[2] / "manifests" / "scheduler" / "deployment.yaml"
RUNS = int(os.environ.get("SCHEDULING_RUNS", "20"))
"""The number of clusters with five PDs; `make simulate` has 200."""
_AT_ONCE = 50

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]


class Place:
    """An API server, a kube-scheduler with the shipped configuration, and the extender, which can be killed.

    They use HTTPS with certificates of one authority; the extender's can be renewed.
    """

    def __init__(self, control_plane: ControlPlane, admin: Client, directory: Path) -> None:
        self.admin = admin
        self._control_plane, self._directory = control_plane, directory
        self._port = free_port()
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(directory / "extender-ca.crt")
        issued = self._authority.issue_cert("kube-scheduler")
        issued.private_key_pem.write_to_path(directory / "kube-scheduler.key")
        issued.cert_chain_pems[0].write_to_path(directory / "kube-scheduler.crt")
        self.renew_certificate()
        self._extender: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def scheduling(self) -> Iterator[None]:
        """Run both processes within the block."""
        self.start_extender()
        try:
            with self.kube_scheduler("tidb-scheduler", self.with_certificate):
                yield
        finally:
            self.kill_extender()

    @property
    def with_certificate(self) -> Json:
        """The credentials of a kube-scheduler."""
        return {f"{name}File": str(self._directory / f"kube-scheduler.{end}") for name, end in _OF_CLIENTS.items()}

    @contextlib.contextmanager
    def kube_scheduler(self, name: str, client: Json) -> Iterator[None]:
        """Run a kube-scheduler of that name, which calls the extender with such client files."""
        config, authority = self._directory / f"{name}.yaml", self._directory / "extender-ca.crt"
        tree = _configuration(self._port, self._control_plane.kubeconfig("scheduler"))
        tree["profiles"][0]["schedulerName"] = name
        tree["extenders"][0]["tlsConfig"] = {"caFile": str(authority)} | client
        config.write_text(yaml.safe_dump(tree))
        command = [str(BINARIES / "kube-scheduler"), f"--config={config}", f"--secure-port={free_port()}"]
        command += ["--bind-address=127.0.0.1", f"--cert-dir={self._directory / f'certs-{name}'}"]
        with (self._directory / f"{name}.log").open("wb") as log:
            scheduler = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            scheduler.kill()
            scheduler.wait()

    def said_by_extender(self) -> str:
        """Its log."""
        return (self._directory / "extender.log").read_text("utf-8")

    def start_extender(self) -> None:
        """Start the extender's process."""
        flags = [f"-kubeconfig={self._control_plane.kubeconfig()}", f"-port={self._port}"]
        flags += [f"-tls-{name}={self._directory / 'extender'}.{end}" for name, end in _TLS.items()]
        flags.append(f"-client-ca-file={self._directory / 'extender-ca.crt'}")
        command = [sys.executable, "-m", "scheduler", *flags, f"-metrics-addr=127.0.0.1:{free_port()}"]
        with (self._directory / "extender.log").open("ab") as log:
            self._extender = subprocess.Popen(command, stdout=log, stderr=log)

    def renew_certificate(self) -> None:
        """Replace the files as cert-manager does, under the same names, while the process runs."""
        issued = self._authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(self._directory / "extender.key")
        issued.cert_chain_pems[0].write_to_path(self._directory / "extender.crt")

    def certificate(self) -> str:
        """The certificate that the extender presents."""
        return ssl.get_server_certificate(("127.0.0.1", self._port))

    def kill_extender(self) -> None:
        """Kill the extender's process."""
        if self._extender is not None:
            self._extender.kill()
            self._extender.wait()

    def nodes_of(self, namespace: str) -> dict[str, str]:
        """The node of each pod, or empty."""
        pods = self.admin.list_page(PODS, namespace).items
        return {each.metadata.name: each.decode()["spec"].get("nodeName", "") for each in pods}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Three nodes on a separate control plane without other controllers."""
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


@pytest.mark.timeout(900)
@pytest.mark.rule("scheduler-deployment-2.6")
def test_pds_are_placed_as_the_table_says_in_every_order_and_with_the_extender_killed(place: Place) -> None:
    """Five pods are 2-2-1 and three are 1-1-1; of four, one waits, because two on a node would be half of them."""
    sizes = {f"run-{run}": 5 for run in range(RUNS)}
    sizes |= {f"of-{size}-{run}": size for run in range(RUNS // 5) for size in (3, 4)}
    draws = SeededRandomness(1)
    for first in range(0, len(sizes), _AT_ONCE):
        batch = dict(list(sizes.items())[first : first + _AT_ONCE])
        _add_pods_in_any_order(place, batch, draws)
        _wait(partial(_are_placed, place, batch), 200)
        for namespace, size in batch.items():
            nodes = list(place.nodes_of(namespace).values())
            assert PLACED[size] == sorted(nodes.count(each) for each in "abc"), namespace


def _add_pods_in_any_order(place: Place, sizes: dict[str, int], draws: Randomness) -> None:
    """Add the pods of all clusters; meanwhile kill the extender and renew its certificate at random."""
    for namespace, size in sizes.items():
        _add_cluster(place.admin, namespace, pd=size)
    for number in range(max(sizes.values())):
        for namespace in [each for each, size in sizes.items() if number < size]:
            names = [f"db-pd-{n}" for n in range(sizes[namespace])]
            _add_pod(place.admin, namespace, shuffled(names, SeededRandomness(namespace))[number], "pd")
            event = draws.integer(0, 50)
            if event == 0:
                place.kill_extender()
                place.start_extender()
            elif event == 1:
                place.renew_certificate()


def _are_placed(place: Place, sizes: dict[str, int]) -> bool:
    return all(sum(map(bool, place.nodes_of(each).values())) == sum(PLACED[size]) for each, size in sizes.items())


PLACED = {3: [1, 1, 1], 4: [1, 1, 1], 5: [1, 2, 2]}
"""The number of PDs on each of three nodes, by the number of PDs (2.6)."""


@pytest.mark.rule("scheduler-deployment-2.2")
def test_a_renewed_certificate_is_shown_without_a_restart(place: Place) -> None:
    before = place.certificate()
    place.renew_certificate()
    assert before != place.certificate()


@pytest.mark.rule("scheduler-deployment-2.3")
def test_makes_room_only_where_the_pod_may_go(place: Place) -> None:
    """PD's third member preempts a pod on the node without a member, although the others have cheaper pods."""
    _add_cluster(place.admin, "full", pd=3)
    for name, value in (("precious", 1000), ("dear", 500), ("cheap", 1)):
        place.admin.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    for where, priority in zip("abc", ("cheap", "cheap", "dear"), strict=True):
        place.admin.create(PODS, _filler(where, priority), "full")
    for ordinal, where in enumerate("ab"):
        _add_pod(place.admin, "full", f"db-pd-{ordinal}", "pd", among=[where])
    _wait(lambda: all(place.nodes_of("full").values()), 60)
    _add_pod(place.admin, "full", "db-pd-2", "pd", needs={_SCARCE: "1"}, priority="precious")
    _wait(lambda: _is_going(place, "filler-c"), 60)
    assert [False, False] == [_is_going(place, f"filler-{where}") for where in "ab"]
    place.admin.delete(PODS, "filler-c", "full", grace_period_seconds=0)
    _wait(lambda: place.nodes_of("full")["db-pd-2"] == "c", 60)


def _is_going(place: Place, pod: str) -> bool:
    return place.admin.get(PODS, pod, "full").metadata.deletion_timestamp is not None


@pytest.mark.rule("scheduler-deployment-2.6")
def test_three_are_1_1_1_and_a_fourth_waits_with_a_reason(place: Place) -> None:
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


def _filler(where: str, priority: str) -> Json:
    """A foreign pod that uses up the scarce resource of a node."""
    resources = {"limits": {_SCARCE: "1"}, "requests": {_SCARCE: "1"}}
    container = {"name": "main", "image": "busybox", "resources": resources}
    spec = {"nodeName": where, "priorityClassName": priority, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"filler-{where}"}, "spec": spec}


def _configuration(port: int, kubeconfig: Path) -> Json:
    """The shipped configuration, adapted to this machine."""
    documents = yaml.safe_load_all(CONFIG.read_text())
    config: Json = yaml.safe_load(next(iter(documents))["data"]["scheduler.yaml"])
    config["leaderElection"] = {"leaderElect": False}
    config["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000}
    config["extenders"][0]["urlPrefix"] = f"https://127.0.0.1:{port}/scheduler"
    config["extenders"][0]["enableHTTPS"] = True
    return config


def _add_node(admin: Client, name: str) -> None:
    admin.create(NODES, node(name))
    free = {"cpu": "1000", "memory": "1000Gi", "pods": "5000", _SCARCE: "1"}
    admin.patch(NODES, name, "", {"status": {"allocatable": free, "capacity": free}}, subresource="status")


def _add_cluster(admin: Client, namespace: str, pd: int) -> None:
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    admin.create(SERVICE_ACCOUNTS, account, namespace)
    cluster = worlds.cluster(pd={"replicas": pd})
    cluster["metadata"]["namespace"] = namespace
    _wait(lambda: _created(admin, cluster, namespace), 30)


def _created(admin: Client, cluster: Json, namespace: str) -> bool:
    """Create the object; the API may serve a new CRD only after a moment."""
    try:
        admin.create(TIDB_CLUSTERS, cluster, namespace)
    except NotFound:
        return False
    return True


def test_a_kube_scheduler_without_a_certificate_is_refused(place: Place) -> None:
    """A kube-scheduler with a certificate places the same pods meanwhile."""
    _add_cluster(place.admin, "mutual", pd=1)
    place.kill_extender()  # a new process logs the refusal of a host again
    before = len(place.said_by_extender())
    place.start_extender()
    with place.kube_scheduler("stranger", {}):
        _add_pod(place.admin, "mutual", "db-tikv-0", "tikv", scheduler="stranger")
        _wait(lambda: "client refused" in place.said_by_extender()[before:], 60)
        _add_pod(place.admin, "mutual", "db-tikv-1", "tikv")
        _wait(lambda: bool(place.nodes_of("mutual")["db-tikv-1"]), 60)
        assert "" == place.nodes_of("mutual")["db-tikv-0"]
    assert "it shows no certificate, and this server demands one" in place.said_by_extender()[before:]


def _add_pod(
    admin: Client,
    namespace: str,
    name: str,
    component: str,
    among: list[str] | None = None,
    *,
    needs: Json | None = None,
    priority: str = "",
    scheduler: str = "tidb-scheduler",
) -> None:
    """Add a pod with a claim that is bound to a volume reachable from every node."""
    claim = worlds.claim(name, component, {"namespace": namespace, "annotations": {_BOUND: "yes"}})
    volume = f"{namespace}-{name}"
    claim["spec"] |= {"volumeName": volume, "storageClassName": ""}
    uid = admin.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace).metadata.uid
    admin.create(PERSISTENT_VOLUMES, _volume(volume, namespace, claim["metadata"]["name"], uid))
    bound = {"status": {"phase": "Bound"}}
    admin.patch(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], namespace, bound, subresource="status")
    pod = worlds.pod(name, component, namespace=namespace)
    pod["spec"]["schedulerName"] = scheduler
    pod["spec"] |= {"tolerations": [{"operator": "Exists"}], "volumes": [_mounted(claim["metadata"]["name"])]}
    if among:
        pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _one_of(among)}}
    if needs:
        pod["spec"]["containers"][0]["resources"] = {"limits": needs, "requests": needs}
    if priority:
        pod["spec"]["priorityClassName"] = priority
    admin.create(PODS, pod, namespace)


_SCARCE = "example.com/scarce"
_OF_CLIENTS = {"cert": "crt", "key": "key"}
_TLS = {"cert-file": "crt", "private-key-file": "key"}
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
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
    """Wait in real time, because other processes do."""
    deadline = time.monotonic() + seconds  # noqa: TID251
    while not condition():
        assert time.monotonic() < deadline, "took too long"  # noqa: TID251
        time.sleep(0.2)  # noqa: TID251
