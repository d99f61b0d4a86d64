"""DDL is paused while TiDB is upgraded, and never forgotten to be resumed (lifecycle.md 7.6, F26, I39)."""

import pytest

from kube.objects import Json
from kube.resources import PODS, TIDB_CLUSTERS
from member.lifecycle.rolling import Rolling
from tests.operator_world import NAMESPACE, OperatorWorld, sample

ANNOTATION = "tidb.pingcap.com/smooth-upgrade-"


def annotations(world: OperatorWorld) -> dict[str, str]:
    """The recorded annotations of the pause."""
    found = world.cluster()["metadata"].get("annotations") or {}
    return {key.removeprefix(ANNOTATION): value for key, value in found.items() if key.startswith(ANNOTATION)}


def told(world: OperatorWorld) -> list[str]:
    """The requests to TiDB since `forget`, in order."""
    urls = (call.url for call in world.operator.dataplane.writes())
    return [url.rpartition("/")[2] for url in urls if "/upgrade/" in url]


def is_paused(world: OperatorWorld) -> bool:
    cluster = world.world.data_plane.pd_cluster("default", "basic")
    assert cluster is not None
    return bool(cluster.etcd.range(b"/tidb/server/global_state", b"", world.clock.now()))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6")
def test_pauses_ddl_while_tidb_rolls_and_resumes_it_afterwards(basic: OperatorWorld) -> None:
    basic.change(tidb={"version": "v8.5.9"})
    basic.run_until(lambda: "started-at" in annotations(basic))
    assert is_paused(basic)
    assert ("true", "v8.5.2", "v8.5.9") == tuple(
        annotations(basic)[key] for key in ("ddl-paused", "source-version", "target-version")
    )
    basic.run_until_ready()
    assert ({}, False, ["start", "finish"]) == (annotations(basic), is_paused(basic), told(basic))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6")
def test_does_not_pause_ddl_unless_the_version_changes(basic: OperatorWorld) -> None:
    basic.change(tidb={"annotations": {"a": "b"}})
    basic.run_until(lambda: basic.reason() == "RollingUpdate")
    basic.run_until_ready()
    assert ({}, []) == (annotations(basic), told(basic))


@pytest.mark.slow
@pytest.mark.rule("I39")
def test_resumes_ddl_when_an_upgrade_is_reverted(basic: OperatorWorld) -> None:
    basic.world.faults.image_missing("pingcap/tidb:v8.5.9")
    basic.change(tidb={"version": "v8.5.9"})
    basic.run_until(lambda: "basic-tidb-0 is Ready" in str(basic.condition("Progressing")))
    basic.change(tidb={"version": None})
    basic.run_until_ready()
    assert ({}, False) == (annotations(basic), is_paused(basic))


@pytest.mark.slow
@pytest.mark.rule("F26")
def test_resumes_ddl_although_the_operator_restarts_at_any_moment(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["tidb"]["replicas"] = 2
    world.apply(cluster)
    world.run_until_ready()
    world.change(tidb={"version": "v8.5.9"})
    was_paused = False
    for _ in range(20):
        world.forget()
        world.run_until(lambda: bool(world.writes()) or world.reason() == "Done")
        was_paused = was_paused or is_paused(world)
        assert annotations(world) or not is_paused(world)
        world.restart()
    world.run_until_ready()
    assert (True, {}, False) == (was_paused, annotations(world), is_paused(world))


@pytest.mark.slow
@pytest.mark.rule("I39")
def test_resumes_ddl_although_a_client_replaces_the_cluster_meanwhile(basic: OperatorWorld) -> None:
    """As with `kubectl replace`, and with Argo CD's `Replace=true`."""
    basic.change(tidb={"version": "v8.5.9"})
    basic.run_until(lambda: "started-at" in annotations(basic))
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": None}})
    basic.run(1.0)
    basic.run_until_ready()
    basic.run(10.0)
    assert (False, "finish") == (is_paused(basic), told(basic)[-1])
    basic.forget()
    basic.run(120.0)
    assert [] == told(basic)


@pytest.mark.slow
@pytest.mark.rule("I39")
def test_does_not_wait_for_removed_servers_and_resumes_ddl_through_the_next_one(
    basic: OperatorWorld,
) -> None:
    basic.change(tidb={"version": "v8.5.9"})
    basic.run_until(lambda: "started-at" in annotations(basic))
    basic.change(tidb={"replicas": 0})
    basic.run_until_ready()
    assert is_paused(basic)
    basic.change(tidb={"replicas": 1})
    basic.run_until(lambda: basic.reason() == "DDLPaused" or not is_paused(basic))
    basic.run_until_ready()
    assert ({}, False) == (annotations(basic), is_paused(basic))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "cluster"),
    [
        ("OnDelete", {"spec": {"tidb": {"statefulSetUpdateStrategy": "OnDelete"}}}),
        ("HeldBack", {"metadata": {"annotations": {"tidb.pingcap.com/tidb-partition": "1"}}}),
    ],
)
@pytest.mark.rule("lifecycle-7.6")
def test_reports_paused_ddl_while_the_user_must_finish_the_upgrade(
    world: OperatorWorld, reason: str, cluster: Json
) -> None:
    first = sample("basic")
    first["spec"]["tidb"]["replicas"] = 2
    world.apply(first)
    world.run_until_ready()
    world.change(tidb={"version": "v8.5.9"})
    world.run_until(lambda: "started-at" in annotations(world))
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, cluster)
    world.run(30.0)
    message = world.condition("Progressing")["message"]
    assert (reason, True, True) == (world.reason(), is_paused(world), "; DDL is paused until all servers" in message)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6")
