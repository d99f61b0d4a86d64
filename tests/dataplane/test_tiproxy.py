"""TiProxy's API (dataplane-apis.md 9)."""

import pytest

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.errors import ApiError
from dataplane.tiproxy import ProxyHealth, TiProxyClient
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ConnectionRefused, RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

HEALTH = '{"config_checksum": 7}'


def client(transport: ScriptedTransport) -> TiProxyClient:
    return TiProxyClient(Caller(transport, Address("http://demo-tiproxy-0:3080"), OpenFence(), FakeClock()))


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
@pytest.mark.rule("dataplane-apis-18")
def test_only_200_means_serving_and_502_has_a_report(answer: Answer, expected: ProxyHealth | None) -> None:
    assert expected == client(ScriptedTransport().on("GET /api/debug/health", answer)).health()


CONFIG = "GET /api/admin/config?format=json"


@pytest.mark.parametrize("known", ["{}", '{"labels": null}', '{"labels": {"zone": "b"}, "proxy": {}}'])
@pytest.mark.rule("dataplane-apis-9")
def test_labels_are_sent_as_toml_with_keys_in_quotes(known: str) -> None:
    transport = ScriptedTransport().on(CONFIG, (200, known)).on("PUT /api/admin/config/", (200, '""'))
    client(transport).set_labels({"zone": "a", "topology.kubernetes.io/zone": 'b"c'})
    body = b'[labels]\n"zone" = "a"\n"topology.kubernetes.io/zone" = "b\\"c"\n'
    assert [None, body] == [request.body for request in transport.requests]


@pytest.mark.rule("dataplane-apis-9")
def test_does_not_send_labels_that_a_proxy_has() -> None:
    transport = ScriptedTransport().on(CONFIG, (200, '{"labels": {"zone": "a", "rack": "r"}}'))
    client(transport).set_labels({"zone": "a"})
    assert ["GET"] == [request.method for request in transport.requests]


@pytest.mark.rule("dataplane-apis-9")
def test_rejected_labels_are_an_error() -> None:
    transport = ScriptedTransport().on(CONFIG, (200, "{}")).on("PUT /api/admin/config/", (500, '"no such key"'))
    with pytest.raises(ApiError, match="no such key"):
        client(transport).set_labels({"zone": "a"})
