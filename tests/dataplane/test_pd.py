"""PD's API: decoding of answers and errors (dataplane-apis.md 3, 18)."""

from collections.abc import Callable
from dataclasses import asdict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.addresses import Address
from dataplane.errors import (
    ApiError,
    Conflict,
    MalformedAnswer,
    NotBootstrapped,
    NotFound,
    SchedulersUnknown,
    Unavailable,
)
from dataplane.pd import (
    DISCONNECTED,
    DOWN,
    OFFLINE,
    TOMBSTONE,
    UP,
    Health,
    LiveMember,
    LiveStore,
    Member,
    PDClient,
    ReplicationConfig,
    Space,
    Store,
)
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from ports.transport import ConnectionLost, ConnectionRefused, Request, RequestTimeout
from tests.dataplane.scripted import Answer, ScriptedTransport

NOT_BOOTSTRAPPED = (
    500,
    '"[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"\n',
)
BIGGEST = 2**64 - 1
ONE_STORE = '{"count":1,"stores":[{"store":{"id":4,"address":"demo-tikv-0:20160","state_name":"Up"},"status":{}}]}'
MOVED = ONE_STORE.replace("demo-tikv-0", "demo-tikv-7")
STORE_4 = '{"store":{"id":4,"address":"demo-tikv-0:20160","state_name":"Offline"},"status":{}}'
TWO_MEMBERS = (
    '{"header":{"cluster_id":7437856392018345678},"members":['
    '{"name":"demo-pd-0","member_id":18446744073709551615,'
    '"client_urls":["http://demo-pd-0:2379"],"peer_urls":["http://demo-pd-0:2380"],"git_hash":"x"},'
    '{"member_id":7,"peer_urls":["http://demo-pd-1:2380"]}],'
    '"leader":{"name":"demo-pd-0","member_id":18446744073709551615}}'
)


def client(transport: ScriptedTransport) -> PDClient:
    return PDClient(transport, Address("http://demo-pd.ns:2379"), clock=FakeClock())


def pd(call: str, *answers: Answer) -> PDClient:
    return client(ScriptedTransport().on(call, *answers))


def member_of(pd: PDClient, member_id: int) -> LiveMember:
    """A member as PD lists it."""
    found = pd.members().member(member_id)
    assert found is not None
    return found


def store_of(pd: PDClient, store_id: int) -> LiveStore:
    """A store as PD lists it."""
    return next(store for store in pd.stores() if store.id == store_id)


def test_health_names_each_member() -> None:
    answer = '[{"name":"demo-pd-0","member_id":5,"client_urls":["http://a:2379"],"health":true},{"member_id":6}]\n'
    expected = (Health("demo-pd-0", 5, ("http://a:2379",), True), Health("", 6, (), False))
    assert expected == pd("GET /pd/api/v1/health", (200, answer)).health()


@pytest.mark.parametrize(("members", "seconds"), [(1, 5.0), (3, 11.0), (5, 17.0), (9, 20.0)])
def test_health_waits_for_the_pings_of_dead_members(members: int, seconds: float) -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/health", (200, "null"))
    assert client(transport).health(members) == ()
    assert [seconds] == [request.timeout for request in transport.requests]


@pytest.mark.rule("dataplane-apis-18")
def test_members_keep_64_bit_ids_exact() -> None:
    found = pd("GET /pd/api/v1/members", (200, TWO_MEMBERS)).members()
    first = Member("demo-pd-0", BIGGEST, ("http://demo-pd-0:2379",), ("http://demo-pd-0:2380",))
    second = Member("", 7, (), ("http://demo-pd-1:2380",))
    assert [asdict(first), asdict(second)] == [asdict(each) for each in found.members]
    assert found.cluster_id == 7437856392018345678
    assert found.leader == Member("demo-pd-0", BIGGEST, (), ())
    assert found.etcd_leader is None


@pytest.mark.slow
@given(st.integers(0, BIGGEST))
@pytest.mark.rule("dataplane-apis-18")
def test_any_64_bit_id_stays_exact(cluster_id: int) -> None:
    body = msgspec.json.encode({"id": cluster_id, "max_peer_count": 3}).decode()
    assert cluster_id == pd("GET /pd/api/v1/cluster", (200, body)).cluster_id()


