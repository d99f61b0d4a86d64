"""The address book (dataplane-apis.md 1)."""

import pytest

from dataplane.addresses import AddressBook, Stranger

PLAIN = AddressBook("demo", "ns")
DOMAIN = AddressBook("demo", "ns", "c.local", tls=True)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("http://demo-pd.ns:2379", PLAIN.pd()),
        ("https://demo-pd.ns.svc.c.local:2379", DOMAIN.pd()),
        ("http://demo-pd-peer.ns:2379", PLAIN.pd_peers()),
        ("http://demo-pd-1.demo-pd-peer.ns.svc:2379", PLAIN.pd_member(1)),
        ("https://demo-pd-1.demo-pd-peer.ns.svc.c.local:2379", DOMAIN.pd_member(1)),
        ("http://demo-tikv-2.demo-tikv-peer.ns:20180", PLAIN.tikv_status(2)),
        ("https://demo-tidb-0.demo-tidb-peer.ns.svc.c.local:10080", DOMAIN.tidb_status(0)),
    ],
)
def test_A1_A9_urls(expected: str, actual: str) -> None:
    assert expected == actual


def test_pd_may_know_a_member_by_two_names() -> None:
    assert DOMAIN.pd_member_names(0) == ("demo-pd-0.demo-pd-peer.ns.svc.c.local", "demo-pd-0")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://demo-pd-12.demo-pd-peer.ns.svc:2379", 12),
        ("demo-pd-0.demo-pd-peer.ns.svc:2379", 0),
        ("https://demo-pd-0.demo-pd-peer.ns.svc.c.local:2379", 0),
        ("http://a-demo-pd-0.demo-pd-peer.ns.svc:2379", None),
        ("http://demo-pd-0.demo-pd-peer.ns.svc.other:2379", 0),
        ("http://DEMO-pd-0.demo-pd-peer.ns.svc.other.:2379", 0),
        ("http://demo-pd-0.demo-pd-peer.ns2.svc:2379", None),
        ("http://demo-pd-0.demo-pd-peer.ns.svc", 0),
        ("http://demo-pd-00.demo-pd-peer.ns.svc:2379", None),
        ("http://demo-pd-0.demo-pd-peer.ns.svc:none", None),
        ("", None),
    ],
)
def test_own_addresses_are_matched_as_a_whole(address: str, expected: int | None) -> None:
    assert expected == DOMAIN.ordinal_of("pd", address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "demo-tikv-1:20160",
        "demo-tikv-1.demo-tikv-peer:20160",
        "demo-tikv-1.demo-tikv-peer.ns:20160",
        "demo-tikv-1.demo-tikv-peer.ns.pod.cluster.local:20160",
        "demo-tikv-01.demo-tikv-peer.ns.svc:20160",
        "other.demo-tikv-peer.ns.svc:20160",
        "demo-tikv-1.demo-tikv-peer.ns.svc:none",
        "demo-tikv-1.other.ns.svc:20160",
    ],
)
def test_what_looks_like_a_pod_of_ours_is_not_called_a_peers(address: str) -> None:
    assert Stranger.UNCLEAR is DOMAIN.owner_of("tikv", address)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.7:20160",
        "[fd00::7]:20160",
        "store-1.example.com:20160",
        "demo-tikv-1.demo-tikv-peer.ns2.svc.c.local:20160",
        "demo-tiflash-1.demo-tiflash-peer.ns.svc:3930",
        "b-tikv-1.b-tikv-peer.ns.svc:20160",
        "b-demo-tikv-1.b-demo-tikv-peer.ns.svc:20160",
    ],
)
def test_what_is_written_like_a_peer_is_a_peers(address: str) -> None:
    assert Stranger.PEER is DOMAIN.owner_of("tikv", address)


def test_across_kubernetes_another_domain_is_another_kubernetes() -> None:
    book = AddressBook("demo", "ns", "c.local", across_k8s=True)
    addresses = [f"demo-tikv-1.demo-tikv-peer.ns.svc{domain}:20160" for domain in (".c.local", "", ".d.local")]
    assert [1, 1, Stranger.PEER] == [book.owner_of("tikv", address) for address in addresses]
