"""The members and stores of PD that are pods of this cluster (lifecycle.md 4.1, F24, F31)."""

import pytest

from dataplane.addresses import Stranger
from dataplane.errors import AddressNotUnderstood
from dataplane.pd import Health, Member, Store
from member.ownership import member_owner, require_understood_members, stores_by_pod
from tests.member.clusters import cluster

HOST = "demo-pd-{}.demo-pd-peer.ns.svc"


def member(name: str, *urls: str) -> Member:
    return Member(name, 7, tuple(url for url in urls if url.endswith("2379")), urls)


def store(address: str, **labels: str) -> Store:
    return Store(4, address, "Up", labels)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (1, member("demo-pd-1", f"http://{HOST.format(1)}:2379")),
        (1, member("demo-pd-1.demo-pd-peer.ns.svc.old.domain", f"http://{HOST.format(1)}.old.domain:2379")),
        (1, member("", f"http://{HOST.format(1)}.old.domain:2380")),
        (1, member("demo-pd-1", "http://10.0.0.1:2379")),
        (1, member("demo-pd-1")),
        (1, member(HOST.format(1).upper())),
        (Stranger.PEER, member("demo-pd-1", "http://demo-pd-1.demo-pd-peer.other.svc:2379")),
        (Stranger.PEER, member("pd-a", "http://10.0.0.1:2379")),
        (Stranger.PEER, member("", "http://10.0.0.1:2380")),
        (Stranger.UNCLEAR, member("demo-pd-1", "http://demo-pd-1:2379")),
        (Stranger.UNCLEAR, member("x", f"http://{HOST.format(1)}:2379", f"http://{HOST.format(2)}:2380")),
        (Stranger.UNCLEAR, member("demo-pd-01")),
        (Stranger.UNCLEAR, member("")),
    ],
)
@pytest.mark.rule("lifecycle-4.1")
def test_a_member_is_known_by_its_urls_then_by_its_name(expected: int | Stranger, found: Member) -> None:
    assert expected == member_owner(cluster(clusterDomain="new.domain"), found)


@pytest.mark.rule("lifecycle-4.1")
def test_two_members_of_one_pod_prove_nothing() -> None:
    two = [Health(HOST.format(1), 1, (f"http://{HOST.format(1)}:2379",), True), Health("demo-pd-1", 2, (), True)]
    with pytest.raises(AddressNotUnderstood, match="the same pod"):
        require_understood_members(cluster(), two)


@pytest.mark.rule("F31")
def test_stores_of_tiflash_are_no_ones_of_tikv() -> None:
    address = "demo-tikv-1.demo-tikv-peer.ns.svc.a:20160"
    stores = [store(address), store(address, engine="tiflash"), store("demo-tikv-1", engine="tiflash")]
    assert {1: [stores[0]]} == stores_by_pod(cluster(), "tikv", stores)


@pytest.mark.rule("lifecycle-4.1")
def test_a_store_whose_address_pd_left_out_may_be_any() -> None:
    with pytest.raises(AddressNotUnderstood, match="store 4 at no address"):
        stores_by_pod(cluster(), "tikv", [store("")])


def test_an_error_shows_no_path_of_an_address_and_bounds_texts() -> None:
    of_two_pods = [f"http://{HOST.format(ordinal)}:2379/SECRET" for ordinal in (1, 2)]
    with pytest.raises(AddressNotUnderstood, match="PD reports member xxx") as raised:
        require_understood_members(cluster(), [member("x" * 500, *of_two_pods)])
    assert "SECRET" not in str(raised.value)
    assert len(str(raised.value)) < 600
    with pytest.raises(AddressNotUnderstood, match="PD reports store 4 at demo-tikv-1") as raised:
        stores_by_pod(cluster(), "tikv", [store(f"demo-tikv-1,{'x' * 400}")])
    assert len(str(raised.value)) < 400
