"""A TidbCluster whose components speak TLS, in the real handshakes of the sandbox (objects.md 9)."""

import pytest

from kube.resources import SECRETS
from tests.certificates import CLIENT, Authority, Pair, secret_name
from tests.operator_world import NAMESPACE, OperatorWorld, sample

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
        self.world.apply(cluster)


@pytest.fixture
def tls(world: OperatorWorld) -> TlsWorld:
    return TlsWorld(world)


def test_9_a_tls_cluster_comes_up(tls: TlsWorld) -> None:
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    assert 3 == len(tls.world.cluster()["status"]["pd"]["members"])
