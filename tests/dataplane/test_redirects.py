"""Redirects are followed only to members of the same cluster, with the requested path (docs/security.md)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from dataplane.addresses import Address, AddressBook, Reach
from dataplane.errors import ApiError
from dataplane.pd import PDClient
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ByteStream, Request, Response

PD = Address("http://demo-pd.ns:2379")
MEMBER = "http://demo-pd-1.demo-pd-peer.ns.svc:2379"


@dataclass
class Redirecting:
    """Answers request number n with a redirect to `location(n)`, or with a success for None."""

    location: Callable[[int], str | None]
    status: int = 307
    asked: list[tuple[str, str]] = field(default_factory=list)

    def request(self, request: Request) -> Response:
        self.asked.append((request.method, request.url))
        to = self.location(len(self.asked))
        return Response(200, {}, b'{"id": 7}') if to is None else Response(self.status, {"location": to}, b"SECRET")

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise AssertionError(request.url)


def pd(transport: Redirecting) -> PDClient:
    admit = partial(Reach(AddressBook("demo", "ns"), shares_pd=lambda *_: False).admit, "pd")
    return PDClient(transport, PD, OpenFence(), FakeClock(), admit)


@pytest.mark.parametrize("path", ["", "/pd/api/v1/cluster", "/elsewhere?x=y#z"])
def test_a_redirect_to_a_member_repeats_the_request_with_its_own_path(path: str) -> None:
    transport = Redirecting({1: MEMBER + path}.get)
    assert 7 == pd(transport).cluster_id()
    assert [("GET", f"{each}/pd/api/v1/cluster") for each in (PD, MEMBER)] == transport.asked


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "gopher://demo-pd-1.demo-pd-peer.ns.svc:2379",
        "http://demo-pd-1.demo-pd-peer.ns.svc",
        "http://demo-pd-1.demo-pd-peer.other.svc:2379",
        "http://demo-pd-1.demo-pd-peer.ns.svc@evil.example:2379",
        "http://demo-tikv-1.demo-tikv-peer.ns.svc:20180",
        "//evil.example:2379/",
        "/pd/api/v1/elsewhere",
        "http://[::1",
        "",
    ],
)
def test_a_redirect_elsewhere_is_an_error_that_does_not_quote_it(location: str) -> None:
    transport = Redirecting(lambda _: location)
    with pytest.raises(ApiError, match="no member of the cluster; the redirect was not followed") as raised:
        pd(transport).cluster_id()
    assert 1 == len(transport.asked)
    assert "SECRET" not in str(raised.value)
    assert not location or location not in str(raised.value)


def test_gives_up_after_many_redirects() -> None:
    transport = Redirecting(lambda _: MEMBER)
    with pytest.raises(ApiError, match="more than three times"):
        pd(transport).cluster_id()
    assert 4 == len(transport.asked)


@pytest.mark.parametrize(("status", "sent"), [(301, 1), (302, 1), (303, 1), (307, 2), (308, 2)])
def test_a_redirect_never_turns_a_write_into_a_read(status: int, sent: int) -> None:
    transport = Redirecting({1: MEMBER}.get, status)
    if sent == 1:
        with pytest.raises(ApiError):
            pd(transport).resign_leader()
    else:
        pd(transport).resign_leader()
    assert ["POST"] * sent == [method for method, _ in transport.asked]
