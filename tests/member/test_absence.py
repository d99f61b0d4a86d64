"""A member, worker, node or store that is not listed is gone only if the list is whole (reliability.md 1.3, R19, F1).

Each list is cut down in every way: a server may omit any entry for a moment.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.tidbcluster import TidbCluster
from dataplane.addresses import Address
from dataplane.clients import DataPlane
from dataplane.errors import DataPlaneError, MalformedAnswer, Unavailable
from dataplane.pd import PDClient
from kube.objects import Json
from kube.resources import PODS
from member.context import DMContext, Listers, ReconcileContext
from member.dm import rolling as dm_rolling
from member.evidence import (
    Evidence,
    majority_without,
    master_gone,
    member_gone,
    no_store,
    pump_node_gone,
    store_gone,
    worker_gone,
)
from member.pd import rolling
from ports.clock import FakeClock
from ports.fencing import OpenFence
from ports.side_by_side import InTurn
from tests.dataplane.scripted import ScriptedTransport
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.deciding import concluded
from tests.member.reconciling import as_object, context

Names = tuple[str, ...]
PLAIN: Json = {"spec": {"containers": []}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
"""A pod that is Ready."""
PEERS = "/apis/v1alpha1/members"


def cut_down(names: Names) -> list[Names]:
    """Every selection of some of them, from none to all."""
    return [each for count in range(len(names) + 1) for each in combinations(names, count)]


def put_pods(api: FakeApi, component: str, pods: Sequence[str], instance: str, name: str) -> None:
    """Create these pods, Ready."""
    given = {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/component": component,
    }
    items = [{"metadata": {"name": pod, "namespace": "ns", "labels": given}} | PLAIN for pod in pods]
    api.put(PODS.path("ns"), {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def in_front_of(servers: ScriptedTransport, api: FakeApi, tc: TidbCluster | None = None) -> ReconcileContext:
    """A reconcile of `demo`, whose servers answer by a script."""
    ctx = context(api, tc)
    dataplane = DataPlane(lambda _: servers, OpenFence(), FakeClock()).for_one_reconcile()
    claims = SimpleNamespace(list=lambda *_: [], get=lambda *_: None, by_index=lambda *_: [])
    pods = SimpleNamespace(list=lambda *_: [], changes=0)
    listers = cast("Listers", SimpleNamespace(persistent_volume_claims=claims, stateful_sets=claims, pods=pods))
    ctx.deps, ctx.listers = replace(ctx.deps, dataplane=dataplane), listers
    return ctx


def of_dm(servers: ScriptedTransport, api: FakeApi) -> DMContext:
    """A reconcile of the DMCluster `demo`."""
    ctx = in_front_of(servers, api)
    spec = {"version": "v8.5.2", "master": {"replicas": 3}, "worker": {"replicas": 3}}
    body = {"metadata": {"name": "demo", "namespace": "ns", "uid": "uid-1"}, "spec": spec}
    dc = with_defaults(msgspec.convert(body, DMCluster))
    dc.status.master.synced = True
    return DMContext(ctx.owner, dc, ctx.deps)


def answering_dm(servers: ScriptedTransport, leader: str, masters: Names, workers: Names, alive: int = 3) -> None:
    """Let DM's masters answer."""

    def entry(kind: str, content: Json) -> None:
        body = {"result": True, "msg": "", "members": [{kind: content}]}
        servers.on(f"GET {PEERS}?{kind}=true", (200, json.dumps(body)))

    entry("leader", {"name": leader})
    listed = [{"name": each, "memberID": "1", "alive": at < alive} for at, each in enumerate(masters)]
    entry("master", {"masters": listed})
    entry("worker", {"workers": [{"name": each, "stage": "free"} for each in workers]})


MASTERS = tuple(f"demo-dm-master-{ordinal}" for ordinal in range(3))
WORKERS = tuple(f"demo-dm-worker-{ordinal}" for ordinal in range(3))


@pytest.mark.parametrize("listed", cut_down(WORKERS))
@pytest.mark.parametrize("existing", cut_down(WORKERS))
def test_a_worker_is_gone_only_if_the_workers_of_all_other_pods_are_listed(existing: Names, listed: Names) -> None:
    servers, api = ScriptedTransport(), FakeApi()
    ctx = of_dm(servers, api)
    put_pods(api, "dm-worker", existing, "demo", "dm-cluster")
    answering_dm(servers, MASTERS[0], MASTERS, listed)

    others = set(existing) - {WORKERS[2]}
    expected = WORKERS[2] not in listed and others <= set(listed)
    assert expected == isinstance(worker_gone(ctx, WORKERS[2]), Evidence)


