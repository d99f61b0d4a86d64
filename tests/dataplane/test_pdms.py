"""PD's microservices: their list in PD, and their own API (dataplane-apis.md 3.3, 3.4)."""

import json

import pytest

from dataplane.addresses import Address
from dataplane.errors import ApiError, MalformedAnswer, Unavailable
from dataplane.pd import Microservice, PDClient
from dataplane.pdms import PDMSClient
from ports.clock import FakeClock
from ports.transport import RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

URL = "http://basic-tso-0.basic-tso-peer.ns.svc:2379"
NOT_MS = (404, "not support microservice")


def pd(path: str, answer: Answer) -> PDClient:
    return PDClient(ScriptedTransport().on(f"GET /pd/api/v2/ms/{path}/tso", answer), Address("http://basic-pd.ns:2379"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, json.dumps([{"name": "basic-tso-0", "service-addr": URL}])), (Microservice("basic-tso-0", URL),)),
        ((200, json.dumps([{"service-addr": URL}])), (Microservice(URL, URL),)),
        ((200, "null"), ()),
        (NOT_MS, None),
    ],
)
@pytest.mark.rule("dataplane-apis-3.3")
def test_lists_members(answer: Answer, expected: object) -> None:
    assert expected == pd("members", answer).microservice_members("tso")


@pytest.mark.parametrize(("answer", "expected"), [((200, f'"{URL}"'), URL), ((200, '""'), ""), (NOT_MS, "")])
@pytest.mark.rule("dataplane-apis-3.3")
def test_reads_the_primary(answer: Answer, expected: str) -> None:
    assert expected == pd("primary", answer).microservice_primary("tso")


@pytest.mark.rule("dataplane-apis-3.3")
def test_a_malformed_answer_raises() -> None:
    with pytest.raises(MalformedAnswer):
        pd("members", (200, "{}")).microservice_members("tso")
    with pytest.raises(ApiError):
        pd("primary", (500, "")).microservice_primary("tso")


def client(call: str, answer: Answer) -> tuple[PDMSClient, ScriptedTransport]:
    transport = ScriptedTransport().on(call, answer)
    return PDMSClient(transport, Address("http://basic-tso.ns:2379"), "tso", FakeClock()), transport


@pytest.mark.parametrize(
    ("answer", "expected"), [((200, "ok"), True), ((500, "no primary elected"), False), ((404, ""), False)]
)
@pytest.mark.rule("dataplane-apis-3.4")
def test_reads_health(answer: Answer, expected: bool) -> None:
    assert expected is client("GET /tso/api/v1/health", answer)[0].healthy()


@pytest.mark.rule("dataplane-apis-3.4")
def test_no_answer_raises() -> None:
    with pytest.raises(Unavailable):
        client("GET /tso/api/v1/health", RequestTimeout)[0].healthy()


@pytest.mark.rule("dataplane-apis-3.4")
def test_a_transfer_names_the_new_primary() -> None:
    asked, transport = client("POST /tso/api/v1/primary/transfer", (200, '"success"'))
    asked.transfer_primary("basic-tso-2")
    assert {"new_primary": "basic-tso-2"} == json.loads(transport.requests[0].body or b"")
    with pytest.raises(ApiError):
        client("POST /tso/api/v1/primary/transfer", (500, '"no valid secondary"'))[0].transfer_primary("basic-tso-9")
