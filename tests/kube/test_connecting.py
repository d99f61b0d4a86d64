import pytest

from kube.config import ClusterConfig
from kube.connecting import connect, connect_directly
from kube.errors import TooManyRequests
from kube.resources import PODS
from ports.clock import SystemClock
from ports.stopping import Stop
from tests.kube.servers import Peer, serving

POD = b'{"metadata":{"name":"a","namespace":"ns"}}'
BUSY = b'{"kind":"Status","code":429,"reason":"TooManyRequests","message":"later"}'


@pytest.mark.slow
@pytest.mark.rule("TEST-3")
def test_retries_429_only_with_retry_after() -> None:
    heads: list[str] = []

    def serve(peer: Peer) -> None:
        peer.head()
        peer.answer(429, BUSY, "Retry-After: 0")
        heads.append(peer.head())
        peer.answer(200, POD)
        peer.head()
        peer.answer(429, BUSY)

    with serving(serve) as server:
        connection = connect(ClusterConfig(server.url, "test"), {}, SystemClock(), Stop(), user_agent="me")
        assert "a" == connection.client.get(PODS, "a", "ns").metadata.name
        with pytest.raises(TooManyRequests, match="later"):
            connection.client.get(PODS, "a", "ns")
        connection.transport.close()

    assert "user-agent: me\r\n" in heads[0].lower()
    assert heads[0].startswith("GET /api/v1/namespaces/ns/pods/a HTTP/1.1\r\n")


@pytest.mark.rule("LE-4")
def test_the_electors_connection_sends_once() -> None:
    def serve(peer: Peer) -> None:
        while peer.head():
            peer.answer(429, BUSY, "Retry-After: 0")

    with serving(serve) as server:
        config = ClusterConfig(server.url, "test")
        connection = connect_directly(config, {}, SystemClock(), timeout=5, user_agent="leader-election")
        with pytest.raises(TooManyRequests):
            connection.client.get(PODS, "a", "ns")
        connection.transport.close()
        assert 1 == server.connections
