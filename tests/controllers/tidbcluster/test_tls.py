"""A TidbCluster whose components speak TLS, in the real handshakes of the sandbox (objects.md 9)."""

from dataclasses import replace

import pytest

from kube.resources import PODS, SECRETS
from member.context import FailoverSettings
from ports.clock import FakeClock
from sandbox.kubelet.nodes import NodeSpec
from simulate.operator import SETTINGS
from tests.certificates import CLIENT, Authority, Pair, secret_name
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_SIX_NODES = tuple(NodeSpec(f"node-{index}", f"192.168.0.{index + 10}", f"zone-{index % 3}") for index in range(6))
_COMPONENTS = ("pd", "tikv", "tidb", CLIENT)


class TlsWorld:
    """A world with the Secrets of a cluster `basic`, and what users do to these."""

    def __init__(self, world: OperatorWorld) -> None:
        self.world = world
        self.authority = Authority()

    def put(
        self, component: str, pair: Pair | None = None, keys: tuple[str, ...] = ("ca.crt", "tls.crt", "tls.key")
    ) -> None:
        """Make a component's Secret, or replace it."""
        made = (pair or self.authority.of(component)).secret(secret_name(component), keys)
        if self.world.exists(SECRETS, made["metadata"]["name"]):
            self.world.admin.delete(SECRETS, made["metadata"]["name"], NAMESPACE)
        self.world.admin.create(SECRETS, made, NAMESPACE)

    def put_all(self) -> None:
        """Every Secret that the cluster needs."""
        for each in _COMPONENTS:
            self.put(each)
        server = self.authority.of("tidb").secret("basic-tidb-server-secret")
        self.world.admin.create(SECRETS, server, NAMESPACE)
        self.world.admin.create(SECRETS, self.authority.pair().secret("basic-tidb-client-secret"), NAMESPACE)

    def apply(self) -> None:
        """A cluster of the usual size."""
        cluster = sample("basic")
        spec = cluster["spec"]
        spec["tlsCluster"] = {"enabled": True}
        spec["pd"]["replicas"], spec["tikv"]["replicas"], spec["tidb"]["replicas"] = 3, 3, 2
        spec["tidb"]["tlsClient"] = {"enabled": True}
        for each in ("pd", "tikv", "tidb"):
            spec[each]["maxFailoverCount"] = 1
        # PD gives a store up after a minute instead of half an hour
        spec["pd"]["config"] = '[schedule]\nmax-store-down-time = "1m"\n'
        self.world.apply(cluster)

    def images(self) -> set[str]:
        """Those of the containers of PD, TiKV and TiDB."""
        containers = (each for pod in self.world.every(PODS) for each in pod["spec"]["containers"])
        return {each["image"] for each in containers if each["name"] in _COMPONENTS}

    def counts(self) -> tuple[int, int, int]:
        """How many healthy members PD has, how many stores are Up, how many servers of TiDB are healthy."""
        status = self.world.cluster()["status"]
        healthy = [each["health"] for each in status["pd"]["members"].values()]
        up = [each["state"] == "Up" for each in status["tikv"]["stores"].values()]
        return sum(healthy), sum(up), sum(each["health"] for each in status["tidb"]["members"].values())


@pytest.fixture
def tls(world: OperatorWorld) -> TlsWorld:
    return TlsWorld(world)


def test_9_a_tls_cluster_comes_up(tls: TlsWorld) -> None:
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    assert 3 == len(tls.world.cluster()["status"]["pd"]["members"])


@pytest.fixture
def ready(tls: TlsWorld) -> TlsWorld:
    """A Ready cluster; nothing is counted yet."""
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    tls.world.forget()
    return tls


@pytest.mark.slow
def test_9_7_2_a_tls_cluster_is_upgraded_in_order(ready: TlsWorld) -> None:
    ready.world.change(version="v8.5.3")
    ready.world.run_until(lambda: ready.world.reason() == "RollingUpdate")
    ready.world.run_until_ready(within=300.0)
    assert {"v8.5.3"} == {image.rpartition(":")[2] for image in ready.images()}


@pytest.mark.slow
def test_9_8_a_tls_cluster_is_scaled_out_and_in(ready: TlsWorld) -> None:
    ready.world.change(pd={"replicas": 5}, tikv={"replicas": 4}, tidb={"replicas": 3})
    ready.world.run_until(lambda: ready.counts() == (5, 4, 3), within=120.0)
    ready.world.run_until_ready()
    ready.world.change(pd={"replicas": 3}, tikv={"replicas": 3}, tidb={"replicas": 2})
    ready.world.run_until(lambda: ready.counts() == (3, 3, 2), within=300.0)
    ready.world.run_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
def test_9_9_a_lost_pod_of_a_tls_cluster_is_replaced(clock: FakeClock, component: str) -> None:
    settings = replace(SETTINGS, failover=FailoverSettings(pd_period=60.0, tikv_period=60.0, tidb_period=60.0))
    tls = TlsWorld(OperatorWorld(clock=clock, nodes=_SIX_NODES, settings=settings))
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    before = tls.world.replicas(component)
    tls.world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-{component}-1")
    tls.world.run_until(lambda: tls.world.replicas(component) > before, within=600.0)
    tls.world.run_until(lambda: tls.counts()[("pd", "tikv", "tidb").index(component)] >= before, within=600.0)
    tls.world.stop()
