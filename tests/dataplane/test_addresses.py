"""The address book (dataplane-apis.md 1)."""

import re

import pytest

from dataplane.addresses import Address, AddressBook, Reach, Stranger, shown_url, without_path
from dataplane.errors import NotInCluster

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
@pytest.mark.rule("A1", "A9")
def test_urls(expected: str, actual: str) -> None:
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
def test_an_address_like_an_own_pods_is_not_taken_for_a_peers(address: str) -> None:
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
def test_recognises_the_address_of_a_peer_cluster(address: str) -> None:
    assert Stranger.PEER is DOMAIN.owner_of("tikv", address)


def test_across_kubernetes_another_domain_means_another_cluster() -> None:
    book = AddressBook("demo", "ns", "c.local", across_k8s=True)
    addresses = [f"demo-tikv-1.demo-tikv-peer.ns.svc{domain}:20160" for domain in (".c.local", "", ".d.local")]
    assert [1, 1, Stranger.PEER] == [book.owner_of("tikv", address) for address in addresses]


OWN = "demo-pd-1.demo-pd-peer.ns.svc"
PEER = "other-pd-0.other-pd-peer.far.svc"


def joined(namespace: str, name: str) -> bool:
    return (namespace, name) == ("far", "other")


@pytest.mark.parametrize(
    ("announced", "dialled"),
    [
        (f"http://{OWN}:2379", f"http://{OWN}:2379"),
        (f"https://{OWN}:2379/", f"https://{OWN}:2379"),
        (f"http://user:password@{OWN}:2379/path?query#fragment", f"http://{OWN}:2379"),
        (f"http://evil.example:80\\@{OWN}:2379", f"http://{OWN}:2379"),
        (f"{OWN}:2379", f"http://{OWN}:2379"),
        (f"http://{OWN.upper()}:2379", f"http://{OWN}:2379"),
        (f"http://{OWN}.cluster.local:2379", f"http://{OWN}.cluster.local:2379"),
        # members keep the domain with which they registered; the announced domain is ignored
        (f"http://{OWN}.evil.example:2379", f"http://{OWN}:2379"),
        (f"http://{PEER}:2379", f"http://{PEER}:2379"),
        ("http://10.0.0.7:2379", "http://10.0.0.7:2379"),
    ],
)
def test_dials_only_scheme_host_and_port_of_an_announced_address(announced: str, dialled: str) -> None:
    reach = Reach(PLAIN, frozenset({"10.0.0.7"}), joined)
    assert dialled == reach.admit("pd", announced)


@pytest.mark.parametrize(
    "announced",
    [
        "",
        "http://",
        "http://169.254.169.254:80",
        "http://10.0.0.8:2379",
        "http://localhost:2379",
        "http://kubernetes.default.svc:443",
        f"http://{OWN}",
        f"ftp://{OWN}:2379",
        f"file://{OWN}:2379",
        f"http://{OWN}:2379@evil.example:80",
        f"http://evil.example:80#{OWN}:2379",
        f"http://{OWN}:0",
        f"http://{OWN}:99999",
        "http://demo-pd-1.demo-pd-peer.other.svc:2379",
        "http://demo-tikv-1.demo-tikv-peer.ns.svc:20180",
        "http://victim-pd-0.victim-pd-peer.far.svc:2379",
        f"http://{PEER}.evil.example:2379",
        "http://other-tikv-0.other-tikv-peer.far.svc:2379",
        "http://other-pd-0.victim-pd-peer.far.svc:2379",
        "http://demo-pd-1.demo-pd-peer.ns.svc\r\nX: y:2379",
        "http://[fe80::1]:2379",
    ],
)
def test_does_not_dial_an_announced_address_outside_the_cluster(announced: str) -> None:
    with pytest.raises(NotInCluster) as raised:
        Reach(PLAIN, frozenset({"10.0.0.7"}), joined).admit("pd", announced)
    assert "evil" not in str(raised.value)


@pytest.mark.parametrize(("across", "port", "admitted"), [(True, 2379, True), (True, 80, False), (False, 2379, False)])
def test_dials_a_pd_of_another_kubernetes_cluster_if_the_spec_allows_it(
    across: bool, port: int, admitted: bool
) -> None:
    reach = Reach(AddressBook("demo", "ns", "one.example", across_k8s=across), shares_pd=joined)
    announced = f"http://x-pd-0.x-pd-peer.y.svc.two.example:{port}"
    if admitted:
        assert announced == reach.admit("pd", announced)
    else:
        with pytest.raises(NotInCluster):
            reach.admit("pd", announced)


@pytest.mark.parametrize("domain", ["evil.example:80/x?", "a b", "a@b", "x\n", "-"])
def test_rejects_a_host_from_the_spec_that_is_not_a_host_name(domain: str) -> None:
    with pytest.raises(NotInCluster):
        AddressBook("demo", "ns", domain).pd()


def test_addresses_for_pods_have_no_path() -> None:
    assert "http://10.0.0.7:2379" == without_path("http://10.0.0.7:2379/x --config=/evil")
    assert without_path("--config=/evil") is None


def test_only_this_module_turns_text_into_addresses(pytestconfig: pytest.Config) -> None:
    rooms = (
        "apis",
        "cli",
        "controller_manager",
        "controllers",
        "dataplane",
        "discovery",
        "member",
        "meta",
        "scheduler",
    )
    files = (file for room in rooms for file in (pytestconfig.rootpath / room).rglob("*.py"))
    makers = [file.name for file in files if re.search(r"(?<![\w.])Address\(", file.read_text())]
    assert ["addresses.py"] == makers
    assert "x" == Address("x")


@pytest.mark.parametrize(
    ("announced", "shown"),
    [
        ("http://demo-pd-0.demo-pd-peer.ns.svc:2379", "http://demo-pd-0.demo-pd-peer.ns.svc:2379"),
        ("https://host:1/path?query", "https://host:1"),
        ("no url", "no url"),
        ("", ""),
    ],
)
def test_a_status_shows_addresses_without_their_path(announced: str, shown: str) -> None:
    assert shown == shown_url(announced)