@pytest.mark.parametrize("answer", [(503, "redirect finds no leader"), (200, "null"), (200, '{"member_id":0}')])
@pytest.mark.rule("dataplane-apis-18")
def test_no_leader_is_unavailable(answer: tuple[int, str]) -> None:
    with pytest.raises(Unavailable):
        pd("GET /pd/api/v1/leader", answer).leader()


def test_leader_is_a_member() -> None:
    answer = (200, '{"name":"demo-pd-1","member_id":9}')
    assert Member("demo-pd-1", 9, (), ()) == pd("GET /pd/api/v1/leader", answer).leader()


@pytest.mark.parametrize("status", [200, 404])
def test_transferring_to_a_missing_member_is_no_error(status: int) -> None:
    transport = ScriptedTransport().on("POST /pd/api/v1/leader/transfer/demo-pd-1", (status, '""'))
    client(transport).transfer_leader("demo-pd-1")
    assert transport.requests[0].body is None


@pytest.mark.rule("dataplane-apis-18")
def test_deleting_an_absent_member_sends_no_delete() -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/members", (200, TWO_MEMBERS), (200, '{"members":null}'))
    pd = client(transport)
    pd.delete_member(member_of(pd, 7))
    assert ["GET /pd/api/v1/members"] * 2 == transport.calls


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.rule("dataplane-apis-18")
def test_deleting_a_member_that_just_went_is_no_error(status: int) -> None:
    path = f"DELETE /pd/api/v1/members/id/{BIGGEST}"
    there, gone = (200, TWO_MEMBERS), (200, '{"members":null}')
    transport = ScriptedTransport().on("GET /pd/api/v1/members", there, there, gone).on(path, (status, "x"))
    pd = client(transport)
    pd.delete_member(member_of(pd, BIGGEST))
    assert 1 == transport.calls.count(path)


@pytest.mark.parametrize("status", [200, 404])
def test_a_member_that_pd_has_removed_and_still_lists_is_a_contradiction(status: int) -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/members", (200, TWO_MEMBERS))
    pd = client(transport.on("DELETE /pd/api/v1/members/id/7", (status, "x")))
    with pytest.raises(Conflict, match="it has removed the member, but lists it"):
        pd.delete_member(member_of(pd, 7))


@pytest.mark.rule("dataplane-apis-18")
def test_a_refused_member_removal_is_a_conflict() -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/members", (200, TWO_MEMBERS))
    transport.on("DELETE /pd/api/v1/members/id/7", (500, '"[PD:etcd:ErrEtcdMemberRemove]unhealthy cluster"'))
    pd = client(transport)
    with pytest.raises(Conflict, match="unhealthy cluster"):
        pd.delete_member(member_of(pd, 7))


@pytest.mark.rule("F5")
def test_removes_only_members_that_pd_has_listed() -> None:
    transport = ScriptedTransport()
    remembered = Member("demo-pd-1", 7, (), ())
    with pytest.raises(TypeError, match=r"take it from PDClient\.members"):
        client(transport).delete_member(remembered)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"comes from PDClient\.members"):
        LiveMember("demo-pd-1", 7, (), (), maker=object())
    assert [] == transport.calls


@pytest.mark.parametrize(
    ("replication", "expected"),
    [
        (
            '{"max-replicas":3,"location-labels":"","enable-placement-rules":"true"}',
            ReplicationConfig(3, (), True),
        ),
        (
            '{"max-replicas":5,"location-labels":"zone,host","enable-placement-rules":"false"}',
            ReplicationConfig(5, ("zone", "host"), False),
        ),
        ('{"max-replicas":3}', ReplicationConfig(3, (), None)),
    ],
)
@pytest.mark.rule("dataplane-apis-18")
def test_config_reads_joined_labels_and_booleans_in_text(replication: str, expected: ReplicationConfig) -> None:
    answer = f'{{"name":"demo-pd-0","schedule":{{}},"replication":{replication}}}'
    assert expected == pd("GET /pd/api/v1/config", (200, answer)).config()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('{"replication":{"max-replicas":"3"}}', r"\$\.replication\.max-replicas"),
        ('{"replication":{"max-replicas":3,"enable-placement-rules":1}}', "enable-placement-rules"),
        ("{}", "replication"),
        ('{"replication":{"max-rep', "24 bytes that are not JSON"),
    ],
)
@pytest.mark.rule("R19")
def test_a_field_of_the_wrong_type_is_named(body: str, names: str) -> None:
    with pytest.raises(MalformedAnswer, match=names):
        pd("GET /pd/api/v1/config", (200, body)).config()


