"""The API of DM's masters (dataplane-apis.md 11)."""

from typing import Any

import pytest

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.dm import DMMasterClient, LiveMaster, LiveWorker
from dataplane.errors import ApiError, Conflict, DataPlaneError, MalformedAnswer, Unavailable
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

AGREED = '{"result":true,"msg":""}'
MASTERS = (
    '{"result":true,"msg":"","members":[{"master":{"msg":"","masters":['
    '{"name":"dc-dm-master-0","memberID":"12007177473604868128","alive":true,'
    '"peerURLs":["http://dc-dm-master-0.dc-dm-master-peer:8291"],'
    '"clientURLs":["http://dc-dm-master-0.dc-dm-master-peer:8261"]},'
    '{"name":"dc-dm-master-1","memberID":"2"}]}}]}'
)
WORKERS = (
    '{"result":true,"msg":"","members":[{"worker":{"msg":"","workers":['
    '{"name":"dc-dm-worker-0","addr":"dc-dm-worker-0.dc-dm-worker-peer:8262","stage":"bound","source":"orders"},'
    '{"name":"dc-dm-worker-1","addr":"dc-dm-worker-1.dc-dm-worker-peer:8262","stage":"offline","source":""}]}}]}'
)
LEADER = '{"result":true,"msg":"","members":[{"leader":{"msg":"","name":"dc-dm-master-0","addr":"x:8261"}}]}'


def client(transport: ScriptedTransport) -> DMMasterClient:
    return DMMasterClient(Caller(transport, Address("http://dc-dm-master.ns:8261"), OpenFence(), FakeClock()))


def listing(**kinds: Any) -> ScriptedTransport:
    transport = ScriptedTransport()
    for kind, answer in kinds.items():
        transport.on(f"GET /apis/v1alpha1/members?{kind}=true", answer)
    return transport


@pytest.mark.rule("dataplane-apis-11")
def test_ids_are_text_and_alive_is_optional() -> None:
    first, second = client(listing(master=(200, MASTERS))).masters()
    assert ("12007177473604868128", True) == (first.id, first.alive)
    assert ("http://dc-dm-master-0.dc-dm-master-peer:8291",) == first.peer_urls
    assert ("dc-dm-master-1", "2", False, ()) == (second.name, second.id, second.alive, second.client_urls)


@pytest.mark.rule("dataplane-apis-11")
def test_workers_with_stage_and_source_and_the_leader() -> None:
    one = client(listing(worker=(200, WORKERS), leader=(200, LEADER)))
    assert [("bound", "orders"), ("offline", "")] == [(each.stage, each.source) for each in one.workers()]
    assert "dc-dm-master-0" == one.leader()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((500, "x"), ApiError),
        ((503, ""), Unavailable),
        ((200, '{"result":false,"msg":"no leader is elected"}'), Conflict),
        ((200, '{"result":true,"members":[]}'), MalformedAnswer),
        ((200, '{"result":true}'), MalformedAnswer),
        ((200, "not JSON"), MalformedAnswer),
        (RequestTimeout, Unavailable),
    ],
)
@pytest.mark.rule("dataplane-apis-18")
def test_an_answer_that_is_not_a_list_raises(answer: Answer, error: type[DataPlaneError]) -> None:
    with pytest.raises(error):
        client(listing(master=answer)).masters()


@pytest.mark.rule("dataplane-apis-11")
def test_a_refusal_reports_the_reason() -> None:
    transport = ScriptedTransport().on("PUT /apis/v1alpha1/leader/1", (200, '{"result":false,"msg":"not the leader"}'))
    with pytest.raises(Conflict, match="not the leader"):
        client(transport).evict_leader()


@pytest.mark.rule("dataplane-apis-11")
def test_a_master_that_is_no_longer_listed_counts_as_removed() -> None:
    first, _ = client(listing(master=(200, MASTERS))).masters()
    other = MASTERS.replace("dc-dm-master-0", "dc-dm-master-2")
    transport = listing(master=(200, other))
    client(transport).delete_master(first)
    assert {"GET"} == {request.method for request in transport.requests}


@pytest.mark.rule("dataplane-apis-11")
def test_another_master_of_the_same_name_is_not_removed() -> None:
    first, _ = client(listing(master=(200, MASTERS))).masters()
    with pytest.raises(Conflict, match="by now"):
        client(listing(master=(200, MASTERS.replace("12007177473604868128", "7")))).delete_master(first)


@pytest.mark.rule("dataplane-apis-11")
def test_removes_a_worker_only_if_it_is_offline() -> None:
    transport, there = ScriptedTransport(), (200, WORKERS)
    without = (200, WORKERS.replace("worker-1", "worker-2"))
    transport.on("GET /apis/v1alpha1/members?worker=true", there, there, without, there)
    transport.on("DELETE /apis/v1alpha1/members/worker/dc-dm-worker-1", (200, AGREED))
    one = client(transport)
    bound, offline = one.workers()
    one.delete_worker(offline)
    with pytest.raises(Conflict, match="bound, not offline"):
        one.delete_worker(bound)
    assert ["DELETE"] == [request.method for request in transport.requests if request.method != "GET"]


def test_a_member_that_the_masters_have_removed_and_still_list_is_a_contradiction() -> None:
    transport = listing(master=(200, MASTERS), worker=(200, WORKERS))
    for path in ("master/dc-dm-master-1", "worker/dc-dm-worker-1"):
        transport.on(f"DELETE /apis/v1alpha1/members/{path}", (200, AGREED))
    one = client(transport)
    with pytest.raises(Conflict, match="they have removed dc-dm-master-1, but list it"):
        one.delete_master(one.masters()[1])
    with pytest.raises(Conflict, match="they have removed dc-dm-worker-1, but list it"):
        one.delete_worker(one.workers()[1])


@pytest.mark.rule("F5")
def test_removes_only_what_the_masters_have_listed() -> None:
    with pytest.raises(TypeError, match="asks the masters"):
        LiveMaster(name="x", id="1", alive=False, peer_urls=(), client_urls=(), maker=None)
    with pytest.raises(TypeError, match="asks the masters"):
        LiveWorker(name="x", address="", stage="offline", source="", maker=None)
