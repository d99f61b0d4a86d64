"""A DMCluster whose components speak TLS, in the real handshakes of the sandbox (other-resources.md 6.9)."""

import pytest

from kube.resources import PODS, SECRETS, STATEFUL_SETS
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
@pytest.mark.rule("other-resources-6.9")
def test_a_cluster_with_tls_starts_and_restarts(world: DMWorld) -> None:
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
@pytest.mark.rule("other-resources-6.9")
def test_a_missing_secret_is_named(world: DMWorld) -> None:
    put(world, Authority(), "dm-master-cluster", "dm-worker-cluster")
    apply(world)
    world.run_until(lambda: world.reason(NAME) == "BadCertificate")
    assert f"{NAMESPACE}/{NAME}-dm-client-secret does not exist" in world.condition("Progressing", NAME)["message"]
    world.run(10.0)
    put(world, Authority(), "dm-client")
    world.run(60.0)
    assert not world.is_ready(NAME)


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.rule("R25")
def test_tls_is_not_switched_while_several_masters_run(world: DMWorld, enabled: bool) -> None:
    put(world, Authority(), "dm-master-cluster", "dm-worker-cluster", "dm-client")
    world.bring_up(tlsCluster={"enabled": not enabled})
    before = world.spec_of("dm-master")["template"]
    world.set(tlsCluster={"enabled": enabled})
    world.run_until(lambda: world.reason(NAME) == "InvalidSpec")
    said = world.condition("Progressing", NAME)["message"]
    assert f"set it back to {str(not enabled).lower()}, and scale spec.master to 1 before changing it" in said

    for ordinal in range(3):
        world.admin.delete(PODS, f"{NAME}-dm-master-{ordinal}", NAMESPACE)
        world.run(60.0)
    assert before == world.spec_of("dm-master")["template"]
    assert all(member["health"] for member in world.status("master")["members"].values())

    world.set(suspendAction={"suspendStatefulSet": True}, tlsCluster={"enabled": not enabled})
    world.run_until(lambda: not world.exists(STATEFUL_SETS, f"{NAME}-dm-master"))
    world.set(tlsCluster={"enabled": enabled})
    world.run_until(lambda: world.reason(NAME) == "InvalidSpec")
    assert "while the masters are suspended" in world.condition("Progressing", NAME)["message"]


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.rule("R25")
def test_tls_is_switched_where_a_single_master_runs_which_grows_once_its_peer_url_is_right(
    world: DMWorld, enabled: bool
) -> None:
    put(world, Authority(), "dm-master-cluster", "dm-worker-cluster", "dm-client")
    world.bring_up(tlsCluster={"enabled": not enabled}, master={"replicas": 1, "storageSize": "1Gi"})
    world.set(tlsCluster={"enabled": enabled})
    world.run(10.0)
    world.run_until_ready(NAME, 180.0)

    world.set(master={"replicas": 3})
    world.run_until(lambda: world.reason(NAME) == "PeerURLOutdated")
    said = world.condition("Progressing", NAME)["message"]
    old, new = ("http", "https") if enabled else ("https", "http")
    url = f"://{NAME}-dm-master-0.{NAME}-dm-master-peer:8291"
    assert f"DM-master member {NAME}-dm-master-0 has joined as {old}{url}" in said
    assert f"--peer-urls={new}{url}` before DM-master grows" in said
    assert 1 == world.size("dm-master")
