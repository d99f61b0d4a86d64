"""TiProxy's API (dataplane-apis.md 9)."""

import pytest

from dataplane.calls import Caller
from dataplane.errors import ApiError
from dataplane.tiproxy import ProxyHealth, TiProxyClient
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ConnectionRefused, RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

HEALTH = '{"config_checksum": 7}'


def client(transport: ScriptedTransport) -> TiProxyClient:
    return TiProxyClient(Caller(transport, "http://demo-tiproxy-0:3080", OpenFence(), FakeClock()))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, HEALTH), ProxyHealth(HEALTH, serves=True)),
        ((502, HEALTH), ProxyHealth(HEALTH, serves=False)),
        ((503, ""), None),
        ((404, ""), None),
        ((204, ""), None),
        (RequestTimeout, None),
        (ConnectionRefused, None),
    ],
)
def test_18_14_only_200_serves_and_502_tells_of_itself(answer: Answer, expected: ProxyHealth | None) -> None:
    assert expected == client(ScriptedTransport().on("GET /api/debug/health", answer)).health()


def test_9_labels_are_sent_as_toml_with_keys_in_quotes() -> None:
    transport = ScriptedTransport().on("PUT /api/admin/config/", (200, '""'))
    client(transport).set_labels({"zone": "a", "topology.kubernetes.io/zone": 'b"c'})
    body = b'[labels]\n"zone" = "a"\n"topology.kubernetes.io/zone" = "b\\"c"\n'
    assert [body] == [request.body for request in transport.requests]


def test_9_labels_that_are_refused_are_an_error() -> None:
    with pytest.raises(ApiError, match="no such key"):
        client(ScriptedTransport().on("PUT /api/admin/config/", (500, "no such key"))).set_labels({"zone": "a"})
