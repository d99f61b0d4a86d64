"""Clusters whose servers are hostile, a calm one among them, and one operator for all (docs/security.md)."""

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.operator_process import OF_THE_DEPLOYMENT
from bench.place import QUICK
from kube.client import Client
from kube.objects import Json
from kube.resources import DM_CLUSTERS, NAMESPACES, SERVICES, TIDB_CLUSTERS
from sandbox.conditions import holds
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import PROVEN
from simulate.engine.worlds import CLUSTERS
from tests.e2e import operators, worlds
from tests.e2e.operators import Operator, reaching
from tests.e2e.waiting import CLOCK, eventually, pause
from tests.e2e.worlds import OPERATOR_NAMESPACE
from tests.security.hostile_servers import MODES, HostileNetwork

MOST_MEMORY = 256 << 20
"""Bytes: half of what the manifest allows. The limit is in force for all private memory, as a cgroup's would be."""

LIMIT = f"""
import resource, runpy, threading
threading.stack_size(256 << 10)
resource.setrlimit(resource.RLIMIT_DATA, ({MOST_MEMORY}, {MOST_MEMORY}))
"""
"""The start of a program under RLIMIT_DATA, which counts stacks whether or not they are used: 8 MiB for each of 200
threads would leave nothing. A cgroup would take rights that not every machine grants."""

_LIMITED = f'{LIMIT}runpy.run_module("controller_manager", run_name="__main__", alter_sys=True)'

_HONEST_PD = ("headers-without-end", "redirect-to-metadata", "crowds", "slow-body")
"""Modes in which servers also answer behind an honest PD, which the operator asks before them."""

_WITH_DM = ("foreign-addresses", "control-characters", "redirect-to-another-cluster", "two-gigabytes", "slow-headers")
CALM = "calm"
_CHANGES = itertools.count(1)

_DM: Json = {
    "apiVersion": DM_CLUSTERS.api_version,
    "kind": DM_CLUSTERS.kind,
    "spec": {
        "version": "v8.5.2",
        "discovery": {},
        "master": {"baseImage": "pingcap/dm", "replicas": 1, "storageSize": "1Gi", "config": {}},
        "worker": {"baseImage": "pingcap/dm", "replicas": 1, "storageSize": "1Gi", "config": {}},
    },
}


@dataclass(frozen=True, slots=True)
class Scene:
    """An operator and its Ready clusters: an honest one, and one for each kind of hostility, honest until `turn`."""

    operator: Operator
    network: HostileNetwork
    client: Client

    def turn(self) -> None:
        """Make the servers hostile, and change each of their clusters, so that the operator asks every server."""
        self.network.turn()
        self.change_all("warn", 2)

    def change_all(self, level: str, replicas: int) -> None:
        """Change each cluster except the calm one to this log level and number of members, which must be new to it."""
        for namespace in self.network.modes:
            rolls: Json = {"tikv": {"config": {"log-level": level}}}
            grows: Json = {"tikv": {"replicas": replicas}, "pd": {"config": {"log": {"level": level}}}}
            changed = rolls if namespace in self.network.honest_pd else grows
            self.client.patch(TIDB_CLUSTERS, "t", namespace, {"spec": changed})
        for namespace in _WITH_DM:
            spec: Json = {"master": {"replicas": replicas}, "worker": {"replicas": replicas}}
            self.client.patch(DM_CLUSTERS, "d", namespace, {"spec": spec})

    def await_ready(self) -> None:
        """Wait until each cluster is Ready. Raises AssertionError naming the ones that are not."""
        eventually(lambda: not self._unready(), 120.0, self._unready)

    def _unready(self) -> Sequence[str]:
        found = [each for kind in (TIDB_CLUSTERS, DM_CLUSTERS) for each in self.client.list_page(kind).items]
        return [each.metadata.namespace for each in found if not holds(each.decode(), "Ready")]


@contextlib.contextmanager
def scene(directory: Path) -> Iterator[Scene]:
    """Bring up the clusters and the operator, and end them with the block."""
    with worlds.sandbox(directory, timings=QUICK) as place:
        modes = {name: name for name in MODES} | {f"behind-{name}": name for name in _HONEST_PD}
        honest = place.data_plane.transport(Origin(certificate=PROVEN))
        network = HostileNetwork(honest, modes, honest_pd=[f"behind-{name}" for name in _HONEST_PD])
        _forget_honest_proxy(directory / "kubeconfig")
        own = {"HELM_RELEASE": CALM, **OF_THE_DEPLOYMENT}
        environ = reaching(directory / "kubeconfig", network.url, OPERATOR_NAMESPACE, **own)
        flags = ("--kube-client-qps=1000", "--kube-client-burst=2000")
        with (
            network.serving(),
            operators.running(place.new_log(), environ, *flags, program=(sys.executable, "-c", _LIMITED)) as operator,
        ):
            here = Scene(operator, network, place.client)
            _bring_up(place.client, network)
            here.await_ready()
            yield here


def _forget_honest_proxy(kubeconfig: Path) -> None:
    """Take out the proxy to the pods, which would have precedence over the environment's."""
    tree = yaml.safe_load(kubeconfig.read_text("utf-8"))
    for each in tree["clusters"]:
        del each["cluster"]["extensions"]
    kubeconfig.write_text(yaml.safe_dump(tree), "utf-8")


def _bring_up(client: Client, network: HostileNetwork) -> None:
    """Create a cluster in each namespace."""
    for namespace in (CALM, *network.modes):
        client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        tree = CLUSTERS["tiny"]() | {"metadata": {"name": "t"}}
        if namespace in network.modes:
            tree["spec"]["tidb"]["initializer"] = {"createPassword": True}
        if namespace in network.honest_pd:
            tree["spec"]["tikv"]["replicas"] = 2
        client.create(TIDB_CLUSTERS, tree, namespace)
    for namespace in _WITH_DM:
        client.create(DM_CLUSTERS, _DM | {"metadata": {"name": "d"}}, namespace)


def wait_for_change(client: Client) -> float:
    """Change the calm cluster; seconds until the operator has written it. Raises AssertionError after 60."""
    value = str(next(_CHANGES))
    client.patch(TIDB_CLUSTERS, "t", CALM, {"spec": {"pd": {"service": {"labels": {"change": value}}}}})
    started = CLOCK.now()
    eventually(lambda: client.get(SERVICES, "t-pd", CALM).metadata.labels.get("change") == value, 60.0)
    waited = CLOCK.now() - started
    pause(0.5)
    return waited