@pytest.mark.parametrize(("leader", "alive"), [("", 3), (MASTERS[0], 1), (MASTERS[0], 0)])
@pytest.mark.parametrize("ask", [lambda ctx: worker_gone(ctx, WORKERS[2]), lambda ctx: master_gone(ctx, "demo-dm-9")])
def test_masters_without_a_leader_or_a_quorum_prove_nothing(
    ask: Callable[[DMContext], Evidence | None], leader: str, alive: int
) -> None:
    servers, api = ScriptedTransport(), FakeApi()
    ctx = of_dm(servers, api)
    put_pods(api, "dm-worker", WORKERS[:2], "demo", "dm-cluster")
    answering_dm(servers, leader, MASTERS, WORKERS[:2], alive)
    assert ask(ctx) is None
    answering_dm(servers, MASTERS[0], MASTERS, WORKERS[:2])
    assert isinstance(ask(ctx), Evidence)


@pytest.mark.parametrize("listed", [each for each in cut_down(MASTERS) if MASTERS[0] not in each])
@pytest.mark.parametrize(
    "ask",
    [
        lambda ctx: master_gone(ctx, MASTERS[2]),
        lambda ctx: concluded(ctx, dm_rolling.ROLLING.spare(ctx, MASTERS[2])),
    ],
    ids=["gone", "spared"],
)
def test_masters_that_do_not_list_their_leader_contradict_themselves(
    ask: Callable[[DMContext], object], listed: Names
) -> None:
    servers = ScriptedTransport()
    ctx = of_dm(servers, FakeApi())
    answering_dm(servers, MASTERS[0], listed, ())
    with pytest.raises(MalformedAnswer, match=r"it lists (no master|\d masters, and not the one that leads)"):
        ask(ctx)


def pd_members(*ordinals: int, leader: int | None = 0) -> Json:
    """PD's answer to a request for its members."""

    def member(ordinal: int) -> Json:
        host = f"demo-pd-{ordinal}.demo-pd-peer.ns.svc"
        urls = {"client_urls": [f"http://{host}:2379"], "peer_urls": [f"http://{host}:2380"]}
        return {"name": f"demo-pd-{ordinal}", "member_id": ordinal + 1, **urls}

    led = {} if leader is None else {"leader": member(leader)}
    return {"header": {"cluster_id": 7}, "members": [member(each) for each in ordinals], **led}


def answering_pd(servers: ScriptedTransport, path: str, body: Any) -> ScriptedTransport:
    """Let PD answer a read."""
    return servers.on(f"GET /pd/api/v1/{path}", (200, json.dumps(body)))


@pytest.mark.parametrize("leader", [0, None])
@pytest.mark.parametrize("ordinals", [each for count in range(4) for each in combinations(range(3), count)])
def test_a_pd_member_is_gone_only_if_the_leader_is_listed(ordinals: tuple[int, ...], leader: int | None) -> None:
    servers = answering_pd(ScriptedTransport(), "members", pd_members(*ordinals, leader=leader))
    gone = member_gone(in_front_of(servers, FakeApi()), "demo-pd-2")
    assert (2 not in ordinals and leader in ordinals) == isinstance(gone, Evidence)


@pytest.mark.parametrize("reported", [each for count in range(6) for each in combinations(range(5), count)])
def test_an_answer_on_health_that_leaves_out_a_member_shows_no_majority(reported: tuple[int, ...]) -> None:
    """The last of five members is lost; the others are healthy."""
    healths = [{"name": f"demo-pd-{each}", "member_id": each + 1, "health": each != 4} for each in reported]
    servers = answering_pd(ScriptedTransport(), "members", pd_members(*range(5)))
    pd = PDClient(answering_pd(servers, "health", healths), Address("http://demo-pd.ns:2379"), clock=FakeClock())
    members = pd.members().members
    assert (5 == len(reported)) == isinstance(majority_without(pd, members[4], members), Evidence)


@pytest.mark.parametrize("reported", [each for count in range(3) for each in combinations(range(3), count)])
def test_a_pd_that_leaves_out_a_known_member_spares_no_pod(reported: tuple[int, ...]) -> None:
    urls = {f"demo-pd-{each}": f"http://demo-pd-{each}.demo-pd-peer.ns.svc:2379" for each in range(3)}
    members = {
        name: {"name": name, "id": str(at + 1), "clientURL": url, "health": True}
        for at, (name, url) in enumerate(urls.items())
    }
    tc = cluster(status={"clusterID": "7", "pd": {"synced": True, "members": members}})
    healths = [{"name": f"demo-pd-{each}", "member_id": each + 1, "health": True} for each in reported]
    ctx = in_front_of(answering_pd(ScriptedTransport(), "health", healths), FakeApi(), tc)
    with pytest.raises(Exception, match=r"PD no longer reports the health of demo-pd-"):
        concluded(ctx, rolling.ROLLING.spare(ctx, "demo-pd-2"))