@pytest.mark.rule("dataplane-apis-18")
def test_config_reads_the_low_space_ratio() -> None:
    answer = '{"schedule":{"low-space-ratio":0.9},"replication":{"max-replicas":3}}'
    assert 0.9 == pd("GET /pd/api/v1/config", (200, answer)).config().low_space_ratio


@pytest.mark.rule("dataplane-apis-18")
def test_stores_are_sorted_and_omitted_fields_are_filled_in() -> None:
    answer = (
        '{"count":3,"stores":['
        '{"store":{"id":1001,"address":"b:20160","state_name":"Disconnected","last_heartbeat":1732000010123456789,'
        '"labels":[{"key":"engine","value":"tiflash"}]},"status":{"leader_count":12,"region_count":36}},'
        '{"store":{"id":4,"address":"a:20160","version":"8.5.0","status_address":"a:20180","labels":null},'
        '"status":{"capacity":"1GiB"}},'
        '{"store":{"id":1002,"state":1}}]}'
    )
    disconnected = Store(
        1001, "b:20160", "Disconnected", {"engine": "tiflash"}, 12, 36, last_heartbeat=1732000010123456789
    )
    up = Store(4, "a:20160", "Up", version="8.5.0", status_address="a:20180", sizes=("1GiB", "", ""))
    incomplete = Store(1002, "", "Offline", complete=False)
    stores = pd(STORES, (200, answer)).stores()
    assert list(map(asdict, (up, disconnected, incomplete))) == list(map(asdict, stores))
    assert [False, True, False] == [store.is_tiflash for store in stores]


@pytest.mark.parametrize(
    ("status", "space"),
    [
        (
            '"capacity":"100GiB","available":"98.6GiB","used_size":"31.5MiB"',
            Space(100 << 30, int(98.6 * 2**30), 63 << 19),
        ),
        ('"capacity":"1.5 TiB","available":"0B","used_size":"1023B"', Space(3 << 39, 0, 1023)),
        ('"capacity":"0B","available":"0B","used_size":"0B"', None),
        ('"capacity":"100GiB","used_size":"1GiB"', None),
        ('"capacity":"100GiB","available":"98.6GiB","used_size":"a lot"', None),
        ("", None),
    ],
)
def test_the_disk_of_a_store_is_unknown_if_a_figure_is_missing(status: str, space: Space | None) -> None:
    answer = f'{{"stores":[{{"store":{{"id":4,"address":"a:20160"}},"status":{{{status}}}}}]}}'
    (store,) = pd(STORES, (200, answer)).stores()
    assert (space, True) == (store.space, store.complete)


def test_null_means_no_stores() -> None:
    assert pd(STORES, (200, '{"count":0,"stores":null}')).all_stores() == ()


@pytest.mark.rule("dataplane-apis-18")
def test_a_request_for_stores_before_the_bootstrap_raises() -> None:
    with pytest.raises(NotBootstrapped):
        pd(STORES, NOT_BOOTSTRAPPED).stores()


def test_an_unknown_store_is_not_found() -> None:
    answer = (404, '"[PD:core:ErrStoreNotFound]store 9 not found"\n')
    with pytest.raises(NotFound, match=r"GET http://demo-pd\.ns:2379/pd/api/v1/store/9: .*404.*store 9 not found"):
        pd("GET /pd/api/v1/store/9", answer).store(9)


@pytest.mark.rule("dataplane-apis-18")
def test_deleting_an_absent_store_sends_no_delete() -> None:
    transport = ScriptedTransport().on(STORES, (200, ONE_STORE), (200, '{"stores":null}'))
    pd = client(transport)
    pd.delete_store(store_of(pd, 4))
    assert [STORES] * 2 == transport.calls


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.rule("dataplane-apis-18")
def test_deleting_a_store_that_goes_meanwhile_is_no_error(status: int) -> None:
    transport = ScriptedTransport().on(STORES, (200, ONE_STORE), (200, ONE_STORE), (200, '{"stores":null}'))
    transport.on("DELETE /pd/api/v1/store/4", (status, '"x"'))
    pd = client(transport)
    assert pd.delete_store(store_of(pd, 4))
    assert [STORES] * 2 + ["DELETE /pd/api/v1/store/4", STORES] == transport.calls


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.rule("dataplane-apis-18")
def test_a_store_that_is_gone_and_listed_is_a_conflict(status: int) -> None:
    transport = ScriptedTransport().on(STORES, (200, ONE_STORE))
    transport.on("DELETE /pd/api/v1/store/4", (status, '"x"'))
    pd = client(transport)
    with pytest.raises(Conflict, match="it says that the store is gone, but lists it as Up"):
        pd.delete_store(store_of(pd, 4))


