"""What the operator reports and does when something outside fails; no failure ends in a stack trace."""

from collections.abc import Iterator

import pytest

from kube.objects import Json, condition_of
from kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from ports.clock import FakeClock
from rehearsal.operator import CLUSTER_SCOPED
from sandbox.apiserver import Fault as ApiFault
from sandbox.apiserver import Refusal
from sandbox.apiserver.audit import Call
from sandbox.dataplane.faults import Fault, Trouble
from simulate.engine.trees import merged
from tests.certificates import Authority
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample

PD = "*/basic-pd-*"


class Refusing:
    """An API server that refuses the operator some writes."""

    def __init__(self) -> None:
        self.resource = ""
        self.verb = "create"
        self.code, self.reason = 403, "Forbidden"
        self.times = 1_000

    def __call__(self, call: Call) -> ApiFault | None:
        hit = (call.user, call.verb, call.resource) == (OPERATOR, self.verb, self.resource)
        if not hit or self.times == 0:
            return None
        self.times -= 1
        return ApiFault(refusal=Refusal(self.code, self.reason, f"{self.reason}: {call.verb} {call.resource}"))


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


@pytest.fixture
def world(clock: FakeClock, refusing: Refusing) -> Iterator[OperatorWorld]:
    made = OperatorWorld(clock=clock, faults=refusing)
    yield made
    made.stop()


def component_reason(world: OperatorWorld, component: str) -> str:
    return str(world.cluster()["status"][component]["conditions"][0]["reason"])


@pytest.mark.rule("3.1")
def test_tikv_waits_for_pd_and_tidb_for_tikv(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-pd"))
    assert ("WaitingForPD", "WaitingForTiKV") == (component_reason(world, "tikv"), component_reason(world, "tidb"))
    assert not world.exists(STATEFUL_SETS, "basic-tikv")

    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-tikv"))
    members = world.cluster()["status"]["pd"]["members"]
    assert [True] == [member["health"] for member in members.values()]
    assert not world.exists(STATEFUL_SETS, "basic-tidb")

    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-tidb"))
    assert ["Up"] == [store["state"] for store in world.cluster()["status"]["tikv"]["stores"].values()]


@pytest.mark.slow
@pytest.mark.rule("F43")
def test_retries_a_silent_pd_with_growing_delays(basic: OperatorWorld) -> None:
    basic.world.data_plane.network.inject(Fault(Trouble.BLACK_HOLE, PD))
    basic.run_until(lambda: basic.reason() == "PDUnreachable", 120)
    basic.forget()
    basic.run(300.0)

    assert "PDUnreachable" == basic.condition("Ready")["reason"]
    asked = [request for request in basic.operator.dataplane.requests if request.url.endswith("/members")]
    assert 2 <= len(asked) <= 30  # three a minute: the end of an outage is seen within twenty seconds
    assert [] == [request for request in basic.operator.dataplane.requests if "/stores" in request.url]
    others = [write for write in basic.writes() if "tidbclusters" not in write]
    assert ["create events "] == others, "one event that the operator cannot reach PD"

    basic.world.data_plane.network.heal()
    basic.run_until_ready(within=120)


@pytest.mark.slow
@pytest.mark.rule("R31")
def test_a_silent_pd_hardly_delays_a_new_second_cluster(basic: OperatorWorld) -> None:
    alone = _comes_up(basic, "alone")
    basic.world.data_plane.network.inject(Fault(Trouble.BLACK_HOLE, PD))
    basic.run_until(lambda: basic.reason() == "PDUnreachable", 120)

    # one worker has both: two reconciles of the silent one meanwhile, of half a second each
    assert _comes_up(basic, "beside") <= alone + 1.0
    assert not basic.is_ready()


def _comes_up(world: OperatorWorld, name: str) -> float:
    """Create a cluster; seconds until it is Ready."""
    began = world.clock.now()
    world.apply(merged(sample("basic"), {"metadata": {"name": name}}))
    world.run_until(lambda: world.is_ready(name), 120)
    return world.clock.now() - began


@pytest.mark.slow
@pytest.mark.rule("3.1")
def test_a_silent_pd_does_not_stop_work_that_needs_no_pd(basic: OperatorWorld) -> None:
    basic.world.data_plane.network.inject(Fault(Trouble.BLACK_HOLE, PD))
    basic.run_until(lambda: basic.reason() == "PDUnreachable", 120)
    labels = {"owner": "me"}
    basic.change(discovery={"labels": labels}, pd={"service": {"labels": labels}})
    basic.run(60.0)

    assert "me" == basic.get(SERVICES, "basic-pd")["metadata"]["labels"]["owner"]
    assert "me" == basic.get(SERVICES, "basic-discovery")["spec"]["selector"]["owner"]
    assert basic.cluster()["status"]["tidb"]["members"]["basic-tidb-0"]["health"]


@pytest.mark.parametrize("body", [b"<html>", b'{"error": "no"}', b"[1]", b"null", b"[]"])
@pytest.mark.rule("F7")
def test_malformed_answers_of_pd_count_as_unknown(basic: OperatorWorld, body: bytes) -> None:
    fault = Fault(Trouble.ANSWER, PD, path="/pd/api/v1/health", status=200, body=body)
    basic.world.data_plane.network.inject(fault)
    basic.run_until(lambda: basic.reason() == "PDUnreachable", 60)
    status = basic.cluster()["status"]["pd"]
    assert ("synced" not in status, ["basic-pd-0"]) == (True, list(status["members"]))
    assert "removed from PD" not in basic.progressing


@pytest.mark.rule("F8", "#303")
def test_drops_members_missing_from_the_newest_answer_and_keeps_the_times_of_the_remaining_ones(
    basic: OperatorWorld,
) -> None:
    basic.run(5.0)
    before = members(basic)
    gone = {
        "pd": {"members": {"basic-pd-7": {"name": "basic-pd-7", "id": "7", "clientURL": "", "health": False}}},
        "tikv": {"stores": {"77": {"id": "77", "podName": "tikv-7", "ip": "", "state": "Down", "leaderCount": 0}}},
        "tidb": {"members": {"basic-tidb-7": {"name": "basic-tidb-7", "health": False}}},
    }
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"status": gone}, subresource="status")
    assert {"basic-pd-7", "77", "basic-tidb-7"} == members(basic).keys() - before.keys()
    basic.run(31.0)
    assert before == members(basic)


