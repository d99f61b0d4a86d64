"""One answer shared by all stages of a reconcile."""

import contextlib

import pytest

from dataplane.addresses import Address
from dataplane.clients import DataPlane
from dataplane.errors import ApiError, Unavailable
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ConnectionRefused, RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

URL = Address("http://demo-pd.ns:2379")
CLUSTER = "GET /pd/api/v1/cluster"
CONFIG = "GET /pd/api/v1/config"
RESIGN = "POST /pd/api/v1/leader/resign"
REPLICATE = "POST /pd/api/v1/config/replicate"
CONFIGURED = (200, '{"replication":{"max-replicas":3}}')


def _world(*answers: Answer) -> tuple[ScriptedTransport, DataPlane]:
    scripted = ScriptedTransport().on(CLUSTER, *answers).on(CONFIG, CONFIGURED)
    scripted.on(RESIGN, (200, "")).on(REPLICATE, (200, ""))
    return scripted, DataPlane(lambda _: scripted, OpenFence(), FakeClock())


def test_a_read_is_sent_once_per_reconcile() -> None:
    scripted, plane = _world((200, '{"id":1}'), (200, '{"id":2}'))
    once = plane.for_one_reconcile()
    assert [1, 1] == [once.sharing.pd(URL).cluster_id() for _ in range(2)]
    assert 2 == plane.for_one_reconcile().sharing.pd(URL).cluster_id()
    assert [CLUSTER] * 2 == scripted.calls


def test_live_reads_are_sent_each_time() -> None:
    _, plane = _world((200, '{"id":1}'), (200, '{"id":2}'), (200, '{"id":3}'))
    once = plane.for_one_reconcile()
    asked = [once.sharing.pd(URL), once.pd(URL), once.pd(URL), once.sharing.pd(URL)]
    assert [1, 2, 3, 1] == [each.cluster_id() for each in asked]


def test_shares_nothing_outside_a_reconcile() -> None:
    _, plane = _world((200, '{"id":1}'), (200, '{"id":2}'))
    assert [1, 2] == [plane.sharing.pd(URL).cluster_id() for _ in range(2)]


@pytest.mark.parametrize("answer", [(200, ""), (503, "no leader"), ConnectionRefused])
def test_a_write_drops_answers_even_if_it_fails(answer: Answer) -> None:
    scripted, plane = _world((200, '{"id":1}'), (200, '{"id":2}'))
    scripted.on(RESIGN, answer)
    once = plane.for_one_reconcile()
    once.sharing.pd(URL).cluster_id()
    with contextlib.suppress(Unavailable, ApiError):
        once.pd(URL).resign_leader()
    assert 2 == once.sharing.pd(URL).cluster_id()


def test_keeps_the_configuration_until_it_is_written() -> None:
    scripted, plane = _world((200, '{"id":1}'))
    once = plane.for_one_reconcile()
    once.sharing.pd(URL).config()
    once.pd(URL).resign_leader()
    once.sharing.pd(URL).config()
    assert [CONFIG, RESIGN] == scripted.calls
    once.pd(URL).enable_placement_rules()
    once.sharing.pd(URL).config()
    assert [CONFIG, RESIGN, REPLICATE, CONFIG] == scripted.calls


def test_an_error_answer_is_shared() -> None:
    scripted, plane = _world((500, '"broken"'), (200, '{"id":2}'))
    pd = plane.for_one_reconcile().sharing.pd(URL)
    for _ in range(2):
        with pytest.raises(ApiError, match="broken"):
            pd.cluster_id()
    assert [CLUSTER] == scripted.calls


def test_a_timeout_is_shared_and_names_the_request() -> None:
    scripted, plane = _world(RequestTimeout, (200, '{"id":2}'))
    pd = plane.for_one_reconcile().sharing.pd(URL)
    for _ in range(2):
        with pytest.raises(Unavailable, match="no answer in time"):
            pd.cluster_id()
    assert [CLUSTER] == scripted.calls


def test_retries_a_server_that_was_not_reached() -> None:
    _, plane = _world(ConnectionRefused, ConnectionRefused, (200, '{"id":2}'))
    pd = plane.for_one_reconcile().sharing.pd(URL)
    with pytest.raises(Unavailable):
        pd.cluster_id()
    assert 2 == pd.cluster_id()