@pytest.mark.rule("dataplane-apis-18")
@pytest.mark.parametrize(
    ("state", "contradicts"), [(OFFLINE, False), (UP, True), (DISCONNECTED, True), (DOWN, True), ("Serving", True)]
)
def test_a_store_that_pd_agrees_to_remove_and_does_not_list_as_offline_is_a_contradiction(
    state: str, contradicts: bool
) -> None:
    """A store that leaves is Offline, whether or not it is connected."""
    before, after = (200, ONE_STORE), (200, ONE_STORE.replace(UP, state))
    transport = ScriptedTransport().on(STORES, before, before, after)
    pd = client(transport.on("DELETE /pd/api/v1/store/4", (200, '"x"')))
    store = store_of(pd, 4)
    if contradicts:
        with pytest.raises(Conflict, match=f"it says that the store leaves, but lists it as {state}"):
            pd.delete_store(store)
    else:
        assert pd.delete_store(store)


@pytest.mark.rule("dataplane-apis-18")
def test_too_few_stores_left_is_a_conflict_with_pds_words() -> None:
    transport = ScriptedTransport().on(STORES, (200, ONE_STORE))
    transport.on("DELETE /pd/api/v1/store/4", (400, '"[PD:core:ErrStoresNotEnough]can not remove store 4"'))
    pd = client(transport)
    with pytest.raises(Conflict, match="can not remove store 4"):
        pd.delete_store(store_of(pd, 4))


@pytest.mark.rule("F2")
def test_a_store_that_moved_is_not_deleted() -> None:
    transport = ScriptedTransport().on(STORES, (200, MOVED), (200, ONE_STORE))
    pd = client(transport)
    with pytest.raises(Conflict, match="demo-tikv-0:20160, not demo-tikv-7:20160"):
        pd.delete_store(store_of(pd, 4))
    assert [STORES] * 2 == transport.calls


@pytest.mark.rule("F5")
def test_deletes_and_restores_only_stores_that_pd_has_listed() -> None:
    transport = ScriptedTransport()
    remembered = Store(4, "demo-tikv-0:20160", "Offline")
    with pytest.raises(TypeError, match=r"from PDClient\.store or PDClient\.stores"):
        client(transport).delete_store(remembered)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"from PDClient\.store or PDClient\.stores"):
        client(transport).restore_store(remembered)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"comes from PDClient\.store or PDClient\.stores"):
        LiveStore(4, "demo-tikv-0:20160", "Offline", maker=object())
    assert [] == transport.calls


STORES = "GET /pd/api/v1/stores?state=0&state=1&state=2"
RESTORE = "POST /pd/api/v1/store/4/state?state=Up"


def test_a_store_that_is_leaving_can_be_restored() -> None:
    leaving, kept = (200, STORE_4), (200, STORE_4.replace(OFFLINE, UP))
    transport = ScriptedTransport().on(RESTORE, (200, '"ok"'))
    pd = client(transport.on("GET /pd/api/v1/store/4", leaving, leaving, kept))
    pd.restore_store(pd.store(4))
    assert 1 == transport.calls.count(RESTORE)


@pytest.mark.parametrize("state", [OFFLINE, TOMBSTONE])
def test_a_store_that_pd_agreed_to_keep_and_lists_as_leaving_is_a_contradiction(state: str) -> None:
    """The caller would take off the marks of the removal, and the store would leave unnoticed."""
    leaving = (200, STORE_4.replace(OFFLINE, state))
    pd = client(ScriptedTransport().on(RESTORE, (200, '"ok"')).on("GET /pd/api/v1/store/4", leaving))
    with pytest.raises(Conflict, match=f"it agreed to keep the store, but shows it as {state}"):
        pd.restore_store(pd.store(4))


def test_a_store_that_moved_or_is_gone_is_not_restored() -> None:
    transport = ScriptedTransport().on(RESTORE, (410, '"gone"')).on(STORES, (200, MOVED))
    pd = client(transport.on("GET /pd/api/v1/store/4", (200, STORE_4)))
    with pytest.raises(Conflict, match="not demo-tikv-7:20160"):
        pd.restore_store(store_of(pd, 4))
    assert RESTORE not in transport.calls
    with pytest.raises(Conflict):
        pd.restore_store(pd.store(4))


