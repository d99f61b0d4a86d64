"""The Secrets that a cluster's pods mount, and that the operator reads (objects.md 9.1)."""

from itertools import chain, combinations

import pytest

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from meta.certificate_needs import all_hosts, dialled_hosts, needs
from tests.operator_world import sample

_PARTS = ("pd", "pdms", "tiproxy", "tiflash", "tikv", "pump", "tidb", "ticdc")
_SUBSETS = tuple(chain.from_iterable(combinations(_PARTS, count) for count in range(len(_PARTS) + 1)))


def cluster(**changes: Json | list[Json] | None) -> TidbCluster:
    """The sample with every component, and changed fields of the spec; None removes a field."""
    body = sample("everything")
    body["metadata"]["namespace"] = "ns"
    spec = {**body["spec"], **changes}
    body["spec"] = {field: value for field, value in spec.items() if value is not None}
    return with_defaults(decode(body, TidbCluster))


@pytest.mark.rule("objects-9.1")
def test_without_tls_nothing_is_needed() -> None:
    tc = cluster(tlsCluster=None, tidb={"baseImage": "pingcap/tidb", "replicas": 1})
    assert {} == needs(tc)


@pytest.mark.rule("objects-9.2")
def test_sql_clients_alone_need_two() -> None:
    tc = cluster(tlsCluster=None, tiproxy=None)
    assert {"everything-tidb-server-secret", "everything-tidb-client-secret"} == needs(tc).keys()


@pytest.mark.rule("objects-9.1")
def test_certificates_cover_every_dialled_name() -> None:
    tc = cluster()
    for need in needs(tc).values():
        endings = {host.partition(".")[2] for host in all_hosts(tc, need) if host.startswith("*.")}
        for host in dialled_hosts(tc, need):
            assert host in all_hosts(tc, need) or host.partition(".")[2] in endings, (need.secret, host)


@pytest.mark.parametrize(
    ("component", "host"),
    [
        ("pd", "everything-pd.ns"),
        ("tikv", "everything-tikv-0.everything-tikv-peer.ns.svc"),
        ("pump", "everything-pump-0.everything-pump.ns.svc"),
        ("discovery", "everything-discovery.ns"),
    ],
)
@pytest.mark.rule("objects-9.1")
def test_lists_the_names_of_a_component(component: str, host: str) -> None:
    tc = cluster()
    assert host in dialled_hosts(tc, needs(tc)[f"everything-{component}-cluster-secret"])


@pytest.mark.rule("objects-9.1")
def test_microservices_present_the_certificate_of_pd() -> None:
    assert ("tso", "scheduling", "pd") == needs(cluster())["everything-pd-cluster-secret"].components


@pytest.mark.rule("objects-9.1")
def test_unused_microservices_need_nothing() -> None:
    tc = cluster(pd={"baseImage": "pingcap/pd", "replicas": 1, "requests": {"storage": "1Gi"}})
    assert ("pd",) == needs(tc)["everything-pd-cluster-secret"].components


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_covers_any_set_of_components() -> None:
    for parts in _SUBSETS:
        tc = cluster(**dict.fromkeys(set(_PARTS) - set(parts), None))
        found = needs(tc)
        assert {"everything-cluster-client-secret", "everything-discovery-cluster-secret"} <= found.keys()
        for part in set(parts) - {"pdms"}:
            assert f"everything-{part}-cluster-secret" in found or part == "tiproxy", (parts, part)
