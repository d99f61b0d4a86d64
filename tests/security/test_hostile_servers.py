"""The operator's process among clusters whose servers are hostile (docs/security.md, data planes)."""

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bench.place import QUICK
from kube import resources
from kube.client import Client
from kube.errors import ApiError
from kube.objects import Json
from kube.resources import DM_CLUSTERS, NAMESPACES, SERVICES, TIDB_CLUSTERS, Resource
from sandbox.conditions import holds
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import PROVEN
from simulate.engine.worlds import CLUSTERS
from tests.e2e import operators, worlds
from tests.e2e.operators import reaching
from tests.e2e.waiting import CLOCK, eventually, pause
from tests.e2e.worlds import OPERATOR_NAMESPACE
from tests.security.hostile_servers import MARK, MODES, HostileNetwork

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(240)]

_MOST_MEMORY = 256 << 20
"""Bytes: half of what the manifest allows. The limit is in force for all private memory, as a cgroup's would be."""

_LIMITED = f"""
import resource, runpy, threading
threading.stack_size(256 << 10)
resource.setrlimit(resource.RLIMIT_DATA, ({_MOST_MEMORY}, {_MOST_MEMORY}))
runpy.run_module("controller_manager", run_name="__main__", alter_sys=True)
"""
"""The operator under RLIMIT_DATA, which counts stacks whether or not they are used: 8 MiB for each of 200 threads would
leave nothing. A cgroup would take rights that not every machine grants."""

_HONEST_PD = ("headers-without-end", "redirect-to-metadata", "crowds", "slow-body")
"""Modes that servers behind an honest PD can have, too; the operator asks that PD before it asks them."""

_WITH_DM = ("foreign-addresses", "control-characters", "redirect-to-another-cluster", "two-gigabytes", "slow-headers")
_CALM = "calm"
_CHANGES = 12

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
class Seen:
    """The observations of an operator and of the world while servers were hostile."""

    is_alive: bool
    peak: int
    """Bytes of memory."""
    waits: Sequence[float]
    """Seconds from a change of the calm cluster to the first write for it."""
    network: HostileNetwork
    was_canary_called: bool
    texts: dict[str, str]
    """The log, the metrics, and each object, events included, by name."""


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The world, and the threads that serve it, outlive each test."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """One operator with a cluster for each kind of hostility, and an honest one."""
    directory = tmp_path_factory.mktemp("hostile")
    with worlds.sandbox(directory, timings=QUICK) as place:
        modes = {name: MODES[name] for name in MODES} | {f"behind-{name}": MODES[name] for name in _HONEST_PD}
        honest = place.data_plane.transport(Origin(certificate=PROVEN))
        network = HostileNetwork(honest, modes, honest_pd=[f"behind-{name}" for name in _HONEST_PD])
        _forget_honest_proxy(directory / "kubeconfig")
        environ = reaching(directory / "kubeconfig", network.url, OPERATOR_NAMESPACE, HELM_RELEASE=_CALM)
        flags = ("--kube-client-qps=1000", "--kube-client-burst=2000")
        with (
            network.serving(),
            operators.running(place.new_log(), environ, *flags, program=(sys.executable, "-c", _LIMITED)) as operator,
        ):
            _bring_up(place.client, network)
            network.turn()
            _provoke(place.client, network)
            waits = [_wait_for_change(place.client, number) for number in range(_CHANGES)]
            eventually(lambda: min(network.answered.values()) >= 4 and min(network.spoke_sql.values()), 60.0)
            yield Seen(
                operator.is_running,
                operator.peak_memory,
                waits,
                network,
                network.canary.was_called(),
                {"log": operator.said, "metrics": operator.page("/metrics")[1], **_objects(place.client)},
            )


def test_each_hostile_server_got_a_request(seen: Seen) -> None:
    assert {2379, 8261, 10080, 20180} <= seen.network.ports
    assert 16 <= len(MODES)
    assert [] == [name for name, count in seen.network.answered.items() if count < 4]
    assert [] == [name for name, count in seen.network.spoke_sql.items() if not count]


def test_the_operator_survives_with_256_MiB(seen: Seen) -> None:
    assert seen.is_alive
    assert "Traceback" not in seen.texts["log"]
    assert seen.peak < _MOST_MEMORY


@pytest.mark.rule("R31")
def test_other_clusters_do_not_wait(seen: Seen) -> None:
    assert statistics.median(seen.waits) < 2.0
    # the first ones, while no key is known to be slow yet: five workers alone took 7.5 s
    assert max(seen.waits) < 4.0


def test_nothing_outside_of_the_clusters_is_called(seen: Seen) -> None:
    assert not seen.was_canary_called
    outside = [host for host in seen.network.hosts if not seen.network.namespace_of(host) and _CALM not in host]
    assert [] == outside


def test_no_words_of_a_hostile_server_are_shown(seen: Seen) -> None:
    assert [] == [name for name, text in seen.texts.items() if MARK in text]
    assert [] == [name for name, text in seen.texts.items() if "\x1b" in text or "\\u001b" in text or "\u202e" in text]


def _forget_honest_proxy(kubeconfig: Path) -> None:
    """Take out the proxy to the pods, which would have precedence over the environment's."""
    tree = yaml.safe_load(kubeconfig.read_text("utf-8"))
    for each in tree["clusters"]:
        del each["cluster"]["extensions"]
    kubeconfig.write_text(yaml.safe_dump(tree), "utf-8")


