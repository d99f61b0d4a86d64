"""TLS of Pump, which has other names, and of PD's microservices, which use PD's certificate (objects.md 9.1)."""

from collections.abc import Iterable

import pytest

from kube.resources import SECRETS
from tests.certificates import CLIENT, Authority, hosts_of, secret_name
from tests.operator_world import NAMESPACE, OperatorWorld, sample

PUMP_HOSTS = ("*.basic-pump", "*.basic-pump.default", "*.basic-pump.default.svc")
MICROSERVICES = (*hosts_of("tso")[:-2], *hosts_of("scheduling")[:-2])


def applied(world: OperatorWorld, pump: Iterable[str] = PUMP_HOSTS, pd: Iterable[str] = MICROSERVICES) -> None:
    """A cluster with both, and certificates for these names."""
    authority = Authority()
    pairs = {each: authority.of(each) for each in ("tikv", "tidb", CLIENT)}
    pairs |= {"pump": authority.pair(*pump), "pd": authority.pair(*hosts_of("pd"), *pd)}
    for component, pair in pairs.items():
        world.admin.create(SECRETS, pair.secret(secret_name(component)), NAMESPACE)
    cluster = sample("basic")
    spec = cluster["spec"]
    spec["tlsCluster"] = {"enabled": True}
    spec["pd"]["mode"] = "ms"
    spec["pdms"] = [{"name": "tso", "replicas": 2}, {"name": "scheduling", "replicas": 1}]
    spec["pump"] = {"replicas": 2, "requests": {"storage": "1Gi"}}
    world.apply(cluster)


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_pump_and_microservices_start_upgrade_and_scale_with_tls(world: OperatorWorld) -> None:
    applied(world)
    world.run_until_ready(within=120.0)
    world.change(version="v8.5.3")
    world.run_until_ready(within=300.0)
    world.change(pump={"replicas": 1}, pdms=[{"name": "tso", "replicas": 1}, {"name": "scheduling", "replicas": 1}])
    world.run_until_ready(within=120.0)
    assert (1, 1) == (world.replicas("pump"), world.replicas("tso"))


@pytest.mark.parametrize(
    ("pump", "pd", "said"),
    [
        (("pump.example",), MICROSERVICES, "basic-pump-cluster-secret, key tls.crt: does not hold for basic-pump-0."),
        (PUMP_HOSTS, (), "basic-pd-cluster-secret, key tls.crt: does not hold for basic-tso-0."),
    ],
)
@pytest.mark.rule("objects-9.1")
def test_names_a_certificate_for_other_names(
    world: OperatorWorld, pump: tuple[str, ...], pd: tuple[str, ...], said: str
) -> None:
    applied(world, pump, pd)
    world.run_until(lambda: world.reason() == "BadCertificate", within=60.0)
    assert said in world.condition("Progressing")["message"]


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_unused_microservices_need_no_names_in_the_certificate(world: OperatorWorld) -> None:
    applied(world, pd=())
    world.change(pd={"mode": ""})
    world.run_until_ready(within=120.0)