def members(world: OperatorWorld) -> dict[str, str | None]:
    """The members in the status of PD, TiKV and TiDB, and the time of their last change."""
    status = world.cluster()["status"]
    found = status["pd"]["members"] | status["tikv"]["stores"] | status["tidb"]["members"]
    return {name: each.get("lastTransitionTime") for name, each in found.items()}


@pytest.mark.slow
@pytest.mark.rule("F40")
def test_writes_nothing_while_a_foreign_pd_answers(basic: OperatorWorld) -> None:
    known = basic.cluster()["status"]["clusterID"]
    body = b'{"header": {"cluster_id": 42}, "leader": {"name": "basic-pd-0", "member_id": 1}}'
    foreign = Fault(Trouble.ANSWER, PD, path="/pd/api/v1/members", status=200, body=body)
    basic.world.data_plane.network.inject(foreign)
    basic.change(pd={"replicas": 3}, tidb={"replicas": 2, "service": {"labels": {"owner": "me"}}})
    basic.run_until(lambda: basic.reason() == "ForeignPDCluster")
    basic.run(90.0)

    assert known == basic.cluster()["status"]["clusterID"]
    assert {"patch tidbclusters.pingcap.com/status basic", "create events "} == set(basic.writes())
    assert [] == basic.operator.dataplane.writes()
    assert (1, 1) == (basic.replicas("pd"), basic.replicas("tidb"))
    (event,) = basic.events("ForeignPDCluster")
    assert ("Warning", 1) == (event["type"], event["count"])

    basic.world.data_plane.network.heal()
    basic.run_until(lambda: basic.replicas("pd") == 3)