def _bring_up(client: Client, network: HostileNetwork) -> None:
    """A Ready cluster in each namespace."""
    for namespace in (_CALM, *network.modes):
        client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        tree = CLUSTERS["tiny"]() | {"metadata": {"name": "t"}}
        if namespace in network.modes:
            tree["spec"]["tidb"]["initializer"] = {"createPassword": True}
        if namespace in network.honest_pd:
            tree["spec"]["tikv"]["replicas"] = 2
        client.create(TIDB_CLUSTERS, tree, namespace)
    for namespace in _WITH_DM:
        client.create(DM_CLUSTERS, _DM | {"metadata": {"name": "d"}}, namespace)

    def all_ready() -> bool:
        found = [each.decode() for kind in (TIDB_CLUSTERS, DM_CLUSTERS) for each in client.list_page(kind).items]
        return all(holds(each, "Ready") for each in found)

    eventually(all_ready, 120.0)


def _provoke(client: Client, network: HostileNetwork) -> None:
    """Changes for which the operator asks every server."""
    for namespace in network.modes:
        rolls: Json = {"tikv": {"config": {"log-level": "warn"}}}
        grows: Json = {"tikv": {"replicas": 2}, "pd": {"config": {"log": {"level": "warn"}}}}
        client.patch(TIDB_CLUSTERS, "t", namespace, {"spec": rolls if namespace in network.honest_pd else grows})
    for namespace in _WITH_DM:
        client.patch(DM_CLUSTERS, "d", namespace, {"spec": {"master": {"replicas": 2}, "worker": {"replicas": 2}}})


def _wait_for_change(client: Client, number: int) -> float:
    """Change the calm cluster; seconds from the answer to the operator's first write for it."""
    client.patch(TIDB_CLUSTERS, "t", _CALM, {"spec": {"pd": {"service": {"labels": {"change": str(number)}}}}})
    started = CLOCK.now()
    eventually(lambda: client.get(SERVICES, "t-pd", _CALM).metadata.labels.get("change") == str(number), 60.0)
    waited = CLOCK.now() - started
    pause(0.5)
    return waited


def _objects(client: Client) -> dict[str, str]:
    """All objects of the world as text."""
    found = {}
    for resource in vars(resources).values():
        if not isinstance(resource, Resource):
            continue
        try:
            listed = client.list_page(resource).items
        except ApiError:
            continue
        for each in listed:
            name = f"{resource.kind} {each.metadata.namespace}/{each.metadata.name}"
            found[name] = each.raw.decode()
    return found
