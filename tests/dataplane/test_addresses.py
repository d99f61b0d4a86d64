"""The address book (dataplane-apis.md 1)."""

import pytest

from dataplane.addresses import AddressBook

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
        ("http://demo-pd-0.demo-pd-peer.ns.svc.other:2379", None),
        ("http://demo-pd-0.demo-pd-peer.ns2.svc:2379", None),
        ("http://demo-pd-0.demo-pd-peer.ns.svc", None),
        ("http://demo-pd-00.demo-pd-peer.ns.svc:2379", None),
        ("http://demo-pd-0.demo-pd-peer.ns.svc:none", None),
        ("", None),
    ],
)
def test_own_addresses_are_matched_as_a_whole(address: str, expected: int | None) -> None:
    assert expected == DOMAIN.ordinal_of("pd", address)
