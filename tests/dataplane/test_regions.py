"""Regions whose quorum needs a store, as PD lists them."""

import json

import pytest

from dataplane.addresses import Address
from dataplane.errors import MalformedAnswer, Unavailable
from dataplane.pd import PDClient
from dataplane.regions import LONGEST_REGIONS, Peer, Region
from kube.objects import Json
from ports.clock import FakeClock
from ports.transport import AnswerRefused, Request
from tests.dataplane.scripted import ScriptedTransport

DOWN, PENDING = (f"GET /pd/api/v1/regions/check/{name}" for name in ("down-peer", "pending-peer"))


def region(*roles: str, behind: tuple[int, ...] = ()) -> Region:
    """A region with a peer on each of the stores 1, 2, ...; the ids of peers are 11, 12, ..."""
    peers = tuple(Peer(10 + store, store, role) for store, role in enumerate(roles, 1))
    return Region(7, peers, frozenset(10 + store for store in behind))


@pytest.mark.parametrize(
    ("shown", "stores"),
    [
        (region("Voter", "Voter", "Voter"), set()),
        (region("Voter", "Voter", "Voter", behind=(1,)), {2, 3}),
        (region("Voter", "Voter", "Voter", behind=(1, 2)), set()),
        (region("Voter", "Voter", "Voter", "Voter", "Voter", behind=(1,)), set()),
        (region("Voter", "Voter", "Voter", "Voter", "Voter", behind=(1, 2)), {3, 4, 5}),
        (region("Voter", "Voter", "Voter", "Learner", behind=(4,)), set()),
        (region("Voter", "Voter", "Voter", "Learner", behind=(1,)), {2, 3}),
        (region("Voter", "Voter", "DemotingVoter", "IncomingVoter", behind=(4,)), {1, 2}),
        (Region(7, (), frozenset()), set()),
    ],
    ids=["whole", "3-1", "already lost", "5-1", "5-2", "learner behind", "voter behind", "joint", "no peers"],
)
def test_a_region_needs_a_store_without_which_its_quorum_is_lost(shown: Region, stores: set[int]) -> None:
    assert stores == {store for store in range(1, 6) if shown.needs(store)}


def pd(transport: ScriptedTransport) -> PDClient:
    return PDClient(transport, Address("http://demo-pd.ns:2379"), clock=FakeClock())


def answer(number: int, **lists: object) -> Json:
    peers = [{"id": 10 + store, "store_id": store, "role_name": "Voter"} for store in (1, 2, 3)]
    return {"id": number, "start_key": "7480", "epoch": {"version": 1}, "peers": peers, **lists}


def test_merges_both_lists_of_pd_by_region() -> None:
    down = {"down_peers": [{"peer": {"id": 13, "store_id": 3}, "down_seconds": 900}]}
    pending = {"pending_peers": [{"id": 12, "store_id": 2, "role_name": "Voter"}]}
    transport = ScriptedTransport()
    transport.on(DOWN, (200, json.dumps({"count": 1, "regions": [answer(9, **down)]})))
    transport.on(PENDING, (200, json.dumps({"count": 2, "regions": [answer(8, **pending), answer(9, **down)]})))
    shown = pd(transport).regions_behind()
    assert [(8, frozenset({12})), (9, frozenset({13}))] == [(each.id, each.behind) for each in shown]
    assert [frozenset({2}), frozenset({3})] == [each.stores_behind() for each in shown]


def test_reads_learners_of_versions_that_name_no_roles() -> None:
    old = {"id": 9, "peers": [{"id": 4, "store_id": 1}, {"id": 5, "store_id": 2, "is_learner": True}]}
    transport = ScriptedTransport().on(DOWN, (200, json.dumps({"regions": [old]})))
    transport.on(PENDING, (200, '{"count":0,"regions":null}'))
    assert ["Voter", "Learner"] == [peer.role for peer in pd(transport).regions_behind()[0].peers]


def test_reads_thousands_of_regions_and_refuses_a_malformed_one() -> None:
    many = json.dumps({"count": 5000, "regions": [answer(number) for number in range(5000)]}, separators=(",", ":"))
    transport = ScriptedTransport().on(DOWN, (200, many), (200, '{"regions":[{"id":"x"}]}'))
    transport.on(PENDING, (200, '{"count":0,"regions":[]}'))
    client = pd(transport)
    assert len(many) < LONGEST_REGIONS
    assert 5000 == len(client.regions_behind())
    with pytest.raises(MalformedAnswer, match="down-peer"):
        client.regions_behind()


def test_bounds_the_answer_and_reports_one_that_is_longer() -> None:
    seen = []

    class Long(ScriptedTransport):
        def request(self, request: Request) -> object:  # type: ignore[override]  # it never answers
            seen.append(request.longest_answer)
            raise AnswerRefused(request.method, request.url, "the server sent more than its answer may have")

    with pytest.raises(Unavailable) as caught:
        pd(Long()).regions_behind()
    assert isinstance(caught.value.cause, AnswerRefused)
    assert {LONGEST_REGIONS} == set(seen)