def test_does_not_pause_ddl_while_a_policy_refuses_the_upgrade(basic: OperatorWorld) -> None:
    allow = basic.world.faults.webhook("signed-images")
    basic.change(tidb={"version": "v8.5.9"})
    basic.run(200.0)
    assert ("Forbidden", {}, []) == (basic.reason(), annotations(basic), told(basic))
    allow()
    basic.run_until_ready(within=180.0)
    assert ({}, False, ["start", "finish"]) == (annotations(basic), is_paused(basic), told(basic))


def _two_servers(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["tidb"]["replicas"] = 2
    world.apply(cluster)
    world.run_until_ready()


def _versions(world: OperatorWorld) -> dict[str, str]:
    """The versions of TiDB's pods."""
    pods = [each for each in world.every(PODS) if each["metadata"]["name"].startswith("basic-tidb-")]
    return {each["metadata"]["name"]: each["spec"]["containers"][-1]["image"].rpartition(":")[2] for each in pods}


def _first_of(world: OperatorWorld, version: str) -> bool:
    """True if DDL is paused when the first pod has this version."""
    world.run_until(lambda: version in _versions(world).values(), 120.0)
    return is_paused(world)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6", "F11")
@pytest.mark.parametrize("broken", ["basic-tidb-0", "basic-tidb-1"])
def test_pauses_ddl_before_a_broken_server_gets_the_new_version(world: OperatorWorld, broken: str) -> None:
    _two_servers(world)
    heal = world.world.faults.pod_crash_loop(f"{NAMESPACE}/{broken}")
    world.run(60.0)
    world.change(tidb={"version": "v8.5.9"})
    assert _first_of(world, "v8.5.9")
    assert "v8.5.9" == _versions(world)[broken]
    heal()
    world.run_until_ready(within=240.0)
    assert ({}, False, ["start", "finish"]) == (annotations(world), is_paused(world), told(world))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6", "F11")
def test_pauses_ddl_before_a_missing_server_returns_in_the_new_version(world: OperatorWorld) -> None:
    _two_servers(world)
    allow = world.world.faults.creation_refused("pods", "basic-tidb-1")
    world.admin.delete(PODS, "basic-tidb-1", NAMESPACE)
    world.run(60.0)
    world.change(tidb={"version": "v8.5.9"})
    world.run(60.0)
    allow()
    assert _first_of(world, "v8.5.9")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6", "F11")
def test_keeps_a_broken_server_while_another_refuses_to_pause_ddl(world: OperatorWorld) -> None:
    _two_servers(world)
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-1")
    world.run(60.0)
    heal = world.world.faults.server_refuses(f"{NAMESPACE}/basic-tidb-*", "/upgrade/start")
    world.change(tidb={"version": "v8.5.9"})
    world.run(120.0)
    assert ({"v8.5.2"}, "ApiError") == (set(_versions(world).values()), world.reason())
    heal()
    assert _first_of(world, "v8.5.9")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.6", "F11")
def test_reports_that_ddl_is_not_paused_while_no_server_is_healthy(world: OperatorWorld) -> None:
    _two_servers(world)
    heals = [world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-{each}") for each in (0, 1)]
    world.run(60.0)
    world.change(tidb={"version": "v8.5.9"})
    world.run_until(lambda: "v8.5.9" in _versions(world).values(), 120.0)
    (event,) = world.events("DDLNotPaused")
    assert ("Warning", True) == (event["type"], "from v8.5.2 to v8.5.9" in event["message"])
    for heal in heals:
        heal()
    world.run_until_ready(within=300.0)
    assert ({}, False) == (annotations(world), is_paused(world))


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.rule("lifecycle-7.6")
def test_notices_a_broken_server_that_restarts_in_the_write_of_the_template(
    world: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _two_servers(world)
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-1")
    world.run(60.0)
    monkeypatch.setattr(Rolling, "announces", property(lambda _: False))
    world.change(tidb={"version": "v8.5.9"})
    assert not _first_of(world, "v8.5.9")