@pytest.mark.parametrize(("resource", "stage"), [("services", "discovery"), ("statefulsets.apps", "pd")])
@pytest.mark.rule("5")
def test_reports_a_missing_permission_and_recovers(
    world: OperatorWorld, refusing: Refusing, resource: str, stage: str
) -> None:
    refusing.resource = resource
    world.apply(sample("basic"))
    world.run_until(lambda: world.reason() == "Forbidden")

    assert world.condition("Progressing")["message"].startswith(f"{stage}: POST ")
    assert "failed error: Forbidden" in world.events("FailedCreate")[0]["message"]
    errors = world.operator.registry.get_sample_value(
        "tidb_operator_cluster_update_errors", {"namespace": "default", "name": "basic", "component": stage}
    )
    assert errors is not None
    assert errors >= 1
    refusing.resource = ""
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("F52", "#4837", "#5058")
def test_works_without_permissions_at_the_cluster_scope(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock, faults=_nothing_cluster_scoped, permitted=())
    world.apply(sample("basic"))
    world.run_until_ready()
    world.change(tikv={"replicas": 2, "requests": {"storage": "2Gi"}})
    world.run_until(lambda: world.replicas("tikv") == 2)
    world.run_until_ready()
    grown = {f"tikv-basic-tikv-{ordinal}": "2Gi" for ordinal in range(2)}
    found = {each["metadata"]["name"]: each["status"]["capacity"] for each in world.every(PERSISTENT_VOLUME_CLAIMS)}
    assert grown == {name: found[name]["storage"] for name in grown}
    world.stop()


def _nothing_cluster_scoped(call: Call) -> ApiFault | None:
    if call.user != OPERATOR or call.resource not in {str(each) for each in CLUSTER_SCOPED}:
        return None
    return ApiFault(refusal=Refusal(403, "Forbidden", f"{call.verb} {call.resource}"))


@pytest.mark.slow
@pytest.mark.parametrize("resource", ["services", "tidbclusters.pingcap.com"])
@pytest.mark.rule("F3")
def test_decides_again_after_a_conflict(world: OperatorWorld, refusing: Refusing, resource: str) -> None:
    world.apply(sample("basic"))
    world.run_until_ready()
    refusing.verb, refusing.resource, refusing.times = "patch", resource, 2
    refusing.code, refusing.reason = 409, "Conflict"
    world.change(pd={"service": {"labels": {"owner": "me"}}}, tidb={"replicas": 2})
    world.run_until_ready()

    assert 0 == refusing.times
    assert "me" == world.get(SERVICES, "basic-pd")["metadata"]["labels"]["owner"]


