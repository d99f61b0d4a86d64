"""Creation of clients (dataplane-apis.md 2)."""

import pytest

from dataplane.addresses import Address
from dataplane.clients import DataPlane
from dataplane.errors import BadTlsMaterial
from dataplane.tls import TlsMaterial, client_context
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ConnectionRefused
from tests.dataplane.scripted import ScriptedTransport

ONE, OTHER = TlsMaterial(b"ca", b"cert", b"key"), TlsMaterial(b"ca", b"cert", b"rotated")


def test_one_transport_per_identity() -> None:
    made: list[TlsMaterial | None] = []

    def make(tls: TlsMaterial | None) -> ScriptedTransport:
        made.append(tls)
        return ScriptedTransport().on("GET /pd/api/v1/cluster", (200, '{"id":1}')).on("GET /status", (200, ""))

    plane = DataPlane(make, OpenFence(), FakeClock())
    plane.pd(Address("http://a:2379")).cluster_id()
    plane.tidb(Address("http://b:10080")).healthy()
    plane.pd(Address("https://c:2379"), ONE)
    plane.tikv(Address("https://d:20180"), TlsMaterial(b"ca", b"cert", b"key"))
    plane.pd(Address("https://c:2379"), OTHER)
    assert [None, ONE, OTHER] == made


def test_a_key_is_never_shown() -> None:
    assert "key" not in repr(ONE)


def test_names_the_key_that_a_secret_lacks() -> None:
    with pytest.raises(BadTlsMaterial, match=r"'tls\.key'"):
        TlsMaterial.from_secret({"ca.crt": b"", "tls.crt": b""})


def test_names_the_malformed_certificate() -> None:
    with pytest.raises(BadTlsMaterial, match=r"ca\.crt"):
        client_context(ONE)


HEALTH = "GET /pd/api/v1/health"


def test_takes_the_first_pd_that_answers() -> None:
    transport = ScriptedTransport().on(HEALTH, ConnectionRefused, ConnectionRefused, (200, "[]"))
    plane = DataPlane(lambda _: transport, OpenFence(), FakeClock())
    assert (
        plane.answering_pd([Address("http://a:1"), Address("http://b:1"), Address("http://c:1")]).base_url
        == "http://b:1"
    )


def test_takes_the_service_when_no_pd_answers() -> None:
    plane = DataPlane(lambda _: ScriptedTransport().on(HEALTH, ConnectionRefused), OpenFence(), FakeClock())
    assert plane.answering_pd([Address("http://a:1"), Address("http://b:1")]).base_url == "http://a:1"


def test_does_not_probe_a_single_pd() -> None:
    transport = ScriptedTransport()
    plane = DataPlane(lambda _: transport, OpenFence(), FakeClock())
    assert plane.answering_pd([Address("http://a:1")]).base_url == "http://a:1"
    assert transport.calls == []
