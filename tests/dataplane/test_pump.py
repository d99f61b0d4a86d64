"""Pump's nodes in PD's etcd, and its API (dataplane-apis.md 4, 10)."""

import base64
import json

import pytest

from dataplane.addresses import Address
from dataplane.errors import ApiError, Conflict, MalformedAnswer, NotFound
from dataplane.etcd import EtcdClient
from dataplane.pump import LivePumpNode, PumpClient, read_pump_nodes
from ports.clock import FakeClock
from ports.transport import ConnectionLost
from tests.dataplane.scripted import Answer, ScriptedTransport

NODE = {"nodeId": "demo-pump-0:8250", "host": "demo-pump-0.demo-pump:8250", "state": "online", "score": 0}
RANGE = "POST /v3/kv/range"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_PUMPS = "/tidb-binlog/v1/pumps/"


def found(*values: str) -> str:
    kvs = [{"key": encoded(f"{_PUMPS}{number}"), "value": encoded(v)} for number, v in enumerate(values)]
    return json.dumps({"header": {"cluster_id": "1"}, "kvs": kvs} if kvs else {"header": {}})


def etcd(*answers: Answer) -> tuple[EtcdClient, ScriptedTransport]:
    transport = ScriptedTransport().on(RANGE, *answers)
    return EtcdClient(transport, Address("http://demo-pd.ns:2379"), FakeClock()), transport


def node() -> LivePumpNode:
    (only,) = read_pump_nodes(etcd((200, found(json.dumps(NODE))))[0])
    return only


@pytest.mark.rule("dataplane-apis-4")
def test_a_prefix_is_read_as_a_range() -> None:
    client, transport = etcd((200, found("x")))
    assert {"/tidb-binlog/v1/pumps/0": b"x"} == client.below("/tidb-binlog/v1/pumps/")
    (request,) = transport.requests
    asked = {"key": encoded("/tidb-binlog/v1/pumps/"), "range_end": encoded("/tidb-binlog/v1/pumps0")}
    assert (True, asked) == (request.is_read, json.loads(request.body or b""))


@pytest.mark.rule("dataplane-apis-4")
def test_a_missing_key_is_no_error_and_reads_are_retried() -> None:
    client, transport = etcd(ConnectionLost, (200, found()))
    assert {} == client.below("/a")
    assert [RANGE] * 2 == transport.calls


@pytest.mark.rule("dataplane-apis-4")
def test_a_disabled_gateway_is_an_error() -> None:
    with pytest.raises(NotFound):
        etcd((404, "404 page not found"))[0].below("/a")


@pytest.mark.rule("dataplane-apis-10")
def test_nodes_keep_id_host_and_state() -> None:
    assert ("demo-pump-0:8250", "demo-pump-0.demo-pump:8250", "online") == (node().id, node().host, node().state)


@pytest.mark.parametrize("value", ["", "no json", '{"nodeId": 1}', '{"nodeId": "a", "host": "b"}'])
@pytest.mark.rule("dataplane-apis-10")
def test_a_malformed_node_is_an_error(value: str) -> None:
    with pytest.raises(MalformedAnswer):
        read_pump_nodes(etcd((200, found(value)))[0])


@pytest.mark.rule("dataplane-apis-10")
def test_an_error_does_not_quote_the_key_of_a_node() -> None:
    with pytest.raises(MalformedAnswer, match="pumps/: a Pump node answered with 7 bytes that are not JSON") as raised:
        read_pump_nodes(etcd((200, found("no json").replace(encoded(f"{_PUMPS}0"), encoded(f"{_PUMPS}SECRET"))))[0])
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, '{"message": "apply action close success!", "code": 200}'), None),
        ((200, '{"message": "this pump\'s state is closing", "code": 500}'), Conflict),
        ((200, "no json"), MalformedAnswer),
        ((404, "404 page not found"), NotFound),
        ((500, ""), ApiError),
    ],
)
@pytest.mark.rule("dataplane-apis-10")
def test_the_body_reports_whether_pump_closes_the_node(answer: Answer, error: type[Exception] | None) -> None:
    transport = ScriptedTransport().on("PUT /state/demo-pump-0:8250/close", answer)
    client = PumpClient(transport, Address("http://demo-pump-0.demo-pump.ns:8250"), FakeClock())
    if error is None:
        client.close(node())
    else:
        with pytest.raises(error):
            client.close(node())


@pytest.mark.rule("F5")
def test_closes_only_nodes_that_etcd_has_listed() -> None:
    with pytest.raises(TypeError, match="read_pump_nodes"):
        LivePumpNode("a", "b", "online", maker=object())
    with pytest.raises(TypeError, match="as etcd shows it"):
        PumpClient(ScriptedTransport(), "http://x", FakeClock()).close("demo-pump-0:8250")  # type: ignore[arg-type]
