"""Malformed answers of components, and of proxies in front of them, raise typed errors."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.dm import DMMasterClient
from dataplane.errors import ApiError, DataPlaneError, MalformedAnswer
from dataplane.etcd import EtcdClient
from dataplane.log_backups import pause_reason, read_log_task
from dataplane.pd import PDClient
from dataplane.pump import read_pump_nodes
from dataplane.ticdc import TiCDCClient
from dataplane.tidb import TiDBClient
from dataplane.tiflash import TiFlashClient
from dataplane.tikv import TiKVClient
from dataplane.tiproxy import TiProxyClient
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.transport import ByteStream, Request, Response
from tests.dataplane.test_pd import ONE_STORE, TWO_MEMBERS, member_of, store_of
from tests.dataplane.test_pd import pd as showing

_BASE64 = base64.b64encode(b'{"nodeId":"n","host":"h","state":"online"}').decode()
_STORE: Any = {
    "store": {"id": 1, "address": "a:1", "state_name": "Up", "labels": [{"key": "k", "value": "v"}]},
    "status": {"leader_count": 1, "region_count": 2},
}
_ANSWERS: list[Any] = [
    {"header": {"cluster_id": 1}, "members": [{"name": "a", "member_id": 1, "client_urls": ["u"]}], "leader": {}},
    {"count": 1, "stores": [_STORE]},
    _STORE,
    [{"name": "a", "member_id": 1, "client_urls": ["u"], "health": True}],
    {"replication": {"max-replicas": 3, "location-labels": "a,b", "enable-placement-rules": "true"}},
    ["evict-leader-scheduler", "evict-leader-scheduler-5"],
    {"store-id-ranges": {"1": [{"start-key": "", "end-key": ""}]}},
    [{"group_id": "tiflash", "id": "x", "count": 1}],
    {"kvs": [{"key": _BASE64, "value": _BASE64, "lease": "5"}], "TTL": "5", "ID": "9"},
    {"result": True, "msg": "", "members": [{"master": {"masters": [{"name": "a", "memberID": "1"}]}}]},
    {"result": True, "members": [{"leader": {"name": "a"}}, {"worker": {"workers": [{"name": "w"}]}}]},
    {"id": "a", "version": "v", "is_owner": True, "current_table_count": 5},
    [{"id": "c", "is-owner": True, "address": "a:1"}],
]
_ODD: list[Any] = [None, -1, 2**64, 10**400, 1.5, "", [], {}, True, "soon", "9" * 5000, "\xe9", [None], {"": None}]
_NO_JSON = [
    b"",
    b"<html>moved</html>",
    b'{"members":"\xff"}',
    b"\xef\xbb\xbf{}",
    b'{"a":' * 100_000,
    b'{"members":NaN}',
    b'{"kvs":[{"lease":"\\ud800"}]}',
    b'tikv_raftstore_region_count{type="leader"} NaN\n',
    b"\0",
]


MEMBER = member_of(showing("GET /pd/api/v1/members", (200, TWO_MEMBERS)), 7)
STORE = store_of(showing("GET /pd/api/v1/stores?state=0&state=1&state=2", (200, ONE_STORE)), 4)


class Odd:
    """Gives every request the same answer."""

    def __init__(self, status: int, body: bytes) -> None:
        self._answer = Response(status, {}, body)

    def request(self, request: Request) -> Response:
        return self._answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise AssertionError(f"{request.url} was streamed")


def calls(transport: Odd) -> list[Callable[[], object]]:
    """All calls that the operator sends to components."""
    url, clock, fence = Address("http://demo:1"), FakeClock(), OpenFence()
    pd, etcd = PDClient(transport, url, fence, clock), EtcdClient(transport, url, clock, fence)
    dm = DMMasterClient(Caller(transport, url, fence, clock))
    ticdc, tidb = TiCDCClient(Caller(transport, url, fence, clock)), TiDBClient(transport, url, clock, fence)
    reads: list[Callable[[], object]] = [
        pd.health,
        pd.members,
        pd.leader,
        pd.cluster_id,
        pd.config,
        pd.replicas,
        pd.tiflash_rules,
        pd.is_recovering,
    ]
    reads += [pd.stores, pd.all_stores, pd.evicting_stores, pd.ready, pd.votes, pd.resign_leader]
    reads += [dm.masters, dm.workers, dm.leader, dm.evict_leader, ticdc.status, ticdc.captures, ticdc.resign_owner]
    reads += [lambda: ticdc.changefeed("f"), lambda: ticdc.create_changefeed("f", "s3://b"), ticdc.healthy]
    reads += [tidb.healthy, tidb.start_upgrade, tidb.finish_upgrade]
    reads += [
        lambda: TiFlashClient(transport, url, clock).store_status(),
        lambda: TiKVClient(transport, url, clock).leader_count(),
        lambda: TiProxyClient(Caller(transport, url, fence, clock)).health(),
        lambda: pd.store(1),
        lambda: pd.delete_store(STORE),
        lambda: pd.delete_member(MEMBER),
        lambda: pd.begin_evict_leaders(1),
        lambda: pd.end_evict_leaders(1),
        lambda: pd.microservice_members("tso"),
        lambda: pd.microservice_primary("tso"),
        lambda: ticdc.drain("c"),
        lambda: etcd.below("/p"),
        lambda: etcd.entry("k"),
        lambda: etcd.seconds_left(1),
        lambda: etcd.grant(1),
        lambda: read_pump_nodes(etcd),
        lambda: read_log_task(etcd, "t"),
    ]
    return reads


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(each for key, value in items for each in _paths(value, (*path, key)))]


def _replaced(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], value)
    return copy


@st.composite
def _bodies(draw: st.DrawFn) -> bytes:
    tree = draw(st.sampled_from(_ANSWERS))
    for _ in range(draw(st.integers(0, 3))):
        tree = _replaced(tree, draw(st.sampled_from(_paths(tree))), draw(st.sampled_from(_ODD)))
    return json.dumps(tree, ensure_ascii=False).encode()


def _with_examples(test: Callable[..., None]) -> Callable[..., None]:
    for body in _NO_JSON:
        test = example(status=200, body=body)(test)
    return test


@given(status=st.sampled_from([200, 200, 200, 204, 302, 404, 410, 500, 503]), body=_bodies())
@_with_examples
@pytest.mark.rule("R19")
def test_clients_raise_typed_errors_for_any_answer(status: int, body: bytes) -> None:
    for call in calls(Odd(status, body)):
        try:
            call()
        except DataPlaneError:
            continue


@given(st.binary())
@pytest.mark.rule("3.8")
def test_any_record_of_a_pause_gives_a_reason(value: bytes) -> None:
    assert pause_reason(value)


@pytest.mark.parametrize("status", [302, 304])
def test_an_error_status_is_not_a_success(status: int) -> None:
    pd = PDClient(Odd(status, b"{}"), Address("http://demo:1"), OpenFence(), FakeClock())

    with pytest.raises(ApiError, match=f"error response {status}"):
        pd.resign_leader()


@pytest.mark.parametrize("lease", ["soon", "9" * 5000, None, 1.5])
@pytest.mark.rule("R19")
def test_rejects_etcd_answers_without_numbers_or_base64(lease: object) -> None:
    etcd = EtcdClient(Odd(200, json.dumps({"kvs": [{"lease": lease}]}).encode()), Address("http://demo:1"))

    with pytest.raises(MalformedAnswer, match="lease"):
        etcd.entry("k")
