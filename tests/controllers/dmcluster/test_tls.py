"""A DMCluster whose components speak TLS, in the real handshakes of the sandbox (other-resources.md 6.9)."""

import pytest

from kube.resources import SECRETS
from tests.certificates import Authority
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE, sample

COMPONENTS = ("dm-master", "dm-worker")


def put(dm: DMWorld, authority: Authority, *names: str) -> None:
    for name in names:
        pair = authority.of(name.removesuffix("-cluster"), NAME) if name != "dm-client" else authority.pair()
        dm.admin.create(SECRETS, pair.secret(f"{NAME}-{name}-secret"), NAMESPACE)


def apply(dm: DMWorld) -> None:
    cluster = sample("dm")
    cluster["spec"] |= {"tlsCluster": {"enabled": True}}
    dm.apply(cluster)


@pytest.mark.slow
def test_6_9_it_comes_up_and_is_restarted_with_TLS(world: DMWorld) -> None:
    put(world, Authority(), "dm-master-cluster", "dm-worker-cluster", "dm-client")
    apply(world)
    world.run_until_ready(NAME)
    assert "True" == world.condition("CertificatesValid", NAME)["status"]
    assert {"https"} == {each["clientURL"].partition(":")[0] for each in world.status("master")["members"].values()}
    world.forget()
    world.set(master={"replicas": 1}, worker={"replicas": 1})
    world.run_until_ready(NAME, 120)
    assert all(request.url.startswith("https://") for request in world.operator.dataplane.requests)


@pytest.mark.slow
def test_6_9_a_missing_secret_is_named(world: DMWorld) -> None:
    put(world, Authority(), "dm-master-cluster", "dm-worker-cluster")
    apply(world)
    world.run_until(lambda: world.reason(NAME) == "BadCertificate")
    assert f"{NAMESPACE}/{NAME}-dm-client-secret does not exist" in world.condition("Progressing", NAME)["message"]
    world.run(10.0)
    put(world, Authority(), "dm-client")
    world.run(60.0)
    assert not world.is_ready(NAME)