def test_the_leader_may_be_asked_to_resign() -> None:
    transport = ScriptedTransport().on("POST /pd/api/v1/leader/resign", (200, '"ok"'))
    client(transport).resign_leader()
    assert ["POST /pd/api/v1/leader/resign"] == transport.calls


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200, '[{"group_id":"pd","count":5,"role":"voter"}]'), 5),
        ((200, '[{"group_id":"pd","count":3,"role":"voter"},{"group_id":"pd","count":2,"role":"follower"}]'), 5),
        ((200, '[{"group_id":"pd","count":3,"role":"voter"},{"group_id":"tiflash","count":2,"role":"learner"}]'), 3),
        ((200, '[{"group_id":"pd","count":3},{"group_id":"a","start_key":"7","count":4}]'), 4),
        ((200, '[{"group_id":"pd","count":1}]'), 3),
        ((200, "null"), 3),
        ((412, '"placement rules feature is disabled"'), 3),
        ((404, "404 page not found"), 3),
    ],
)
@pytest.mark.rule("I5")
def test_placement_rules_can_require_more_replicas(answer: tuple[int, str], expected: int) -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/config/rules", answer)
    transport.on("GET /pd/api/v1/config", (200, '{"replication":{"max-replicas":3}}'))
    assert expected == client(transport).replicas()


def test_labels_are_sent_as_an_object() -> None:
    transport = ScriptedTransport().on("POST /pd/api/v1/store/4/label", (200, '"ok"'))
    client(transport).set_store_labels(4, {"zone": "a"})
    assert transport.requests[0].body == b'{"zone":"a"}'


SCHEDULERS = "GET /pd/api/v1/schedulers"
BEGIN = "POST /pd/api/v1/schedulers"
END = "DELETE /pd/api/v1/schedulers/evict-leader-scheduler-4"
EVICTIONS = "GET /pd/api/v1/scheduler-config/evict-leader-scheduler/list"
NONE_EVICTED = (200, '["balance-leader-scheduler"]')
BARE = (200, '["balance-leader-scheduler","evict-leader-scheduler"]')
EVICTING_4 = (200, '{"store-id-ranges":{"4":[{"start-key":"","end-key":""}]},"batch":3}')


@pytest.mark.rule("dataplane-apis-18")
def test_one_scheduler_for_all_stores_lists_them_in_its_configuration() -> None:
    transport = ScriptedTransport().on(SCHEDULERS, BARE).on(EVICTIONS, EVICTING_4)
    assert frozenset({4}) == client(transport).evicting_stores()


@pytest.mark.rule("dataplane-apis-18")
def test_old_pd_has_a_scheduler_per_store() -> None:
    answer = (200, '["evict-leader-scheduler-4","evict-leader-scheduler-1001","evict-slow-store-scheduler"]')
    assert frozenset({4, 1001}) == pd(SCHEDULERS, answer).evicting_stores()


@pytest.mark.parametrize("schedulers", [BARE, (200, "[]"), (200, "null")])
@pytest.mark.rule("dataplane-apis-18")
def test_a_leader_without_schedulers_proves_nothing(schedulers: tuple[int, str]) -> None:
    transport = ScriptedTransport().on(SCHEDULERS, schedulers).on(EVICTIONS, (404, "scheduler not found"))
    transport.on(END, (404, "not found"))
    with pytest.raises(SchedulersUnknown, match="PD runs no schedulers"):
        client(transport).evicting_stores()
    with pytest.raises(SchedulersUnknown, match="PD runs no schedulers"):
        client(transport).end_evict_leaders(4)


@pytest.mark.rule("dataplane-apis-18")
def test_beginning_an_eviction_twice_is_no_error() -> None:
    transport = ScriptedTransport().on(BEGIN, (200, '"ok"'), (500, '"scheduler existed"'))
    transport.on(SCHEDULERS, BARE).on(EVICTIONS, EVICTING_4)
    client(transport).begin_evict_leaders(4)
    client(transport).begin_evict_leaders(4)
    assert transport.requests[0].body == b'{"name":"evict-leader-scheduler","store_id":4}'