@pytest.mark.parametrize(("known", "labelled"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_pd_without_stores_is_believed_only_if_no_store_was_ever_known(known: bool, labelled: bool) -> None:
    stores = (
        {"1": {"id": "1", "podName": "demo-tikv-0", "ip": "demo-tikv-0", "leaderCount": 0, "state": "Up"}}
        if known
        else {}
    )
    servers = answering_pd(ScriptedTransport(), "members", pd_members(0))
    servers.on("GET /pd/api/v1/stores?state=0&state=1&state=2", (500, '"TiKV cluster not bootstrapped"'))
    answering_pd(servers, "cluster", {"id": 7})
    ctx = in_front_of(servers, FakeApi(), cluster(status={"tikv": {"stores": stores}}))
    given = {"app.kubernetes.io/component": "tikv", "tidb.pingcap.com/store-id": "1"} if labelled else {}
    claim = SimpleNamespace(metadata=SimpleNamespace(name="tikv-demo-tikv-0", labels=given))
    found = cast("Any", ctx.listers.persistent_volume_claims)
    found.list = lambda *_: [claim]
    assert (not (known or labelled)) == isinstance(no_store(ctx, "tikv", "demo-tikv-2"), Evidence)


def reading_a_store(state: str, code: int = 200) -> tuple[ScriptedTransport, ReconcileContext]:
    """A reconcile of a `demo` whose three PD members are Ready; all say the same of store 4."""
    store = {"store": {"id": 4, "address": "demo-tikv-2:20160", "state_name": state}, "status": {}}
    servers = ScriptedTransport().on("GET /pd/api/v1/store/4", (code, json.dumps(store)))
    ctx = in_front_of(servers, FakeApi())
    pods = [{"metadata": {"name": f"demo-pd-{each}", "namespace": "ns"}} | PLAIN for each in range(3)]
    ctx.pods["pd"] = list(map(as_object, pods))
    return servers, ctx


@pytest.mark.parametrize(("state", "requests"), [("Up", 1), ("Offline", 1), ("Tombstone", 4)])
def test_the_members_of_pd_are_asked_only_if_the_first_answer_confirms(state: str, requests: int) -> None:
    servers, ctx = reading_a_store(state)
    assert (state == "Tombstone") == isinstance(store_gone(ctx, 4, ""), Evidence)
    assert requests == len(servers.requests)


def test_the_members_of_pd_are_not_asked_after_an_error() -> None:
    servers, ctx = reading_a_store("Tombstone", 500)
    with pytest.raises(DataPlaneError):
        store_gone(ctx, 4, "")
    assert 1 == len(servers.requests)


def test_members_of_pd_that_contradict_each_other_prove_nothing() -> None:
    servers, ctx = reading_a_store("Tombstone")
    call = "GET /pd/api/v1/store/4"
    denying, _ = reading_a_store("Up")
    servers.on(call, *servers.answers[call], *denying.answers[call])
    with pytest.raises(Unavailable, match="demo-pd-0, demo-pd-1, demo-pd-2 denies it"):
        store_gone(ctx, 4, "")


class FirstIsLate(InTurn):
    """Runs the first call last, like threads if it takes long."""

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        *others, first = super().run([*calls[1:], calls[0]])
        return [first, *others]


@pytest.mark.parametrize("state", ["Offline", "Tombstone"])
def test_a_late_first_answer_delays_no_member_of_pd(state: str) -> None:
    servers, ctx = reading_a_store(state)
    ctx.deps.dataplane.side_by_side = FirstIsLate()
    assert (state == "Tombstone") == isinstance(store_gone(ctx, 4, ""), Evidence)
    assert 4 == len(servers.requests)


PUMPS = tuple(f"demo-pump-{ordinal}" for ordinal in range(3))


@pytest.mark.parametrize("listed", cut_down(PUMPS))
@pytest.mark.parametrize("existing", cut_down(PUMPS))
def test_a_pump_node_is_gone_only_if_the_nodes_of_all_other_pods_are_listed(existing: Names, listed: Names) -> None:
    servers, api = ScriptedTransport(), FakeApi()
    ctx = in_front_of(servers, api, cluster(pump={"replicas": 3, "requests": {"storage": "1Gi"}}))
    put_pods(api, "pump", existing, "demo", "tidb-cluster")
    entries = [{"nodeId": each, "host": f"{each}.demo-pump.ns.svc:8250", "state": "online"} for each in listed]
    kvs = [{"key": encoded(each["nodeId"]), "value": encoded(json.dumps(each))} for each in entries]
    servers.on("POST /v3/kv/range", (200, json.dumps({"kvs": kvs})))
    answering_pd(servers, "cluster", {"id": 7})
    others = set(existing) - {PUMPS[2]}
    expected = PUMPS[2] not in listed and others <= set(listed)
    assert expected == isinstance(pump_node_gone(ctx, PUMPS[2]), Evidence)


def encoded(text: str) -> str:
    """Text as etcd's gateway sends it."""
    return msgspec.json.encode(text.encode()).decode().strip('"')