@pytest.mark.rule("F4")
def test_names_a_foreign_object_and_leaves_it_alone(world: OperatorWorld) -> None:
    theirs = {"metadata": {"name": "basic-pd"}, "spec": {"ports": [{"port": 80}]}}
    world.admin.create(SERVICES, theirs, NAMESPACE)
    world.apply(sample("basic"))
    world.run_until(lambda: world.reason() == "ForeignOwner")

    assert "pd: services default/basic-pd exists" in world.condition("Progressing")["message"]
    assert 80 == world.get(SERVICES, "basic-pd")["spec"]["ports"][0]["port"]
    assert not world.exists(STATEFUL_SETS, "basic-pd")
    world.admin.delete(SERVICES, "basic-pd", NAMESPACE)
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("F1")
def test_does_not_treat_a_stateful_set_missing_from_the_cache_as_new(basic: OperatorWorld) -> None:
    """A new process with an empty cache and a smaller spec must not scale in by creating."""
    basic.change(tikv={"replicas": 2})
    basic.run_until_ready()
    basic.restart()
    basic.operator.caches[STATEFUL_SETS].blind = True
    basic.forget()
    basic.change(tikv={"replicas": 1})
    basic.run(5.0)

    assert 2 == basic.replicas("tikv"), "fewer would be too few for max-replicas"
    assert [] == [write for write in basic.writes() if "statefulsets" in write]


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_waits_until_the_cache_shows_its_last_write(basic: OperatorWorld) -> None:
    cache = basic.operator.caches[TIDB_CLUSTERS]
    basic.change(tidb={"replicas": 2})
    basic.operator.look()
    cache.blind = True
    basic.operator.work()
    assert "patch tidbclusters.pingcap.com/status basic" in basic.writes()
    basic.forget()
    basic.run(20.0)
    assert ([], []) == (basic.writes(), basic.operator.dataplane.requests)

    cache.blind = False
    cache.look()
    basic.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_does_not_wait_for_a_write_that_a_restored_etcd_has_lost(basic: OperatorWorld) -> None:
    cache, server = basic.operator.caches[TIDB_CLUSTERS], basic.world.server
    snapshot = server.snapshot()
    basic.change(tidb={"replicas": 2})
    basic.operator.look()
    cache.blind = True
    basic.operator.work()
    assert "patch tidbclusters.pingcap.com/status basic" in basic.writes()

    server.storage.restore(snapshot, versions_go_back=True)
    cache.blind = False
    for each in basic.operator.caches.values():
        each.cut()
    basic.change(tidb={"replicas": 3})
    basic.run_until(lambda: 3 == basic.replicas("tidb"))
    basic.run_until_ready()


@pytest.mark.rule("F27")
def test_recreates_a_deleted_config_map_under_its_name(basic: OperatorWorld) -> None:
    (before,) = [each for each in basic.every(CONFIG_MAPS) if each["metadata"]["name"].startswith("basic-tikv")]
    basic.admin.delete(CONFIG_MAPS, before["metadata"]["name"], NAMESPACE)
    basic.run(5.0)

    assert before["data"] == basic.get(CONFIG_MAPS, before["metadata"]["name"])["data"]
    assert "Done" == basic.reason()


@pytest.mark.slow
@pytest.mark.rule("F53")
def test_hanging_servers_do_not_block_a_worker(basic: OperatorWorld) -> None:
    basic.change(tidb={"replicas": 4})
    basic.run_until_ready()
    for ordinal in (0, 1, 2):
        basic.world.data_plane.hang(NAMESPACE, f"basic-tidb-{ordinal}")
    started = basic.clock.now()
    basic.operator.sync("default/basic")

    assert basic.clock.now() - started <= 11.0
    health = {name: each.get("health") for name, each in basic.cluster()["status"]["tidb"]["members"].items()}
    assert {f"basic-tidb-{ordinal}": ordinal == 3 for ordinal in range(4)} == health


@pytest.mark.rule("3.1")
def test_tidb_waits_for_its_client_certificate(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["tidb"]["tlsClient"] = {"enabled": True}
    pair = Authority().pair()
    world.admin.create(SECRETS, pair.secret("basic-tidb-client-secret"), NAMESPACE)
    world.apply(cluster)

    def progressing() -> Json:
        conditions = (world.cluster().get("status") or {}).get("tidb", {}).get("conditions") or []
        return condition_of(conditions, "Progressing")

    world.run_until(lambda: progressing().get("reason") == "MissingSecret")
    assert progressing()["message"].endswith("requires Secret basic-tidb-server-secret with tls.crt and tls.key")
    assert "Secret default/basic-tidb-server-secret does not exist" in world.condition("Progressing")["message"]

    world.admin.create(SECRETS, pair.secret("basic-tidb-server-secret"), NAMESPACE)
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-tidb"))


def test_names_a_pod_that_cannot_start_and_the_reason(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["pd"]["nodeSelector"] = {"no": "such-node"}
    world.apply(cluster)
    world.run(10.0)
    message = world.condition("Progressing")["message"]
    assert message.startswith(
        "pd: 0 of 1 pods are Ready; waiting for basic-pd-0 (Unschedulable: 0/3 nodes are available"
    )
