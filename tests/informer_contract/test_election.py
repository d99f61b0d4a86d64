"""Leader election over a way that answers with anything but a Lease: it costs attempts, and no leadership."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.client import Client
from kube.credentials import TokenFile
from kube.http_transport import HttpTransport
from kube.leader_election import Callbacks, LeaderElector
from kube.leases import LeaseLock
from kube.resources import LEASES
from ports.randomness import SystemRandomness
from ports.transport import ByteStream, Request, Response, Transport
from tests.e2e.waiting import CLOCK
from tests.informer_contract.servers import Server

_NAME = "elected"


class Proxy:
    """Sends requests on; while it has an answer of its own, it gives that instead."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.says: list[bytes] = []

    def request(self, request: Request) -> Response:
        """The answer, or what the proxy says."""
        answer = self._transport.request(request)
        return replace(answer, status=200, body=self.says.pop(0)) if self.says else answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """This client never watches."""
        raise AssertionError(request.url)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    config = replace(server.config(server.port), credentials=TokenFile(server.token_file, CLOCK))
    with contextlib.closing(HttpTransport(config, {}, CLOCK)) as transport:
        yield Proxy(transport)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>moved</html>",
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}',
        b'{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{},"items":[]}',
        b'{"kind":"Lease","metadata":{"name":"another"},"spec":{"holderIdentity":"me"}}',
        b'{"kind":"Lease","metadata":{"name":"elected"},"spec":{"holderIdentity":7}}',
        b'{"a":' * 100_000,
    ],
    ids=["nothing", "a page", "a status", "a list", "another Lease", "an odd holder", "deep"],
)
@pytest.mark.rule("LE-12")
def test_an_invalid_lease_costs_an_attempt_and_no_leadership(
    server: Server, namespace: str, proxy: Proxy, body: bytes
) -> None:
    callbacks = Callbacks(lambda: None, lambda: None)
    lock = LeaseLock(Client(proxy), namespace, _NAME)
    elector = LeaderElector(lock, "me", callbacks, CLOCK, SystemRandomness(), name=_NAME)
    elector.tick()
    assert elector.leads
    proxy.says += [body] * 2

    elector.tick()

    assert ([], True, True) == (proxy.says, elector.leads, elector.lease.is_valid())
    assert elector.tick() is not None
    elector.step_down()
    spec = server.admin.get(LEASES, _NAME, namespace).decode()["spec"]
    assert "" == spec.get("holderIdentity", "")
