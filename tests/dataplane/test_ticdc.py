"""TiCDC's API (dataplane-apis.md 8)."""

import pytest

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.errors import ApiError, DataPlaneError, MalformedAnswer, Unavailable
from dataplane.ticdc import Capture, CaptureStatus, TiCDCClient
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ConnectionRefused, RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

STATUS = '{"version":"v8.5.0","git_hash":"x","id":"one","pid":1,"is_owner":true,"liveness":0}'
CAPTURES = '[{"id":"one","is_owner":true,"address":"demo-ticdc-0.demo-ticdc-peer.ns.svc:8301"},{"id":"two"}]'
ADDRESS = "demo-ticdc-0.demo-ticdc-peer.ns.svc:8301"


def client(transport: ScriptedTransport) -> TiCDCClient:
    return TiCDCClient(Caller(transport, Address("http://demo-ticdc-0:8301"), OpenFence(), FakeClock()))


@pytest.mark.rule("dataplane-apis-8")
def test_reads_the_status_of_a_capture() -> None:
    transport = ScriptedTransport().on("GET /status", (200, STATUS))
    assert CaptureStatus("one", "v8.5.0", is_owner=True) == client(transport).status()


@pytest.mark.rule("dataplane-apis-8")
def test_lists_captures_with_their_addresses() -> None:
    transport = ScriptedTransport().on("GET /api/v1/captures", (200, CAPTURES))
    assert (Capture("one", ADDRESS, is_owner=True), Capture("two")) == client(transport).captures()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((500, '{"error_msg":"x","error_code":"CDC:ErrPDEtcdAPIError"}'), ApiError),
        ((503, ""), Unavailable),
        ((200, '{"error_code":"x"}'), MalformedAnswer),
        ((200, "not JSON"), MalformedAnswer),
        ((200, '[{"is_owner":true}]'), MalformedAnswer),
        (RequestTimeout, Unavailable),
    ],
)
@pytest.mark.rule("dataplane-apis-18")
def test_an_answer_without_captures_is_an_error(answer: Answer, error: type[DataPlaneError]) -> None:
    with pytest.raises(error):
        client(ScriptedTransport().on("GET /api/v1/captures", answer)).captures()


@pytest.mark.rule("dataplane-apis-8")
def test_only_404_means_an_unsupported_call() -> None:
    calls = ("GET /api/v1/captures", "POST /api/v1/owner/resign", "PUT /api/v1/captures/drain", "GET /api/v1/health")
    transport = ScriptedTransport()
    for each in calls:
        transport.on(each, (404, "404 page not found"))
    one = client(transport)
    assert (None, False, 0, True) == (one.captures(), one.resign_owner(), one.drain("one"), one.healthy())


@pytest.mark.rule("dataplane-apis-8")
def test_resigning_has_no_body() -> None:
    transport = ScriptedTransport().on("POST /api/v1/owner/resign", (202, ""))
    assert client(transport).resign_owner()
    assert [None] == [request.body for request in transport.requests]


@pytest.mark.rule("dataplane-apis-8")
def test_draining_returns_the_number_of_tables_left() -> None:
    transport = ScriptedTransport().on("PUT /api/v1/captures/drain", (202, '{"current_table_count":3}'))
    assert 3 == client(transport).drain("one")
    assert [b'{"capture_id":"one"}'] == [request.body for request in transport.requests]


@pytest.mark.parametrize(
    "answer",
    [
        (400, '{"error_code":"CDC:ErrInternal"}'),
        (500, ""),
        (503, ""),
        (202, ""),
        (202, "{}"),
        (202, "[]"),
    ],
)
@pytest.mark.rule("dataplane-apis-8")
def test_a_missing_count_is_an_error(answer: Answer) -> None:
    with pytest.raises(DataPlaneError):
        client(ScriptedTransport().on("PUT /api/v1/captures/drain", answer)).drain("one")


@pytest.mark.parametrize(("answer", "expected"), [((200, ""), True), ((500, ""), False), (ConnectionRefused, False)])
@pytest.mark.rule("dataplane-apis-8")
def test_only_a_capture_that_reports_health_is_healthy(answer: Answer, expected: bool) -> None:
    assert expected is client(ScriptedTransport().on("GET /api/v1/health", answer)).healthy()