@pytest.mark.rule("dataplane-apis-18")
def test_a_refused_begin_raises() -> None:
    transport = ScriptedTransport().on(BEGIN, (400, '"unknown store"')).on(SCHEDULERS, NONE_EVICTED)
    with pytest.raises(ApiError, match="unknown store"):
        client(transport).begin_evict_leaders(4)


@pytest.mark.parametrize(
    ("ended", "listed"),
    [((404, "not found"), NONE_EVICTED), ((200, "null"), (200, "[]")), ((500, '"x"'), NONE_EVICTED)],
)
@pytest.mark.rule("dataplane-apis-18")
def test_a_missing_eviction_has_ended(ended: tuple[int, str], listed: tuple[int, str]) -> None:
    transport = ScriptedTransport().on(END, ended).on(SCHEDULERS, listed).on(EVICTIONS, EVICTING_4)
    client(transport).end_evict_leaders(4)
    assert transport.calls[0] == END


@pytest.mark.parametrize("ended", [(200, "null"), (404, "not found"), (500, '"x"')])
@pytest.mark.rule("dataplane-apis-18")
def test_an_eviction_that_stays_raises(ended: tuple[int, str]) -> None:
    transport = ScriptedTransport().on(END, ended).on(SCHEDULERS, BARE).on(EVICTIONS, EVICTING_4)
    with pytest.raises(ApiError):
        client(transport).end_evict_leaders(4)


@pytest.mark.parametrize(("status", "expected"), [(200, True), (404, True), (500, False)])
@pytest.mark.rule("dataplane-apis-18")
def test_reads_readiness(status: int, expected: bool) -> None:
    assert expected is pd("GET /pd/api/v2/ready", (status, "")).ready()


@pytest.mark.rule("dataplane-apis-18")
def test_no_answer_raises() -> None:
    with pytest.raises(Unavailable):
        pd("GET /pd/api/v2/ready", RequestTimeout).ready()


@pytest.mark.parametrize("first", [ConnectionLost, ConnectionRefused])
def test_a_read_whose_connection_failed_is_tried_once_more(first: Answer) -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/cluster", first, (200, '{"id":1}'))
    assert client(transport).cluster_id() == 1


@pytest.mark.rule("F53")
def test_the_second_try_gets_the_rest_of_the_timeout() -> None:
    clock = FakeClock()
    transport = ScriptedTransport(before=lambda _: clock.step(2))
    transport.on("GET /pd/api/v1/cluster", ConnectionLost)
    with pytest.raises(Unavailable):
        PDClient(transport, Address("http://demo-pd.ns:2379"), clock=clock).cluster_id()
    assert [5.0, 3.0] == [request.timeout for request in transport.requests]


@pytest.mark.parametrize(
    ("failure", "sent"), [(ConnectionLost, True), (RequestTimeout, True), (ConnectionRefused, False)]
)
def test_a_write_is_tried_once_and_reports_whether_it_was_sent(failure: Answer, sent: bool) -> None:
    transport = ScriptedTransport().on("POST /pd/api/v1/leader/transfer/a", failure)
    with pytest.raises(Unavailable) as raised:
        client(transport).transfer_leader("a")
    assert (1, sent) == (len(transport.requests), raised.value.sent)


def test_writes_ask_the_fence_first_and_reads_do_not() -> None:
    class Expired:
        def check(self) -> None:
            raise LeaseExpired

    def never_a_write(request: Request) -> None:
        assert request.method == "GET"

    transport = ScriptedTransport(before=never_a_write).on("GET /pd/api/v1/members", (200, TWO_MEMBERS))
    fenced = PDClient(transport, Address("http://demo-pd.ns:2379"), Expired(), FakeClock())
    writes: list[Callable[[], None]] = [
        lambda: fenced.transfer_leader("demo-pd-0"),
        lambda: fenced.delete_member(member_of(fenced, 7)),
        lambda: fenced.set_store_labels(4, {}),
        lambda: fenced.begin_evict_leaders(4),
        lambda: fenced.end_evict_leaders(4),
    ]
    for write in writes:
        with pytest.raises(LeaseExpired):
            write()


@pytest.mark.parametrize(("status", "expected"), [(200, True), (404, True), (503, False)])
@pytest.mark.rule("I9")
def test_a_member_votes_if_its_etcd_reads_with_the_quorum(status: int, expected: bool) -> None:
    assert expected == pd("GET /health", (status, '{"health":"x"}')).votes()
